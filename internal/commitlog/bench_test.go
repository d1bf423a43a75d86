package commitlog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	l, err := Open(filepath.Join(b.TempDir(), "events.json"), options, ignore)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	record := fmt.Appendf(nil, `{"event":{"id":"evt_1","title":"%s"}}`, strings.Repeat("x", 460))
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	for b.Loop() {
		err := l.Append(record)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a million lines, about 500 MB, without doing anything with the records.
func BenchmarkOpen(b *testing.B) {
	const lines = 1_000_000
	path := filepath.Join(b.TempDir(), "events.json")
	l, err := Open(path, options, ignore)
	if err != nil {
		b.Fatal(err)
	}
	title := strings.Repeat("x", 430)
	err = l.Rewrite(func(yield func([]byte) bool) {
		for i := range lines {
			if !yield(fmt.Appendf(nil, `{"event":{"id":"evt_%d","title":"%s"}}`, i, title)) {
				return
			}
		}
	}, lines)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(l.Size())
	l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l, err := Open(path, options, ignore)
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
