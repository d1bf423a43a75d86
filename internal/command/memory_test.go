package command

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
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
	SaveMemory(manyRecords-1, func() { expect("during few records", usual) })
	SaveMemory(manyRecords, func() {
		expect("during many", oftenGC)
		SaveMemory(manyRecords, func() { expect("during a call within a call", oftenGC) })
		expect("after a call within a call", oftenGC)
	})
	expect("after many", usual)
	begun, end, ended := make(chan bool), make(chan bool), make(chan bool)
	for range 2 {
		go func() {
			SaveMemory(manyRecords, func() { begun <- true; <-end })
			ended <- true
		}()
		<-begun
	}
	for i := range 2 { // either of them may be the first to end
		end <- true
		<-ended
		if i == 1 {
			expect("after two calls that overlap", usual)
		}
	}
	func() {
		defer func() { recover() }()
		SaveMemory(manyRecords, func() { panic("in the work") })
	}()
	expect("after a panic", usual)
}
