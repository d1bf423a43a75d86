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
		for call, try := range map[string]func(Options) error{
			"Read":    func(o Options) error { _, err := Read(dataPath, o, ignore); return err },
			"Salvage": func(o Options) error { _, err := Salvage(dataPath, o, ignore); return err },
		} {
			m.fault = once(kind, k, fault{err: pathError(kind, dataPath, fs.ErrPermission)})
			if err := try(on(m)); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s fails: %s = %v", kind, call, err)
			}
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

func TestSalvage(t *testing.T) {
	good := killed(t, []string{"1", "2"}, "3", "4")
	lines := strings.SplitAfter(good, "\n")
	with := func(i int, replacement ...string) string {
		return strings.Join(slices.Replace(slices.Clone(lines), i, i+1, replacement...), "")
	}
	at := func(i int) int { return len(strings.Join(lines[:i], "")) }
	edited := func(i int, old, new string) string { return with(i, strings.Replace(lines[i], old, new, 1)) }
	foreign := string(appendCommit(nil, 7, 3, []byte("foreign")))
	all := []string{"1", "2", "", "3", "4"}
	for name, test := range map[string]struct {
		text    string
		want    []string
		skipped []Span
		missing int
	}{
		"whole":               {good, all, nil, 0},
		"bracket before":      {good[len(opening):], all, nil, 0},
		"torn":                {strings.TrimSuffix(good, closing) + `,{"c"`, all, []Span{{8, at(7), 5}}, 0},
		"no bracket":          {strings.TrimSuffix(good, closing), all, nil, 0},
		"CR LF":               {strings.ReplaceAll(good, "\n", "\r\n"), all, nil, 0},
		"blank lines":         {strings.ReplaceAll(good, "\n", "\n\n"), all, nil, 0},
		"a line gone":         {with(5), []string{"1", "2", "", "4"}, nil, 1},
		"first line gone":     {with(2), all[1:], nil, 1},
		"a line twice":        {with(5, lines[5], lines[5]), []string{"1", "2", "", "3", "3", "4"}, nil, 0},
		"one twice, one gone": {with(5, lines[4]), []string{"1", "2", "", "", "4"}, nil, 1},
		"header changed, lines swapped, one gone": {lines[0] + strings.Replace(lines[1], "snap", "snaq", 1) +
			lines[3] + lines[2] + lines[5] + lines[6] + closing, []string{"2", "1", "3", "4"},
			[]Span{{2, 2, len(lines[1])}}, 1},
		"header changed": {edited(1, "snap", "snaq"), all, []Span{{2, 2, len(lines[1])}}, 0},
		"header gone":    {with(1), all, nil, 0},
		"salt changed":   {edited(1, `"salt":"`, `"salt":"x`), all, []Span{{2, 2, len(lines[1]) + 1}}, 0},
		"a line changed": {edited(3, "2", "7"), []string{"1", "", "3", "4"},
			[]Span{{4, at(3), len(lines[3])}}, 1},
		"two lines changed": {good[:at(3)] + "xx\nyyy\n" + good[at(5):], []string{"1", "3", "4"},
			[]Span{{4, at(3), 7}}, 2},
		"two places changed": {good[:at(2)] + "xx\n" + lines[3] + "yyy\n" + good[at(5):],
			[]string{"2", "3", "4"}, []Span{{3, at(2), 3}, {5, at(2) + 3 + len(lines[3]), 4}}, 2},
		"snapshot cut": {good[:at(3)] + closing, all[:1], nil, 2},
		"two lines swapped": {good[:at(5)] + lines[6] + lines[5] + good[at(7):],
			[]string{"1", "2", "", "4", "3"}, nil, 0},
		"a line end gone": {edited(5, "\n", ""), []string{"1", "2", "", "4"},
			[]Span{{6, at(5), len(lines[5])}}, 1}, // with the comma in the place of the line end
		"a foreign line between": {with(3, lines[3], foreign), all, []Span{{5, at(4), len(foreign)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.json")
			ok(t, os.WriteFile(path, []byte(test.text), 0o400))
			var got []string
			found, err := Salvage(path, options, collect(&got))
			if err != nil || !slices.Equal(got, test.want) || !slices.Equal(found.Skipped, test.skipped) ||
				found.Missing != test.missing {
				t.Errorf("Salvage = %q, %+v, %v\nwant %q, skipped %+v, %d missing",
					got, found, err, test.want, test.skipped, test.missing)
			}
			if readFile(t, path) != test.text {
				t.Error("Salvage changed the file")
			}
		})
	}
	for name, text := range map[string]string{
		"empty":  "",
		"a seed": "[\n{\"user\":{}}\n]\n",
		"newer": with(1, string(header{before: 1, snap: 4, format: "events/2",
			saltText: "0123456789abcdef"}.text()[len(opening):])),
		"header alone changed": strings.Replace(lines[0]+lines[1]+lines[2]+closing, "snap", "snaq", 1),
		"formatted":            strings.ReplaceAll(good, `":`, `": `),
		"checksums gone":       strings.ReplaceAll(good, `{"c":"`, `{"c":"x`),
		"only rubbish":         strings.Repeat(lineStart+"\n", 100),
		"no hexadecimals":      strings.Repeat(`{"c":"xxxxxxxx","n":5,"w":[]}`+"\n", 5),
	} {
		path := filepath.Join(t.TempDir(), "events.json")
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		found, err := Salvage(path, options, func(Line) error { t.Error("a line verified"); return nil })
		if found.Skipped != nil || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrDamaged) ||
			strings.Contains(err.Error(), "-salvage") {
			t.Errorf("%s: Salvage = %+v, %v", name, found, err)
		}
	}
}

// Without a header, the salt is the one on which most commits agree, but at least two.
func TestSalvageWithoutHeader(t *testing.T) {
	long := func(name string) string { return name + strings.Repeat("x", 100) }
	commits := []string{long("a"), long("b"), long("c"), long("d"), long("e"), long("f"), long("g")}
	good := killed(t, commits[:3], commits[3:]...)
	lines := strings.SplitAfter(good, "\n")[2:] // of the commits
	line := func(salt uint32, records string) string {
		return string(appendCommit(nil, salt, 9, []byte(records)))
	}
	one := line(1, "one")
	for name, test := range map[string]struct {
		text  string
		want  []string
		wrong []string // what is skipped
	}{
		"a block of zeros": {strings.Repeat("\x00", 512) + good[512:], commits[4:],
			[]string{strings.Repeat("\x00", 512) + good[512:][:strings.Index(good[512:], "\n")+1]}},
		"two of them":      {lines[0] + lines[1], commits[:2], nil},
		"one among others": {one + lines[0] + lines[1], commits[:2], []string{one}},
		"one with a wrong sum": {lines[0] + lines[1] + "," + lines[2][3:], commits[:2],
			[]string{"," + lines[2][3:]}},
		"most of them": {line(2, "x") + line(2, "y") + lines[0] + lines[1] + lines[2], commits[:3],
			[]string{line(2, "x") + line(2, "y")}},
		"one alone": {lines[0], nil, nil},
		"no two":    {lines[0] + line(1, "one") + line(2, "two"), nil, nil},
		"two in one": {strings.TrimSuffix(lines[0], "\n") + lines[1] + lines[2], commits[1:3], []string{
			strings.TrimSuffix(lines[0], "\n") + ","}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemFS(512)
			m.put(dataPath, []byte(test.text))
			var got []string
			o := on(m)
			found, err := Salvage(dataPath, o, func(l Line) error {
				if l.Records != "" { // as one ends the snapshot
					got = append(got, l.Records)
				}
				return nil
			})
			var wrong []string
			for _, s := range found.Skipped {
				wrong = append(wrong, test.text[s.Offset:][:s.Bytes])
			}
			if !slices.Equal(got, test.want) || !slices.Equal(wrong, test.wrong) || found.Missing != 0 {
				t.Errorf("Salvage = %s\nskipped %s\nmissing %d\nwant %s\nskipped %s", brief(got...),
					brief(wrong...), found.Missing, brief(test.want...), brief(test.wrong...))
			}
			if refused := err != nil; refused != (test.want == nil) {
				t.Errorf("Salvage = %v", err)
			}
		})
	}
}

// A file that something extended by a terabyte of zeros is refused without reading them.
func TestTerabyteOfZeros(t *testing.T) {
	path := create(t, []string{"1"}, strings.Repeat("x", MaxCommit), "3")
	size := int64(len(readFile(t, path)))
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err) // not every file system has holes
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	_, _, openErr := tryOpen(t, path)
	_, readErr := Read(path, options, ignore)
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	for call, err := range map[string]error{"Open": openErr, "Read": readErr} {
		if e, is := errors.AsType[*DamageError](err); !is || e.Offset != size-int64(len(closing)) {
			t.Errorf("%s = %v, want damage at byte %d", call, err, size-int64(len(closing)))
		}
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 || took > 10*time.Second {
		t.Errorf("that took %v, and %d bytes", took, used)
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
