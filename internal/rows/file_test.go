package rows

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/events/internal/recordfile"
)

// OpenToRead takes no lock, changes nothing and takes no change, and works beside a database
// that writes.
func TestOpenToRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "events.json")
	_, _, err := OpenToRead(path, testOptions())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenToRead of nothing = %v", err)
	}
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1", name: "ada"}))
	db.mustUpdate(t, put(fact{id: "usr_2", name: "bob"}))
	db.mustUpdate(t, func(tx *Tx) error { tx.Delete("usr_1"); return nil })
	look := func(when string) {
		t.Helper()
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		read, report, err := OpenToRead(path, testOptions())
		if err != nil || report.Repair != "" {
			t.Fatalf("%s: OpenToRead = %+v, %v", when, report, err)
		}
		v := View{read}
		if v.Find("usr_1") != nil || v.Find("usr_2") == nil || read.Path() != path || read.Stats().Rows["user"] != 1 {
			t.Errorf("%s: the rows are not those of the file: %+v of %s", when, read.Stats(), read.Path())
		}
		err = read.Batch(context.Background(), put(fact{id: "usr_3", name: "eve"}))
		if !errors.Is(err, ErrLooking) || v.Find("usr_3") != nil {
			t.Errorf("%s: a change = %v, want ErrLooking", when, err)
		}
		if err := errors.Join(read.SetHolder("x"), read.Close()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		after, _ := os.ReadFile(path)
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if string(after) != string(before) || len(left) != len(names) {
			t.Errorf("%s: the file or its folder was changed: %q, then %q", when, names, left)
		}
	}
	look("beside a writer")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	os.Remove(recordfile.LockPath(path))
	look("alone")
}

// The options of the lock reach the file.
func TestHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	o := testOptions()
	o.Holder = "starting"
	db, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.SetHolder("operator: x"); err != nil {
		t.Fatal(err)
	}
	asked := ""
	o.Wait = 1 << 62
	o.WaitFor = func(holder string) bool {
		asked = holder
		return false
	}
	_, err = Open(path, o)
	locked, is := errors.AsType[*LockedError](err)
	if !is || locked.Holder != "operator: x" || asked != "operator: x" || locked.PID != os.Getpid() {
		t.Errorf("Open = %v, and WaitFor was asked about %q", err, asked)
	}
	pid, holder := LockHolder(path)
	if pid != os.Getpid() || holder != "operator: x" {
		t.Errorf("LockHolder = %d, %q", pid, holder)
	}
	if !BelongsTo(path, recordfile.LockPath(path)) {
		t.Error("the lock file does not belong to the data file")
	}
}
