package rows

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// laterOptions are testOptions of a program that knows two more formats.
func laterOptions() Options {
	o := testOptions()
	o.Formats = []Format{
		{Name: "events/1"},
		{Name: "events/2", Added: map[string]string{"event": `"subtitle":null`, "user": `"pronouns":null`}},
		{Name: "events/3", Added: map[string]string{"event": `"price":0`}},
	}
	return o
}

// oldFile makes a file of the first format: a user, n events with idempotency keys, the
// first of which was changed, and one that was deleted.
func oldFile(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1", name: "ada"}, fact{id: "evt_gone", parent: "usr_1"}))
	db.mustUpdate(t, func(tx *Tx) error {
		for i := range n {
			f := fact{id: fmt.Sprint("evt_", i), parent: "usr_1", name: fmt.Sprint("e", i), created: int64(i)}
			tx.Put(nil, []byte(f.json()), &IdempotencyKey{Key: fmt.Sprint("k", i), Body: "b", At: time.Now()})
		}
		tx.Delete("evt_gone")
		return nil
	})
	db.mustUpdate(t, put(fact{id: "evt_0", parent: "usr_1", name: "new", number: 7}))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkUpgraded: all that oldFile made is in the database, with the later members.
func checkUpgraded(t *testing.T, db *DB, n int) {
	t.Helper()
	db.View(func(v View) {
		if got := db.Stats().Rows; got["event"] != n || got["user"] != 1 {
			t.Errorf("the database has %v, want %d events and a user", got, n)
		}
		want := strings.TrimSuffix(fact{id: "evt_0", parent: "usr_1", name: "new", number: 7}.json(), "}") +
			`,"subtitle":null,"price":0}`
		if e := v.Find("new"); e == nil || e.JSON != want {
			t.Errorf("the event is %+v, want %s", e, want)
		}
		if u := v.Find("ada"); u == nil || !strings.HasSuffix(u.JSON, `,"pronouns":null}`) {
			t.Errorf("the user is %+v, want pronouns at its end", u)
		}
	})
	tx := &Tx{db: db}
	for i := range n {
		if e := tx.FindIdempotent("usr_1", fmt.Sprint("k", i)); e == nil || e.ID != fmt.Sprint("evt_", i) {
			t.Fatalf("the idempotency key k%d finds %+v", i, e)
		}
	}
}

// TestOlderFormat: a file of an older format is read by Check, and opened, which writes it in
// the current one: once, with its idempotency keys.
func TestOlderFormat(t *testing.T) {
	t.Parallel()
	path := oldFile(t, 3)
	before, _ := os.ReadFile(path)
	report, count, err := Check(path, laterOptions())
	if err != nil || count["event"] != 3 {
		t.Errorf("Check = %+v, %v, %v, want 3 events", report, count, err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("Check has changed the file")
	}
	// What a process leaves that is killed within the upgrade.
	if err := os.WriteFile(path+".tmp", []byte("[\n{\"c\":\"0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o := laterOptions()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 { // the second time there is nothing left to do
		db, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		checkUpgraded(t, db, 3)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), `why="it had an older format"`); n != 1 {
		t.Errorf("the upgrade is logged %d times, want once:\n%s", n, log.String())
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
	if _, err := Open(path, testOptions()); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "events/3") || !strings.Contains(err.Error(), "events/1") {
		t.Errorf("Open by the older program = %v, want ErrFormat with both formats", err)
	}
}
