package commitlog

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzOpen opens files of any bytes. A file that opens has the same commits after an append and after a
// rewrite; one that is refused is unchanged. If fix is true, checksums are corrected so that more files open.
func FuzzOpen(f *testing.F) {
	h := header{n: 7, snapCommit: 9, format: "events/1", salt: "0123456789abcdef"}
	text := h.text()
	for i, records := range []string{`{"user":{"id":"usr_ada"}}`, ``, `{"event":{}},{"guest":{}}`,
		`{"c":"00000000","n":9,"w":[]}`} {
		text = appendLine(text, h.saltSum(), h.n+1+uint64(i), []byte(records))
	}
	text = append(text, closing...)
	for _, fix := range []bool{false, true} {
		f.Add(text, fix)
		f.Add(text[:len(text)-2], fix)
		f.Add(text[:len(text)-20], fix)
		f.Add(append(slices.Clone(text), 0, 0, 0), fix)
		f.Add(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), fix)
		f.Add([]byte(`[{"user":{}}]`), fix)
	}
	f.Fuzz(func(t *testing.T, text []byte, fix bool) {
		if fix {
			text = sealed(text)
		}
		first := openImage(t, text)
		if first == nil {
			return
		}
		d := newMemDisk(512)
		d.put(memPath, text)
		l, _ := openMem(t, d)
		check(t, l.Append([]byte("one more")))
		check(t, l.Close())
		l, second := openMem(t, d)
		if !slices.Equal(withRecords(second), append(first, "one more")) {
			t.Fatalf("commits after an append: got %q, want one more than %q", second, first)
		}
		check(t, l.Rewrite(seq(second...)))
		check(t, l.Close())
		_, third := openMem(t, d)
		if !slices.Equal(third, append(second, "")) {
			t.Fatalf("commits after a rewrite: got %q, want %q", third, second)
		}
	})
}

// sealed returns text with valid checksums wherever there is a line.
func sealed(text []byte) []byte {
	lines := bytes.SplitAfter(bytes.Clone(text), []byte("\n"))
	var salt uint32
	for i, line := range lines {
		line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte(",")), []byte("\n"))
		if len(line) < summedFrom {
			continue
		}
		seal(line, salt)
		if i == 1 {
			h, _, _ := parseHeader(slices.Concat([]byte(opening), line, []byte("\n")), options.Formats)
			salt = h.saltSum()
		}
	}
	return bytes.Join(lines, nil)
}
