package recordfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	record := fmt.Appendf(nil, `{"event":{"id":"evt_1","title":"%s"}}`, strings.Repeat("x", 460))
	onDisk := filepath.Join(b.TempDir(), "events.json")
	for name, path := range map[string]string{"memory": dataPath, "disk": onDisk} {
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

type fixedFile struct {
	handle
	size *int64 // that it would have
}

func (f fixedFile) WriteAt(p []byte, off int64) (int, error) {
	*f.size = off + int64(len(p))
	return len(p), nil
}

func (fixedFile) Sync() error { return nil }

func (m fixedFS) Open(path string, flag int, like handle) (handle, error) {
	f, err := m.memFS.Open(path, flag, like)
	if err == nil && flag&os.O_CREATE != 0 {
		f = fixedFile{f, new(int64)}
	}
	return f, err
}

func (m fixedFS) Size(_ string, f handle) (int64, error) {
	if f == nil {
		return 0, nil
	}
	return *f.(fixedFile).size, nil
}

func BenchmarkOpen(b *testing.B) {
	const lines = 100_000
	path := filepath.Join(b.TempDir(), "events.json")
	f, err := Open(path, options, ignore)
	if err != nil {
		b.Fatal(err)
	}
	title := strings.Repeat("x", 430)
	err = f.Rewrite(func(yield func([]byte) bool) {
		for i := range lines {
			if !yield(fmt.Appendf(nil, `{"event":{"id":"evt_%d","title":"%s"}}`, i, title)) {
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
