package recordfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	record := fmt.Appendf(nil, `{"event":{"id":"evt_1","title":"%s"}}`, strings.Repeat("x", 460))
	for name, path := range map[string]string{"memory": dataPath, "disk": filepath.Join(b.TempDir(), "events.json")} {
		b.Run(name, func(b *testing.B) {
			o := options
			if name == "memory" {
				o.fs = fixedFS{newMemFS(4096)}
			}
			f, err := Open(path, o, ignore)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			if err := f.Rewrite(seq()); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(record)))
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Append(record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fixedFS is a memory disk whose files take writes and keep nothing.
type fixedFS struct{ *memFS }

type fixedFile struct{ file }

func (fixedFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (fixedFile) Sync() error                            { return nil }

func (m fixedFS) Create(path string, like file) (file, error) {
	f, err := m.memFS.Create(path, like)
	return fixedFile{f}, err
}

func (m fixedFS) Open(path string, write bool) (file, error) {
	f, err := m.memFS.Open(path, write)
	if err != nil {
		return nil, err
	}
	return fixedFile{f}, nil
}

func BenchmarkOpen(b *testing.B) {
	const lines = 100_000
	path := filepath.Join(b.TempDir(), "events.json")
	f, err := Open(path, options, ignore)
	if err != nil {
		b.Fatal(err)
	}
	err = f.Rewrite(func(yield func([]byte) bool) {
		for i := range lines {
			if !yield(fmt.Appendf(nil, `{"event":{"id":"evt_%d","title":"%s"}}`, i, strings.Repeat("x", 430))) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(f.Size())
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		f, err := Open(path, options, func(Line) error { n++; return nil })
		if err != nil || n != lines+1 {
			b.Fatal(n, err)
		}
		_ = f.Close()
	}
}
