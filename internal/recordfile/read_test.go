package recordfile

import (
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
