package operator

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"example.com/events/internal/command"
)

// applyProgress is how far an array is applied to a store, for [command.Program.Progress]. What a
// running server has done of it is not known.
func applyProgress(store Store, records []byte) func() string {
	counting, isCounting := store.(interface{ Applied() int64 })
	if !isCounting {
		return func() string { return "apply: the running server works on it" }
	}
	total := sync.OnceValue(func() int64 { return countElements(records) })
	return func() string {
		return fmt.Sprintf("apply: %s of %s records",
			command.Thousands(counting.Applied()), command.Thousands(total()))
	}
}

// countElements is how many elements a JSON array has: as many objects as begin in it, and in no
// other object. It takes a fraction of the time of parsing them.
func countElements(array []byte) (n int64) {
	depth := 0
	for i := 0; i < len(array); i++ {
		switch array[i] {
		case '"':
			for i++; i < len(array) && array[i] != '"'; i++ {
				if array[i] == '\\' {
					i++ // and what it escapes
				}
			}
		case '{':
			if depth == 0 {
				n++
			}
			depth++
		case '}':
			depth--
		}
	}
	return n
}

// countingWriter counts what is written.
type countingWriter struct {
	to io.Writer
	n  atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n.Add(int64(n))
	return n, err
}

// progress is how much was written, for [command.Program.Progress].
func (w *countingWriter) progress() string { return fmt.Sprintf("dump: %d MB", w.n.Load()/1e6) }
