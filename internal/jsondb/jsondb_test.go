package jsondb

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ticketLifetime is the time for which testTables keep tickets.
const ticketLifetime = 100 * time.Nanosecond

// testTables are three tables, each the parent of the next, and tickets, which expire. The unique key of a
// row is its name. The name of a ticket is the ID of its owner.
func testTables() []Table {
	upgrade := func(json string) (string, error) { return json, nil }
	scan := func(s *Scanner, r *Row) {
		if r.Table.Parent != "" {
			r.Parent = s.String("parent")
		}
		r.UniqueKey = s.String("name")
		r.Status = s.String("status")
		r.Created = s.Time("created_at")
	}
	return []Table{
		{Name: "user", Prefix: "usr", Scan: scan, Upgrade: upgrade},
		{Name: "event", Prefix: "evt", Parent: "usr", Scan: scan, Upgrade: upgrade},
		{Name: "guest", Prefix: "gst", Parent: "evt", Scan: scan, Upgrade: upgrade},
		{
			Name:   "ticket",
			Prefix: "tkt",
			Scan:   func(s *Scanner, r *Row) { r.Created = s.Time("created_at") },
			Keep: func(r *Row, now time.Time) bool {
				return now.Sub(r.Created) < ticketLifetime
			},
			Owner: func(r *Row) string { return r.Value("name") },
		},
	}
}

func testOptions() Options {
	return Options{Tables: testTables(), Formats: []string{"events/1"}}
}

// row is a row of the tests.
type row struct {
	id, parent, name string
	created          int64 // nanoseconds, so that lists are in their order
	version          int
	text             string // its JSON, if it is in a model
}

// status returns the status of a row, which depends on its version. The first versions have none.
func (r row) status() string { return [...]string{"", "draft", "published"}[r.version%3] }

func (r row) json() string {
	quoted := func(s string) string {
		if s == "" {
			return "null"
		}
		return fmt.Sprintf("%q", s)
	}
	parent := ""
	if r.parent != "" {
		parent = fmt.Sprintf(`"parent":%q,`, r.parent)
	}
	created := time.Unix(0, r.created).UTC().Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"id":%q,%s"name":%s,"status":%s,"created_at":%q,"version":%d}`,
		r.id, parent, quoted(r.name), quoted(r.status()), created, r.version)
}

// put returns a function for Batch that puts rows.
func put(rows ...row) func(*Tx) error {
	return func(tx *Tx) error {
		for _, r := range rows {
			tx.Put([]byte(r.json()))
		}
		return nil
	}
}

func openDB(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	if err != nil {
		t.Fatalf("Open: got %v, want nil", err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newFile(t *testing.T) (path string) { return filepath.Join(t.TempDir(), "events.json") }

func mustBatch(t *testing.T, db *DB, f func(*Tx) error) {
	t.Helper()
	err := db.Batch(f)
	if err != nil {
		t.Fatalf("Batch: got %v, want nil", err)
	}
}

// text returns the text of a row, or "" if there is no row.
func text(r *Row) string {
	if r == nil {
		return ""
	}
	return r.JSON
}

// dump returns the text of every row, in the order of All.
func dump(db *DB) string {
	var b []byte
	db.View(func(tx *Tx) {
		for r := range tx.All() {
			b = append(r.appendRecord(b), '\n')
		}
	})
	return string(b)
}

// model is a database in the simplest form: its rows by ID, of which some may be gone, because they expired.
type model struct {
	rows    map[string]row
	expired map[string]bool
}

func (m model) clone() model { return model{maps.Clone(m.rows), maps.Clone(m.expired)} }

// expire marks the tickets that have expired. If the clock is set back, they still may be gone.
func (m model) expire(now time.Time) {
	for id, r := range m.rows {
		if isTicket(id) && now.Sub(time.Unix(0, r.created)) >= ticketLifetime {
			m.expired[id] = true
		}
	}
}

// childPrefix maps the prefix of a table to that of its children.
var childPrefix = map[string]string{"usr": "evt", "evt": "gst"}

func isTicket(id string) bool { return strings.HasPrefix(id, "tkt_") }

// present returns the rows without the expired ones that are gone.
func (m model) present(tx *Tx) model {
	present := model{map[string]row{}, m.expired}
	for id, r := range m.rows {
		if !m.expired[id] || tx.Find(id) != nil {
			present.rows[id] = r
		}
	}
	return present
}

func (m model) delete(id string) {
	delete(m.rows, id)
	for child, r := range m.rows {
		if r.parent == id || isTicket(child) && r.name == id {
			m.delete(child)
		}
	}
}

// list returns the children of a row with a status, or all if it is empty, before a position, which may be
// nil. They are in the order of Page.
func (m model) list(parent, prefix, status string, before *Position) []string {
	var rows []row
	for _, r := range m.rows {
		selected := status == "" || status == r.status()
		if selected && r.parent == parent && strings.HasPrefix(r.id, prefix+"_") {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return -cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id))
	})
	var texts []string
	for _, r := range rows {
		position := Position{time.Unix(0, r.created), r.id}
		if before == nil || position.compare(*before) < 0 {
			texts = append(texts, r.text)
		}
	}
	return texts
}

// change makes one random change in a transaction and in the model.
func (m model) change(rnd *rand.Rand, tx *Tx, version int, now time.Time) {
	r := row{created: int64(rnd.IntN(50)), version: version}
	switch rnd.IntN(14) {
	case 0:
		r.id = fmt.Sprint("usr_", rnd.IntN(5))
	case 1:
		id := fmt.Sprintf("%s_%d", []string{"usr", "evt", "gst", "tkt"}[rnd.IntN(4)], rnd.IntN(30))
		if isTicket(id) && tx.Find(id) == nil {
			return // it may reappear
		}
		tx.Delete(id)
		m.delete(id)
		return
	case 2, 3, 4:
		r.id = fmt.Sprint("gst_", rnd.IntN(60))
		r.parent = fmt.Sprint("evt_", rnd.IntN(30))
	case 5, 6: // also replaces tickets, with another creation time
		r.id = fmt.Sprint("tkt_", rnd.IntN(60))
		r.created = now.UnixNano() - int64(rnd.IntN(3))
		delete(m.expired, r.id)
		owner := row{id: fmt.Sprint("evt_", rnd.IntN(30)), parent: fmt.Sprint("usr_", rnd.IntN(5))}
		_, exists := m.rows[owner.id]
		_, parentExists := m.rows[owner.parent]
		if parentExists && !exists {
			m.put(tx, owner)
			r.name = owner.id
		}
		m.put(tx, r)
		return
	default:
		r.id = fmt.Sprint("evt_", rnd.IntN(30))
		r.parent = fmt.Sprint("usr_", rnd.IntN(5))
	}
	if rnd.IntN(4) > 0 {
		r.name = fmt.Sprintf("name-%s-%d", r.id, rnd.IntN(2))
	}
	old, exists := m.rows[r.id]
	_, parentExists := m.rows[r.parent]
	if exists {
		r.parent, r.created = old.parent, old.created
	} else if r.parent != "" && !parentExists {
		return
	}
	m.put(tx, r)
}

func (m model) put(tx *Tx, r row) {
	r.text = r.json()
	tx.Put([]byte(r.text))
	m.rows[r.id] = r
}

// check compares all that a transaction can read with the model.
func (m model) check(t *testing.T, rnd *rand.Rand, tx *Tx) {
	t.Helper()
	m = m.present(tx)
	for id, want := range m.rows {
		for _, key := range []string{id, want.name} {
			if key == "" || isTicket(id) && key == want.name {
				continue
			}
			if got := text(tx.Find(key)); got != want.text {
				t.Errorf("Find(%s): got %s, want %s", key, got, want.text)
			}
		}
		child := childPrefix[id[:3]]
		if child != "" {
			m.checkPages(t, tx, id, child, nil, 1+rnd.IntN(4))
		}
	}
	m.checkPages(t, tx, "", "usr", nil, 2)
	m.checkPages(t, tx, "", "tkt", nil, 5)
	seen := map[string]bool{"": true} // users have no parent
	for r := range tx.All() {
		if seen[r.ID] {
			t.Errorf("All: got %s twice, want it once", r.ID)
		}
		if !seen[r.Parent] {
			t.Errorf("All: got %s before its parent, want it after", r.ID)
		}
		seen[r.ID] = true
	}
	if got := len(seen) - 1; got != len(m.rows) {
		t.Errorf("All: got %d rows, want %d", got, len(m.rows))
	}
}

// checkPages compares the pages of a list after a position with the model: of all rows, and of each status.
func (m model) checkPages(t *testing.T, tx *Tx, parent, prefix string, after *Position, limit int) {
	t.Helper()
	statuses := []string{"", "draft", "published", "unknown"}
	if prefix == "tkt" {
		statuses = statuses[:1]
	}
	for _, status := range statuses {
		want := m.list(parent, prefix, status, after)
		var got []string
		for next := after; len(got) <= len(want); { // a page that repeats a row ends the loop
			var page []string
			page, next = tx.Page(parent, prefix, status, next, limit)
			got = append(got, page...)
			if next == nil {
				break
			}
			if len(page) != limit {
				t.Errorf("rows of a page of %s in %s, of which more follow: got %d, want %d",
					prefix, parent, len(page), limit)
				return
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %s in %q with status %q after %v: got\n%s\nwant\n%s",
				prefix, parent, status, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// begunList is a list whose first page was read.
type begunList struct {
	parent, prefix string
	after          *Position // end of that page
}

var errTest = errors.New("refused by the test")

// TestModel makes random changes, a few or hundreds of them in one commit of several calls, of which some
// fail or panic. It compares the database with the model inside each transaction, after each commit and, on a
// file, after opening it again. A list that was begun before a commit is read to its end after it. The clock
// goes forward, and now and then it is set forward or back.
func TestModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testModel(t, seed)
		})
	}
}

func testModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	now := time.Unix(0, 10_000)
	o := testOptions()
	o.Now = func() time.Time { return now }
	o.minStale = 5000 // bytes
	db := New(o)
	path := ""
	if seed%4 == 0 {
		path = newFile(t)
		db = openDB(t, path, o)
	}
	m := model{map[string]row{}, map[string]bool{}}
	version := 0
	for round := range 40 {
		now = now.Add(time.Duration(rnd.IntN(40)))
		if rnd.IntN(8) == 0 {
			now = now.Add(time.Duration(rnd.IntN(2000) - 1000))
		}
		m.expire(now)
		var begun []begunList
		db.View(func(tx *Tx) {
			for _, id := range slices.Sorted(maps.Keys(m.rows)) {
				l := begunList{parent: id, prefix: childPrefix[id[:3]]}
				if l.prefix == "" {
					continue
				}
				_, l.after = tx.Page(l.parent, l.prefix, "", nil, 1+rnd.IntN(2))
				if l.after != nil {
					begun = append(begun, l)
				}
			}
		})
		var calls []*call
		for range 1 + rnd.IntN(3) {
			changes := 1 + rnd.IntN(8)
			if round%20 == 19 {
				changes = 400
			}
			end := rnd.IntN(6)
			f := func(tx *Tx) error {
				tried := m.clone()
				for range changes {
					version++
					tried.change(rnd, tx, version, now)
				}
				tried.check(t, rnd, tx)
				switch end {
				case 0:
					return errTest
				case 1:
					panic(errTest)
				}
				m = tried
				return nil
			}
			calls = append(calls, &call{f: f, done: make(chan struct{})})
		}
		db.lockAndCommit(calls)
		db.View(func(tx *Tx) {
			m.check(t, rnd, tx)
			for _, l := range begun {
				m.checkPages(t, tx, l.parent, l.prefix, l.after, 2)
			}
		})
		m.checkStats(t, db)
		if path != "" && round%5 == 4 {
			db.Close()
			db = openDB(t, path, o)
			db.View(func(tx *Tx) { m.check(t, rnd, tx) })
			m.checkStats(t, db)
		}
		if t.Failed() {
			t.Fatalf("round %d: got the errors above, want none", round)
		}
	}
}

func (m model) checkStats(t *testing.T, db *DB) {
	t.Helper()
	want := map[string]int{"user": 0, "event": 0, "guest": 0, "ticket": 0}
	keys := 0
	lists := map[listKey]bool{}
	live := int64(0)
	db.View(func(tx *Tx) {
		for id, r := range m.present(tx).rows {
			table := db.table(id)
			want[table.Name]++
			keys++
			live += tx.Find(id).lineSize()
			lists[listKey{r.parent, table, ""}] = true
			if isTicket(id) {
				continue
			}
			lists[listKey{r.parent, table, r.status()}] = true
			if r.name != "" {
				keys++
			}
		}
	})
	if got := db.Stats().Rows; !maps.Equal(got, want) {
		t.Errorf("Stats: rows: got %v, want %v", got, want)
	}
	if len(db.index) != keys {
		t.Errorf("IDs and unique keys in the index: got %d, want %d", len(db.index), keys)
	}
	if len(db.lists) != len(lists) {
		t.Errorf("lists: got %d, want %d", len(db.lists), len(lists))
	}
	if db.live != live {
		t.Errorf("bytes of all rows: got %d, want %d", db.live, live)
	}
}
