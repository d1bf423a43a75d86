package recordfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
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

// Nothing appends lines of the newest format to a file of an older one.
func TestOlderFormatReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(string, string) fault
		write func(*File) error
		says  string
	}{
		"settled":      {nil, (*File).Settle, "it must be rewritten"},
		"no room":      {once("write", 0, fault{err: syscall.ENOSPC}), rewriteTo("3"), "no space"},
		"not renamed":  {once("rename", 0, fault{err: syscall.EACCES}), rewriteTo("3"), "permission denied"},
		"not one line": {nil, rewriteTo("3\n4"), "line break"},
	} {
		t.Run(name, func(t *testing.T) {
			m := older(t)
			before := m.get(dataPath)
			f, err := Open(dataPath, newer(m), ignore)
			ok(t, err)
			m.fault = test.fault
			err = test.write(f)
			m.fault = nil
			if !errors.Is(err, ErrReadOnly) || !errors.Is(f.Err(), ErrReadOnly) ||
				!strings.HasPrefix(err.Error(), dataPath+": ") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, and then Err = %v, want ErrReadOnly and %q in it", err, f.Err(), test.says)
			}
			for call, err := range map[string]error{"Append": f.Append([]byte("5")), "Settle": f.Settle(),
				"Rewrite": f.Rewrite(seq("6"))} {
				if !errors.Is(err, ErrReadOnly) {
					t.Errorf("%s = %v, want ErrReadOnly", call, err)
				}
			}
			ok(t, f.Close())
			if !bytes.Equal(m.get(dataPath), before) || f.format != "events/1" {
				t.Errorf("the file was changed, and the format is %q", f.format)
			}
		})
	}
}

func rewriteTo(commits ...string) func(*File) error {
	return func(f *File) error { return f.Rewrite(seq(commits...)) }
}

// A power loss at any point of the rewrite leaves the older file or the newer one, whole.
func TestOlderFormatCrash(t *testing.T) {
	m := older(t)
	rng := rand.New(rand.NewPCG(8, 8))
	found := map[string]int{}
	m.changed = func() {
		for disk := range m.powerLosses(100, rng) {
			var commits []string
			f, err := Open(dataPath, newer(disk), collect(&commits))
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			found[f.format+" "+strings.Join(filled(commits), " ")]++
			ok(t, f.Rewrite(seq("again")))
			ok(t, f.Close())
		}
	}
	f, err := Open(dataPath, newer(m), ignore)
	ok(t, err)
	ok(t, f.Rewrite(seq("1+", "2+")))
	m.changed = nil
	if len(found) != 2 || found["events/1 1 2"] == 0 || found["events/2 1+ 2+"] == 0 {
		t.Errorf("found %v, want the older file and the newer one", found)
	}
}
