package commitlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var options = Options{Formats: []string{"events/1"}}

// collect returns a replay function that appends the records of each commit.
func collect(commits *[]string) func(Commit) error {
	return func(c Commit) error {
		*commits = append(*commits, string(c.Records))
		return nil
	}
}

func ignore(Commit) error { return nil }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkIs checks what kind of error a call returned.
func checkIs(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", call, err, want)
	}
}

// checkSays checks the text of the error of a call.
func checkSays(t *testing.T, call string, err error, want string) {
	t.Helper()
	if !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("%s: got %v, want %q in it", call, err, want)
	}
}

// checkSize checks one of the lengths that a log reports.
func checkSize(t *testing.T, call string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %d, want %d", call, got, want)
	}
}

// open opens a file of the real disk and returns its commits.
func open(t *testing.T, path string) (*Log, []string) {
	t.Helper()
	var commits []string
	l, err := Open(path, options, collect(&commits))
	check(t, err)
	t.Cleanup(func() { l.Close() })
	return l, commits
}

// create creates a file with the commits as its snapshot and those appended after it.
func create(t *testing.T, commits []string, appended ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	l, _ := open(t, path)
	check(t, l.Rewrite(seq(commits...)))
	for _, c := range appended {
		check(t, l.Append([]byte(c)))
	}
	check(t, l.Close())
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}

func writeFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFormat(t *testing.T) {
	path := create(t, []string{`{"user":{"id":"usr_ada"}}`}, `{"event":1},{"event":2}`)
	text := readFile(t, path)
	form := regexp.MustCompile(`^\[
\{"c":"[0-9a-f]{8}","n":3,"format":"events/1","salt":"([0-9a-f]{16})","snap":5\}
,\{"c":"[0-9a-f]{8}","n":4,"w":\[\{"user":\{"id":"usr_ada"\}\}\]\}
,\{"c":"[0-9a-f]{8}","n":5,"w":\[\]\}
,\{"c":"[0-9a-f]{8}","n":6,"w":\[\{"event":1\},\{"event":2\}\]\}
,\{"c":"[0-9a-f]{8}","n":7,"w":\[\]\}
\]
$`)
	match := form.FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("file: got\n%s\nwant the form\n%s", text, form)
	}
	var lines []struct{ C string }
	check(t, json.Unmarshal([]byte(text), &lines))
	for i, line := range strings.Split(text, "\n")[1:6] {
		salt := match[1]
		if i == 0 {
			salt = ""
		}
		summed := line[strings.Index(line, `"n":`) : strings.LastIndex(line, "}")+1]
		want := fmt.Sprintf("%08x", crc32.Checksum([]byte(salt+summed), crc32.MakeTable(crc32.Castagnoli)))
		if lines[i].C != want {
			t.Errorf("checksum of line %d: got %s, want %s", i+2, lines[i].C, want)
		}
	}
}

// TestGolden opens a file written by the first program with this format. It must open forever.
func TestGolden(t *testing.T) {
	golden := readFile(t, "testdata/events1.json")
	path := writeFile(t, golden)
	var records []string
	l, err := Open(path, options, func(c Commit) error {
		var array []map[string]json.RawMessage
		err := json.Unmarshal(slices.Concat([]byte("["), c.Records, []byte("]")), &array)
		for _, record := range array {
			for name := range record {
				records = append(records, name)
			}
		}
		return err
	})
	check(t, err)
	check(t, l.Close())
	slices.Sort(records)
	records = slices.Compact(records)
	want := []string{"delete", "event", "guest", "idempotency", "key", "user"}
	if !slices.Equal(records, want) {
		t.Errorf("records: got %q, want %q", records, want)
	}
	if got := readFile(t, path); got != golden {
		t.Errorf("file after Open and Close: got\n%s\nwant\n%s", got, golden)
	}
}

func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	l, commits := open(t, path)
	if len(commits) != 0 {
		t.Errorf("commits of a new file: got %q, want none", commits)
	}
	if l.Path() != path {
		t.Errorf("Path: got %s, want %s", l.Path(), path)
	}
	checkSize(t, "Size", l.Size(), int64(len(readFile(t, path))))
	check(t, l.Append([]byte("{}")))
	checkSize(t, "Size after Append", l.Size(), int64(len(readFile(t, path))))
	check(t, l.Close())
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, want 0600", info.Mode())
	}
}

// An empty commit ends the file after a clean end and after recovery, once.
func TestEmptyCommit(t *testing.T) {
	clean := readFile(t, create(t, []string{"1"}, "2"))
	killed := clean[:strings.LastIndex(clean, ",{")] + closing
	for name, text := range map[string]string{
		"clean":                 clean,
		"killed":                killed,
		"torn":                  clean[:len(clean)-2] + ",{",
		"torn in empty commit":  clean[:len(clean)-9],
		"no bracket":            clean[:len(clean)-2],
		"no line feed":          clean[:len(clean)-1],
		"killed and no bracket": killed[:len(killed)-2],
	} {
		path := writeFile(t, text)
		for range 3 {
			l, _ := open(t, path)
			check(t, l.Close())
			got := readFile(t, path)
			if !strings.HasPrefix(got, killed[:len(killed)-2]) {
				t.Errorf("%s: file: got\n%s\nwant all commits", name, got)
			}
			if n := strings.Count(got, `"w":[]`); n != 2 {
				t.Errorf("%s: empty commits: got %d, want 2, of the snapshot and at the end:\n%s",
					name, n, got)
			}
			if len(got) != len(clean) {
				t.Errorf("%s: bytes: got %d, want %d:\n%s", name, len(got), len(clean), got)
			}
		}
	}
}

func TestRewrite(t *testing.T) {
	path := create(t, []string{"1", "2"}, "3")
	before := readFile(t, path)
	l, _ := open(t, path)
	check(t, l.Rewrite(seq("a", "b", "c")))
	check(t, l.Append([]byte("d")))
	check(t, l.Close())
	after := readFile(t, path)
	if salt := regexp.MustCompile(`"salt":"\w+"`).FindString(before); strings.Contains(after, salt) {
		t.Errorf("salt after a rewrite: got the same, %s, want another", salt)
	}
	for _, want := range []string{`"n":9,"format"`, `"snap":13}`} {
		if !strings.Contains(after, want) {
			t.Errorf("file after a rewrite: got\n%s\nwant %s in it", after, want)
		}
	}
	l, commits := open(t, path)
	if want := []string{"a", "b", "c", "", "d", ""}; !slices.Equal(commits, want) {
		t.Errorf("commits: got %q, want %q", commits, want)
	}
	tooLarge := l.Rewrite(seq(strings.Repeat("x", MaxCommit+1)))
	checkSays(t, "Rewrite", tooLarge, "too large for one commit")
	checkSays(t, "Rewrite", l.Rewrite(seq("x", "a\nb")), "line feed")
	_, two := seq("x", "y")
	checkSays(t, "Rewrite of 2 commits as 3", l.Rewrite(3, two), "2 commits, want 3")
	if readFile(t, path) != after {
		t.Error("file after a refused Rewrite: got another text, want the same")
	}
	check(t, l.Append([]byte("e")))
}

func TestAppendLimits(t *testing.T) {
	path := create(t, nil)
	l, _ := open(t, path)
	before := readFile(t, path)
	for _, records := range []string{strings.Repeat("x", MaxCommit+1), "{\n}"} {
		call := fmt.Sprintf("Append of %d bytes", len(records))
		checkSays(t, call, l.Append([]byte(records)), path)
		check(t, l.Err())
	}
	if readFile(t, path) != before {
		t.Error("file after a refused Append: got another text, want the same")
	}
	largest := strings.Repeat("x", MaxCommit)
	check(t, l.Append([]byte(largest)))
	check(t, l.Close())
	text := readFile(t, path)
	_, commits := open(t, path)
	if want := []string{"", largest, ""}; !slices.Equal(commits, want) {
		t.Errorf("commits: got %d, want the largest between two empty ones", len(commits))
	}
	torn := writeFile(t, text[:strings.LastIndex(text, "x")])
	_, commits = open(t, torn)
	if want := []string{""}; !slices.Equal(commits, want) {
		t.Errorf("commits after the largest was torn at its last byte: got %d, want the empty one",
			len(commits))
	}
}

func TestOlderFormat(t *testing.T) {
	path := create(t, []string{"1"}, "2")
	newer := Options{Formats: []string{"events/1", "events/2"}}
	l, err := Open(path, newer, func(c Commit) error {
		if c.Format != "events/1" {
			t.Errorf("format of a commit: got %s, want events/1", c.Format)
		}
		return nil
	})
	check(t, err)
	check(t, l.Rewrite(seq("1+", "2+")))
	check(t, l.Close())
	_, err = Open(path, options, ignore)
	checkIs(t, "Open by an older program", err, ErrFormat)
	checkSays(t, "Open by an older program", err, "use a newer version")
}

// A file that was removed or replaced while it was open gets no more commits.
func TestReplaced(t *testing.T) {
	for _, how := range []string{"removed", "renamed", "replaced", "overwritten", "cut", "grown"} {
		if runtime.GOOS == "windows" && slices.Contains([]string{"removed", "renamed", "replaced"}, how) {
			continue // not possible while it is open
		}
		path := create(t, []string{"1"}, "2")
		l, _ := open(t, path)
		text := readFile(t, path)
		switch how {
		case "removed":
			check(t, os.Remove(path))
		case "renamed":
			check(t, os.Rename(path, path+".old"))
		case "replaced":
			check(t, os.WriteFile(path+".new", []byte(text), 0o600))
			check(t, os.Rename(path+".new", path))
		case "overwritten":
			check(t, os.WriteFile(path, []byte("other"), 0o600))
		case "cut":
			check(t, os.Truncate(path, int64(len(text)-1)))
		case "grown":
			check(t, os.WriteFile(path, []byte(text+" "), 0o600))
		}
		before, _ := os.ReadFile(path)
		for name, err := range map[string]error{
			"Append":  l.Append([]byte("3")),
			"Rewrite": l.Rewrite(seq("4")),
			"Err":     l.Err(),
			"Close":   l.Close(),
		} {
			checkIs(t, how+": "+name, err, ErrBroken)
		}
		after, _ := os.ReadFile(path)
		if string(after) != string(before) {
			t.Errorf("%s: file: got %s, want %s", how, after, before)
		}
	}
}

func TestLocked(t *testing.T) {
	path := create(t, []string{"1"})
	check(t, os.WriteFile(path+".lock", []byte("1234567890\n"), 0o600)) // a process that was killed
	l, _ := open(t, path)
	if got, want := readFile(t, path+".lock"), fmt.Sprintln(os.Getpid()); got != want {
		t.Errorf("lock file: got %q, want %q", got, want)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := Open(path, options, ignore)
		checkIs(t, "Open", err, ErrLocked)
		checkSays(t, "Open", err, fmt.Sprintf("%s is in use by process %d", path, os.Getpid()))
		if got := time.Since(start); got != lockTimeout {
			t.Errorf("Open of a locked file: got an error after %v, want %v", got, lockTimeout)
		}
	})
	_, err := Check(path, options, ignore)
	check(t, err)
	synctest.Test(t, func(t *testing.T) { // another process ends while Open waits
		time.AfterFunc(lockTimeout/2, func() { l.Close() })
		l, err := Open(path, options, ignore)
		check(t, err)
		check(t, l.Close())
	})
}

// The lock is taken before the file is opened. Otherwise a rewrite could come between.
func TestLockedBeforeOpened(t *testing.T) {
	d := newMemDisk(512)
	l, _ := openMem(t, d)
	check(t, l.Close())
	var calls []string
	d.fault = func(call, _ string) fault {
		calls = append(calls, call)
		return fault{}
	}
	openMem(t, d)
	lock, open := slices.Index(calls, "lock"), slices.Index(calls, "open")
	if lock < 0 || open < lock {
		t.Errorf("calls: got %q, want lock before open", calls)
	}
}

func TestStartupLog(t *testing.T) {
	var log strings.Builder
	o := options
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	path := filepath.Join(t.TempDir(), "events.json")
	for _, want := range []string{`msg="created data file" data=`, `msg="opening data file" data=`} {
		log.Reset()
		l, err := Open(path, o, ignore)
		check(t, err)
		if strings.Count(log.String(), "\n") != 1 {
			t.Errorf("log: got %s, want one line", &log)
		}
		for _, want := range []string{want, path} { // the path may be quoted
			if !strings.Contains(log.String(), want) {
				t.Errorf("log: got %s, want %s in it", &log, want)
			}
		}
		check(t, l.Close())
	}
	if want := fmt.Sprintf(" bytes=%d\n", len(readFile(t, path))); !strings.HasSuffix(log.String(), want) {
		t.Errorf("log: got %s, want %s at the end", &log, want)
	}
}

// SyncDir syncs the directory, so it also works for a file that doesn't exist.
func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	check(t, osFS{}.SyncDir(filepath.Join(dir, "none.json")))
	err := osFS{}.SyncDir(filepath.Join(dir, "none", "events.json"))
	checkIs(t, "SyncDir of a missing directory", err, fs.ErrNotExist)
}

// A file of another program in place of the lock file is locked, but keeps its content.
func TestForeignLockFile(t *testing.T) {
	for _, text := range []string{"mine", "42 apples", "12345678901234567890123456789"} {
		path := create(t, []string{"1"})
		check(t, os.WriteFile(path+".lock", []byte(text), 0o600))
		open(t, path)
		if got := readFile(t, path+".lock"); got != text {
			t.Errorf("content of the lock file: got %q, want %q", got, text)
		}
	}
}

func TestPaths(t *testing.T) {
	path := create(t, []string{"1"})
	dir := filepath.Dir(path)
	for name, test := range map[string]struct{ path, says string }{
		"directory":    {dir, "not a regular file"},
		"no directory": {filepath.Join(dir, "none", "events.json"), "create the directory"},
	} {
		_, err := Open(test.path, options, ignore)
		checkSays(t, name+": Open", err, test.says)
	}
	_, err := Check(filepath.Join(dir, "none.json"), options, ignore)
	checkIs(t, "Check of a missing file", err, fs.ErrNotExist)
	check(t, os.WriteFile(path+tmpSuffix, []byte("unfinished"), 0o600))
	l, _ := open(t, path)
	if _, err := os.Stat(path + tmpSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of the unfinished rewrite: got %v, want %v", err, fs.ErrNotExist)
	}
	check(t, l.Close())
	if runtime.GOOS == "windows" {
		return // links need privileges
	}
	link := filepath.Join(t.TempDir(), "link.json")
	check(t, os.Symlink(path, link))
	l, _ = open(t, link)
	check(t, l.Rewrite(seq("2")))
	if target, _ := os.Readlink(link); target != path {
		t.Errorf("target of the link: got %q, want %q", target, path)
	}
	check(t, l.Close())
	if _, commits := open(t, path); !slices.Equal(commits, []string{"2", ""}) {
		t.Errorf("commits: got %q, want those of the file", commits)
	}
	other := filepath.Join(t.TempDir(), "other")
	check(t, os.WriteFile(other, nil, 0o600))
	linked := create(t, []string{"1"})
	check(t, os.Remove(linked+".lock"))
	check(t, os.Symlink(other, linked+".lock"))
	if _, err := Open(linked, options, ignore); err == nil {
		t.Error("Open with a link in place of the lock file: got no error, want one")
	}
	if got := readFile(t, other); got != "" {
		t.Errorf("file that the link leads to: got %q, want it unchanged", got)
	}
	dangling := filepath.Join(t.TempDir(), "link.json")
	check(t, os.Symlink(filepath.Join(dir, "none.json"), dangling))
	_, err = Open(dangling, options, ignore)
	checkSays(t, "Open", err, "link to a missing file")
}

// Lines of all lengths around the size of the read buffer.
func TestLineLengths(t *testing.T) {
	var want []string
	for i := range 40 {
		want = append(want, strings.Repeat(string(rune('a'+i%26)), i*i*97+i))
	}
	path := create(t, want, want...)
	before := readFile(t, path)
	_, commits := open(t, path)
	if got := withRecords(commits); !slices.Equal(got, append(want[1:], want[1:]...)) {
		t.Errorf("commits: got %d others, want those that were written", len(got))
	}
	if readFile(t, path) != before {
		t.Error("file after Open: got another text, want the same")
	}
}
