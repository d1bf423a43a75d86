package recordfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is missing at the beginning is reported, whether or not the header is still there, and no
// number that only a forged line claims is counted.
func TestSalvageBeginning(t *testing.T) {
	good := killed(t, []string{"1", "2"}, "3", "4") // commits 2 to 6, of which 4 ends the snapshot
	lines := strings.SplitAfter(good, "\n")
	from := func(i int) string { return strings.Join(lines[i:], "") }
	salt := good[strings.Index(good, `"salt":"`)+8:][:16]
	withHeader := func(before, snap uint64) string {
		return string(header{before: before, snap: snap, format: "events/1", saltText: salt}.text()) + from(2)
	}
	withCommit := func(n uint64) string {
		line := appendCommit(nil, header{saltText: salt}.saltSum(), n, []byte("forged"))
		return strings.TrimSuffix(good, closing) + string(line) + closing
	}
	for name, test := range map[string]struct {
		text     string
		first    uint64
		noHeader bool
		missing  int
		found    int
	}{
		"whole":                          {good, 2, false, 0, 5},
		"header gone":                    {lines[0] + from(2), 2, true, 0, 5},
		"header changed":                 {strings.Replace(good, "snap", "snaq", 1), 2, true, 0, 5},
		"cut at the end of line 2":       {from(2), 2, true, 0, 5},
		"cut at the end of line 5":       {from(5), 5, true, 0, 2},
		"first commits gone":             {lines[0] + lines[1] + from(4), 4, false, 2, 3},
		"all of the snapshot gone":       {lines[0] + lines[1] + from(5), 5, false, 3, 2},
		"all but the header gone":        {lines[0] + lines[1], 0, false, 3, 0},
		"zeros over the beginning":       {strings.Repeat("\x00", len(good)-len(from(5))) + from(5), 5, true, 0, 2},
		"a header that promises much":    {withHeader(1, 1<<60), 2, false, 0, 5},
		"a header that promises most":    {withHeader(1, 1<<64-1), 2, false, 0, 5},
		"a header of a later generation": {withHeader(1<<50, 1<<50+1), 2, false, 1, 5},
		"a huge number":                  {withCommit(1 << 60), 2, false, 0, 6},
		"the largest number":             {withCommit(1<<64 - 1), 2, false, 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemFS(512)
			m.put(dataPath, []byte(test.text))
			n := 0
			found, err := Salvage(dataPath, on(m), func(Line) error { n++; return nil })
			if err != nil || found.First != test.first || found.NoHeader != test.noHeader ||
				found.Missing != test.missing || n != test.found {
				t.Errorf("Salvage = %+v, %v and %d commits, want %+v", found, err, n, test)
			}
		})
	}
}

// A file whose beginning was overwritten is damaged, wherever a line of it follows, and only a
// file without any is another one.
func TestBeginningOverwritten(t *testing.T) {
	t.Parallel()
	good := killed(t, []string{strings.Repeat("x", 1000)}, "3", "4")
	lines := good[strings.Index(good, `,{"c"`):]
	for _, size := range []int{1, 90, 4096, 64 << 10, chunk + 5} {
		for name, fill := range map[string]string{"zeros": "\x00", "noise": `{"c":"` + strings.Repeat("x", 999) + "\n"} {
			garbage := strings.Repeat(fill, size/len(fill)+1)[:size]
			for where, text := range map[string]string{
				"before all lines":  garbage + lines,
				"before the last":   garbage + lines[strings.LastIndex(lines, ",{"):],
				"around a line":     garbage + lines[:strings.Index(lines, "\n")+1] + garbage,
				"around its head":   garbage + lines[:40] + strings.Repeat("x", 2*chunk),
				"in place of lines": garbage,
			} {
				m := newMemFS(512)
				m.put(dataPath, []byte(text))
				isDamage := where != "in place of lines"
				for call, try := range map[string]func() error{
					"Open": func() error { _, err := Open(dataPath, on(m), ignore); return err },
					"Read": func() error { _, err := Read(dataPath, on(m), ignore); return err },
				} {
					err := try()
					damage, is := errors.AsType[*DamageError](err)
					if is != isDamage || is && (damage.Line != 1 || damage.Offset != 0) ||
						!is && !errors.Is(err, ErrFormat) {
						t.Errorf("%d bytes of %s %s: %s = %v, want damage: %v", size, name, where, call, err, isDamage)
					}
				}
				if where != "before all lines" {
					continue
				}
				var commits []string
				found, err := Salvage(dataPath, on(m), collect(&commits))
				if err != nil || !found.NoHeader || !slices.Equal(commits[1:], []string{"", "3", "4"}) {
					t.Errorf("%d bytes of %s: Salvage = %+v, %v, %d commits", size, name, found, err, len(commits))
				}
			}
		}
	}
	t.Run("the head of a line in two reads", func(t *testing.T) {
		const head = `{"c":"01234567","n":12345,`
		for before := 64 << 10; before <= chunk; before += chunk - 64<<10 - len(head) - 2 {
			for shift := range len(head) + 4 {
				m := newMemFS(512)
				text := strings.Repeat("x", before+shift) + head + strings.Repeat("x", 2*chunk)
				m.put(dataPath, []byte(text))
				if _, err := Read(dataPath, on(m), ignore); !errors.Is(err, ErrDamaged) {
					t.Fatalf("a head behind %d bytes: Read = %v", before+shift, err)
				}
			}
		}
	})
	t.Run("a read fails", func(t *testing.T) {
		m := newMemFS(512)
		m.put(dataPath, make([]byte, 3*chunk))
		for k, kind := range []string{"stat", "read", "read", "read"} {
			m.fault = once(kind, k, fault{err: errIO})
			if _, err := Open(dataPath, on(m), ignore); !errors.Is(err, errIO) {
				t.Errorf("%s %d fails: Open = %v", kind, k, err)
			}
		}
	})
}

// The start after an end that was not clean logs one line that says so, and what is known of it.
func TestUncleanEnd(t *testing.T) {
	gone := goneProcess(t)
	for name, test := range map[string]struct {
		text, lock string // that were left
		says       []string
	}{
		"clean":             {readFile(t, create(t, []string{"1"}, "2")), "", nil},
		"of an older life":  {readFile(t, create(t, []string{"1"}, "2")), fmt.Sprintln(gone), nil},
		"killed idle":       {readFile(t, create(t, []string{"1"}, "2")), fmt.Sprintf("%d\nstarting\n", gone), []string{"holder=starting"}},
		"killed":            {killed(t, []string{"1"}, "2"), fmt.Sprintf("%d\noperator: /x\n", gone), []string{`holder="operator: /x"`}},
		"power cut":         {killed(t, []string{"1"}, "2"), "", []string{"data="}},
		"half a write":      {killed(t, []string{"1"}, "2") + ",{", "", []string{"not whole: 4 bytes", "kept in "}},
		"no bracket":        {strings.TrimSuffix(killed(t, []string{"1"}, "2"), closing), "", []string{"bracket was missing"}},
		"within its making": {"", fmt.Sprintf("%d\nstarting\n", gone), []string{"holder=starting"}},
	} {
		for how, settle := range map[string]func(*File) error{"Settle": (*File).Settle, "Rewrite": rewriteTo("1")} {
			if test.text == "" && how == "Settle" {
				continue // there is nothing to settle
			}
			path := filepath.Join(t.TempDir(), "events.json")
			if test.text != "" {
				ok(t, os.WriteFile(path, []byte(test.text), 0o600))
			}
			ok(t, os.WriteFile(path+".lock", []byte(test.lock), 0o600))
			var logged []string
			o := options
			o.Holder = "starting"
			o.Logger = logTo(func(line string) { logged = append(logged, line) })
			for range 2 { // the second life follows a clean end
				f, err := Open(path, o, ignore)
				ok(t, err)
				ok(t, settle(f))
				ok(t, f.Append([]byte("3")))
				ok(t, f.Close())
			}
			if len(logged) != min(1, len(test.says)) {
				t.Errorf("%s, %s: logged %q, want %d lines", name, how, logged, min(1, len(test.says)))
				continue
			}
			for _, says := range test.says {
				if !strings.Contains(logged[0], says) || !strings.Contains(logged[0], "did not end cleanly") ||
					!strings.Contains(logged[0], "level=WARN") {
					t.Errorf("%s, %s: logged %s, want %q", name, how, logged[0], says)
				}
			}
		}
	}
	t.Run("read-only", func(t *testing.T) {
		m := newMemFS(512)
		m.put(dataPath, []byte(killed(t, []string{"1"}, "2")))
		f, _, err := openContent(m)
		ok(t, err)
		m.fault = once("write", 0, fault{err: diskFull})
		if err := f.Settle(); !errors.Is(err, ErrReadOnly) {
			t.Errorf("Settle = %v", err)
		}
		if len(m.logged) != 2 || !strings.Contains(m.logged[0], "did not end cleanly") ||
			!strings.Contains(m.logged[1], "nothing more can be written") {
			t.Errorf("logged %q", m.logged)
		}
	})
}

// What ends writing is logged when it does, once, whatever was logged before.
func TestEndOfWritingIsLogged(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Settle())
	m.logged = nil
	m.fault = once("write", 0, fault{err: diskFull})
	if err := f.Append([]byte("3")); !errors.Is(err, diskFull) || len(m.logged) != 0 {
		t.Errorf("Append on a full disk = %v, logged %q", err, m.logged)
	}
	m.fault = nil
	m.put(dataPath, []byte("another file"))
	for range 2 {
		err := f.Append([]byte("4"))
		ended, is := errors.AsType[*EndedError](err)
		if !is || ended.State != ErrBroken || !errors.Is(err, ErrReplaced) || f.Err() != err {
			t.Errorf("Append to a file that was replaced = %v, Err = %v", err, f.Err())
		}
	}
	if len(m.logged) != 1 || !strings.Contains(m.logged[0], "removed or replaced") ||
		!strings.Contains(m.logged[0], "level=ERROR") {
		t.Errorf("logged %q, want one line with the reason", m.logged)
	}
}
