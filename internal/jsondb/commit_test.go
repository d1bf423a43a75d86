package jsondb

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// newCalls returns calls of Batch, to be committed together.
func newCalls(fs ...func(*Tx) error) []*call {
	var calls []*call
	for _, f := range fs {
		calls = append(calls, &call{f: f, done: make(chan struct{})})
	}
	return calls
}

func find(db *DB, key string) (r *Row) {
	db.View(func(tx *Tx) { r = tx.Find(key) })
	return r
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBatchSharesCommits(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	before := strings.Count(readFile(t, path), "\n")
	db.commitMu.Lock() // a commit is under way
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			id := fmt.Sprint("usr_", n)
			err := db.Batch(put(row{id: id}))
			if err != nil {
				t.Errorf("Batch: %v", err)
			}
			if find(db, id) == nil {
				t.Errorf("%s when Batch has returned: got no row, want one", id)
			}
		})
	}
	for queued := 0; queued < 20; {
		time.Sleep(time.Millisecond)
		db.queueMu.Lock()
		queued = len(db.queue)
		db.queueMu.Unlock()
	}
	db.commitMu.Unlock()
	wg.Wait()
	lines := strings.Count(readFile(t, path), "\n") - before
	if lines != 1 {
		t.Errorf("20 calls wrote %d lines, want 1", lines)
	}
	rows := db.Stats().Rows["user"]
	if rows != 20 {
		t.Errorf("%d rows, want 20", rows)
	}
}

// TestBatchSplitsCommits commits 20 calls that don't fit into one line together. The file is appended to, and
// not rewritten.
func TestBatchSplitsCommits(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	before := readFile(t, path)
	var fs []func(*Tx) error
	for n := range 20 {
		id := fmt.Sprint("usr_", n)
		fs = append(fs, put(row{id: id, name: strings.Repeat("x", 400_000) + id}))
	}
	calls := newCalls(fs...)
	db.lockAndCommit(calls)
	for _, c := range calls {
		if c.err != nil {
			t.Errorf("a call returns %v", c.err)
		}
	}
	if !strings.HasPrefix(readFile(t, path), strings.TrimSuffix(before, "]\n")) {
		t.Error("the file was rewritten")
	}
	if rows := db.Stats().Rows["user"]; rows != 20 {
		t.Errorf("%d rows, want 20", rows)
	}
}

// TestFailedCommit commits calls to a file that was removed. All calls of a commit that can't be written
// return ErrNotWritten. Calls of a commit without changes keep their results.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}))
	err := os.Remove(path)
	if err != nil {
		t.Fatal(err)
	}
	create := func(id string) func(*Tx) error {
		return func(tx *Tx) error {
			if tx.Find(id) != nil {
				return errTest
			}
			return put(row{id: id})(tx)
		}
	}
	look := func(*Tx) error { return nil }
	unchanged := newCalls(look, create("usr_1"))
	db.lockAndCommit(unchanged)
	for i, want := range []error{nil, errTest} {
		if unchanged[i].err != want {
			t.Errorf("call %d of a commit without changes returns %v, want %v", i, unchanged[i].err, want)
		}
	}
	calls := newCalls(look, create("usr_1"), create("usr_2"), create("usr_2"), look)
	db.lockAndCommit(calls)
	for i, c := range calls {
		if !errors.Is(c.err, ErrNotWritten) {
			t.Errorf("call %d returns %v, want ErrNotWritten", i, c.err)
		}
	}
	if find(db, "usr_2") != nil {
		t.Error("a row that was not written is visible")
	}
	if db.Err() == nil {
		t.Error("Err() = nil after the file was removed")
	}
}

// TestFailureIsLoggedOnce lets commits fail by a row with a line feed, which a line of the file can't hold.
func TestFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	o := testOptions()
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	db := openDB(t, newFile(t), o)
	fail := func(tx *Tx) error {
		tx.Put([]byte(strings.Replace(row{id: "usr_1"}.json(), `"version":`, `"version":`+"\n", 1)))
		return nil
	}
	for range 3 {
		err := db.Batch(fail)
		if !errors.Is(err, ErrNotWritten) {
			t.Fatalf("Batch = %v, want ErrNotWritten", err)
		}
		if db.Stats().LastErr == nil {
			t.Error("Stats().LastErr = nil after a commit that failed")
		}
	}
	mustBatch(t, db, put(row{id: "usr_2"}))
	mustBatch(t, db, put(row{id: "usr_3"}))
	if err := db.Stats().LastErr; err != nil {
		t.Errorf("Stats().LastErr = %v after a commit that was written", err)
	}
	if err := db.Err(); err != nil {
		t.Errorf("Err() = %v, want nil", err)
	}
	for _, message := range []string{"data file cannot be written", "data file can be written again"} {
		n := strings.Count(logged.String(), message)
		if n != 1 {
			t.Errorf("logged %q %d times, want once:\n%s", message, n, &logged)
		}
	}
}

func TestPanicIsReturned(t *testing.T) {
	t.Parallel()
	db := openDB(t, newFile(t), testOptions())
	calls := newCalls(
		put(row{id: "usr_1"}),
		func(tx *Tx) error {
			tx.Delete("usr_1")
			tx.Put([]byte(row{id: "usr_2"}.json()))
			panic("a defect")
		},
		put(row{id: "usr_3"}),
	)
	db.lockAndCommit(calls)
	if err := calls[1].err; !strings.Contains(fmt.Sprint(err), "a defect") {
		t.Errorf("the call that panics returns %v, want the panic", err)
	}
	for id, want := range map[string]bool{"usr_1": true, "usr_2": false, "usr_3": true} {
		if got := find(db, id) != nil; got != want {
			t.Errorf("%s exists = %t, want %t", id, got, want)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	for _, db := range []*DB{New(testOptions()), openDB(t, path, testOptions())} {
		mustBatch(t, db, put(row{id: "usr_1"}))
		err := db.Close()
		if err != nil {
			t.Fatalf("Close: %v", err)
		}
		err = db.Batch(put(row{id: "usr_2"}))
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Batch = %v, want ErrClosed", err)
		}
		err = db.Update(put(row{id: "usr_2"}))
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Update = %v, want ErrClosed", err)
		}
		if find(db, "usr_1") == nil {
			t.Error("a closed database can't be read")
		}
		err = db.Close()
		if err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// Close waits for the commit under way.
func TestCloseDuringCommit(t *testing.T) {
	t.Parallel()
	db := openDB(t, newFile(t), testOptions())
	closed := make(chan error, 1)
	mustBatch(t, db, func(tx *Tx) error {
		go func() { closed <- db.Close() }()
		select {
		case <-closed:
			t.Error("Close during a commit: got a result, want none yet")
		case <-time.After(20 * time.Millisecond):
		}
		return put(row{id: "usr_1"})(tx)
	})
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestLargeCommit commits more records than fit into a line. If the rewrite fails, nothing is changed.
// Otherwise they become visible at once and are there after opening the file again.
func TestLargeCommit(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}))
	var events []row
	for i := range 43 {
		id := fmt.Sprint("evt_", i)
		events = append(events, row{id: id, parent: "usr_1", name: strings.Repeat("x", 100_000) + id})
	}
	obstacle := path + ".tmp" // where the rewrite needs a file
	err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(put(events...))
	if !errors.Is(err, ErrNotWritten) {
		t.Errorf("Update without a rewrite: got %v, want %v", err, ErrNotWritten)
	}
	if got := db.Stats().Rows["event"]; got != 0 {
		t.Errorf("events without a rewrite: got %d, want 0", got)
	}
	err = os.RemoveAll(obstacle)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(put(events...))
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	mustBatch(t, db, put(row{id: "usr_2"}))
	want := dump(db)
	if got := db.Stats().Rows["event"]; got != len(events) {
		t.Errorf("events: got %d, want %d", got, len(events))
	}
	if got, size := db.Stats().Bytes, int64(len(readFile(t, path))); got != size {
		t.Errorf("Stats().Bytes: got %d, want the size of the file, %d", got, size)
	}
	db.Close()
	db = openDB(t, path, testOptions())
	if dump(db) != want {
		t.Error("the file opened again has other rows")
	}
}

// TestRewriteWhenDoubled changes a row of 150 bytes again and again. The file is rewritten when it has
// doubled.
func TestRewriteWhenDoubled(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := testOptions()
	o.minRewrite = 1 // byte
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	path := newFile(t)
	db := openDB(t, path, o)
	mustBatch(t, db, func(tx *Tx) error {
		for n := range 100 {
			tx.Put([]byte(row{id: fmt.Sprint("usr_", n)}.json()))
		}
		return nil
	})
	const message = "data file rewritten"
	rewrites := func() int { return strings.Count(log.String(), message) }
	if got := rewrites(); got != 1 {
		t.Errorf("rewrites for 100 rows: got %d, want 1", got)
	}
	snapshot := db.Stats().Bytes
	version := 0
	grow := func() (size int64) { // commits a change, and returns the largest size before and after it
		version++
		before := db.Stats().Bytes
		mustBatch(t, db, put(row{id: "usr_1", version: version}))
		return max(before, db.Stats().Bytes)
	}
	largest := int64(0)
	for rewrites() == 1 && version < 1000 {
		largest = max(largest, grow())
	}
	if largest < 2*snapshot-200 || largest > 2*snapshot {
		t.Errorf("size before the rewrite: got %d, want about twice %d", largest, snapshot)
	}

	// A rewrite that fails isn't tried again before the file has doubled again.
	obstacle := path + ".tmp" // where the rewrite needs a file
	err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	log.Reset()
	for db.Stats().Bytes < 3*snapshot {
		grow()
	}
	if got := strings.Count(log.String(), "data file not rewritten"); got != 1 {
		t.Errorf("failed rewrites up to three times the size: got %d, want 1", got)
	}
	db.Close()
	err = os.RemoveAll(obstacle)
	if err != nil {
		t.Fatal(err)
	}
	db = openDB(t, path, o)
	if got, want := find(db, "usr_1").JSON, (row{id: "usr_1", version: version}.json()); got != want {
		t.Errorf("row after rewrites: got %s, want %s", got, want)
	}
}

func TestPutPanics(t *testing.T) {
	t.Parallel()
	first := row{id: "evt_1", parent: "usr_1", name: "first"}
	tests := []struct{ name, json string }{
		{"not a row", `{"name":"x"}`},
		{"unknown table", strings.Replace(first.json(), "evt", "abc", 1)},
		{"field missing", `{"id":"usr_2","name":"x","status":null}`},
		{"field not a string", `{"id":"usr_2","name":7,"status":null,"created_at":"2027-01-01T00:00:00Z"}`},
		{"not a time", `{"id":"usr_2","name":null,"status":null,"created_at":"today"}`},
		{"parent missing", row{id: "evt_2", parent: "usr_9"}.json()},
		{"parent in another table", row{id: "evt_2", parent: "evt_1"}.json()},
		{"other parent", row{id: "evt_1", parent: "usr_2"}.json()},
		{"other time", row{id: "evt_1", parent: "usr_1", created: 1}.json()},
		{"key taken", row{id: "evt_2", parent: "usr_1", name: "first"}.json()},
	}
	db := New(testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}, row{id: "usr_2"}, first))
	want := dump(db)
	for _, test := range tests {
		err := db.Batch(func(tx *Tx) error {
			tx.Put([]byte(test.json))
			return nil
		})
		if err == nil {
			t.Errorf("%s: Put(%s) doesn't panic", test.name, test.json)
		}
	}
	if got := dump(db); got != want {
		t.Errorf("after panics, the rows are\n%s\nwant\n%s", got, want)
	}
}

func TestTxChanges(t *testing.T) {
	t.Parallel()
	db := New(testOptions())
	mustBatch(t, db, put(
		row{id: "usr_1"},
		row{id: "evt_1", parent: "usr_1"},
		row{id: "gst_1", parent: "evt_1"},
	))
	mustBatch(t, db, func(tx *Tx) error {
		steps := []struct {
			name string
			do   func()
			want int
		}{
			{"put the same text", func() { put(row{id: "usr_1"})(tx) }, 0},
			{"put another text", func() { put(row{id: "usr_1", version: 1})(tx) }, 1},
			{"delete a row with children", func() { tx.Delete("evt_1") }, 3},
			{"delete a row that doesn't exist", func() { tx.Delete("evt_1") }, 3},
			{"put a new row", func() { put(row{id: "usr_2"})(tx) }, 4},
		}
		for _, step := range steps {
			step.do()
			if got := tx.NumChanges(); got != step.want {
				t.Errorf("%s: NumChanges() = %d, want %d", step.name, got, step.want)
			}
		}
		return nil
	})
}

// TestIdempotencyLifetime finds rows by their idempotency keys before and after they are changed, deleted,
// expired and read from the file.
func TestIdempotencyLifetime(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	o := testOptions()
	o.Now = func() time.Time { return now }
	path := newFile(t)
	db := openDB(t, path, o)
	mustBatch(t, db, put(row{id: "usr_1"}, row{id: "usr_2"}))
	create := func(id, owner, key string) func() {
		return func() {
			mustBatch(t, db, func(tx *Tx) error {
				tx.PutIdempotent([]byte(row{id: id, parent: owner}.json()), key, "digest of "+id)
				return nil
			})
		}
	}
	remove := func(id string) func() {
		return func() { mustBatch(t, db, func(tx *Tx) error { tx.Delete(id); return nil }) }
	}
	after := func(d time.Duration) func() { return func() { now = start.Add(d) } }
	reopen := func() {
		db.Close()
		db = openDB(t, path, o)
	}
	rewrite := func() {
		db.commitMu.Lock()
		defer db.commitMu.Unlock()
		err := db.rewrite(&db.view, "a test")
		if err != nil {
			t.Fatal(err)
		}
	}
	found := func() (all string) {
		db.View(func(tx *Tx) {
			for _, owner := range []string{"usr_1", "usr_2"} {
				for _, key := range []string{"a", `"<b>"`} {
					r, body := tx.FindIdempotent(owner, key)
					if r != nil {
						all += r.ID + " "
						if body != "digest of "+r.ID {
							t.Errorf("body of %s = %q", r.ID, body)
						}
					}
				}
			}
		})
		return all
	}
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"create evt_1", create("evt_1", "usr_1", "a"), "evt_1 "},
		{"create evt_2", create("evt_2", "usr_1", `"<b>"`), "evt_1 evt_2 "},
		{"same key, other owner", create("evt_3", "usr_2", "a"), "evt_1 evt_2 evt_3 "},
		{"open again", reopen, "evt_1 evt_2 evt_3 "},
		{"change evt_1", func() { mustBatch(t, db, put(row{id: "evt_1", parent: "usr_1", version: 2})) },
			"evt_1 evt_2 evt_3 "},
		{"delete evt_2", remove("evt_2"), "evt_1 evt_3 "},
		{"delete usr_2", remove("usr_2"), "evt_1 "},
		{"open again, which rewrites", reopen, "evt_1 "},
		{"an hour later", after(time.Hour), "evt_1 "},
		{"create evt_4", create("evt_4", "usr_1", `"<b>"`), "evt_1 evt_4 "},
		{"24 h after the first", after(24 * time.Hour), "evt_4 "},
		{"create with an expired key", create("evt_5", "usr_1", "a"), "evt_5 evt_4 "},
		{"change the row that had the key", func() {
			mustBatch(t, db, put(row{id: "evt_1", parent: "usr_1", version: 3}))
		}, "evt_5 evt_4 "},
		{"delete the row that had the key", remove("evt_1"), "evt_5 evt_4 "},
		{"open again, which rewrites", reopen, "evt_5 evt_4 "},
		{"rewrite by a clock in 1970", func() {
			now = time.Unix(0, 0)
			rewrite()
			now = start.Add(24 * time.Hour)
		}, "evt_5 evt_4 "},
		{"open again", reopen, "evt_5 evt_4 "},
		{"25 h after the first", after(25 * time.Hour), "evt_5 "},
		{"rewrite", rewrite, "evt_5 "},
		{"open again", reopen, "evt_5 "},
	}
	for _, step := range steps {
		step.do()
		if got := found(); got != step.want {
			t.Fatalf("%s: the keys lead to %q, want %q", step.name, got, step.want)
		}
	}
	if got := strings.Count(readFile(t, path), idempotencySeparator); got != 1 {
		t.Errorf("the file has %d idempotency keys, want 1: the others have expired", got)
	}
}

// TestRollbackOfKeys lets a call fail that changed two rows with the same idempotency key, of which one has
// expired. The key leads to the row that it led to before.
func TestRollbackOfKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	o := testOptions()
	o.Now = func() time.Time { return now }
	db := New(o)
	create := func(id string) func(*Tx) error {
		return func(tx *Tx) error {
			tx.PutIdempotent([]byte(row{id: id, parent: "usr_1"}.json()), "key", "digest")
			return nil
		}
	}
	mustBatch(t, db, put(row{id: "usr_1"}))
	mustBatch(t, db, create("evt_old"))
	now = now.Add(idempotencyLifetime)
	mustBatch(t, db, create("evt_new"))
	db.lockAndCommit(newCalls(
		func(tx *Tx) error {
			tx.Delete("evt_new")
			tx.Put([]byte(row{id: "evt_old", parent: "usr_1", version: 2}.json()))
			create("evt_other")(tx)
			return errTest
		},
		put(row{id: "usr_2"}),
	))
	db.View(func(tx *Tx) {
		r, _ := tx.FindIdempotent("usr_1", "key")
		if want := tx.Find("evt_new"); r != want {
			t.Errorf("after a rollback, the key leads to %v, want %v", r, want)
		}
	})
}
