package recordfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadReport(t *testing.T) {
	path := create(t, []string{"1", "2"}, "3")
	text := readFile(t, path)
	ok(t, os.Remove(path+".lock"))
	var got []string
	report, err := Read(path, options, func(l Line) error {
		line := strings.Split(text, "\n")[l.Number-1]
		if !strings.HasSuffix(line, `"w":[`+l.Records+"]}") || !strings.HasPrefix(text[l.Offset:], line) {
			t.Errorf("%+v, but there stands %s", l, line)
		}
		got = append(got, l.Records)
		return nil
	})
	want := Report{File: path, Format: "events/1", Size: int64(len(text)), Lines: 5, First: 2, Last: 6, Snap: 4}
	if err != nil || fmt.Sprint(report) != fmt.Sprint(want) ||
		!slices.Equal(got, []string{"1", "2", "", "3", ""}) {
		t.Errorf("Read = %+v, %q, %v, want %+v", report, got, err, want)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("Read left %v", entries)
	}
	f, _ := open(t, path) // a server runs
	if _, err := Read(path, options, ignore); err != nil {
		t.Errorf("Read beside a server: %v", err)
	}
	ok(t, f.Close())
}

// While a server writes, the end of the file may be anything for a moment. That
// is looked at again and not called damage.
func TestReadWhileWriting(t *testing.T) {
	whole := func(commits ...string) string {
		m := newMemFS(512)
		f, _, err := openContent(m)
		ok(t, err)
		f.salt = 0
		ok(t, f.Rewrite(seq("1")))
		for _, c := range commits {
			ok(t, f.Append([]byte(c)))
		}
		return string(m.get(dataPath))
	}
	three := whole("2", "3", "4")
	lines := strings.SplitAfter(three, "\n")
	upTo := func(n int) string { return strings.Join(lines[:n], "") } // with n lines
	torn := upTo(5) + lines[5][:10]
	for name, test := range map[string]struct {
		looks   []string // what stands there, one after another
		commits int
		repair  string
		damage  bool
	}{
		"clean":       {[]string{three}, 5, "", false},
		"a write":     {[]string{torn, three}, 5, "", false},
		"several":     {[]string{torn, upTo(6) + lines[6][:3], upTo(6) + lines[6][:9], three}, 5, "", false},
		"undone":      {[]string{torn, upTo(5) + closing}, 3, "", false},
		"a hole once": {[]string{upTo(5) + "\x00\x00\x00" + lines[6], three}, 5, "", false},
		"all the time": {slices.Collect(func(yield func(string) bool) {
			for i := range 12 {
				if !yield(torn + strings.Repeat("x", i)) {
					return
				}
			}
		}), 3, "the last write is not whole: 20 bytes", false},
		"torn for good":    {[]string{torn}, 3, "the last write is not whole: 10 bytes", false},
		"became shorter":   {[]string{torn, upTo(4)}, 3, "the closing bracket", false},
		"damage for good":  {[]string{upTo(5) + lines[6] + closing}, 3, "", true},
		"damage after all": {[]string{torn, upTo(5) + lines[6] + closing}, 3, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemFS(512)
				n := m.put(dataPath, []byte(test.looks[0]))
				go func() {
					time.Sleep(time.Millisecond)
					for _, text := range test.looks[1:] {
						m.mu.Lock()
						n.cache = []byte(text)
						m.mu.Unlock()
						time.Sleep(10 * time.Millisecond)
					}
				}()
				var got []string
				report, err := Read(dataPath, on(m), collect(&got))
				if want := []string{"1", "", "2", "3", "4"}[:test.commits]; !slices.Equal(got, want) ||
					err == nil && report.Lines != len(want) {
					t.Errorf("commits %q, want %q", got, want)
				}
				if _, damage := errors.AsType[*DamageError](err); damage != test.damage || err != nil &&
					!damage {
					t.Errorf("error %v", err)
				}
				if !strings.HasPrefix(report.Repair, test.repair) || test.repair == "" &&
					report.Repair != "" {
					t.Errorf("report %+v", report)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// The same on the real disk: a writer as fast as it can, and readers.
func TestReadBesideWriter(t *testing.T) {
	path := create(t, []string{"0"})
	f, _ := open(t, path)
	ok(t, f.Settle())
	done := make(chan error)
	stop := make(chan bool)
	go func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := f.Append(fmt.Appendf(nil, "%d%s", i, strings.Repeat(" ", i*i%20000))); err != nil {
				done <- err
				return
			}
			if i%100 == 0 && renamesOpen { // else no file can be rewritten that is being read
				if err := f.Rewrite(seq("0")); err != nil {
					done <- err
					return
				}
				i = 0
			}
		}
	}()
	busy := 0
	for range 100 {
		next := 0
		report, err := Read(path, options, func(l Line) error {
			r := strings.TrimSpace(l.Records)
			if r == "" {
				return nil
			}
			if r != fmt.Sprint(next) {
				return fmt.Errorf("found %s and not %d", r, next)
			}
			next++
			return nil
		})
		if err != nil || next == 0 {
			t.Errorf("Read = %+v, %v", report, err)
		}
		if report.Repair != "" {
			busy++
		}
	}
	close(stop)
	ok(t, <-done)
	t.Logf("%d of 100 readers saw unfinished writes for 100 ms", busy)
}

// headerReads is how many reads of the disk take the header of a file.
func headerReads(t *testing.T, m *memFS) (reads int) {
	t.Helper()
	m.fault = func(kind, _ string) fault {
		if kind == "read" {
			reads++
		}
		return fault{}
	}
	_, err := Read(dataPath, Options{Formats: []string{"another"}, fs: m}, ignore)
	if m.fault = nil; !errors.Is(err, ErrFormat) {
		t.Fatalf("Read = %v, want ErrFormat", err)
	}
	return reads
}

// What is no line, and longer than any, is refused without the rest of the file.
func TestReadStops(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Close())
	n := m.names[dataPath]
	n.cache = append(n.cache, make([]byte, 4*maxUnfinished)...)
	reads := -headerReads(t, m)
	m.fault = func(kind, _ string) fault {
		if kind == "read" {
			reads++
		}
		return fault{}
	}
	_, err := Read(dataPath, on(m), ignore)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "more follows") ||
		reads > maxUnfinished/chunk+3 { // the end, and one chunk ahead
		t.Errorf("Read = %v after %d reads", err, reads)
	}
}

func TestReadFails(t *testing.T) {
	m, f := settled(t)
	ok(t, f.Close())
	for kind, k := range map[string]int{"resolve": 0, "open": 0, "stat": 0, "read": 0} {
		m.fault = once(kind, k, fault{err: pathError(kind, dataPath, fs.ErrPermission)})
		_, err := Read(dataPath, on(m), ignore)
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s fails: Read = %v", kind, err)
		}
	}
	n := m.names[dataPath]
	n.do(change{int64(len(n.cache)), []byte("torn")})
	for _, kind := range []string{"stat", "read"} { // at the second look
		m.fault = once(kind, 1, fault{err: errIO})
		if _, err := Read(dataPath, on(m), ignore); !errors.Is(err, errIO) {
			t.Errorf("%s fails: Read = %v", kind, err)
		}
	}
}

// quarters returns the file system of a file with n commits of a quarter of a chunk.
func quarters(t *testing.T, n int) *memFS {
	t.Helper()
	m, f := settled(t)
	ok(t, f.Settle())
	for range n {
		ok(t, f.Append([]byte(strings.Repeat("x", chunk/4))))
	}
	ok(t, f.Close())
	return m
}

// What is refused at its beginning is read no further, and what is refused before a
// place that cannot be read is refused, not unreadable.
func TestReadRefusal(t *testing.T) {
	m := quarters(t, 16)
	for name, test := range map[string]struct{ refuse, fails, reads int }{ // the offset of a line, and the read
		"at the beginning":   {0, 99, 2}, // the first chunk, and one ahead
		"while one is read":  {chunk, 99, 3},
		"before a bad block": {chunk, 2, 3},
	} {
		reads := -headerReads(t, m)
		m.fault = func(kind, _ string) fault {
			if kind != "read" {
				return fault{}
			}
			if reads++; reads > test.fails {
				return fault{err: errIO}
			}
			return fault{}
		}
		_, err := Read(dataPath, on(m), func(l Line) error {
			if l.Offset >= int64(test.refuse) {
				return errors.New("not this one")
			}
			return nil
		})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "not this one") || reads != test.reads {
			t.Errorf("%s: Read = %v after %d reads, want %d", name, err, reads, test.reads)
		}
	}
}

// A file that becomes shorter while it is read ends where it ends.
func TestReadWhileShrinking(t *testing.T) {
	m := quarters(t, 8)
	reads := -headerReads(t, m)
	m.fault = func(kind, _ string) fault {
		if kind == "read" {
			if reads++; reads == 1 {
				m.names[dataPath].cache = m.names[dataPath].cache[:chunk]
			}
		}
		return fault{}
	}
	report, err := Read(dataPath, on(m), ignore)
	if err != nil || !strings.Contains(report.Repair, "not whole") {
		t.Errorf("Read = %+v, %v", report, err)
	}
}

// After Settle or Rewrite, an open file keeps nothing of the text that was read.
func TestTextIsReleased(t *testing.T) {
	for name, settle := range map[string]func(*File) error{"Settle": (*File).Settle, "Rewrite": rewriteTo("1")} {
		m := quarters(t, 32)
		n := m.names[dataPath]
		n.do(change{int64(len(n.cache)), []byte("torn")}) // which is kept until it is put aside
		n.sync(512)
		heap := func() int64 {
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return int64(s.HeapAlloc)
		}
		before := heap()
		f, err := Open(dataPath, on(m), ignore)
		ok(t, err)
		read := heap() - before
		ok(t, settle(f))
		left := heap() - before
		if size := f.Size(); read < 6<<20 || left > 2<<20 {
			t.Errorf("%s: of a file of %d bytes, %d stay in memory after Open and %d after it", name, size, read, left)
		}
		runtime.KeepAlive(m)
		ok(t, f.Close())
	}
}

// A file is read into memory of about its size, whatever its length.
func TestReadMemory(t *testing.T) {
	m := quarters(t, 64)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report, err := Read(dataPath, on(m), ignore)
	runtime.ReadMemStats(&after)
	if used := int64(after.TotalAlloc - before.TotalAlloc); err != nil || used > report.Size+6*chunk {
		t.Errorf("%d bytes for a file of %d, %v", used, report.Size, err)
	}
}
