package recordfile

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// session is a life of a file with everything in it: made, rewritten, appended
// to, torn, repaired, read. A call of the disk may fail in it; each step that
// fails must leave what the crasher allows, and the next step must cope.
func session(c *crasher, m *memFS, broken func(error)) {
	p := &process{c: c, m: m, may: []string{""}}
	p.watch()
	defer p.unwatch()
	step := func(err error) {
		if err == nil {
			return
		}
		if !errors.Is(err, errIO) && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrReadOnly) &&
			!strings.Contains(err.Error(), "settle") && !strings.Contains(err.Error(), "closed") {
			c.fail("not the injected error: %v", err)
		}
		broken(err)
	}
	open := func() bool {
		f, content, err := openContent(m)
		if err != nil {
			step(err)
			return false
		}
		if !slices.Contains(p.may, content) {
			c.fail("wrong content %s, may be %s", brief(content), brief(p.may...))
		}
		p.f, p.now = f, content
		if err := f.Err(); err != nil {
			step(err)
		}
		return true
	}
	appends := func(sizes ...int) {
		for _, size := range sizes {
			ended := p.f.Err()
			err := p.append(c.commit(size))
			if ended != nil && !errors.Is(err, ended) {
				c.fail("writing went on after %v: %v", ended, err)
			}
			step(err)
		}
	}
	if open() {
		step(p.rewrite("1", "2"))
		appends(100, 600)
		step(p.f.Close())
	}
	if n := m.names[dataPath]; n != nil {
		n.do(change{int64(len(n.cache)) - 2, []byte(",torn by a kill")})
	}
	if open() {
		step(p.settle())
		appends(100)
		step(p.rewrite(strings.Split(strings.TrimSuffix(p.now, "\n"), "\n")...))
		appends(600)
		var read strings.Builder
		_, err := Read(dataPath, on(m), func(l Line) error {
			read.WriteString(join("", l.Records))
			return nil
		})
		if err != nil {
			step(err)
		} else if !slices.Contains(p.may, read.String()) {
			c.fail("Read gave %s, may be %s", brief(read.String()), brief(p.may...))
		}
		step(p.f.Close())
	}
	m.fault = nil
	if p.open() {
		c.must(p.settle())
		c.must(p.append("end"))
		c.must(p.f.Close())
		p.open()
	}
}

// Every call of every kind fails in turn, before or after it had its effect,
// or in the middle of it; power is lost at every point as well.
func TestFaults(t *testing.T) {
	kinds := []string{"resolve", "lock", "unlock", "open", "create", "rename", "remove", "syncdir",
		"stat", "read", "write", "truncate", "sync", "close", "size"}
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { testFaults(t, false, kinds) })
	})
	t.Run("windows", func(t *testing.T) { // the calls of a rewrite are other ones there
		t.Parallel()
		kinds := []string{"open", "create", "rename", "syncdir", "sync", "close"}
		synctest.Test(t, func(t *testing.T) { testFaults(t, true, kinds) })
	})
}

func testFaults(t *testing.T, windows bool, kinds []string) {
	c := &crasher{rng: rand.New(rand.NewPCG(5, 5)), limit: 4, mayLive: 1 << 30}
	faults := map[string]int{}
	step := 1
	if testing.Short() {
		step = 4
	}
	// fails reports whether there was a k-th call of that kind, which failed.
	fails := func(kind string, k int, f fault) bool {
		m := newMemFS(512)
		m.windows = windows
		hit, reported := false, false
		inject := once(kind, k, f)
		m.fault = func(kind, path string) fault {
			f := inject(kind, path)
			hit = hit || f.err != nil
			return f
		}
		session(c, m, func(error) { reported = true })
		if len(c.failed) > 0 {
			t.Fatalf("%s %d fails (%+v): %s", kind, k, f, c.failed[0])
		}
		if !hit {
			return false
		}
		faults[kind]++
		for _, line := range m.logged {
			reported = reported || strings.Contains(line, "no empty commit was added")
		}
		if !reported && !slices.Contains([]string{"remove", "close"}, kind) {
			t.Errorf("%s %d failed (%+v), and nothing reported it", kind, k, f)
		}
		return true
	}
	for _, kind := range kinds {
		for _, f := range []fault{{err: errIO}, {err: errIO, after: true}, {err: errIO, short: 1},
			{err: errIO, short: 40}} {
			if f.short > 0 && kind != "write" {
				continue
			}
			for k := 0; fails(kind, k, f); k += step {
			}
		}
	}
	for kind, n := range faults {
		t.Logf("%-8s failed %d times", kind, n)
	}
	if len(faults) != len(kinds) {
		t.Errorf("only %v was called", slices.Sorted(maps.Keys(faults)))
	}
	t.Logf("%d crash states after the faults", c.states)
}

// settled opens a file on a memory disk that Settle makes ready for writing.
func settled(t *testing.T) (*memFS, *File) {
	t.Helper()
	return settledOn(t, false)
}

func settledOn(t *testing.T, windows bool) (*memFS, *File) {
	t.Helper()
	m := newMemFS(512)
	m.windows = windows
	f, _, err := openContent(m)
	ok(t, err)
	ok(t, f.Rewrite(seq("1")))
	ok(t, f.Append([]byte("2")))
	ok(t, f.Close())
	f, _, err = openContent(m)
	ok(t, err)
	return m, f
}

func TestSyncFailsOnce(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Settle())
	m.fault = once("sync", 0, fault{err: errIO, after: true})
	err := f.Append([]byte("3"))
	if !errors.Is(err, ErrBroken) || !errors.Is(err, errIO) || f.Err() != err ||
		!strings.Contains(err.Error(), "restart") {
		t.Fatalf("Append = %v, Err = %v", err, f.Err())
	}
	calls := 0
	m.fault = func(string, string) fault { calls++; return fault{} }
	for name, err := range map[string]error{"Append": f.Append([]byte("4")), "Rewrite": f.Rewrite(seq("5")),
		"Settle": f.Settle()} {
		if !errors.Is(err, ErrBroken) {
			t.Errorf("%s after a failed sync = %v", name, err)
		}
	}
	if calls > 0 {
		t.Errorf("%d calls of the disk after a failed sync", calls)
	}
	if err := f.Close(); !errors.Is(err, ErrBroken) {
		t.Errorf("Close = %v, has to report it", err)
	}
	m.fault = nil
	f, content, err := openContent(m)
	if err != nil || content != "1\n2\n3\n" {
		t.Errorf("the next Open: %q, %v", content, err)
	}
	ok(t, f.Settle())
}

// A full disk: the commit is refused, the file is as it was, and goes on.
func TestDiskFull(t *testing.T) {
	for short := range 60 {
		m, f := settled(t)
		ok(t, f.Settle())
		before := string(m.get(dataPath))
		m.fault = once("write", 0, fault{err: diskFull, short: short})
		if err := f.Append([]byte("3")); !errors.Is(err, diskFull) || f.Err() != nil ||
			!strings.Contains(err.Error(), "nothing was added") {
			t.Fatalf("%d bytes: Append = %v, Err = %v", short, err, f.Err())
		}
		if got := string(m.get(dataPath)); got != before {
			t.Fatalf("%d bytes: the file was left as %s", short, brief(got))
		}
		ok(t, f.Append([]byte("4")))
		ok(t, f.Close())
		_, content, err := openContent(m)
		if err != nil || content != "1\n2\n4\n" {
			t.Fatalf("%d bytes: %q, %v", short, content, err)
		}
	}
}

// A disk that is too full even for undoing a failed write: that is tried again before the
// next commit, which is refused until it succeeds. Whatever the write left is no commit then.
func TestUndoOnFullDisk(t *testing.T) {
	const commit = ",{\"c\":\"00000000\",\"n\":10008,\"w\":[3]}\n]\n"
	for name, test := range map[string]struct {
		kind  string // of the call that fails
		full  error
		short int // how much the failed write wrote
		works bool
	}{
		"no bracket, nothing written": {"write", diskFull, 0, true},
		"no bracket, half written":    {"write", diskFull, 20, true},
		"no bracket, all written":     {"write", quotaFull, len(commit), true},
		"not cut":                     {"truncate", diskFull, 20, true},
		"not cut, all written":        {"truncate", quotaFull, len(commit), true},
		"another error":               {"truncate", syscall.EIO, 20, false},
		"full only at the sync":       {"sync", diskFull, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, f := settled(t)
			ok(t, f.Settle())
			writes, full := 0, true
			m.fault = func(kind, _ string) fault {
				if kind == "write" {
					writes++
				}
				if kind == "write" && writes == 1 {
					return fault{err: diskFull, short: test.short}
				}
				if kind == test.kind && full {
					return fault{err: test.full}
				}
				return fault{}
			}
			err := f.Append([]byte("3"))
			if err == nil || errors.Is(f.Err(), ErrBroken) == test.works {
				t.Fatalf("Append = %v, Err = %v", err, f.Err())
			}
			if !test.works {
				return
			}
			for i := range 2 {
				left := string(m.get(dataPath))
				for call, err := range map[string]error{"Append": f.Append([]byte("4")), "Rewrite": f.Rewrite(seq("5"))} {
					if !errors.Is(err, test.full) || f.Err() != nil || !strings.HasPrefix(err.Error(), dataPath) {
						t.Errorf("%s %d on a full disk = %v, Err = %v", call, i, err, f.Err())
					}
				}
				if got := string(m.get(dataPath)); test.kind == "write" && got != left {
					t.Errorf("the file was changed from %s\nto %s", brief(left), brief(got))
				}
			}
			full = false
			ok(t, f.Append([]byte("6")))
			ok(t, f.Close())
			if _, content, err := openContent(m); err != nil || content != "1\n2\n6\n" {
				t.Errorf("the next Open: %q, %v", content, err)
			}
		})
	}
	t.Run("replaced meanwhile", func(t *testing.T) {
		m, f := settled(t)
		ok(t, f.Settle())
		m.fault = func(kind, _ string) fault {
			if kind == "write" {
				return fault{err: diskFull, short: 20}
			}
			return fault{}
		}
		if err := f.Append([]byte("3")); !errors.Is(err, diskFull) {
			t.Errorf("Append = %v", err)
		}
		m.fault = nil
		m.put(dataPath, []byte("another file"))
		if err := f.Append([]byte("4")); !errors.Is(err, ErrBroken) || string(m.get(dataPath)) != "another file" {
			t.Errorf("Append = %v, and the other file holds %q", err, m.get(dataPath))
		}
	})
	t.Run("closed", func(t *testing.T) {
		for _, room := range []bool{true, false} {
			m, f := settled(t)
			ok(t, f.Settle())
			ok(t, f.Append(nil)) // so that Close needs no empty commit
			before := string(m.get(dataPath))
			m.fault = func(kind, _ string) fault {
				if kind == "write" {
					return fault{err: diskFull, short: 20}
				}
				return fault{}
			}
			if err := f.Append([]byte("3")); !errors.Is(err, diskFull) {
				t.Errorf("Append = %v", err)
			}
			if room {
				m.fault = nil
			}
			ok(t, f.Close())
			if got := string(m.get(dataPath)); room && !strings.HasPrefix(got, strings.TrimSuffix(before, closing)) {
				t.Errorf("Close left %s", brief(got))
			}
			if _, content, err := openContent(m); err != nil || content != "1\n2\n" {
				t.Errorf("the next Open: %q, %v", content, err)
			}
		}
	})
}

// Without room for the empty commit all goes on: it is a warning and no error.
func TestNoRoomForEmptyCommit(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Settle())
	ok(t, f.Append([]byte("3")))
	before := string(m.get(dataPath))
	for i := range 2 {
		m.logged = nil
		k := 0 // the write of Close
		if i == 1 {
			k = 2 // the third of Settle
		}
		m.fault = once("write", k, fault{err: diskFull, short: 20})
		if i == 0 {
			ok(t, f.Close())
		} else {
			ok(t, f.Settle())
			ok(t, f.Err())
		}
		if len(m.logged) != i+1 || !strings.Contains(m.logged[i], "no empty commit was added") ||
			string(m.get(dataPath)) != before {
			t.Errorf("logged %q, and the file is %s", m.logged, brief(string(m.get(dataPath))))
		}
		m.fault = nil
		if i == 0 {
			var err error
			f, _, err = openContent(m)
			ok(t, err)
		}
	}
	ok(t, f.Append([]byte("4")))
	ok(t, f.Close())
	if _, content, err := openContent(m); err != nil || content != "1\n2\n3\n4\n" {
		t.Errorf("%q, %v", content, err)
	}
}

// If the bracket cannot be put back, the file is broken and the next Open repairs it.
func TestUndoFails(t *testing.T) {
	for _, kind := range []string{"write", "truncate", "sync"} {
		m, f := settled(t)
		ok(t, f.Settle())
		writes := 0
		m.fault = func(called, _ string) fault {
			if called == "write" {
				writes++
			}
			if writes == 1 && called == "write" || called == kind {
				return fault{err: errIO, short: 30}
			}
			return fault{}
		}
		if err := f.Append([]byte("3")); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: Append = %v", kind, err)
		}
		m.fault = nil
		_ = f.Close()
		f, content, err := openContent(m)
		if err != nil || content != "1\n2\n" {
			t.Errorf("%s: %q, %v", kind, content, err)
		}
		ok(t, f.Settle())
	}
}

// No room to make ready what was read: it can be read, and nothing else.
func TestReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		torn   string
		kind   string
		k      int
		broken bool
	}{
		"settle":          {"", "write", 0, false},
		"sync of settle":  {"", "sync", 0, true},
		"torn not kept":   {"torn", "create", 0, false},
		"torn not synced": {"torn", "sync", 0, false},
		"names not kept":  {"torn", "syncdir", 0, false},
		"not cut":         {"torn", "truncate", 0, false},
		"cut not synced":  {"torn", "sync", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			m, f := settled(t)
			ok(t, f.Close())
			if test.torn != "" {
				n := m.names[dataPath]
				n.do(change{int64(len(n.cache)), []byte(test.torn)})
			}
			before := string(m.get(dataPath))
			m.fault = once(test.kind, test.k, fault{err: diskFull})
			f, content, err := openContent(m)
			if err != nil || content != "1\n2\n" {
				t.Fatalf("Open: %q, %v", content, err)
			}
			sentinel := ErrReadOnly
			if test.broken {
				sentinel = ErrBroken
			}
			if err := f.Settle(); !errors.Is(err, sentinel) || !errors.Is(err, diskFull) ||
				!errors.Is(f.Err(), sentinel) || !strings.Contains(err.Error(), "restart") {
				t.Errorf("Settle = %v, Err = %v, want %v", err, f.Err(), sentinel)
			}
			for name, err := range map[string]error{"Append": f.Append([]byte("4")),
				"Rewrite": f.Rewrite(seq("5"))} {
				if !errors.Is(err, sentinel) {
					t.Errorf("%s = %v", name, err)
				}
			}
			if !strings.HasPrefix(before, strings.TrimSuffix(string(m.get(dataPath)), closing)) {
				t.Error("the file was changed")
			}
			if err := f.Close(); (err != nil) != test.broken {
				t.Errorf("Close = %v", err)
			}
			m.fault = nil
			f, content, err = openContent(m)
			if err != nil || content != "1\n2\n" {
				t.Fatalf("with room again: %q, %v", content, err)
			}
			ok(t, f.Settle())
			ok(t, f.Append([]byte("3")))
		})
	}
}

func TestRewriteFails(t *testing.T) {
	const unix, windows, both = 1, 2, 3
	busy := pathError("rename", "", syscall.EBUSY)
	for name, test := range map[string]struct {
		systems int
		kind    string
		k       int
		f       fault
		says    string
		broken  bool
	}{
		"tmp not made":       {both, "create", 0, fault{err: syscall.ENOSPC}, "no space", false},
		"no descriptor":      {both, "create", 0, fault{err: syscall.EMFILE}, "too many open files", false},
		"tmp not written":    {both, "write", 0, fault{err: syscall.ENOSPC, short: 10}, "no space", false},
		"tmp not synced":     {both, "sync", 0, fault{err: syscall.EIO}, "input/output", false},
		"a mount of its own": {unix, "rename", 0, fault{err: busy}, "mount the folder", false},
		"on another mount":   {unix, "rename", 0, fault{err: syscall.EXDEV}, "mount the folder", false},
		"not renamed":        {both, "rename", 0, fault{err: syscall.EACCES}, "not rewritten", false},
		"folder not synced":  {both, "syncdir", 0, fault{err: syscall.EIO}, "sync of the folder", true},
		"not opened again":   {windows, "open", 0, fault{err: syscall.EMFILE}, "opening it again", true},
	} {
		for _, system := range []int{unix, windows} {
			if test.systems&system == 0 {
				continue
			}
			for _, settle := range []bool{true, false} {
				what := fmt.Sprintf("%s/windows=%v,settled=%v", name, system == windows, settle)
				t.Run(what, func(t *testing.T) {
					m, f := settledOn(t, system == windows)
					if settle {
						ok(t, f.Settle())
					}
					m.fault = once(test.kind, test.k, test.f)
					err := f.Rewrite(seq("new"))
					m.fault = nil
					if err == nil || !strings.Contains(err.Error(), test.says) ||
						!strings.HasPrefix(err.Error(), dataPath) ||
						errors.Is(err, ErrBroken) != test.broken || (f.Err() != nil) != test.broken {
						t.Fatalf("Rewrite = %v, Err = %v", err, f.Err())
					}
					if m.get(dataPath+".tmp") != nil {
						t.Error("FILE.tmp is still there")
					}
					want := "1\n2\n3\n"
					if test.broken {
						want = "new\n"
					} else {
						ok(t, f.Settle())
						ok(t, f.Append([]byte("3")))
					}
					if err := f.Close(); (err != nil) != test.broken {
						t.Errorf("Close = %v", err)
					}
					if _, content, err := openContent(m); err != nil || content != want {
						t.Errorf("the next Open: %q, %v, want %q", content, err, want)
					}
				})
			}
		}
	}
	t.Run("nothing is opened after the rename", func(t *testing.T) {
		m, f := settled(t)
		renamed := false
		m.fault = func(kind, _ string) fault {
			renamed = renamed || kind == "rename"
			if renamed && (kind == "open" || kind == "create" || kind == "lock") {
				return fault{err: syscall.EMFILE}
			}
			return fault{}
		}
		ok(t, f.Rewrite(seq("new")))
		ok(t, f.Append([]byte("3")))
		ok(t, f.Close())
	})
	t.Run("of a new file", func(t *testing.T) {
		m := newMemFS(512)
		f, _, err := openContent(m)
		ok(t, err)
		m.fault = once("rename", 0, fault{err: syscall.EACCES})
		if err := f.Rewrite(seq("1")); !errors.Is(err, syscall.EACCES) || f.Size() != 0 {
			t.Errorf("Rewrite = %v, Size = %d", err, f.Size())
		}
		ok(t, f.Rewrite(seq("2")))
		ok(t, f.Append([]byte("3")))
	})
	t.Run("renamed back and not opened", func(t *testing.T) {
		m, f := settledOn(t, true)
		m.fault = func(kind, _ string) fault {
			if kind == "rename" || kind == "open" {
				return fault{err: syscall.EIO}
			}
			return fault{}
		}
		if err := f.Rewrite(seq("new")); !errors.Is(err, ErrBroken) {
			t.Errorf("Rewrite = %v", err)
		}
	})
}

// An unfinished rewrite that cannot be removed takes room, and nothing else.
func TestTmpNotRemoved(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Close())
	m.put(dataPath+".tmp", []byte("unfinished"))
	m.fault = once("remove", 0, fault{err: errIO})
	f, _, err := openContent(m)
	ok(t, err)
	ok(t, f.Settle())
	ok(t, f.Append([]byte("4")))
	ok(t, f.Close())
	if m.get(dataPath+".tmp") == nil {
		t.Error("the unfinished rewrite was removed")
	}
}
