package command

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

const leastGarbage = 32 << 20 // bytes, for which it is not worth while to collect it early

// CollectEarly calls work, which makes much garbage beside much that stays, such as the
// application of a million records. By itself the garbage would grow to as much as is in
// use, and with GOGC=200 to twice that. While work runs, it is collected at a quarter. No
// setting of the process is changed, so there is none to be put back, and calls may
// overlap.
func CollectEarly(work func()) {
	tick := time.NewTicker(10 * time.Millisecond)
	done := make(chan struct{})
	var collecting sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-tick.C:
				collectGarbage()
			case <-done:
				return
			}
		}
	})
	defer collecting.Wait()
	defer close(done)
	defer tick.Stop()
	work()
}

func collectGarbage() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	used := sample[0].Value.Uint64()
	live := sample[1].Value.Uint64()
	if used > live+live/4+leastGarbage {
		runtime.GC()
	}
}
