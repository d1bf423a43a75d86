package recordfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// sealed returns data with the checksums made right, as far as there are lines:
// so that a fuzzer gets behind them.
func sealed(data []byte) []byte {
	lines := bytes.SplitAfter(bytes.Clone(data), []byte("\n"))
	var salt uint32
	for i, line := range lines {
		line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte(",")), []byte("\n"))
		if len(line) < summedAt {
			continue
		}
		seal(line, salt)
		if i == 1 {
			m := newMemFS(512)
			m.put(dataPath, append([]byte(opening), append(line, '\n')...))
			r, err := openToRead(dataPath, on(m))
			if err == nil && r.readHeader() == nil {
				salt = r.salt
			}
		}
	}
	return bytes.Join(lines, nil)
}

func addSeeds(f *testing.F) {
	h := header{before: 7, snap: 9, format: "events/1", saltText: "0123456789abcdef"}
	file := h.text()
	for n, records := range []string{`{"user":{"id":"usr_ada"}}`, ``, `{"event":{}},{"guest":{}}`,
		`{"c":"00000000","n":9,"w":[]}`} {
		file = appendCommit(file, h.saltSum(), uint64(n)+8, []byte(records))
	}
	file = append(file, closing...)
	for _, fix := range []bool{false, true} {
		f.Add(file, fix)
		f.Add(file[:len(file)-2], fix)
		f.Add(file[:len(file)-20], fix)
		f.Add(append(slices.Clone(file), 0, 0, 0), fix)
		f.Add(bytes.ReplaceAll(file, []byte("\n"), []byte("\r\n")), fix)
		f.Add([]byte("[\n"), fix)
		f.Add([]byte("[{\"user\":{}}]"), fix)
		f.Add([]byte{}, fix)
	}
}

// contents opens what a memory disk holds.
func contents(m *memFS) (f *File, commits []string, err error) {
	f, err = Open(dataPath, on(m), func(l Line) error {
		if strings.Contains(l.Records, "\n") {
			panic("a commit with a line break")
		}
		commits = append(commits, l.Records)
		return nil
	})
	return f, commits, err
}

// filled is the commits that hold records.
func filled(commits []string) []string {
	return slices.DeleteFunc(slices.Clone(commits), func(c string) bool { return c == "" })
}

// What opens, opens the same after it was settled and after it was rewritten;
// what is refused is not changed.
func FuzzOpen(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, fix bool) {
		if fix {
			data = sealed(data)
		}
		m := newMemFS(512)
		m.put(dataPath, data)
		f, first, err := contents(m)
		if err != nil {
			if !bytes.Equal(m.get(dataPath), data) || len(m.names) > 1 || err.Error() == "" {
				t.Fatalf("refused with %v, and changed", err)
			}
			return
		}
		ok(t, f.Settle())
		ok(t, f.Append([]byte("one more")))
		ok(t, f.Close())
		f, second, err := contents(m)
		if err != nil || !slices.Equal(filled(second), append(filled(first), "one more")) ||
			second[len(second)-1] != "" {
			t.Fatalf("opened with %q, after an append with %q, %v", first, second, err)
		}
		ok(t, f.Rewrite(seq(second...)))
		ok(t, f.Close())
		f, third, err := contents(m)
		if err != nil || !slices.Equal(third, append(second, "")) { // one to end the snapshot
			t.Fatalf("rewritten with %q, opened with %q, %v", second, third, err)
		}
		ok(t, f.Close())
	})
}
