package command

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	worthFreeing = 64 << 20 // bytes by which a file shrinks before it is worth while to free memory

	manyRecords = 4 << 20 // bytes from which it is worth while to collect garbage often
	oftenGC     = 20      // percent of garbage beside what is in use, see [debug.SetGCPercent]

	// How much garbage may stand beside what is stored, as percent: mostGC while that is little, and
	// leastGC of much. In between it is as many bytes as usualGarbage.
	mostGC       = 200
	leastGC      = 35
	usualGarbage = 64 << 20
)

// SaveMemory is called before work that makes records of so many bytes of JSON, and much
// garbage. By itself that would grow to as much as is in use, or to twice that with
// GOGC=200. Until restore is called, after work on many bytes, it is collected earlier.
//
// The setting is one of the process, and work may overlap, also that of two servers in
// one process. Only the call that changed it puts it back, so it ends as it was. The
// other work may then end without it.
func SaveMemory(bytes int) (restore func()) {
	if bytes >= manyRecords {
		before := debug.SetGCPercent(oftenGC)
		if before != oftenGC {
			return func() { debug.SetGCPercent(before) }
		}
	}
	return func() {}
}

// FreeMemoryOf gives memory back to the system after so many bytes of bodies were forgotten, if
// they are many. With their garbage they have taken up to ten times as much.
func FreeMemoryOf(bytes int64) {
	if bytes >= worthFreeing/8 {
		debug.FreeOSMemory()
	}
}

// LimitMemory keeps the memory of a server near what is stored, until ctx is done. Size returns how
// much that is, in bytes.
//
// The more is stored, the less garbage may stand beside it, unless the environment has GOGC: else a
// server that grows, or only reads, would take three to four times its data file. After much was
// deleted, memory is given back to the system: the collector does so by itself only slowly, and
// never while it has little to do.
func LimitMemory(ctx context.Context, environ []string, size func() int64) {
	isChosen := variable(environ, "GOGC") != ""
	limit := func() {
		if !isChosen {
			setGCPercent(garbagePercent(size()))
		}
	}
	minute := time.Tick(time.Minute)
	second := time.Tick(time.Second)
	limit()
	before := size()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second:
			limit()
		case <-minute:
			now := size()
			if now < before-worthFreeing {
				debug.FreeOSMemory()
			}
			before = now
		}
	}
}

// garbagePercent is the collector's setting beside so many bytes that are stored.
func garbagePercent(stored int64) int {
	percent := 100 * usualGarbage / max(stored, 1)
	return int(min(max(percent, leastGC), mostGC))
}

// setGCPercent sets the collector's setting, unless work that [SaveMemory] was called for goes on.
func setGCPercent(percent int) {
	before := debug.SetGCPercent(percent)
	if before == oftenGC {
		debug.SetGCPercent(oftenGC)
	}
}
