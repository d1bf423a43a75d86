package rows

import (
	"iter"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"
)

// Tx is the state that a View or an Update sees. In an Update that is the state of
// the database with changes on top of it, which are made but not published yet: those
// of the updates before it in the same commit, and its own. It is for one
// goroutine, and valid until the function that it was given to returns.
type Tx struct {
	db      *DB
	base    *Tx                 // the changes of the updates before it, or nil
	changes []change            // its own, in their order
	names   map[string]*Row     // what each changed name leads to now; nil: to no row any more
	added   map[string][]string // ids of the rows in its changes, by their parents' ids
	indexed int                 // how many changes are in added: most updates never need it
}

// change puts a row, or deletes it with all that belongs to it.
type change struct {
	row    *Row // to delete: its id and its kind are enough
	delete bool
}

func newTx(db *DB, base *Tx) *Tx {
	return &Tx{db: db, base: base, names: map[string]*Row{}, added: map[string][]string{}}
}

// merge adds the changes of another Tx, which came later.
func (tx *Tx) merge(later *Tx) {
	tx.changes = append(tx.changes, later.changes...)
	maps.Copy(tx.names, later.names)
}

// Find returns the row that has an id or a second name, or nil.
func (tx *Tx) Find(name string) *Row {
	for t := tx; t != nil; t = t.base {
		if r, changed := t.names[name]; changed {
			return r
		}
	}
	return tx.db.names[name]
}

// Get returns the row with an id, if it is of the kind with this prefix, or nil.
func (tx *Tx) Get(prefix, id string) *Row {
	if r := tx.Find(id); r != nil && r.ID == id && r.Kind.Prefix == prefix {
		return r
	}
	return nil
}

// FindIdempotent returns the row that was created with an idempotency key under a
// parent, or nil, also if the key has expired. The name of the key may lead to an old
// version of the row, so the row is looked up again by its id.
func (tx *Tx) FindIdempotent(parent, key string) *Row {
	r := tx.Find(idempotencyName(parent, key))
	if r != nil {
		r = tx.Find(r.ID)
	}
	if r == nil || r.Parent != parent || r.Idempotency == nil || r.Idempotency.Key != key ||
		r.Idempotency.expired(tx.db.Now()) {
		return nil
	}
	return r
}

// Put stores json as a row: replacing old, or as a new row if old is nil. A new row
// is created with the key, which may be nil, too. The row's parent must be in the
// database and its names must not be another row's: the caller has to check that. Put
// panics if the kind of the row cannot read json, which is a defect of the caller.
// Update returns that panic as an error.
func (tx *Tx) Put(old *Row, json []byte, key *IdempotencyKey) *Row {
	if old != nil && old.JSON == string(json) {
		return old
	}
	r, err := tx.db.parseRow(string(json))
	if err != nil {
		panic(err)
	}
	if old == nil {
		if r.Idempotency = key; key != nil {
			tx.names[idempotencyName(r.Parent, key.Key)] = r
		}
	} else if r.Idempotency = old.Idempotency; old.Name != "" && old.Name != r.Name {
		tx.names[old.Name] = nil
	}
	tx.bind(r, r)
	if tx.changes = append(tx.changes, change{row: r}); len(tx.changes)%1000 == 0 {
		collectGarbage()
	}
	return r
}

// collectGarbage keeps what an update of very many rows leaves behind at a quarter of
// the memory in use: by itself it would grow to as much again, or more.
func collectGarbage() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if used, live := sample[0].Value.Uint64(), sample[1].Value.Uint64(); used > live+live/4+32<<20 {
		runtime.GC()
	}
}

// Changes is how many rows the update has put or deleted so far. To put a row as it is
// changes nothing, and neither does deleting one that does not exist.
func (tx *Tx) Changes() int { return len(tx.changes) }

// Delete deletes the row with an id, if there is one, and all that belongs to it.
func (tx *Tx) Delete(id string) {
	if r := tx.Find(id); r != nil && r.ID == id {
		tx.unbind(r)
		tx.changes = append(tx.changes, change{row: r, delete: true})
	}
}

// unbind makes the names of a row, and of all that belongs to it, lead to no row.
func (tx *Tx) unbind(r *Row) {
	tx.bind(r, nil)
	for _, child := range tx.Children(r.ID) {
		tx.unbind(child)
	}
}

// bind makes the names of a row lead to its current version or, if that is nil, to no
// row.
func (tx *Tx) bind(r, current *Row) {
	tx.names[r.ID] = current
	if r.Name != "" {
		tx.names[r.Name] = current
	}
}

// Children returns the rows that belong to the row with an id, in no order: for ""
// the rows without a parent. One that was changed in this commit may come twice.
func (tx *Tx) Children(id string) (children []*Row) {
	parent := tx.db.names[id]
	if id == "" {
		parent = &tx.db.root
	}
	var ids []string
	if parent != nil {
		for child := range tx.db.children(parent) {
			ids = append(ids, child.ID)
		}
	}
	for t := tx; t != nil; t = t.base {
		for _, c := range t.changes[t.indexed:] {
			t.added[c.row.Parent] = append(t.added[c.row.Parent], c.row.ID)
		}
		t.indexed = len(t.changes)
		ids = append(ids, t.added[id]...)
	}
	for _, childID := range ids {
		if child := tx.Find(childID); child != nil && child.Parent == id {
			children = append(children, child)
		}
	}
	return children
}

// Page appends to page the texts of at most limit children of a row, from the
// newest to the oldest, which are of the kind with this prefix and, unless it is
// "", of this status. If after is not nil they begin after that place, whether or not
// a row is there. If more follow, it returns the place of the last one, else nil.
// Pending changes are not in it: it is for Views.
func (tx *Tx) Page(parent, prefix, status string, after *Place, limit int, page []string) ([]string, *Place) {
	r := tx.db.names[parent]
	if r == nil {
		return page, nil
	}
	l := r.list(tx.db.kindOf(prefix), status, false)
	if l == nil {
		return page, nil
	}
	end := len(l.rows)
	if after != nil {
		end = l.position(*after)
	}
	start := max(0, end-limit)
	for _, r := range slices.Backward(l.rows[start:end]) {
		page = append(page, r.JSON)
	}
	if start == 0 {
		return page, nil
	}
	return page, new(l.rows[start].place())
}

// All yields a row and all that belongs to it or, for nil, all rows. Each comes
// before its children. Pending changes are not in it.
func (tx *Tx) All(of *Row) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if of == nil {
			tx.db.walk(&tx.db.root, yield)
		} else if yield(of) {
			tx.db.walk(of, yield)
		}
	}
}

// Empty reports whether the database has no rows. Pending changes do not count.
func (tx *Tx) Empty() bool { return len(tx.db.names) == 0 }

// Newest is the latest time of creation of any row that the database has had.
func (tx *Tx) Newest() time.Time { return tx.db.newest }
