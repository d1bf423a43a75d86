package recordfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// formats are those of the tests, the oldest first; those of most have one.
var formats = []string{"events/1"}

var options = Options{Formats: formats, Logger: slog.New(slog.DiscardHandler)}

// on is the options of files on a memory disk.
func on(m *memFS) Options {
	o := options
	o.fs = m
	return o
}

// logTo returns a logger that hands each line to log.
func logTo(log func(line string)) *slog.Logger {
	return slog.New(slog.NewTextHandler(lineWriter(log), nil))
}

type lineWriter func(line string)

func (w lineWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// open opens a file of the real disk and returns its commits.
func open(t *testing.T, path string) (*File, []string) {
	t.Helper()
	f, commits, err := tryOpen(t, path)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	return f, commits
}

func tryOpen(t *testing.T, path string) (f *File, commits []string, err error) {
	o := options
	o.Logger = logTo(func(line string) { t.Log(line) })
	f, err = Open(path, o, collect(&commits))
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, commits, err
}

// collect returns a replay that appends the records of each line.
func collect(commits *[]string) func(Line) error {
	return func(l Line) error {
		*commits = append(*commits, l.Records)
		return nil
	}
}

// ignore is a replay that takes all.
func ignore(Line) error { return nil }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a file with the commits as its snapshot and then those appended.
func create(t *testing.T, commits []string, appended ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	f, _ := open(t, path)
	ok(t, f.Rewrite(seq(commits...)))
	for _, c := range appended {
		ok(t, f.Append([]byte(c)))
	}
	ok(t, f.Close())
	return path
}

// killed returns the text of a file with the commits as its snapshot and then those
// appended, whose process was killed: no empty commit ends it.
func killed(t *testing.T, commits []string, appended ...string) (text string) {
	t.Helper()
	text = readFile(t, create(t, commits, appended...))
	if len(appended) > 0 {
		text = text[:strings.LastIndex(text, ",{")] + closing
	}
	return text
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	ok(t, err)
	return string(data)
}

func TestFormat(t *testing.T) {
	path := create(t, []string{`{"user":{"id":"usr_ada"}}`}, `{"event":1},{"event":2}`)
	text := readFile(t, path)

	form := regexp.MustCompile(`^\[
\{"c":"[0-9a-f]{8}","n":1,"format":"events/1","salt":"([0-9a-f]{16})","snap":3\}
,\{"c":"[0-9a-f]{8}","n":2,"w":\[\{"user":\{"id":"usr_ada"\}\}\]\}
,\{"c":"[0-9a-f]{8}","n":3,"w":\[\]\}
,\{"c":"[0-9a-f]{8}","n":4,"w":\[\{"event":1\},\{"event":2\}\]\}
,\{"c":"[0-9a-f]{8}","n":5,"w":\[\]\}
\]
$`)
	match := form.FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("the file has not the form of the contract:\n%s", text)
	}
	var lines []struct {
		C, Format, Salt string
		N, Snap         int
		W               []json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &lines); err != nil || len(lines) != 5 {
		t.Fatalf("as JSON: %d elements, %v", len(lines), err)
	}
	// The checksums as the contract words them, computed in another way.
	for i, line := range strings.Split(text, "\n")[1:6] {
		salt := match[1]
		if i == 0 {
			salt = ""
		}
		from, to := strings.Index(line, `"n":`), strings.LastIndex(line, "}")
		sum := crc32.Checksum([]byte(salt+line[from:to+1]), crc32.MakeTable(crc32.Castagnoli))
		if want := fmt.Sprintf("%08x", sum); lines[i].C != want {
			t.Errorf("line %d: c is %s, want %s", i+2, lines[i].C, want)
		}
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		ok(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, want 0600", info.Mode())
		}
	}
}

func TestNewFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.json")
	f, commits := open(t, path)
	if f.Size() != 0 || f.BytesSinceRewrite() != 0 || commits != nil || f.Path() != path {
		t.Errorf("Size %d, BytesSinceRewrite %d, commits %q, Path %s",
			f.Size(), f.BytesSinceRewrite(), commits, f.Path())
	}
	ok(t, f.Settle())
	if err := f.Append([]byte("{}")); err == nil || !strings.Contains(err.Error(), "before") {
		t.Errorf("Append to nothing: %v", err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || entries[0].Name() != "events.json.lock" {
		t.Errorf("on disk is %v, want only the lock", entries)
	}
	if pid := readFile(t, path+".lock"); pid != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the lock holds %q, want the process id", pid)
	}
	ok(t, f.Rewrite(seq()))
	if f.BytesSinceRewrite() != 0 || f.Size() != int64(len(readFile(t, path))) {
		t.Errorf("BytesSinceRewrite %d, Size %d after the first Rewrite", f.BytesSinceRewrite(), f.Size())
	}
	ok(t, f.Append([]byte("{}")))
	if f.BytesSinceRewrite() == 0 || f.Size() != int64(len(readFile(t, path))) {
		t.Errorf("BytesSinceRewrite %d, Size %d after Append", f.BytesSinceRewrite(), f.Size())
	}
	ok(t, f.Close())
	ok(t, f.Close())

	f, commits = open(t, path)
	if want := []string{"", "{}", ""}; !slices.Equal(commits, want) {
		t.Errorf("commits %q, want %q", commits, want)
	}
	for name, err := range map[string]error{"Append": f.Append(nil), "before": errors.New("before")} {
		if err == nil || !strings.Contains(err.Error(), "before") {
			t.Errorf("%s before Settle: %v", name, err)
		}
	}
	ok(t, f.Settle())
	ok(t, f.Settle())
	ok(t, f.Append(nil))
	ok(t, f.Close())
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Errorf("the lock file has to stay: %v", err)
	}
	for name, err := range map[string]error{"Append": f.Append(nil), "Settle": f.Settle(),
		"Rewrite": f.Rewrite(seq())} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestRewrite(t *testing.T) {
	path := create(t, []string{"1", "2"}, "3")
	before := readFile(t, path)
	f, commits := open(t, path)
	if want := []string{"1", "2", "", "3", ""}; !slices.Equal(commits, want) {
		t.Fatalf("commits %q, want %q", commits, want)
	}
	ok(t, f.Rewrite(seq("a", "b", "c")))
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FILE.tmp is still there: %v", err)
	}
	ok(t, f.Append([]byte("d")))
	ok(t, f.Close())
	after := readFile(t, path)
	if before[:len(opening)+16] == after[:len(opening)+16] ||
		strings.Contains(after, before[strings.Index(before, "salt"):][:24]) {
		t.Error("a rewrite needs a new salt")
	}
	if !strings.Contains(after, `"n":7,"format"`) || !strings.Contains(after, `"snap":11}`) {
		t.Errorf("numbers do not go on after 6:\n%s", after)
	}
	f, commits = open(t, path)
	if want := []string{"a", "b", "c", "", "d", ""}; !slices.Equal(commits, want) {
		t.Errorf("commits %q, want %q", commits, want)
	}
	ok(t, f.Settle())

	// What is refused before the rename leaves all as it was.
	state := readFile(t, path)
	calls := 0
	changing := func(yield func([]byte) bool) {
		calls++
		for range calls {
			if !yield([]byte("x")) {
				return
			}
		}
	}
	for name, c := range map[string]iter.Seq[[]byte]{
		"too large": seq(strings.Repeat("x", MaxCommit+1)),
		"two lines": seq("x", "a\nb"),
		"changes":   changing,
	} {
		err := f.Rewrite(c)
		if err == nil || f.Err() != nil {
			t.Errorf("%s: Rewrite = %v, then Err %v", name, err, f.Err())
		}
		if strings.Contains(fmt.Sprint(err), "too large for one commit") != (name == "too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if readFile(t, path) != state {
		t.Error("a refused Rewrite changed the file")
	}
	ok(t, f.Append([]byte("e")))
}

// An empty commit ends the file after a clean end and after a start that had a tail
// to settle, once: a life without a commit adds nothing.
func TestEmptyCommit(t *testing.T) {
	path := create(t, []string{"1"})
	lives := func(what string, before string, want int) (text string) {
		t.Helper()
		ok(t, os.WriteFile(path, []byte(before), 0o600))
		for range 3 {
			f, _ := open(t, path)
			ok(t, f.Close()) // not settled
			if readFile(t, path) != before {
				t.Errorf("%s: a life without Settle changed the file", what)
			}
			f, _ = open(t, path)
			ok(t, f.Settle())
			before = readFile(t, path)
			if int64(len(before)) != f.Size() {
				t.Errorf("%s: Size %d of %d", what, f.Size(), len(before))
			}
			ok(t, f.Close())
			if text = readFile(t, path); text != before || strings.Count(text, `"w":[]`) != want {
				t.Errorf("%s: %d empty commits after Close, want %d:\n%s", what,
					strings.Count(text, `"w":[]`), want, text)
			}
		}
		return text
	}
	lives("snapshot alone", readFile(t, path), 1)
	closed := lives("killed", killed(t, []string{"1"}, "2"), 2)
	lives("torn", strings.TrimSuffix(closed, closing)+",{", 2)
	lives("torn in the empty commit", closed[:len(closed)-9], 2)

	// The two ends of a life: with a commit, and with the file taken away.
	f, _ := open(t, path)
	ok(t, f.Settle())
	ok(t, f.Append([]byte("3")))
	ok(t, f.Append(nil))
	ok(t, f.Close())
	if got := strings.Count(readFile(t, path), `"w":[]`); got != 3 {
		t.Errorf("%d empty commits, and one was appended: Close must add none", got)
	}
	f, _ = open(t, path)
	ok(t, f.Settle())
	ok(t, f.Append([]byte("4")))
	taken := path
	if runtime.GOOS == "windows" { // where no file that is open can be renamed
		ok(t, os.WriteFile(path, nil, 0o600))
	} else {
		taken += ".old"
		ok(t, os.Rename(path, taken))
	}
	before := readFile(t, taken)
	if err := f.Close(); !errors.Is(err, ErrBroken) || readFile(t, taken) != before {
		t.Errorf("Close of a file that was taken away = %v, and it may add nothing", err)
	}
	f, _ = open(t, filepath.Join(t.TempDir(), "new.json"))
	ok(t, f.Close())
	if _, err := os.Stat(f.Path()); err == nil {
		t.Error("Close made a file")
	}
}

func TestAppendLimits(t *testing.T) {
	path := create(t, nil)
	f, _ := open(t, path)
	ok(t, f.Settle())
	before := readFile(t, path)
	if err := f.Append(make([]byte, MaxCommit+1)); err == nil ||
		!strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), "too large for one commit") {
		t.Errorf("Append of a byte too many = %v, want that it is too large", err)
	}
	if err := f.Append([]byte("{\n}")); err == nil {
		t.Error("Append took a line break")
	}
	if readFile(t, path) != before || f.Err() != nil {
		t.Errorf("a refused Append changed the file, or ended writing: %v", f.Err())
	}
	largest := strings.Repeat("x", MaxCommit)
	ok(t, f.Append([]byte(largest)))
	ok(t, f.Append([]byte("y")))
	ok(t, f.Close())
	// The largest commit, torn at its last byte, is a torn write and not damage.
	text := readFile(t, path)
	torn := text[:strings.LastIndex(text, "x")]
	ok(t, os.WriteFile(path, []byte(torn), 0o600))
	f, commits := open(t, path)
	if want := []string{""}; !slices.Equal(commits, want) {
		t.Errorf("%d commits, want the empty one", len(commits))
	}
	ok(t, f.Settle())
	ok(t, f.Append([]byte("z")))
}

func TestOpenRepairs(t *testing.T) {
	whole := killed(t, []string{"1"}, "2", "3")
	last := strings.LastIndex(whole, ",{")
	for name, test := range map[string]struct {
		text    string
		commits int
		torn    bool
	}{
		"clean":                     {whole, 4, false},
		"bracket missing":           {strings.TrimSuffix(whole, "]\n"), 4, false},
		"line end missing":          {strings.TrimSuffix(whole, "\n"), 4, false},
		"garbage after the bracket": {whole + "\x00\x00garbage", 4, true},
		"a comma":                   {strings.TrimSuffix(whole, "]\n") + ",", 4, true},
		"half a line":               {whole[:last+20], 3, true},
		"zeros":                     {whole[:last] + strings.Repeat("\x00", 1000), 3, true},
		"the next line after a ]":   {whole[:last] + "]" + whole[last+1:], 3, true},
		"the next line after zeros": {whole[:last] + strings.Repeat("\x00", 512) + whole[last:], 3,
			true},
		"bracket, then a line's rest":    {whole[:last] + "]\n" + whole[last+2:], 3, true},
		"edited to CR LF in the last":    {whole[:len(whole)-3] + "\r\n]\n", 3, true},
		"a second bracket":               {whole + "]\n", 4, true},
		"all of the last line but its }": {whole[:len(whole)-4] + "\n]\n", 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Read sleeps
			path := filepath.Join(t.TempDir(), "events.json")
			ok(t, os.WriteFile(path, []byte(test.text), 0o600))
			report, err := Read(path, options, ignore)
			if err != nil || (report.Repair != "") != (test.text != whole) ||
				strings.Contains(report.Repair, "not whole") != test.torn || report.Lines != test.commits {
				t.Errorf("Read = %+v, %v", report, err)
			}
			if readFile(t, path) != test.text {
				t.Fatal("Read changed the file")
			}
			f, commits := open(t, path)
			if want := []string{"1", "", "2", "3"}[:test.commits]; !slices.Equal(commits, want) {
				t.Errorf("commits %q, want %q", commits, want)
			}
			if got := readFile(t, path); got != test.text || f.Size() != int64(len(got)) {
				t.Errorf("Size %d, and Open left the file as\n%s", f.Size(), got)
			}
			ok(t, f.Settle())
			got := readFile(t, path)
			commitsOfIt, ended := strings.CutSuffix(got, `"w":[]}`+"\n"+closing)
			commitsOfIt = commitsOfIt[:strings.LastIndex(commitsOfIt, ",{")]
			if !ended || int64(len(got)) != f.Size() || !json.Valid([]byte(got)) ||
				!strings.HasPrefix(whole, commitsOfIt) {
				t.Errorf("after Settle the file holds\n%s", got)
			}
			kept, _ := filepath.Glob(path + ".torn-*")
			switch {
			case len(kept) == 1 && test.torn:
				if rest := readFile(t, kept[0]); !strings.HasSuffix(test.text, rest) ||
					!strings.Contains(report.Repair, fmt.Sprint(" ", len(rest), " bytes")) {
					t.Errorf("put aside: %q", rest)
				}
				info, _ := os.Stat(kept[0])
				if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
					t.Errorf("mode of %s is %v", kept[0], info.Mode())
				}
			case len(kept) > 0 || test.torn:
				t.Errorf("put aside: %v", kept)
			}
			ok(t, f.Append([]byte("4")))
			ok(t, f.Close())
			_, commits = open(t, path)
			if len(commits) != test.commits+3 ||
				!slices.Equal(commits[test.commits:], []string{"", "4", ""}) {
				t.Errorf("commits %q after one more", commits)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	good := killed(t, []string{"1", "2"}, "3", "4")
	lines := strings.SplitAfter(good, "\n")
	with := func(i int, replacement ...string) string {
		return strings.Join(slices.Replace(slices.Clone(lines), i, i+1, replacement...), "")
	}
	reseal := func(format, salt string, n, snap uint64) string {
		return with(1, string(header{before: n, snap: snap, format: format, saltText: salt}.text()[len(opening):]))
	}
	at := func(i int) int { return len(strings.Join(lines[:i], "")) }
	edited := func(i int, old, new string) string { return with(i, strings.Replace(lines[i], old, new, 1)) }
	swapped := strings.Join(slices.Concat(lines[:5], []string{lines[6], lines[5]}, lines[7:]), "")
	salt := good[strings.Index(good, `"salt":"`)+8:][:16]
	long := strings.Repeat("x", maxUnfinished)
	for name, test := range map[string]struct {
		text   string
		line   int // of a DamageError; 0 for ErrFormat
		offset int
		says   string
	}{
		"empty":                   {"", 0, 0, "it is empty"},
		"a folder's noise":        {"hello", 0, 0, "not a data file"},
		"zeros":                   {strings.Repeat("\x00", 5000), 0, 0, "not a data file"},
		"an object":               {`{"events":[]}`, 0, 0, "not a data file"},
		"an array":                {"[]", 0, 0, "does not begin as one"},
		"a seed":                  {"[\n{\"user\":{\"id\":\"usr_ada\"}}\n]\n", 0, 0, "does not begin as one"},
		"a seed with spaces":      {" [ {\"user\" : {} } ]", 0, 0, "does not begin as one"},
		"newer format":            {reseal("events/2", salt, 1, 4), 0, 0, `"events/2", and this program knows formats up`},
		"much newer format":       {reseal("events/10", salt, 1, 4), 0, 0, "use the newer program that wrote it"},
		"older format":            {reseal("events/0", salt, 1, 4), 0, 0, "use the newer program that wrote it"},
		"other format":            {reseal("guests/2", salt, 1, 4), 0, 0, `formats up to "events/1"`},
		"format without a number": {reseal("events/x", salt, 1, 4), 0, 0, `has the format "events/x"`},
		"newer header": {opening + func() string {
			line := []byte(lineStart + `1,"format":"events/2","more":{}}`)
			seal(line, 0)
			return string(line)
		}() + "\n", 0, 0, "use the newer program that wrote it"},
		"header cut":              {good[:40], 2, 2, "header"},
		"a block of zeros":        {strings.Repeat("\x00", 90) + good[90:], 1, 0, "was overwritten or is missing"},
		"header and bracket gone": {good[len(lines[0]+lines[1]):], 1, 0, "was overwritten or is missing"},
		"header alone":            {lines[0] + lines[1], 3, at(2), "line 3 is wrong, and all up to commit 4 was"},
		"header and bracket":      {lines[0] + lines[1] + closing, 3, at(2), "line 3 is wrong"},
		"header's bit":            {strings.Replace(good, "snap", "snaq", 1), 2, 2, "header's checksum"},
		"snapshot before header":  {reseal("events/1", salt, 4, 4), 2, 2, "not of the form"},
		"numbers beyond":          {reseal("events/1", salt, 1<<53+1, 1<<53+2), 2, 2, "not of the form"},
		"salt too short":          {reseal("events/1", salt[1:], 1, 4), 2, 2, "not of the form"},
		"another file's lines":    {reseal("events/1", "0123456789abcdef", 1, 4), 3, at(2), "4 later commits follow"},
		"CR LF everywhere":        {strings.ReplaceAll(good, "\n", "\r\n"), 1, 0, "was overwritten or is missing"},
		"formatted":               {strings.ReplaceAll(good, `":`, `": `), 0, 0, "does not begin as one"},
		"CR LF in one line":       {edited(4, "\n", "\r\n"), 5, at(4), "line 5 is wrong, and 2 later commits follow"},
		"a line changed":          {edited(3, "2", "7"), 4, at(3), "line 4 is wrong, and 3 later commits follow"},
		"a later line changed":    {edited(5, "3", "7"), 6, at(5), "line 6 is wrong, and a later commit follows"},
		"a line with no comma":    {with(5, lines[5][1:]), 6, at(5), "line 6 is wrong, and a later"},
		"a line end gone":         {edited(5, "\n", ""), 6, at(5), "line 6 is wrong, and a later"},
		"a line gone":             {with(5), 6, at(5), "but this is not commit 5"},
		"a line twice":            {with(5, lines[5], lines[5]), 7, at(6), "but this is not commit 6"},
		"the last line alone":     {with(5, lines[6]), 6, at(5), "but this is not commit 5"},
		"the last line twice":     {with(6, lines[6], lines[6]), 8, at(7), "but this is not commit 7"},
		"two lines swapped":       {swapped, 6, at(5), "but this is not commit 5"},
		"snapshot cut":            {good[:at(4)] + closing, 5, at(4), "all up to commit 4 was durable"},
		"snapshot cut in a line":  {good[:at(4)+9], 5, at(4), "line 5 is wrong, and all up to"},
		"more than one write":     {good + long, 8, len(good) - 2, "more follows than one write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Read sleeps
			path := filepath.Join(t.TempDir(), "events.json")
			ok(t, os.WriteFile(path, []byte(test.text), 0o600))
			_, _, openErr := tryOpen(t, path)
			_, readErr := Read(path, options, ignore)
			for call, err := range map[string]error{"Open": openErr, "Read": readErr} {
				if test.line == 0 {
					e, is := errors.AsType[*FormatError](err)
					if !is || e.File != path || (e.Format != "") != strings.Contains(test.text, `"format":"`) {
						t.Errorf("%s = %v, want a FormatError", call, err)
						continue
					}
				} else {
					e, is := errors.AsType[*DamageError](err)
					if !is {
						t.Errorf("%s = %v, want a DamageError", call, err)
						continue
					}
					if e.File != path || e.Line != test.line || e.Offset != int64(test.offset) {
						t.Errorf("%s = %v, want line %d, byte %d", call, err, test.line, test.offset)
					}
				}
				if !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), path) ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("%s = %v, want %q in it", call, err, test.says)
				}
			}
			if readFile(t, path) != test.text {
				t.Error("a refused file was changed")
			}
			if others, _ := filepath.Glob(path + ".*"); len(others) != 1 {
				t.Errorf("beside the refused file are %v, want only the lock", others)
			}
			if _, _, err := tryOpen(t, path); err == nil {
				t.Error("the lock of a refused file was not given back")
			} else if errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	path := create(t, []string{"1"}, "2")
	before := readFile(t, path)
	refusal := errors.New("record 1: title must not be empty")
	refuse := func(l Line) error {
		if l.Records == "2" {
			return refusal
		}
		return nil
	}
	_, err := Open(path, options, refuse)
	e, is := errors.AsType[*DamageError](err)
	if !is || !errors.Is(err, ErrDamaged) || e.Line != 5 ||
		e.Offset != int64(strings.Index(before, `"w":[2]`)-len(`,{"c":"00000000","n":4,`)) ||
		!strings.Contains(err.Error(), refusal.Error()) {
		t.Errorf("Open = %v", err)
	}
	if _, err = Read(path, options, refuse); !errors.Is(err, ErrDamaged) {
		t.Errorf("Read = %v", err)
	}
	if readFile(t, path) != before {
		t.Error("the file was changed")
	}
}

func TestPaths(t *testing.T) {
	path := create(t, []string{"1"})
	dir := filepath.Dir(path)
	dir, err := filepath.EvalSymlinks(dir)
	ok(t, err)
	real := filepath.Join(dir, "events.json")

	t.Run("link", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("links need rights there")
		}
		other := t.TempDir()
		link := filepath.Join(other, "link.json")
		ok(t, os.Symlink(path, link))
		f, _ := open(t, link)
		if f.Path() != real {
			t.Errorf("Path = %s, want %s", f.Path(), real)
		}
		ok(t, f.Rewrite(seq("2")))
		if target, err := os.Readlink(link); err != nil || target != path {
			t.Errorf("the link was replaced: %q, %v", target, err)
		}
		ok(t, f.Close())
		if _, commits := open(t, path); !slices.Equal(commits, []string{"2", ""}) {
			t.Errorf("commits %q", commits)
		}
		if entries, _ := os.ReadDir(other); len(entries) != 1 {
			t.Errorf("beside the link are %v", entries)
		}
		dangling := filepath.Join(other, "dangling.json")
		ok(t, os.Symlink(filepath.Join(other, "nothing.json"), dangling))
		if _, _, err := tryOpen(t, dangling); err == nil ||
			!strings.Contains(err.Error(), "leads to nothing") {
			t.Errorf("Open of a link to nothing = %v", err)
		}
		loop := filepath.Join(other, "loop.json")
		ok(t, os.Symlink(loop, loop))
		if _, _, err := tryOpen(t, loop); err == nil {
			t.Error("Open of a loop of links")
		}
	})
	t.Run("relative", func(t *testing.T) {
		t.Chdir(dir)
		f, _ := open(t, "events.json")
		if f.Path() != real {
			t.Errorf("Path = %s, want %s", f.Path(), real)
		}
		ok(t, f.Close())
		if _, err := Read("events.json", options, ignore); err != nil {
			t.Error(err)
		}
	})
	t.Run("tmp", func(t *testing.T) {
		ok(t, os.WriteFile(path+".tmp", []byte("left over"), 0o644))
		f, _ := open(t, path)
		if readFile(t, path+".tmp") != "left over" {
			t.Error("Open changed FILE.tmp")
		}
		ok(t, f.Settle())
		if _, err := os.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("FILE.tmp is still there: %v", err)
		}
		ok(t, f.Close())
	})
	t.Run("tmp beside what is refused", func(t *testing.T) { // it may be all that is left
		foreign, damaged := filepath.Join(dir, "foreign.csv"), filepath.Join(dir, "damaged.json")
		ok(t, os.WriteFile(foreign, []byte("a,b,c\n"), 0o600))
		ok(t, os.WriteFile(damaged, []byte(strings.Replace(readFile(t, path), `"n":`, `"m":`, 1)), 0o600))
		for _, path := range []string{foreign, damaged} {
			ok(t, os.WriteFile(path+".tmp", []byte("precious"), 0o600))
			if _, _, err := tryOpen(t, path); err == nil || readFile(t, path+".tmp") != "precious" {
				t.Errorf("Open(%s) = %v, and took away what was beside it", path, err)
			}
		}
	})
	for name, test := range map[string]struct{ path, says string }{
		"folder":         {dir, "is a folder"},
		"no such folder": {filepath.Join(dir, "none", "events.json"), "make the folder"},
		"below a file":   {filepath.Join(path, "events.json"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for call, err := range map[string]error{
				"Open": func() error { _, _, err := tryOpen(t, test.path); return err }(),
				"Read": func() error { _, err := Read(test.path, options, ignore); return err }(),
			} {
				if err == nil || !strings.Contains(err.Error(), test.says) ||
					!strings.Contains(err.Error(), test.path) && name != "no such folder" {
					t.Errorf("%s(%s) = %v, want %q", call, test.path, err, test.says)
				}
			}
			if _, err := os.Stat(test.path + ".lock"); err == nil {
				t.Error("a lock was left beside what is no data file")
			}
		})
	}
	if _, err := Read(filepath.Join(dir, "none.json"), options, ignore); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing = %v", err)
	}
}

// A file that was removed or replaced under us takes nothing more: it would be
// lost, or be written into what somebody else put there.
func TestReplaced(t *testing.T) {
	for _, how := range []string{"removed", "replaced", "renamed", "overwritten", "cut", "grown",
		"cut before Settle"} {
		if runtime.GOOS == "windows" && slices.Contains([]string{"removed", "replaced", "renamed"}, how) {
			continue // no file that is open can be
		}
		path := create(t, []string{"1"}, "2")
		before := readFile(t, path)
		f, _ := open(t, path)
		if how != "cut before Settle" {
			ok(t, f.Settle())
		}
		left := ""
		switch how {
		case "overwritten": // as cp does: in place
			left = killed(t, []string{"1"})
			ok(t, os.WriteFile(path, []byte(left), 0o600))
		case "cut", "cut before Settle":
			left = before[:len(before)-1]
			ok(t, os.Truncate(path, int64(len(left))))
		case "grown":
			left = before + " "
			ok(t, os.WriteFile(path, []byte(left), 0o600))
		case "removed":
			ok(t, os.Remove(path))
		case "replaced":
			ok(t, os.WriteFile(path+".other", []byte(before), 0o600))
			ok(t, os.Rename(path+".other", path))
		case "renamed":
			ok(t, os.Rename(path, path+".old"))
		}
		for name, err := range map[string]error{"Settle": f.Settle(), "Append": f.Append([]byte("3")),
			"Rewrite": f.Rewrite(seq("4")), "Err": f.Err()} {
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "removed or replaced") {
				t.Errorf("%s: %s = %v, want ErrBroken", how, name, err)
			}
		}
		if how == "replaced" && readFile(t, path) != before || left != "" && readFile(t, path) != left {
			t.Errorf("%s: what stands there now was changed", how)
		}
		if err := f.Close(); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: Close = %v, has to report it", how, err)
		}
	}
}

func TestLineLengths(t *testing.T) {
	// Lines of all lengths, more of them than are read at once.
	var want []string
	for i := range 12 {
		want = append(want, strings.Repeat(string(rune('a'+i)), MaxCommit/12*i+i))
	}
	path := create(t, want)
	f, got := open(t, path)
	if !slices.Equal(got, append(want, "")) {
		t.Error("long commits are not what they were")
	}
	// The same behind the snapshot, where Settle writes it again.
	ok(t, f.Rewrite(seq()))
	for _, c := range want {
		ok(t, f.Append([]byte(c)))
	}
	ok(t, f.Close())
	before := readFile(t, path)
	f, _ = open(t, path)
	ok(t, f.Settle())
	if readFile(t, path) != before {
		t.Error("Settle changed the file")
	}
}
