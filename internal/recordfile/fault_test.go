package recordfile

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
