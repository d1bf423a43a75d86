package jsondb

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
				t.Errorf("Batch: got %v, want nil", err)
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
		t.Errorf("lines of 20 calls: got %d, want 1", lines)
	}
	rows := db.Stats().Rows["user"]
	if rows != 20 {
		t.Errorf("rows: got %d, want 20", rows)
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
			t.Errorf("a call of a large commit: got %v, want nil", c.err)
		}
	}
	if !strings.HasPrefix(readFile(t, path), strings.TrimSuffix(before, "]\n")) {
		t.Error("beginning of the file: got another one, want the same")
	}
	if rows := db.Stats().Rows["user"]; rows != 20 {
		t.Errorf("rows: got %d, want 20", rows)
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
			t.Errorf("call %d of a commit without changes: got %v, want %v", i, unchanged[i].err, want)
		}
	}
	calls := newCalls(look, create("usr_1"), create("usr_2"), create("usr_2"), look)
	db.lockAndCommit(calls)
	for i, c := range calls {
		if !errors.Is(c.err, ErrNotWritten) {
			t.Errorf("call %d: got %v, want %v", i, c.err, ErrNotWritten)
		}
	}
	if find(db, "usr_2") != nil {
		t.Error("Find of a row that was not written: got it, want nil")
	}
	if db.Err() == nil {
		t.Error("Err after the file was removed: got nil, want an error")
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := db.Batch(create("usr_2")) // for the race detector
			if !errors.Is(err, ErrNotWritten) {
				t.Errorf("Batch of a shared commit: got %v, want %v", err, ErrNotWritten)
			}
		})
	}
	wg.Wait()
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
			t.Fatalf("Batch: got %v, want %v", err, ErrNotWritten)
		}
		if db.Stats().LastErr == nil {
			t.Error("LastErr after a commit that failed: got nil, want an error")
		}
	}
	mustBatch(t, db, put(row{id: "usr_2"}))
	mustBatch(t, db, put(row{id: "usr_3"}))
	if err := db.Stats().LastErr; err != nil {
		t.Errorf("LastErr after a commit that was written: got %v, want nil", err)
	}
	if err := db.Err(); err != nil {
		t.Errorf("Err: got %v, want nil", err)
	}
	for _, message := range []string{"data file cannot be written", "data file can be written again"} {
		n := strings.Count(logged.String(), message)
		if n != 1 {
			t.Errorf("lines of the log with %q: got %d, want 1:\n%s", message, n, &logged)
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
		t.Errorf("a call that panics: got %v, want the panic", err)
	}
	for id, want := range map[string]bool{"usr_1": true, "usr_2": false, "usr_3": true} {
		if got := find(db, id) != nil; got != want {
			t.Errorf("%s exists: got %t, want %t", id, got, want)
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
			t.Fatalf("Close: got %v, want nil", err)
		}
		err = db.Batch(put(row{id: "usr_2"}))
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Batch: got %v, want %v", err, ErrClosed)
		}
		err = db.Update(put(row{id: "usr_2"}))
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Update: got %v, want %v", err, ErrClosed)
		}
		if find(db, "usr_1") == nil {
			t.Error("Find after Close: got nil, want the row")
		}
		err = db.Close()
		if err != nil {
			t.Errorf("second Close: got %v, want nil", err)
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
		for !isLocking("(*DB).Close") {
			select {
			case err := <-closed:
				t.Errorf("Close during a commit: got %v, want no result yet", err)
				closed <- nil
				return nil
			default:
			}
		}
		return put(row{id: "usr_1"})(tx)
	})
	if err := <-closed; err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
}

// isLocking reports whether a goroutine with a function waits for a mutex.
func isLocking(function string) bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return slices.ContainsFunc(strings.Split(string(stacks), "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "Mutex.Lock") && strings.Contains(stack, function)
	})
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
		t.Fatalf("Update: got %v, want nil", err)
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
		t.Error("rows after opening the file again: got others, want the same")
	}
}

// rewriteTest is a database that logs and whose small files are rewritten, too.
type rewriteTest struct {
	*DB
	path string
	now  time.Time
	log  strings.Builder
}

func newRewriteTest(t *testing.T, minStale int64) *rewriteTest {
	r := &rewriteTest{path: newFile(t), now: time.Unix(0, 0)}
	o := testOptions()
	o.minStale = minStale
	o.Now = func() time.Time { return r.now }
	o.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	r.DB = openDB(t, r.path, o)
	return r
}

func (r *rewriteTest) rewrites() int { return strings.Count(r.log.String(), "data file rewritten") }

// New rows cause no rewrite, even if less than half of them expire.
func TestCreatesWithoutRewrite(t *testing.T) {
	t.Parallel()
	db := newRewriteTest(t, 200)
	for n := range 1000 {
		db.now = db.now.Add(time.Nanosecond)
		mustBatch(t, db.DB, put(
			row{id: fmt.Sprint("usr_", n), name: fmt.Sprint("larger than the ticket, ", n)},
			row{id: fmt.Sprint("tkt_", n), created: db.now.UnixNano()},
		))
	}
	if got := db.rewrites(); got != 0 {
		t.Errorf("rewrites for new rows: got %d, want 0:\n%s", got, &db.log)
	}
}

// A file has at most twice the size of its snapshot, plus minStale and one line, whatever changes.
func TestFileSize(t *testing.T) {
	t.Parallel()
	const minStale, line = 2000, 200 // bytes
	db := newRewriteTest(t, minStale)
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 1000 {
		db.now = db.now.Add(time.Nanosecond)
		id := fmt.Sprint("usr_", rnd.IntN(50))
		mustBatch(t, db.DB, func(tx *Tx) error {
			if rnd.IntN(3) == 0 {
				tx.Delete(id)
			} else {
				tx.Put([]byte(row{id: id, version: n}.json()))
			}
			tx.Put([]byte(row{id: fmt.Sprint("tkt_", n), created: db.now.UnixNano()}.json()))
			return nil
		})
		snapshot := int64(200) // of an empty file
		db.View(func(tx *Tx) {
			for r := range tx.All() {
				snapshot += r.lineSize()
			}
		})
		if got, most := db.Stats().Bytes, 2*snapshot+minStale+line; got > most {
			t.Fatalf("size after %d commits: got %d, want at most %d", n, got, most)
		}
	}
	if got := db.rewrites(); got < 5 {
		t.Errorf("rewrites for 1000 changes: got %d, want more", got)
	}
	if want := `reason="at least half of it was stale"`; !strings.Contains(db.log.String(), want) {
		t.Errorf("log: got no %s, want one:\n%s", want, &db.log)
	}
}

// After a rewrite that failed, the next attempt waits until the file has grown by minStale.
func TestFailedRewrite(t *testing.T) {
	t.Parallel()
	const minStale = 2000 // bytes
	db := newRewriteTest(t, minStale)
	obstacle := db.path + ".tmp" // where the rewrite needs a file
	err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	version := 0
	grow := func(size int64, rewrites int) { // until the file has the size, or was rewritten so often
		for db.Stats().Bytes < size && db.rewrites() < rewrites {
			version++
			mustBatch(t, db.DB, put(row{id: "usr_1", version: version}))
		}
	}
	failed := func() int { return strings.Count(db.log.String(), "data file not rewritten") }
	grow(minStale*7/4, 1)
	if got := failed(); got != 1 {
		t.Errorf("failed rewrites up to %d bytes: got %d, want 1", minStale*7/4, got)
	}
	grow(minStale*10/4, 1)
	if got := failed(); got != 2 {
		t.Errorf("failed rewrites up to %d bytes: got %d, want 2", minStale*10/4, got)
	}
	err = os.RemoveAll(obstacle)
	if err != nil {
		t.Fatal(err)
	}
	grow(minStale*10, 1)
	if got := db.Stats().Bytes; got > minStale {
		t.Errorf("size after a rewrite: got %d, want at most %d", got, minStale)
	}
	if got, want := find(db.DB, "usr_1").JSON, (row{id: "usr_1", version: version}.json()); got != want {
		t.Errorf("row after rewrites: got %s, want %s", got, want)
	}
	grow(minStale*7/4, 2)
	if got := db.rewrites(); got != 2 {
		t.Errorf("rewrites up to %d bytes after a rewrite: got %d, want another one", minStale*7/4, got)
	}
}

// A rewrite waits for views before it removes the rows from memory that it has left out.
func TestRewriteDuringView(t *testing.T) {
	t.Parallel()
	db := newRewriteTest(t, 1<<20)
	mustBatch(t, db.DB, put(row{id: "tkt_1", created: 0}))
	db.now = db.now.Add(ticketLifetime)
	rewritten := make(chan error, 1)
	db.View(func(tx *Tx) {
		go func() {
			db.commitMu.Lock()
			defer db.commitMu.Unlock()
			rewritten <- db.rewrite(&db.view, "a test")
		}()
		for len(rewritten) == 0 && !isLocking("(*DB).forget") {
		}
		if tx.Find("tkt_1") == nil {
			t.Error("Find in a view during a rewrite: got nil, want the row")
		}
	})
	if err := <-rewritten; err != nil {
		t.Fatal(err)
	}
}

// While tickets arrive, the database holds those that have not expired, and so does a rewritten file.
func TestExpiredRowsAreDropped(t *testing.T) {
	t.Parallel()
	db := newRewriteTest(t, 1<<20)
	most := 0
	for n := range 600 {
		db.now = db.now.Add(time.Nanosecond)
		owner := fmt.Sprint("usr_", n)
		mustBatch(t, db.DB, put(
			row{id: owner}, row{id: fmt.Sprint("tkt_", n), name: owner, created: db.now.UnixNano()},
		))
		most = max(most, db.Stats().Rows["ticket"])
	}
	if want := int(ticketLifetime); most != want {
		t.Errorf("tickets in memory: got up to %d, want %d", most, want)
	}
	// Any change removes a few.
	db.now = db.now.Add(time.Hour)
	mustBatch(t, db.DB, put(row{id: "usr_1", version: 1}))
	if got, want := db.Stats().Rows["ticket"], most-maxDropped; got != want {
		t.Errorf("tickets after a pause: got %d, want %d", got, want)
	}
	db.commitMu.Lock()
	err := db.rewrite(&db.view, "a test")
	db.commitMu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range map[string]string{"file": readFile(t, db.path), "memory": dump(db.DB)} {
		if got := strings.Count(text, `{"ticket":`); got != 0 {
			t.Errorf("tickets in %s after a rewrite: got %d, want 0", place, got)
		}
	}
	if got := db.Stats().Rows["ticket"]; got != 0 {
		t.Errorf("Stats: tickets after a rewrite: got %d, want 0", got)
	}
	for _, r := range db.index {
		if r.owned != nil {
			t.Errorf("memory of %s after a rewrite: got %s in it, want no ticket", r.ID, r.owned.ID)
		}
	}
}

// A row that a rewrite has left out of the file isn't in memory either, even if the clock is set back. If it
// is put again with the same text, it is in the file again.
func TestExpiredRowIsPutAgain(t *testing.T) {
	t.Parallel()
	db := newRewriteTest(t, 1<<20)
	ticket := row{id: "tkt_1", created: 0}
	mustBatch(t, db.DB, put(ticket))
	db.now = db.now.Add(ticketLifetime)
	db.commitMu.Lock()
	err := db.rewrite(&db.view, "a test")
	db.commitMu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	db.now = time.Unix(0, 0)
	if got := text(find(db.DB, "tkt_1")); got != "" {
		t.Errorf("Find after a rewrite without the row: got %s, want nothing", got)
	}
	mustBatch(t, db.DB, put(ticket))
	db.Close()
	o := testOptions()
	o.Now = func() time.Time { return db.now }
	if got := text(find(openDB(t, db.path, o), "tkt_1")); got != ticket.json() {
		t.Errorf("Find after opening the file again: got %q, want %s", got, ticket.json())
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
			t.Errorf("%s: Put(%s): got no panic, want one", test.name, test.json)
		}
	}
	if got := dump(db); got != want {
		t.Errorf("rows after panics: got\n%s\nwant\n%s", got, want)
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
				t.Errorf("%s: NumChanges: got %d, want %d", step.name, got, step.want)
			}
		}
		return nil
	})
}
