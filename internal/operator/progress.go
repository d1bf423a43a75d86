package operator

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"example.com/events/internal/command"
	"example.com/events/internal/strict"
)

// applyProgress is how far an array is applied to a store, for [command.Program.Progress]. What a
// running server has done of it is not known.
func applyProgress(store Store, records strict.Source) func() string {
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
// other object. It takes a fraction of the time of parsing them. What cannot be read is not counted.
func countElements(array strict.Source) (n int64) {
	text := bufio.NewReaderSize(io.NewSectionReader(array, 0, array.Size()), 64<<10)
	depth := 0
	inString := false
	for {
		c, err := text.ReadByte()
		switch {
		case err != nil:
			return n
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			text.ReadByte() // what it escapes
		case inString:
		case c == '{' && depth == 0:
			n++
			depth++
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
	}
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
