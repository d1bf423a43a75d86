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

// The collector's setting is that of the process, so it ends as it was, however calls
// overlap. This test does not run in parallel, as it sees what others set.
func TestSaveMemory(t *testing.T) {
	const usual = 123 // percent
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	expect := func(when string, want uint64) {
		t.Helper()
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		if got := sample[0].Value.Uint64(); got != want {
			t.Errorf("%s the setting is %d, want %d", when, got, want)
		}
	}
	restore := SaveMemory(manyRecords - 1)
	expect("during few records", usual)
	restore()
	restore = SaveMemory(manyRecords)
	expect("during many", oftenGC)
	within := SaveMemory(manyRecords)
	expect("during work within work", oftenGC)
	within()
	expect("after work within work", oftenGC)
	restore()
	expect("after many", usual)
	begun, end, ended := make(chan bool), make(chan bool), make(chan bool)
	for range 2 {
		go func() {
			restore := SaveMemory(manyRecords)
			begun <- true
			<-end
			restore()
			ended <- true
		}()
		<-begun
	}
	for i := range 2 { // either of them may be the first to end
		end <- true
		<-ended
		if i == 1 {
			expect("after work that overlaps", usual)
		}
	}
}

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

// The more is stored, the less garbage may stand beside it, unless GOGC is set. This test does not
// run in parallel, as it sees what others set.
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
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan bool)
			go func() {
				LimitMemory(ctx, environ, size.Load)
				close(done)
			}()
			for _, tt := range []struct {
				stored int64
				want   uint64
			}{{0, mostGC}, {1000, mostGC}, {64 << 20, 100}, {128 << 20, 50}, {1 << 40, leastGC}, {128 << 20, 50}, {0, mostGC}} {
				size.Store(tt.stored)
				time.Sleep(time.Second)
				synctest.Wait()
				want := tt.want
				if environ[0] == "GOGC=123" {
					want = chosen
				}
				if got := setting(); got != want {
					t.Errorf("%v: beside %d bytes the setting is %d, want %d", environ, tt.stored, got, want)
				}
			}
			restore := SaveMemory(manyRecords)
			time.Sleep(5 * time.Second)
			if got := setting(); got != oftenGC {
				t.Errorf("%v: while records are made the setting is %d, want %d", environ, got, oftenGC)
			}
			restore()
			stop()
			<-done
		})
	}
}
