package jsondb

import (
	"iter"
	"slices"
	"time"
)

// A Tx is a transaction: it reads the committed rows with pending changes on top of them. In [DB.View] there
// are no such changes, and none can be made. A Tx is only valid until the function that it was passed to
// returns, and, if it writes, for one goroutine.
type Tx struct {
	db      *DB
	base    *state // committed rows
	pending state  // of this call and of the calls before it in the same commit; no count and no newest

	changes   []change
	savepoint int // number of changes before this call
}

// change is a change of one row.
type change struct {
	old, new *Row // nil: there was none, or there is none now
	implied  bool // the row was deleted with its parent
}

// begin returns a transaction that can write.
func (db *DB) begin() *Tx {
	return &Tx{
		db:      db,
		base:    &db.state,
		pending: state{names: map[string]*Row{}, lists: map[listKey][]*Row{}},
	}
}

// Find returns the row with an ID or a unique key, or nil.
func (tx *Tx) Find(key string) *Row {
	r, changed := tx.pending.names[key]
	if changed {
		return r
	}
	return tx.base.names[key]
}

// Get returns the row with an ID if it is in the table with this prefix, or nil.
func (tx *Tx) Get(prefix, id string) *Row {
	r := tx.Find(id)
	if r == nil || r.ID != id || r.Table.Prefix != prefix {
		return nil
	}
	return r
}

// Idempotent returns the row that was created with an idempotency key under an owner, which is its parent,
// within the last 24 hours, and the digest of the body of that request. It returns nil if there is none, or
// if the row was deleted.
func (tx *Tx) Idempotent(owner, key string) (r *Row, body string) {
	r = tx.Find(idempotencyName(owner, key))
	if r == nil || !tx.db.valid(r.idempotency) {
		return nil, ""
	}
	return r, r.idempotency.Body
}

// valid reports whether an idempotency key has not expired.
func (db *DB) valid(k *idempotency) bool {
	return k != nil && db.now().Sub(k.At).Abs() < keyLifetime
}

// idempotencyName returns the name by which the row that was created with an idempotency key is found. No ID
// or unique key begins with a NUL.
func idempotencyName(owner, key string) string { return "\x00" + owner + "\x00" + key }

func (r *Row) idempotencyName() string { return idempotencyName(r.Parent, r.idempotency.Key) }

// Changes returns the number of rows that this transaction has put or deleted so far. A deleted row counts
// once, whatever was deleted with it.
func (tx *Tx) Changes() int {
	n := 0
	for _, c := range tx.changes[tx.savepoint:] {
		if !c.implied {
			n++
		}
	}
	return n
}

// Put stores the row that a text stands for: a new row, or a new version of the row with its ID. It returns
// the row, and changes nothing if the row has this text already. Put copies the text. It panics if the text
// isn't a row, if its parent doesn't exist, if its unique key is that of another row, or if it has another
// parent or time of creation than before.
func (tx *Tx) Put(json []byte) *Row { return tx.mustPut(json, nil) }

// PutIdempotent is Put for a new row, which [Tx.Idempotent] finds by the key for the next 24 hours. The body
// is a digest of the request that creates the row.
func (tx *Tx) PutIdempotent(json []byte, key, body string) *Row {
	return tx.mustPut(json, &idempotency{Key: key, Body: body, At: tx.db.now()})
}

func (tx *Tx) mustPut(json []byte, k *idempotency) *Row {
	r, err := tx.db.parseRow(string(json))
	if err == nil {
		r.idempotency = k
		r, err = tx.put(r)
	}
	if err != nil {
		panic(err)
	}
	return r
}

// put stores a row. It returns an error if the row is in conflict with another one.
func (tx *Tx) put(r *Row) (*Row, error) {
	old := tx.Find(r.ID)
	err := tx.checkConflict(old, r)
	if err != nil {
		return nil, err
	}
	if old == nil {
		key := r.list()
		tx.pending.lists[key] = append(tx.pending.lists[key], r)
		if r.idempotency != nil { // the key may have been that of another row before it expired
			tx.pending.names[r.idempotencyName()] = nil
		}
	} else {
		if old.JSON == r.JSON {
			return old, nil
		}
		r.idempotency = old.idempotency
		tx.unname(old)
	}
	tx.name(r)
	tx.changes = append(tx.changes, change{old: old, new: r})
	return r, nil
}

// name makes the names of a row lead to it. An idempotency key that leads to another row by now has expired.
func (tx *Tx) name(r *Row) {
	names := tx.pending.names
	names[r.ID] = r
	if r.Key != "" {
		names[r.Key] = r
	}
	if r.idempotency != nil && tx.Find(r.idempotencyName()) == nil {
		names[r.idempotencyName()] = r
	}
}

// unname makes the names that lead to a row lead to none.
func (tx *Tx) unname(r *Row) {
	tx.pending.names[r.ID] = nil
	if r.Key != "" {
		tx.pending.names[r.Key] = nil
	}
	if r.idempotency != nil && tx.Find(r.idempotencyName()) == r {
		tx.pending.names[r.idempotencyName()] = nil
	}
}

// list returns the key of the list that the row is in.
func (r *Row) list() listKey { return listKey{r.Parent, r.Table} }

// rollback drops all changes since the savepoint. The new rows stay in pending.lists: their IDs don't lead to
// them any more, so they are in no list.
func (tx *Tx) rollback() {
	for _, c := range slices.Backward(tx.changes[tx.savepoint:]) {
		if c.new != nil {
			tx.unname(c.new)
		}
		if c.old != nil {
			tx.name(c.old)
		}
	}
	tx.changes = tx.changes[:tx.savepoint]
}

// Delete deletes the row with an ID, if there is one, and all that belongs to it.
func (tx *Tx) Delete(id string) {
	r := tx.Find(id)
	if r != nil && r.ID == id {
		tx.delete(r, false)
	}
}

func (tx *Tx) delete(r *Row, implied bool) {
	for child := range tx.children(r.ID, r.Table.Prefix) {
		tx.delete(child, true)
	}
	tx.unname(r)
	tx.changes = append(tx.changes, change{old: r, implied: implied})
}

// rows returns the rows of a list, the oldest first. The caller must not change the slice.
func (tx *Tx) rows(key listKey) []*Row {
	committed := tx.base.lists[key]
	if len(tx.pending.names) == 0 {
		return committed
	}
	added := tx.pending.lists[key]
	rows := make([]*Row, 0, len(committed)+len(added))
	rows = tx.appendCurrent(rows, key, committed)
	rows = tx.appendCurrent(rows, key, added)
	return sortRows(rows)
}

// appendCurrent appends the current versions of rows that are still in a list.
func (tx *Tx) appendCurrent(list []*Row, key listKey, rows []*Row) []*Row {
	for _, r := range rows {
		r = tx.Find(r.ID)
		if r != nil && r.list() == key {
			list = append(list, r)
		}
	}
	return list
}

// sortRows puts the rows of a list in order. A row that was deleted and put again in one commit may be in it
// twice.
func sortRows(rows []*Row) []*Row {
	if !slices.IsSortedFunc(rows, compareRows) {
		slices.SortFunc(rows, compareRows)
	}
	return slices.Compact(rows)
}

// Children yields the rows of the table with a prefix that belong to a parent, or, if parent is empty, those
// without one. The oldest comes first.
func (tx *Tx) Children(parent, prefix string) iter.Seq[*Row] {
	return slices.Values(tx.rows(listKey{parent, tx.db.tableOf(prefix)}))
}

// children yields the rows of all tables that belong to a row of the table with a prefix, or, if both are
// empty, all rows without a parent.
func (tx *Tx) children(parent, prefix string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for i := range tx.db.tables {
			t := &tx.db.tables[i]
			if t.Parent != prefix {
				continue
			}
			for _, r := range tx.rows(listKey{parent, t}) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Tree yields the row with an ID and all that belongs to it, parents before their children. If id is empty,
// it yields all rows.
func (tx *Tx) Tree(id string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if id == "" {
			tx.walk("", "", yield)
			return
		}
		r := tx.Find(id)
		if r != nil && r.ID == id && yield(r) {
			tx.walk(r.ID, r.Table.Prefix, yield)
		}
	}
}

func (tx *Tx) walk(parent, prefix string, yield func(*Row) bool) bool {
	for r := range tx.children(parent, prefix) {
		if !yield(r) || !tx.walk(r.ID, r.Table.Prefix, yield) {
			return false
		}
	}
	return true
}

// Page returns at most limit rows of a list, the newest first, and only those for which match returns true. A
// nil match matches all. The rows come after a position in that order, or from the beginning if after is nil.
// If more follow, next is the position of the last row, otherwise nil.
func (tx *Tx) Page(
	parent, prefix string, after *Position, limit int, match func(*Row) bool,
) (page []*Row, next *Position) {
	rows := tx.rows(listKey{parent, tx.db.tableOf(prefix)})
	if after != nil {
		end, _ := slices.BinarySearchFunc(rows, *after, comparePosition)
		rows = rows[:end]
	}
	page = make([]*Row, 0, min(limit, len(rows)))
	for _, r := range slices.Backward(rows) {
		if match != nil && !match(r) {
			continue
		}
		if len(page) == limit {
			return page, new(page[limit-1].Position())
		}
		page = append(page, r)
	}
	return page, nil
}

// publish makes the pending changes of a transaction part of the state.
func (s *state) publish(tx *Tx) {
	for _, c := range tx.changes {
		if c.new == nil {
			s.count[c.old.Table]--
			continue
		}
		if c.old == nil {
			s.count[c.new.Table]++
		}
		s.newest = latest(s.newest, c.new.Created)
	}
	if len(tx.changes) > bulkChanges {
		s.mergeLists(tx)
	} else {
		for _, c := range tx.changes {
			if c.new != nil {
				s.link(c.new)
			} else {
				s.unlink(c.old)
			}
		}
	}
	for name, r := range tx.pending.names {
		if r != nil {
			s.names[name] = r
		} else {
			delete(s.names, name)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// bulkChanges is the number of changes above which lists are merged as a whole. A change in the middle of a
// list moves all rows after it, so many of them, made one by one, take time that grows with their square.
const bulkChanges = 256

func (s *state) mergeLists(tx *Tx) {
	merged := map[listKey]bool{}
	for _, c := range tx.changes {
		r := c.new
		if r == nil {
			r = c.old
		}
		key := r.list()
		if merged[key] {
			continue
		}
		merged[key] = true
		s.setList(key, tx.rows(key))
	}
}

func (s *state) setList(key listKey, rows []*Row) {
	if len(rows) == 0 {
		delete(s.lists, key)
		return
	}
	s.lists[key] = rows
}

// link puts a row into its list, in place of its old version if there is one. Nearly always it is the newest.
func (s *state) link(r *Row) {
	key := r.list()
	rows := s.lists[key]
	if len(rows) == 0 || compareRows(rows[len(rows)-1], r) < 0 {
		s.lists[key] = append(rows, r)
		return
	}
	i, found := slices.BinarySearchFunc(rows, r, compareRows)
	if found {
		rows[i] = r
		return
	}
	s.lists[key] = slices.Insert(rows, i, r)
}

// unlink removes a row from its list.
func (s *state) unlink(r *Row) {
	key := r.list()
	rows := s.lists[key]
	i, found := slices.BinarySearchFunc(rows, r, compareRows)
	if found {
		s.setList(key, slices.Delete(rows, i, i+1))
	}
}
