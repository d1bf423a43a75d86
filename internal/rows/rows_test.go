package rows

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/internal/recordfile"
)

// testOptions have three kinds below each other.
func testOptions() Options {
	members := []string{`"id":`, `"parent":`, `"name":`, `"status":`, `"created_at":`}
	index := func(v Values) (name, status string) { return v[2], v[3] }
	return Options{
		Kinds: []Kind{
			{Name: "user", Prefix: "usr", Members: []string{`"id":`, `"name":`, `"created_at":`},
				Index: func(v Values) (name, status string) { return v[1], "" }},
			{Name: "event", Prefix: "evt", Parent: "usr", Members: members, Index: index},
			{Name: "guest", Prefix: "gst", Parent: "evt", Members: members, Index: index},
		},
		Formats: []Format{{Name: "events/1"}},
		Now:     time.Now,
		Logger:  slog.New(slog.DiscardHandler),
	}
}

// fact is a row of the tests as its facts; number tells its versions apart.
type fact struct {
	id, parent, name, status string
	created                  int64 // in seconds
	number                   int
}

// json is the text of that row.
func (f fact) json() string {
	orNull := func(s string) string {
		if s == "" {
			return "null"
		}
		return fmt.Sprintf("%q", s)
	}
	created := time.Unix(f.created, 0).UTC().Format(time.RFC3339)
	if f.parent == "" {
		return fmt.Sprintf(`{"id":%q,"name":%q,"created_at":%q,"number":%d}`, f.id, f.name, created, f.number)
	}
	return fmt.Sprintf(`{"id":%q,"parent":%q,"name":%s,"status":%s,"created_at":%q,"number":%d}`,
		f.id, f.parent, orNull(f.name), orNull(f.status), created, f.number)
}

// model is a database as it is meant, without any of its speed.
type model map[string]fact

func (m model) delete(id string) {
	delete(m, id)
	for child, f := range m {
		if f.parent == id {
			m.delete(child)
		}
	}
}

// list is the children of a row as Page lists them, one text a line.
func (m model) list(parent, prefix, status string) string {
	var facts []fact
	for _, f := range m {
		if f.parent == parent && strings.HasPrefix(f.id, prefix+"_") && (status == "" || f.status == status) {
			facts = append(facts, f)
		}
	}
	slices.SortFunc(facts, func(a, b fact) int {
		return -cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id))
	})
	var texts []string
	for _, f := range facts {
		texts = append(texts, f.json())
	}
	return strings.Join(texts, "\n")
}

// pages is a list of the database, read page by page.
func pages(v View, parent, prefix, status string, limit int) string {
	var all []string
	for after := (*Place)(nil); ; {
		page, next := v.Page(List{Parent: parent, Prefix: prefix, Status: status}, after, limit, nil)
		all = append(all, page...)
		if next == nil {
			return strings.Join(all, "\n")
		}
		after = next
	}
}

// randomChange makes one random change in an update and in the model.
func randomChange(rnd *rand.Rand, tx *Tx, m model, number int) {
	f := fact{created: int64(rnd.IntN(50)), number: number, status: []string{"", "a", "b"}[rnd.IntN(3)]}
	switch rnd.IntN(10) {
	case 0:
		f.id, f.status = fmt.Sprintf("usr_%d", rnd.IntN(5)), ""
	case 1:
		id := fmt.Sprintf("%s_%d", []string{"usr", "evt", "gst"}[rnd.IntN(3)], rnd.IntN(30))
		tx.Delete(id)
		m.delete(id)
		return
	case 2, 3, 4:
		f.id, f.parent = fmt.Sprintf("gst_%d", rnd.IntN(60)), fmt.Sprintf("evt_%d", rnd.IntN(30))
	default:
		f.id, f.parent = fmt.Sprintf("evt_%d", rnd.IntN(30)), fmt.Sprintf("usr_%d", rnd.IntN(5))
	}
	f.name = fmt.Sprintf("name-%s-%d", f.id, rnd.IntN(2))
	old := tx.Find(f.id)
	if old != nil {
		f.parent, f.created = old.Parent, old.Created.Unix()
	} else if f.parent != "" && tx.Find(f.parent) == nil {
		return
	}
	tx.Put(old, []byte(f.json()), nil)
	m[f.id] = f
}

var errRefused = errors.New("refused by the test")

// halfRead is a list of which the first page was read.
type halfRead struct {
	parent, prefix, status string
	after                  *Place // the last row of the page; nil if there is no other page
}

// checkNextPages: the pages after the first one hold the rows that come after its last row now,
// whatever was changed and deleted since it was read.
func (h halfRead) checkNextPages(t *testing.T, v View, m model) {
	t.Helper()
	if h.after == nil {
		return
	}
	older := model{}
	for id, f := range m {
		place := Place{time.Unix(f.created, 0), id}
		if compare(&Row{Place: place}, *h.after) < 0 {
			older[id] = f
		}
	}
	var got []string
	for after := h.after; after != nil; {
		got, after = v.Page(List{Parent: h.parent, Prefix: h.prefix, Status: h.status}, after, 2, got)
	}
	if got, want := strings.Join(got, "\n"), older.list(h.parent, h.prefix, h.status); got != want {
		t.Errorf("after a change, the pages of %s %s %q after %v =\n%s\nwant\n%s",
			h.parent, h.prefix, h.status, *h.after, got, want)
	}
}

// TestModel makes random changes, a few or hundreds of them in one commit of
// several updates of which some fail, and compares the database with the model:
// after each commit, and for one on a file after it was opened again. A list that was begun
// before a commit is read to its end after it.
func TestModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			db, m, number := New(testOptions()), model{}, 0
			path := ""
			if seed%4 == 0 {
				path = filepath.Join(t.TempDir(), "events.json")
				db = opened(t, path)
			}
			for round := range 60 {
				var begun []halfRead
				for _, id := range slices.Sorted(maps.Keys(m)) {
					h := halfRead{parent: id, prefix: []string{"evt", "gst"}[rnd.IntN(2)], status: []string{"", "a"}[rnd.IntN(2)]}
					_, h.after = View{db}.Page(List{Parent: h.parent, Prefix: h.prefix, Status: h.status}, nil, 1+rnd.IntN(2), nil)
					begun = append(begun, h)
				}
				var updates []*call
				for range 1 + rnd.IntN(3) {
					changes, fails := 1+rnd.IntN(8), rnd.IntN(4) == 0
					if round%20 == 19 {
						changes = 400 // in bulk
					}
					updates = append(updates, &call{fn: func(tx *Tx) error {
						tried := maps.Clone(m)
						for range changes {
							number++
							randomChange(rnd, tx, tried, number)
						}
						if fails {
							return errRefused
						}
						m = tried
						return nil
					}})
				}
				rest := db.commit(updates)
				if len(rest) != 0 {
					t.Fatalf("round %d: %d updates are left", round, len(rest))
				}
				check(t, db, m, rnd)
				for _, h := range begun {
					h.checkNextPages(t, View{db}, m)
				}
				if path != "" && round%10 == 9 {
					db.Close()
					db = opened(t, path)
					check(t, db, m, rnd)
				}
				if t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
		})
	}
}

func check(t *testing.T, db *DB, m model, rnd *rand.Rand) {
	t.Helper()
	db.View(func(v View) {
		names := 0
		for id, want := range m {
			for _, name := range []string{id, want.name} {
				if name == "" {
					continue
				}
				names++
				if got := v.Find(name); got == nil || got.ID != id || got.JSON != want.json() {
					t.Errorf("Find(%s) = %v, want %s", name, got, want.json())
				}
			}
			for _, prefix := range []string{"evt", "gst"} {
				for _, status := range []string{"", "a", "b"} {
					limit := 1 + rnd.IntN(4)
					if got, want := pages(v, id, prefix, status, limit), m.list(id, prefix, status); got != want {
						t.Errorf("pages of %s %s %q =\n%s\nwant\n%s", id, prefix, status, got, want)
					}
				}
			}
		}
		seen := map[string]bool{}
		live := int64(0)
		for r := range v.All {
			if _, known := m[r.ID]; !known || seen[r.ID] || r.Parent != "" && !seen[r.Parent] {
				t.Errorf("All yields %s, which is unknown, or comes twice or before its parent", r.ID)
			}
			seen[r.ID] = true
			live += fileBytes(r)
		}
		if len(seen) != len(m) || len(db.names) != names || live != db.live {
			t.Errorf("All yields %d rows of %d, under %d names of %d, of %d bytes; counted are %d",
				len(seen), len(m), len(db.names), names, live, db.live)
		}
	})
}

// opened is a database on a file until the end of the test.
func opened(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(path, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// put is an update that puts rows.
func put(facts ...fact) func(*Tx) error {
	return func(tx *Tx) error {
		for _, f := range facts {
			tx.Put(tx.Find(f.id), []byte(f.json()), nil)
		}
		return nil
	}
}

// update runs an update that must not fail.
func (db *DB) mustUpdate(t *testing.T, f func(*Tx) error) {
	t.Helper()
	if err := db.Batch(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// TestIdempotencyKeys: a key finds the row that it created, until the row is
// deleted, with its parent too, or the key has expired: also after a new start.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start.Add(3 * time.Hour)
	o := testOptions()
	o.Now = func() time.Time { return now }
	path := filepath.Join(t.TempDir(), "events.json")
	db, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	db.mustUpdate(t, put(fact{id: "usr_1"}, fact{id: "usr_2"}))
	for i, hour := range []time.Duration{3, 1, 2, 0} {
		db.mustUpdate(t, func(tx *Tx) error {
			f := fact{id: fmt.Sprint("evt_", i), parent: []string{"usr_1", "usr_1", "usr_1", "usr_2"}[i]}
			tx.Put(nil, []byte(f.json()), &IdempotencyKey{Key: fmt.Sprintf("<%d\">", i), At: start.Add(hour * time.Hour)})
			return nil
		})
	}
	found := func() (all string) {
		db.mustUpdate(t, func(tx *Tx) error {
			for i := range 4 {
				for _, user := range []string{"usr_1", "usr_2"} {
					if r := tx.FindIdempotent(user, fmt.Sprintf("<%d\">", i)); r != nil {
						all += r.ID + " "
					}
				}
			}
			return nil
		})
		return all
	}
	again := func() {
		db.Close()
		if db, err = Open(path, o); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"at first", func() {}, "evt_0 evt_1 evt_2 evt_3 "},
		{"the row is changed", func() { db.mustUpdate(t, put(fact{id: "evt_0", parent: "usr_1", number: 2})) }, "evt_0 evt_1 evt_2 evt_3 "},
		{"opened again", again, "evt_0 evt_1 evt_2 evt_3 "},
		{"a row is deleted", func() { db.mustUpdate(t, func(tx *Tx) error { tx.Delete("evt_2"); return nil }) }, "evt_0 evt_1 evt_3 "},
		{"a user is deleted", func() { db.mustUpdate(t, func(tx *Tx) error { tx.Delete("usr_2"); return nil }) }, "evt_0 evt_1 "},
		{"opened again", again, "evt_0 evt_1 "},
		{"the older one expires", func() { now = start.Add(KeyLifetime + 90*time.Minute) }, "evt_0 "},
		{"something changes", func() { db.mustUpdate(t, put(fact{id: "usr_3"})) }, "evt_0 "},
		{"opened again", again, "evt_0 "},
		{"the clock goes back", func() { now = start }, "evt_0 "},
		{"something changes", func() { db.mustUpdate(t, put(fact{id: "usr_4"})) }, "evt_0 "},
		{"a day later", func() { now = start.Add(KeyLifetime) }, ""},
		{"something changes", func() { db.mustUpdate(t, put(fact{id: "usr_5"})) }, ""},
		{"the clock goes back by days", func() { now = start.Add(-3 * KeyLifetime) }, ""},
		{"opened again", again, ""},
		{"something changes", func() { db.mustUpdate(t, put(fact{id: "usr_6"})) }, ""},
	}
	for i, step := range steps {
		step.do()
		if got := found(); got != step.want {
			t.Fatalf("step %d, %s: the keys find %q, want %q", i, step.name, got, step.want)
		}
	}
}

// TestFailedCommit: where a commit is not written, an update that failed because of
// another one of that commit is reported as not written too, and one that failed
// because of the state before it keeps its own error.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1"}))
	if err := os.Remove(path); err != nil { // now nothing can be written
		t.Fatal(err)
	}
	putNew := func(id string) *call {
		return &call{fn: func(tx *Tx) error {
			if tx.Find(id) != nil {
				return errRefused
			}
			return put(fact{id: id})(tx)
		}}
	}
	updates := []*call{putNew("usr_1"), putNew("usr_2"), putNew("usr_2")}
	if rest := db.commit(updates); len(rest) != 0 {
		t.Fatalf("%d updates are left", len(rest))
	}
	if err := updates[0].err; err != errRefused {
		t.Errorf("an update refused by the state = %v, want its own error", err)
	}
	for _, u := range updates[1:] {
		if !errors.Is(u.err, ErrNotWritten) {
			t.Errorf("an update of the commit, or refused by one = %v, want ErrNotWritten", u.err)
		}
	}
	db.View(func(v View) {
		if v.Find("usr_2") != nil {
			t.Error("a row that was not written is found")
		}
	})
}

// TestNothingToCommit: an update that changes nothing, and saw nothing that was not on
// disk, does not fail with the commit of others.
func TestNothingToCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1"}))
	if err := os.Remove(path); err != nil { // now nothing can be written
		t.Fatal(err)
	}
	nothing := func(*Tx) error { return nil }
	updates := []*call{{fn: nothing}, {fn: put(fact{id: "usr_2"})}, {fn: nothing}}
	db.commit(updates)
	for i, fails := range []bool{false, true, true} {
		if got := errors.Is(updates[i].err, ErrNotWritten); got != fails {
			t.Errorf("update %d = %v, want it not written: %t", i, updates[i].err, fails)
		}
	}
}

// TestSplitCommits: updates that do not fit into one commit take as many as they
// need, in order, each update whole; one that is larger than a commit goes alone.
func TestSplitCommits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1"}))
	long, total := strings.Repeat("x", 50_000), 0
	putMany := func(n int) *call {
		return &call{fn: func(tx *Tx) error {
			for range n {
				total++
				id := fmt.Sprint("evt_", total)
				tx.Put(nil, []byte(fact{id: id, parent: "usr_1", name: id + long}.json()), nil)
			}
			return nil
		}}
	}
	const fits = recordfile.MaxCommit / 50_000 * 2 / 3 // of which two do not fit
	waiting := []*call{putMany(1), putMany(fits), putMany(fits), putMany(2 * fits), putMany(1), putMany(1)}
	count := func() int { return db.Stats().Rows["event"] }
	rows := 0
	for _, want := range []struct{ taken, rows int }{{2, 1 + fits}, {1, fits}, {1, 2 * fits}, {2, 2}} {
		left := len(waiting)
		waiting = db.commit(waiting)
		rows += want.rows
		if taken, n := left-len(waiting), count(); taken != want.taken || n != rows {
			t.Fatalf("a commit took %d updates and there are %d rows, want %d and %d", taken, n, want.taken, rows)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = opened(t, path)
	if n := count(); n != rows {
		t.Errorf("%d rows are on disk, %d were seen", n, rows)
	}
}

// TestPanic: an update that panics fails alone, with an error.
func TestPanic(t *testing.T) {
	t.Parallel()
	db := New(testOptions())
	updates := []*call{
		{fn: put(fact{id: "usr_1"})},
		{fn: func(tx *Tx) error { tx.Delete("usr_1"); panic("a defect") }},
		{fn: put(fact{id: "evt_1", parent: "usr_1"})},
	}
	db.commit(updates)
	for i, want := range []string{"", "panic: a defect", ""} {
		if got := fmt.Sprint(cmp.Or(updates[i].err, errors.New(""))); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("update %d = %q, want %q", i, got, want)
		}
	}
	db.View(func(v View) {
		if v.Find("usr_1") == nil || v.Find("evt_1") == nil {
			t.Error("the updates beside one that panicked are not made")
		}
	})
}

// TestClosed: a closed database is read, and refuses changes.
func TestClosed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", filepath.Join(t.TempDir(), "events.json")} {
		db := New(testOptions())
		if path != "" {
			db = opened(t, path)
		}
		db.mustUpdate(t, put(fact{id: "usr_1"}))
		for range 2 {
			if err := db.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		}
		if err := db.Batch(t.Context(), put(fact{id: "usr_2"})); !errors.Is(err, ErrClosed) {
			t.Errorf("Update = %v, want ErrClosed", err)
		}
		db.View(func(v View) {
			if v.Find("usr_1") == nil || v.Find("usr_2") != nil {
				t.Error("a closed database is not as it was")
			}
		})
	}
}

// TestTrouble: the first failed write is logged and the first that works again, and in between
// Trouble returns why writes fail.
func TestTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		o := testOptions()
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		db := New(o)
		full := errors.New("no space left")
		other := errors.New("no quota left")
		for i, step := range []struct {
			err    error
			logged string
		}{
			{nil, ""},
			{full, "changes are refused"},
			{full, ""},
			{other, ""},
			{nil, "writes work again"},
			{nil, ""},
			{full, "no space left"},
			{nil, "writes work again"},
		} {
			log.Reset()
			db.noteCommit(step.err)
			if !strings.Contains(log.String(), step.logged) || (step.logged == "") != (log.Len() == 0) {
				t.Errorf("step %d: the log has %q, want %q", i, log.String(), step.logged)
			}
			if got := db.Trouble(); got != step.err {
				t.Errorf("step %d: Trouble = %v, want %v", i, got, step.err)
			}
		}
		db.began.Store(new(time.Now()))
		if err := db.Trouble(); err != nil {
			t.Errorf("Trouble = %v while an append begins, want nil", err)
		}
		time.Sleep(hungAppend + 1)
		if err := db.Trouble(); err != ErrHung {
			t.Errorf("Trouble = %v after more than 10 s of an append, want ErrHung", err)
		}
	})
}

// TestTroubleOfFile: after a file was removed, nothing can be written, and Trouble returns why.
func TestTroubleOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1"}))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := db.Batch(t.Context(), put(fact{id: "usr_2"}))
	if got := db.Trouble(); !errors.Is(got, ErrNotWritten) || got.Error() != err.Error() {
		t.Errorf("Trouble = %v after %v, want that", got, err)
	}
}

// TestChildren: the rows of one kind that belong to another row.
func TestChildren(t *testing.T) {
	t.Parallel()
	db := New(testOptions())
	db.mustUpdate(t, put(fact{id: "usr_1"}, fact{id: "usr_2", created: 1}, fact{id: "evt_1", parent: "usr_1", created: 2},
		fact{id: "evt_2", parent: "usr_1", created: 1}))
	for _, tt := range []struct{ id, prefix, want string }{
		{"", "usr", "usr_1 usr_2 "}, {"", "evt", ""}, {"usr_1", "evt", "evt_2 evt_1 "}, {"usr_2", "evt", ""},
		{"usr_1", "xyz", ""}, {"usr_9", "evt", ""},
	} {
		var got strings.Builder
		for r := range (View{db}).Children(tt.id, tt.prefix) {
			got.WriteString(r.ID + " ")
		}
		if got.String() != tt.want {
			t.Errorf("Children(%q, %q) = %q, want %q", tt.id, tt.prefix, got.String(), tt.want)
		}
	}
}

// A deleted row, and all that belongs to it, is not found by the other updates of its commit, by
// whichever name.
func TestDeletedInCommit(t *testing.T) {
	t.Parallel()
	db := New(testOptions())
	db.mustUpdate(t, put(fact{id: "usr_1", name: "ada"}, fact{id: "evt_1", parent: "usr_1", name: "tea"}))
	db.mustUpdate(t, func(tx *Tx) error {
		tx.Delete("usr_1")
		for _, name := range []string{"usr_1", "ada", "evt_1", "tea"} {
			if r := tx.Find(name); r != nil {
				t.Errorf("Find(%q) = %s after the delete of usr_1", name, r.JSON)
			}
		}
		return nil
	})
}
