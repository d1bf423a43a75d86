package recordfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// newer is what a newer program opens files with.
func newer(m *memFS) Options {
	o := on(m)
	o.Formats = []string{"events/1", "events/2"}
	return o
}

// older returns the disk of a file of the format events/1 with the records 1 and 2, as it is
// when its server was killed.
func older(t *testing.T) *memFS {
	t.Helper()
	m := newMemFS(512)
	f, _, err := openContent(m)
	ok(t, err)
	ok(t, f.Rewrite(seq("1")))
	ok(t, f.Append([]byte("2")))
	return m.clone()
}

// A file of an older format is read as it is, and becomes one of the newest by a rewrite.
func TestOlderFormat(t *testing.T) {
	m := older(t)
	before := m.get(dataPath)
	format := "" // of the last file that was read
	read := func(l Line) error {
		format = l.Format
		return nil
	}
	report, err := Read(dataPath, newer(m), read)
	if err != nil || format != "events/1" {
		t.Errorf("Read = %+v, %v and lines of the format %q, want events/1", report, err, format)
	}
	var commits []string
	f, err := Open(dataPath, newer(m), func(l Line) error {
		if l.Format != "events/1" {
			t.Errorf("a line of the format %q", l.Format)
		}
		return collect(&commits)(l)
	})
	ok(t, err)
	if f.format != "events/1" || !slices.Equal(commits, []string{"1", "", "2"}) {
		t.Errorf("format %q, commits %q", f.format, commits)
	}
	if !bytes.Equal(m.get(dataPath), before) {
		t.Error("the file was changed before its rewrite")
	}
	ok(t, f.Rewrite(seq("1+", "2+")))
	if f.format != "events/2" || !strings.Contains(string(m.get(dataPath)), `"format":"events/2"`) {
		t.Errorf("after a rewrite the format is %q, and the file is %s", f.format, m.get(dataPath))
	}
	ok(t, f.Append([]byte("3+")))
	ok(t, f.Close())
	report, err = Read(dataPath, newer(m), read)
	if err != nil || format != "events/2" {
		t.Errorf("Read = %+v, %v and lines of the format %q, want events/2", report, err, format)
	}
	if _, _, err := openContent(m); !errors.Is(err, ErrFormat) {
		t.Errorf("the older program's Open = %v, want ErrFormat", err)
	}
	f, err = Open(dataPath, newer(newMemFS(512)), ignore)
	if err != nil || f.format != "events/2" {
		t.Errorf("the format of a file that is not there yet is %q, %v", f.format, err)
	}
}
