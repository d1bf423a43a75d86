package offline

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/events/internal/command"
	"example.com/events/internal/recordfile"
	"example.com/events/internal/rows"
)

// Each error of a data file says what a person can do about it, and stays what it is.
func TestAdvised(t *testing.T) {
	t.Parallel()
	other := errors.New("no space left on device")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("open: %w", &rows.DamageError{File: "a b.json", Line: 3, Offset: 9, Reason: "odd"}),
			"open: a b.json is damaged at line 3, byte 9: odd; nothing was changed; " +
				"move it away, and start with a backup as the -seed"},
		{&rows.FormatError{File: "x", Reason: "it is empty"}, "x: not a data file of this version: it is empty; " +
			"give another path; a JSON array of records is for -seed, or for eventsd apply"},
		{&rows.FormatError{File: "x", Format: "events/9", Reason: "it is of events/9"},
			"x: not a data file of this version: it is of events/9; " +
				"or start with a new -data, and with a dump by that program as the -seed"},
		{&rows.LockedError{File: "x", PID: 4711},
			"x: the data file is in use by process 4711; stop it first, or try again if it is still starting"},
		{&rows.EndedError{File: "x", State: rows.ErrNotWritten, Doing: "sync", Err: rows.ErrReplaced},
			"x: not written to the data file: sync: it was removed or replaced, or its length was changed, while it " +
				"was open; keep what is in memory, with eventsd dump, before you stop"},
		{other, other.Error()},
	} {
		got := Advised(tt.err)
		if got.Error() != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("Advised(%v) =\n%v\nwant\n%s", tt.err, got, tt.want)
		}
	}
}

// testFiles are the data files of a program whose kinds of row are users alone, and what it prints.
func testFiles() (f *Files, stdout, stderr *strings.Builder) {
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	options := rows.Options{
		Kinds: []rows.Kind{{
			Name: "user", Prefix: "usr", Members: []string{`"id":`, `"created_at":`},
			Index: func(rows.Values) (name, status string) { return "", "" },
		}},
		Formats: []rows.Format{{Name: "events/1"}},
		Now:     time.Now,
		Logger:  slog.New(slog.DiscardHandler),
	}
	p := &command.Program{Name: "tool", Stdout: stdout, Stderr: stderr}
	return &Files{Program: p, Options: options}, stdout, stderr
}

// user is the text of a user.
func user(id string, second int) string {
	return fmt.Sprintf(`{"id":"%s","created_at":"2027-01-01T00:00:%02dZ"}`, id, second)
}

// write makes a data file with a user for each of the ids, and returns its path and its text.
func write(t *testing.T, ids ...string) (path, text string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	f, err := recordfile.Open(path, recordfile.Options{Formats: []string{"events/1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Rewrite(func(yield func([]byte) bool) {
		for i, id := range ids {
			if !yield([]byte(`{"user":` + user(id, i) + `}`)) {
				return
			}
		}
	})
	whole, readErr := os.ReadFile(path)
	if err := errors.Join(err, readErr, f.Close()); err != nil {
		t.Fatal(err)
	}
	return path, string(whole)
}

// The status of check is 1 for a damaged file, and 0 for one whose end an interrupted write left.
func TestCheck(t *testing.T) {
	t.Parallel()
	path, whole := write(t, "usr_1", "usr_2")
	for name, tt := range map[string]struct {
		text   string
		status int
		want   string // what is printed has this
	}{
		"clean":     {whole, 0, "users: 2\nkeys: 0\nevents: 0\nguests: 0\nfound: clean\n"},
		"not whole": {whole[:len(whole)-2], 0, "\nfound: the "},
		"damaged":   {strings.Replace(whole, "usr_1", "usr_9", 1), 1, "damaged at line"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, stdout, stderr := testFiles()
		f.Program.Commands = []command.Command{{Name: "check", Declare: f.Check}}
		status := f.Program.Exit(f.Program.Run([]string{"check", "-data", path}))
		if printed := stdout.String() + stderr.String(); status != tt.status || !strings.Contains(printed, tt.want) {
			t.Errorf("%s: check = %d, printed %s; want %d, %s", name, status, printed, tt.status, tt.want)
		}
	}
}

// A data file is not taken for an array of records.
func TestRecords(t *testing.T) {
	t.Parallel()
	f, _, _ := testFiles()
	path, _ := write(t, "usr_1")
	const want = "is a data file, not an array of records"
	if _, err := f.Records(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Records = %v, want %s", err, want)
	}
	array := filepath.Join(t.TempDir(), "records.json")
	if err := os.WriteFile(array, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := f.Records(array)
	if err != nil {
		t.Fatal(err)
	}
	if string(records) != "[]" {
		t.Errorf("Records = %q, want []", records)
	}
}
