package strict

import (
	"fmt"
	"iter"
	"runtime/debug"
)

const (
	batchSize   = 128 // values that are handed over together, as that takes time, too
	batchesKept = 4   // that may wait
)

// Ahead yields what seq yields. Another goroutine ranges over seq, a little ahead, so that its work
// and that of the caller on earlier values share two processors. It has ended when Ahead's
// sequence ends. If seq panics, so does Ahead's sequence, where the caller can recover.
func Ahead[T any](seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		batches := make(chan []result, batchesKept)
		stop := make(chan bool)
		panicked := "" // with what, once batches is closed
		go func() {
			defer close(batches)
			defer func() {
				if p := recover(); p != nil {
					panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			var batch []result
			handOver := func() bool {
				select {
				case batches <- batch:
					batch = make([]result, 0, batchSize)
					return true
				case <-stop:
					return false
				}
			}
			for value, err := range seq {
				batch = append(batch, result{value, err})
				if len(batch) == batchSize && !handOver() {
					return
				}
			}
			handOver()
		}()
		defer func() {
			close(stop)
			for range batches { // until the goroutine has closed it
			}
		}()
		for batch := range batches {
			for _, r := range batch {
				if !yield(r.value, r.err) {
					return
				}
			}
		}
		if panicked != "" {
			panic(panicked)
		}
	}
}
