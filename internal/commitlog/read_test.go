package commitlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// killed returns the text of a file whose process was killed: no empty commit ends it.
func killed(t *testing.T, commits []string, appended ...string) string {
	t.Helper()
	text := readFile(t, create(t, commits, appended...))
	return text[:strings.LastIndex(text, ",{")] + closing
}

// What one interrupted write can leave is saved and truncated.
func TestTornWrite(t *testing.T) {
	whole := killed(t, []string{"1"}, "2", "3")
	last := strings.LastIndex(whole, ",{")
	zeros := strings.Repeat("\x00", 512)
	for name, test := range map[string]struct {
		text    string
		commits int
		torn    bool
	}{
		"clean":                           {whole, 4, false},
		"bracket missing":                 {strings.TrimSuffix(whole, "]\n"), 4, false},
		"line feed missing":               {strings.TrimSuffix(whole, "\n"), 4, false},
		"garbage after the bracket":       {whole + "\x00\x00garbage", 4, true},
		"a comma":                         {strings.TrimSuffix(whole, "]\n") + ",", 4, true},
		"half a line":                     {whole[:last+20], 3, true},
		"zeros":                           {whole[:last] + zeros, 3, true},
		"a line behind a bracket":         {whole[:last] + "]" + whole[last+1:], 3, true},
		"a line behind zeros":             {whole[:last] + zeros + whole[last:], 3, true},
		"a bracket, then part of a line":  {whole[:last] + "]\n" + whole[last+2:], 3, true},
		"the last line edited to CR LF":   {whole[:len(whole)-3] + "\r\n]\n", 3, true},
		"a second bracket":                {whole + "]\n", 4, true},
		"the last line without its brace": {whole[:len(whole)-4] + "\n]\n", 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Check waits
			path := writeFile(t, test.text)
			report, err := Check(path, options, ignore)
			check(t, err)
			if clean := test.text == whole; (report.Torn == "") != clean {
				t.Errorf("Check: got %q, want clean: %t", report.Torn, clean)
			}
			if report.Commits != test.commits {
				t.Errorf("Check: commits: got %d, want %d", report.Commits, test.commits)
			}
			checkSize(t, "Check: Size", report.Size, int64(len(test.text)))
			if got := readFile(t, path); got != test.text {
				t.Errorf("file after Check: got\n%s\nwant\n%s", got, test.text)
			}
			l, commits := open(t, path)
			if want := []string{"1", "", "2", "3"}[:test.commits]; !slices.Equal(commits, want) {
				t.Errorf("commits: got %q, want %q", commits, want)
			}
			text := readFile(t, path)
			if !json.Valid([]byte(text)) {
				t.Errorf("file: got\n%s\nwant JSON", text)
			}
			checkSize(t, "Size", l.Size(), int64(len(text)))
			saved, _ := filepath.Glob(path + tornSuffix + "*")
			if (len(saved) == 1) != test.torn {
				t.Fatalf("saved torn writes: got %q, want one: %t", saved, test.torn)
			}
			if test.torn {
				rest := readFile(t, saved[0])
				if !strings.HasSuffix(test.text, rest) {
					t.Errorf("saved torn write: got %q, want the end of the file", rest)
				}
				if want := fmt.Sprint(len(rest), " bytes"); !strings.Contains(report.Torn, want) {
					t.Errorf("Check: got %q, want %s in it", report.Torn, want)
				}
			}
			check(t, l.Append([]byte("4")))
			check(t, l.Close())
			_, commits = open(t, path)
			want := slices.Concat([]string{"1", "", "2", "3"}[:test.commits], []string{"", "4", ""})
			if !slices.Equal(commits, want) {
				t.Errorf("commits after one more: got %q, want %q", commits, want)
			}
		})
	}
}

// Everything that no crash leaves is refused, and the file is not changed.
func TestRefused(t *testing.T) {
	good := killed(t, []string{"1", "2"}, "3", "4")
	lines := strings.SplitAfter(good, "\n")
	// with replaces line i, counted from 0, and at is where it begins.
	with := func(i int, replacement ...string) string {
		return strings.Join(slices.Replace(slices.Clone(lines), i, i+1, replacement...), "")
	}
	at := func(i int) int64 { return int64(len(strings.Join(lines[:i], ""))) }
	edited := func(i int, old, replacement string) string {
		return with(i, strings.Replace(lines[i], old, replacement, 1))
	}
	headed := func(h header) string { return with(1, string(h.text()[len(opening):])) }
	otherFields := []byte(lineStart + `7,"format":"events/2","tables":4}`)
	seal(otherFields, 0)
	zeros := strings.Repeat("0", saltLen)
	salt := good[strings.Index(good, `"salt":"`)+8:][:saltLen]
	swapped := strings.Join(slices.Concat(lines[:5], []string{lines[6], lines[5]}, lines[7:]), "")
	for name, test := range map[string]struct {
		text   string
		line   int // for ErrDamaged; 0 for ErrFormat
		offset int64
		says   string
	}{
		"empty":            {"", 0, 0, "it is empty: restore a backup, or delete it"},
		"noise":            {"hello", 0, 0, "no header at line 2, byte 2"},
		"zeros":            {strings.Repeat("\x00", 5000), 0, 0, "no header at line 2, byte 2"},
		"an empty array":   {"[]", 0, 0, "no header at line 2, byte 2"},
		"a seed":           {"[\n{\"user\":{\"id\":\"usr_ada\"}}\n]\n", 0, 0, "no header at line 2, byte 2"},
		"a newer format":   {headed(header{3, "events/2", salt, 6}), 0, 0, "reads only events/1: use"},
		"newer fields":     {with(1, string(otherFields)+"\n"), 0, 0, "use a newer version"},
		"another format":   {headed(header{3, "guests/1", salt, 6}), 0, 0, "use a newer version"},
		"a block of zeros": {strings.Repeat("\x00", 90) + good[90:], 0, 0, "no header at line 2, byte 2"},
		"no beginning":     {good[at(2):], 0, 0, "no header at line 2, byte 2"},
		"CR LF":            {strings.ReplaceAll(good, "\n", "\r\n"), 0, 0, "no header at line 2, byte 2"},
		"reformatted":      {strings.ReplaceAll(good, `":`, `": `), 0, 0, "no header at line 2, byte 2"},

		"header cut":         {good[:40], 2, 2, "the header is invalid"},
		"header changed":     {strings.Replace(good, "snap", "snaq", 1), 2, 2, "the header is invalid"},
		"snapshot too early": {headed(header{6, "events/1", salt, 6}), 2, 2, "the header is invalid"},
		"a huge number": {headed(header{1 << 54, "events/1", salt, 1 << 55}), 2, 2,
			"header is invalid"},
		"a short salt":        {headed(header{3, "events/1", salt[1:], 6}), 2, 2, "the header is invalid"},
		"another file's salt": {headed(header{3, "events/1", zeros, 6}), 3, at(2), "later commits follow"},

		"the header alone":        {lines[0] + lines[1], 3, at(2), "up to 6 were durable"},
		"no snapshot":             {lines[0] + lines[1] + closing, 3, at(2), "up to 6 were durable"},
		"snapshot cut":            {good[:at(4)] + closing, 5, at(4), "up to 6 were durable"},
		"snapshot cut in a line":  {good[:at(4)+9], 5, at(4), "up to 6 were durable"},
		"a snapshot line changed": {edited(3, "2", "7"), 4, at(3), "later commits follow it (3 found)"},
		"a line changed":          {edited(5, "3", "7"), 6, at(5), "later commits follow it (1 found)"},
		"a line with CR LF":       {edited(4, "\n", "\r\n"), 5, at(4), "later commits follow it (2 found)"},
		"a line without a comma":  {with(5, lines[5][1:]), 6, at(5), "later commits follow it (1 found)"},
		"a line feed missing":     {edited(5, "\n", ""), 6, at(5), "later commits follow it (1 found)"},
		"a line missing":          {with(5), 6, at(5), "but this is not commit 7"},
		"a line twice":            {with(5, lines[5], lines[5]), 7, at(6), "but this is not commit 8"},
		"an old line behind a torn write": {good[:at(6)] + lines[6][:20] + "\n" + lines[5], 7, at(6),
			"later commits follow it (1 found)"},
		"the last line twice": {with(6, lines[6], lines[6]), 8, at(7), "but this is not commit 9"},
		"two lines swapped":   {swapped, 6, at(5), "but this is not commit 7"},
		"more than one write": {good + strings.Repeat("x", maxTornWrite), 8, at(7), "more follows than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Check waits
			path := writeFile(t, test.text)
			_, checkErr := Check(path, options, ignore)
			_, openErr := Open(path, options, ignore)
			for call, err := range map[string]error{"Check": checkErr, "Open": openErr} {
				checkSays(t, call, err, test.says)
				checkSays(t, call, err, path)
				if test.line == 0 {
					checkIs(t, call, err, ErrFormat)
				} else {
					checkIs(t, call, err, ErrDamaged)
					checkSays(t, call, err, fmt.Sprintf("at line %d, byte %d:", test.line, test.offset))
				}
			}
			if readFile(t, path) != test.text {
				t.Error("file: got another text, want the same")
			}
			if files, _ := filepath.Glob(path + ".*"); !slices.Equal(files, []string{path + ".lock"}) {
				t.Errorf("files next to it: got %q, want the lock", files)
			}
		})
	}
}

// An error from replay refuses the file at that line.
func TestReplayRefuses(t *testing.T) {
	path := create(t, []string{"1"}, "2")
	text := readFile(t, path)
	refuse := func(c Commit) error {
		if string(c.Records) == "2" {
			return errors.New("title is missing")
		}
		return nil
	}
	_, openErr := Open(path, options, refuse)
	_, checkErr := Check(path, options, refuse)
	for call, err := range map[string]error{"Open": openErr, "Check": checkErr} {
		offset := strings.Index(text, strings.Split(text, "\n")[4])
		checkIs(t, call, err, ErrDamaged)
		checkSays(t, call, err, fmt.Sprintf(
			"%s is damaged at line 5, byte %d: title is missing; the file is unchanged: restore a backup",
			path, offset))
	}
	if readFile(t, path) != text {
		t.Error("file: got another text, want the same")
	}
}

// Every flipped bit of a closed file is refused, or takes no records away. After a kill, it may take
// away the last commit, but no other.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	closed := readFile(t, create(t, []string{"1", "2"}, "3", "4"))
	killed := closed[:strings.LastIndex(closed, ",{")] + closing
	for name, text := range map[string]string{"closed": closed, "killed": killed} {
		want := []string{"1", "2", "3", "4"}
		refused, shorter := 0, 0
		for bit := range 8 * len(text) {
			image := []byte(text)
			image[bit/8] ^= 1 << (bit % 8)
			switch got := openImage(t, image); {
			case got == nil:
				refused++
			case name == "killed" && slices.Equal(got, want[:3]):
				shorter++
			case !slices.Equal(got, want):
				t.Fatalf("%s, bit %d of byte %d: commits: got %q, want %q", name, bit%8, bit/8, got, want)
			}
		}
		t.Logf("%s: %d bits, %d refused, %d without the last commit", name, 8*len(text), refused, shorter)
	}
}

// openImage returns the commits with records of a file, or nil if it is refused and unchanged.
func openImage(t *testing.T, image []byte) []string {
	t.Helper()
	d := newMemDisk(512)
	d.put(memPath, image)
	commits := []string{}
	l, err := Open(memPath, memOptions(d), collect(&commits))
	if err == nil {
		check(t, l.Close())
		return withRecords(commits)
	}
	refused := errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat)
	if !refused {
		t.Fatalf("Open: got %v, want %v or %v", err, ErrDamaged, ErrFormat)
	}
	if d.text(memPath) != string(image) {
		t.Fatalf("file that was refused: got another text, want the same: %v", err)
	}
	if len(d.names) != 1 {
		t.Fatalf("files after one was refused: got %d, want 1: %v", len(d.names), err)
	}
	return nil
}

func TestCheckReport(t *testing.T) {
	path := create(t, []string{"1", "2"}, "3")
	text := readFile(t, path)
	check(t, os.Remove(path+".lock"))
	report, err := Check(path, options, ignore)
	check(t, err)
	want := Report{Format: "events/1", Size: int64(len(text)), Commits: 5}
	if report != want {
		t.Errorf("Check: got %+v, want %+v", report, want)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("files after Check: got %q, want one", files)
	}
}

func TestCheckClosesFile(t *testing.T) {
	d, _ := filled(t)
	closed := false
	d.fault = func(call, _ string) fault {
		closed = closed || call == "close"
		return fault{}
	}
	_, err := Check(memPath, memOptions(d), ignore)
	check(t, err)
	if !closed {
		t.Error("file after Check: got it open, want it closed")
	}
}

// While a server writes, the end of the file may be anything for a moment. Check reads it again.
func TestCheckWhileWriting(t *testing.T) {
	text := killed(t, []string{"1"}, "2", "3", "4")
	lines := strings.SplitAfter(text, "\n")
	first := func(n int) string { return strings.Join(lines[:n], "") }
	torn := first(5) + lines[5][:10]
	for name, test := range map[string]struct {
		images  []string // of the file, one after another
		commits int      // 0 if it is refused
		torn    bool
	}{
		"a write":          {[]string{torn, text}, 5, false},
		"several writes":   {[]string{torn, first(6) + lines[6][:3], first(6) + ",", text}, 5, false},
		"an undone write":  {[]string{torn, first(5) + closing}, 3, false},
		"a hole once":      {[]string{first(5) + "\x00\x00\x00" + lines[6], text}, 5, false},
		"torn for good":    {[]string{torn}, 3, true},
		"damage for good":  {[]string{first(5) + lines[6] + closing}, 0, false},
		"damage after all": {[]string{torn, first(5) + lines[6] + closing}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newMemDisk(512)
				n := d.put(memPath, []byte(test.images[0]))
				start := time.Now()
				d.fault = func(string, string) fault {
					i := int(time.Since(start) / (10 * time.Millisecond))
					n.cache = []byte(test.images[min(i, len(test.images)-1)])
					return fault{}
				}
				report, err := Check(memPath, memOptions(d), ignore)
				want := test.commits == 0
				if got := errors.Is(err, ErrDamaged); got != want {
					t.Fatalf("Check: got %v, which is ErrDamaged: %t, want %t", err, got, want)
				}
				if report.Commits != test.commits {
					t.Errorf("Check: commits: got %d, want %d", report.Commits, test.commits)
				}
				if got := report.Torn != ""; got != test.torn {
					t.Errorf("Check: got %q, want torn: %t", report.Torn, test.torn)
				}
			})
		})
	}
}
