package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestFaults lets every call of every kind fail in turn, before it has its effect, after it, or in the
// middle; after each change the crash states are looked at as well. A failure must be reported, and the file
// must work when it is opened again.
func TestFaults(t *testing.T) {
	t.Parallel()
	before, after := fault{err: errIO}, fault{err: errIO, after: true}
	half := fault{err: errIO, short: 40}
	for call, faults := range map[string][]fault{
		"resolve":  {before},
		"lock":     {before},
		"unlock":   {before},
		"open":     {before},
		"create":   {before, after},
		"replace":  {before, after},
		"remove":   {before},
		"syncdir":  {before},
		"read":     {before},
		"write":    {before, after, half},
		"truncate": {before, after},
		"sync":     {before, after},
		"close":    {before},
		"size":     {before},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			for _, f := range faults {
				k := 0
				for failCall(t, call, k, f) {
					k++
				}
				if k == 0 {
					t.Error("calls: got 0, want one")
				}
			}
		})
	}
}

// failCall runs a session in which the k-th call of a kind fails, and reports whether there was one.
func failCall(t *testing.T, call string, k int, f fault) (failed bool) {
	t.Helper()
	d := newMemDisk(512)
	inject := once(call, k, f)
	var s *session
	d.fault = func(call, path string) fault {
		f := inject(call, path)
		if f.err != nil {
			failed = true
			s.watch()
		}
		return f
	}
	reported := false
	s = newSession(d, 5, func(error) { reported = reported || failed })
	s.run()
	d.fault = nil
	s.start("at the end")
	if len(s.crasher.failed) > 0 {
		t.Fatalf("a crash after %s call %d failed with %v: got %s, want no failure",
			call, k, f.err, s.crasher.failed[0])
	}
	unreported := []string{"remove", "close"} // an unfinished rewrite may stay; files were synced before
	logged := strings.Contains(d.log.String(), "no end mark")
	silent := failed && !reported && !logged
	if silent && !slices.Contains(unreported, call) {
		t.Errorf("%s call %d failed with %v: got no report, want one", call, k, f.err)
	}
	return failed
}

// filled opens a file on a simulated disk that has the commits "1" and "2".
func filled(t *testing.T) (*memDisk, *Log) {
	t.Helper()
	d := newMemDisk(512)
	l, _ := openMem(t, d)
	check(t, l.Append([]byte("1")))
	check(t, l.Append([]byte("2")))
	return d, l
}

func reopened(t *testing.T, d *memDisk) string {
	t.Helper()
	_, commits := openMem(t, d.clone())
	return strings.Join(withRecords(commits), " ")
}

func withRecords(commits []string) []string {
	return slices.DeleteFunc(slices.Clone(commits), func(c string) bool { return c == "" })
}

func TestFailedSync(t *testing.T) {
	d, l := filled(t)
	d.fault = once("sync", 0, fault{err: errIO, after: true})
	err := l.Append([]byte("3"))
	checkIs(t, "Append", err, ErrBroken)
	checkIs(t, "Append", err, errIO)
	if l.Err() != err {
		t.Errorf("Err: got %v, want %v", l.Err(), err)
	}
	d.fault = func(call, _ string) fault {
		t.Errorf("calls of a broken log: got %s, want none", call)
		return fault{}
	}
	checkIs(t, "Append to a broken log", l.Append([]byte("4")), ErrBroken)
	checkIs(t, "Rewrite of a broken log", l.Rewrite(seq("5")), ErrBroken)
	d.fault = nil
	checkIs(t, "Close of a broken log", l.Close(), ErrBroken)
	if got := reopened(t, d); got != "1 2 3" {
		t.Errorf("commits: got %s, want 1 2 3", got)
	}
}

// On a full disk the commit is refused, and the file is as before.
func TestFullDisk(t *testing.T) {
	for short := range 60 {
		d, l := filled(t)
		before := d.text(memPath)
		d.fault = once("write", 0, fault{err: errFull, short: short})
		checkIs(t, "Append", l.Append([]byte("3")), errFull)
		check(t, l.Err())
		if got := d.text(memPath); got != before {
			t.Fatalf("file after %d bytes: got %s, want it as before", short, brief(got))
		}
		check(t, l.Append([]byte("4")))
		check(t, l.Close())
		if got := reopened(t, d); got != "1 2 4" {
			t.Fatalf("commits after %d bytes: got %s, want 1 2 4", short, got)
		}
	}
}

// A failed write that can't be undone breaks the log, and Open removes what is left of it.
func TestFailedUndo(t *testing.T) {
	for _, call := range []string{"write", "truncate", "sync"} {
		d, l := filled(t)
		writes := 0
		d.fault = func(called, _ string) fault {
			if called == "write" {
				writes++
			}
			if called == "write" && writes == 1 || called == call {
				return fault{err: errIO, short: 30}
			}
			return fault{}
		}
		err := l.Append([]byte("3"))
		checkIs(t, call+": Append", err, ErrBroken)
		d.fault = nil
		l.Close()
		if got := reopened(t, d); got != "1 2" {
			t.Errorf("%s: commits: got %s, want 1 2", call, got)
		}
	}
}

// A file without room for the empty commit is valid.
func TestNoRoomForEmptyCommit(t *testing.T) {
	d, l := filled(t)
	d.fault = once("write", 0, fault{err: errFull, short: 20})
	check(t, l.Close())
	l, _ = openMem(t, d)
	check(t, l.Append([]byte("3")))
	killed := d.clone()
	killed.fault = once("write", 2, fault{err: errFull, short: 20})
	l, _ = openMem(t, killed)
	check(t, l.Err())
	check(t, l.Append([]byte("4")))
	if got := reopened(t, killed); got != "1 2 3 4" {
		t.Errorf("commits: got %s, want 1 2 3 4", got)
	}
}

// If recovery fails, the file isn't opened, and the next Open finds the same commits.
func TestFailedRecovery(t *testing.T) {
	for _, test := range []struct {
		call string
		k    int
	}{
		{"create", 0}, {"write", 0}, {"write", 1}, {"write", 2}, {"truncate", 0}, {"sync", 0}, {"sync", 1},
		{"sync", 2}, {"syncdir", 0}, {"syncdir", 1},
	} {
		t.Run(fmt.Sprint(test.call, test.k), func(t *testing.T) {
			d, _ := filled(t)
			d = d.clone()
			n := d.names[memPath]
			n.apply(change{int64(len(n.cache)) - 2, []byte(",torn")})
			d.fault = once(test.call, test.k, fault{err: errIO})
			_, _, err := openContent(d)
			checkIs(t, "Open", err, errIO)
			if d.locked[memPath] {
				t.Error("lock: got it, want none")
			}
			if got := reopened(t, d); got != "1 2" {
				t.Errorf("commits: got %s, want 1 2", got)
			}
		})
	}
}

func TestFailedRewrite(t *testing.T) {
	busy := fault{err: syscall.EBUSY}
	for name, test := range map[string]struct {
		call   string
		f      fault
		says   string
		broken bool
	}{
		"not created":          {"create", fault{err: errFull}, "no space", false},
		"not written":          {"write", fault{err: errFull, short: 10}, "no space", false},
		"not synced":           {"sync", fault{err: errIO}, "input/output", false},
		"a mount point":        {"replace", busy, "mount its directory", false},
		"not renamed":          {"replace", fault{err: syscall.EACCES}, "denied", false},
		"perhaps renamed":      {"replace", fault{err: errIO, after: true}, "rename", true},
		"directory not synced": {"syncdir", fault{err: errIO}, "sync the directory", true},
	} {
		t.Run(name, func(t *testing.T) {
			d, l := filled(t)
			d.fault = once(test.call, 0, test.f)
			err := l.Rewrite(seq("new"))
			for _, want := range []string{test.says, memPath} {
				checkSays(t, "Rewrite", err, want)
			}
			if got := errors.Is(err, ErrBroken); got != test.broken {
				t.Errorf("Rewrite: got %v, which is ErrBroken: %t, want %t", err, got, test.broken)
			}
			if got := l.Err() != nil; got != test.broken {
				t.Errorf("Err: got %v, want an error: %t", l.Err(), test.broken)
			}
			if d.names[memPath+tmpSuffix] != nil {
				t.Error("FILE.tmp: got one, want none")
			}
			want := "new"
			if !test.broken {
				check(t, l.Append([]byte("3")))
				want = "1 2 3"
			}
			if got := reopened(t, d); got != want {
				t.Errorf("commits: got %s, want %s", got, want)
			}
		})
	}
}
