package command

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Memory is given back once within a minute after much was deleted, and not otherwise.
func TestFreesMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freed := func() uint32 { // how often the collector was called
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.NumForcedGC
		}
		var size atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			LimitMemory(ctx, []string{"GOGC=77"}, size.Load)
			close(done)
		}()
		synctest.Wait()
		for _, tt := range []struct {
			size int64
			want uint32
		}{
			{10 * worthFreeing, 0}, {10 * worthFreeing, 0}, {9 * worthFreeing, 0}, {2 * worthFreeing, 1},
			{2 * worthFreeing, 0}, {0, 1}, {0, 0},
		} {
			before := freed()
			size.Store(tt.size)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := freed() - before; got != tt.want {
				t.Errorf("at %d bytes memory was freed %d times, want %d", tt.size, got, tt.want)
			}
		}
		stop()
		<-done
	})
}

func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		live, file int64
		want       int
	}{
		{0, 0, mostGC}, {smallestHeap, 0, mostGC}, {smallestHeap, smallestHeap, mostGC},
		{64 << 20, 0, 100}, {128 << 20, 0, 50}, {128 << 20, 80 << 20, 50}, {1 << 40, 0, leastGC},
		{1 << 40, 1 << 39, leastGC},
		{0, 1 << 30, perFile*256 - 100}, {1 << 30, 1 << 30, perFile - 100}, // a load, at its begin and later
	} {
		if got := garbagePercent(tt.live, tt.file); got != tt.want {
			t.Errorf("garbagePercent(%d, %d) = %d, want %d", tt.live, tt.file, got, tt.want)
		}
	}
}

// A server and a load set the collector by the size of the file, unless GOGC is set, and the end of a
// load leaves nothing of it. This test does not run in parallel, as it sees what others set.
func TestLimitMemory(t *testing.T) {
	const chosen = 123 // percent
	defer debug.SetGCPercent(debug.SetGCPercent(chosen))
	setting := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	for _, environ := range [][]string{{"GOGC=123"}, {"HOME=/", "GOGC="}} {
		synctest.Test(t, func(t *testing.T) {
			var size atomic.Int64
			expect := func(when string, least, most uint64) {
				t.Helper()
				time.Sleep(time.Second)
				synctest.Wait()
				if environ[0] == "GOGC=123" {
					least, most = chosen, chosen
				}
				if got := setting(); got < least || got > most {
					t.Errorf("%v: %s the setting is %d, want %d to %d", environ, when, got, least, most)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan bool)
			go func() {
				LimitMemory(ctx, environ, size.Load)
				close(done)
			}()
			expect("beside no file", leastGC, mostGC)
			size.Store(1 << 40)
			expect("beside a large file", 1000, 1<<31)
			size.Store(0)
			expect("beside no file again", leastGC, mostGC)
			stop()
			<-done
			size.Store(1 << 40)
			end := LimitLoad(environ, size.Load)
			expect("during a load", 1000, 1<<31)
			end()
			expect("after a load", leastGC, mostGC)
		})
	}
}
