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

// FreeMemory gives memory back to the system after much of what is stored was deleted,
// until ctx is done. Size returns how much is stored, in bytes. The collector does so by
// itself only slowly, and never while it has little to do.
func FreeMemory(ctx context.Context, size func() int64) {
	tick := time.Tick(time.Minute)
	before := size()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now := size()
		if now < before-worthFreeing {
			debug.FreeOSMemory()
		}
		before = now
	}
}
