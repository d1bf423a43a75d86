package command

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	worthFreeing = 64 << 20 // bytes by which a file shrinks before it is worth while to free memory

	// How much garbage may stand beside what is in use, as percent: mostGC while that is little, and
	// leastGC of much. In between it is as many bytes as usualGarbage.
	mostGC       = 200
	leastGC      = 35
	usualGarbage = 64 << 20

	smallestHeap = 4 << 20 // bytes, of which the percentage is taken where there are fewer

	// perFile is how much memory, as percent of the data file, may always be taken before garbage is
	// collected. A load grows to nearly that, so garbage need not be collected often while there is
	// little else.
	perFile = 160

	often = 20 * time.Millisecond // between two looks at a load, which fills memory fast
)

// FreeMemoryOf gives memory back to the system after so many bytes of bodies were forgotten, if
// they are many. With their garbage they have taken up to ten times as much.
func FreeMemoryOf(bytes int64) {
	if bytes >= worthFreeing/8 {
		debug.FreeOSMemory()
	}
}

// LimitMemory keeps the memory of a server near the size of its data file, until ctx is done. Size
// returns that, in bytes.
//
// The more is in use, the less garbage may stand beside it, unless the environment has GOGC: else a
// server that grows, or only reads, would take three to four times its data file. After much was
// deleted, memory is given back to the system: the collector does so by itself only slowly, and
// never while it has little to do.
func LimitMemory(ctx context.Context, environ []string, size func() int64) {
	minute := time.Tick(time.Minute)
	second := time.Tick(time.Second)
	limit := collector(environ, size)
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

// LimitLoad does so while many records are put into a store, until end is called. Size returns about
// how many bytes the data file will have.
func LimitLoad(environ []string, size func() int64) (end func()) {
	nothing := func() int64 { return 0 }
	return repeat(0, often, collector(environ, size), collector(environ, nothing))
}

// collector returns a function that sets how much garbage may stand beside what is in use. The setting
// is one of the process, which can have two servers, so it is looked at each time.
func collector(environ []string, size func() int64) (limit func()) {
	if variable(environ, "GOGC") != "" {
		return func() {}
	}
	return func() {
		now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		wanted := garbagePercent(int64(now[0].Value.Uint64()), size())
		if uint64(wanted) != now[1].Value.Uint64() {
			debug.SetGCPercent(wanted)
		}
	}
}

// garbagePercent is the collector's setting where so many bytes were in use when it last ran, beside a
// data file of this size.
func garbagePercent(live, file int64) int {
	live = max(live, smallestHeap)
	usual := min(max(100*usualGarbage/live, leastGC), mostGC)
	return int(max(usual, perFile*file/live-100))
}
