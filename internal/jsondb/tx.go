package jsondb

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// A Tx is a transaction: it reads the committed rows with pending changes on top of them. In [DB.View] there
// are no such changes, and none can be made. A Tx is only valid until the function that it was passed to
// returns, and, if it writes, for one goroutine.
type Tx struct {
	db        *DB      // has the committed rows
	pending   state    // changes of this call and of the calls before it in the same commit
	changes   []change // the same, in order
	savepoint int      // number of changes before this call
}

// change is a change of one row.
type change struct {
	old, new *Row // nil: there was none, or there is none now
	cascaded bool // the row was deleted with its parent
}

// begin returns a transaction that can write.
func (db *DB) begin() *Tx {
	return &Tx{db: db, pending: newState()}
}

// Find returns the row with an ID or a unique key, or nil.
func (tx *Tx) Find(key string) *Row {
	r, changed := tx.pending.index[key]
	if changed {
		return r
	}
	return tx.db.index[key]
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
// within the last 24 hours, and the digest of the body of that request. It returns nil if there is no such
// row, or if it was deleted.
func (tx *Tx) Idempotent(owner, key string) (r *Row, body string) {
	r = tx.Find(idempotencyIndexKey(owner, key))
	if r == nil || !tx.db.valid(r.idempotency) {
		return nil, ""
	}
	return r, r.idempotency.Body
}

// valid reports whether an idempotency key has not expired. A key from the future hasn't: the clock was set
// back, or is wrong until it is synchronized.
func (db *DB) valid(k *idempotency) bool {
	return k != nil && db.now().Sub(k.At) < keyLifetime
}

// idempotencyIndexKey returns the key in the index of the row that was created with an idempotency key.
// No ID or unique key begins with a NUL.
func idempotencyIndexKey(owner, key string) string { return "\x00" + owner + "\x00" + key }

// Changes returns the number of rows that this transaction has put or deleted so far, including the
// rows that were deleted with their parents.
func (tx *Tx) Changes() int { return len(tx.changes) - tx.savepoint }

// Put stores the row that a text stands for: a new row, or a new version of the row with its ID. It returns
// the row, and changes nothing if the row has this text already. Put copies the text. It panics if the text
// isn't a row, if its parent doesn't exist, if another row has its unique key, or if it has another
// parent or time of creation than before.
func (tx *Tx) Put(json []byte) *Row { return tx.mustPut(json, nil) }

// PutIdempotent is Put for a new row, which [Tx.Idempotent] finds by the key for the next 24 hours. The body
// is a digest of the request that creates the row.
func (tx *Tx) PutIdempotent(json []byte, key, body string) *Row {
	return tx.mustPut(json, &idempotency{Key: key, Body: body, At: tx.db.now()})
}

func (tx *Tx) mustPut(json []byte, k *idempotency) *Row {
	row, err := tx.db.parseRow(string(json))
	if err != nil {
		panic(err)
	}
	row.idempotency = k
	r, err := tx.put(&row)
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
	if old != nil {
		if old.JSON == r.JSON {
			return old, nil
		}
		r.idempotency = old.idempotency
	}
	tx.change(change{old: old, new: r})
	return r, nil
}

// checkConflict returns an error if a row cannot be stored next to the others. old is the row with its ID, or
// nil.
func (tx *Tx) checkConflict(old, r *Row) error {
	if r.Table.Parent != "" && tx.Get(r.Table.Parent, r.Parent) == nil {
		return fmt.Errorf("%.80s belongs to %.80q, which doesn't exist", r.ID, r.Parent)
	}
	if r.Key != "" {
		named := tx.Find(r.Key)
		if named != nil && named.ID != r.ID {
			return fmt.Errorf("%.80s has the unique key of %.80s", r.ID, named.ID)
		}
	}
	if old == nil {
		return nil
	}
	if old.ID != r.ID {
		return fmt.Errorf("%.80s is the unique key of %.80s", r.ID, old.ID)
	}
	if old.Parent != r.Parent || !old.Created.Equal(r.Created) {
		return fmt.Errorf("%.80s has another parent or created_at than before", r.ID)
	}
	return nil
}

// change makes a change pending.
func (tx *Tx) change(c change) {
	tx.reindex(c.old, c.new)
	r := cmp.Or(c.new, c.old)
	if c.old == nil {
		key := r.listKey()
		tx.pending.lists[key] = append(tx.pending.lists[key], r)
	}
	if r.idempotency != nil {
		key := idempotencyIndexKey(r.Parent, r.idempotency.Key)
		// A new row takes the key from the row that had it before it expired.
		if c.old == nil || c.old == tx.Find(key) {
			tx.pending.index[key] = c.new
		}
	}
	tx.changes = append(tx.changes, c)
}

// reindex makes the ID and the unique key of a row lead to another version of it. Each may be nil.
func (tx *Tx) reindex(from, to *Row) {
	index := tx.pending.index
	if from != nil {
		index[from.ID] = nil
		if from.Key != "" {
			index[from.Key] = nil
		}
	}
	if to != nil {
		index[to.ID] = to
		if to.Key != "" {
			index[to.Key] = to
		}
	}
}

// listKey returns the key of the list that the row is in.
func (r *Row) listKey() listKey { return listKey{r.Parent, r.Table} }

// rollback drops all changes since the savepoint: it makes the changes before it again, from the beginning.
func (tx *Tx) rollback() {
	if len(tx.changes) == tx.savepoint {
		return
	}
	kept := tx.changes[:tx.savepoint]
	tx.pending, tx.changes = newState(), nil
	for _, c := range kept {
		tx.change(c)
	}
}

// Delete deletes the row with an ID, if there is one, and all that belongs to it.
func (tx *Tx) Delete(id string) {
	for i, r := range slices.Collect(tx.Tree(id)) {
		tx.change(change{old: r, cascaded: i > 0})
	}
}

// rows returns the rows of a list, the oldest first. The caller must not change the slice.
func (tx *Tx) rows(key listKey) []*Row {
	committed := tx.db.lists[key]
	if len(tx.pending.index) == 0 {
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
		pending, changed := tx.pending.index[r.ID]
		if changed {
			r = pending
		}
		if r != nil && r.listKey() == key {
			list = append(list, r)
		}
	}
	return list
}

// sortRows puts the rows of a list in order. A row that was deleted and put again in one commit may be in it
// twice.
func sortRows(rows []*Row) []*Row {
	order := func(a, b *Row) int { return a.compare(b.Position) }
	if !slices.IsSortedFunc(rows, order) {
		slices.SortFunc(rows, order)
	}
	return slices.Compact(rows)
}

// Children yields the rows of the table with a prefix that belong to a parent, or, if parent is empty, the
// rows without a parent. The oldest comes first.
func (tx *Tx) Children(parent, prefix string) iter.Seq[*Row] {
	return slices.Values(tx.rows(listKey{parent, tx.db.table(prefix)}))
}

// All yields all rows, parents before their children.
func (tx *Tx) All() iter.Seq[*Row] {
	return func(yield func(*Row) bool) { tx.walk("", "", yield) }
}

// Tree yields the row with an ID and all that belongs to it, parents before their children.
func (tx *Tx) Tree(id string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		r := tx.Find(id)
		if r != nil && r.ID == id && yield(r) {
			tx.walk(r.ID, r.Table.Prefix, yield)
		}
	}
}

// walk yields all that belongs to a row of the table with a prefix, or all rows if both are empty. It reports
// whether to go on.
func (tx *Tx) walk(parent, prefix string, yield func(*Row) bool) bool {
	for i := range tx.db.tables {
		t := &tx.db.tables[i]
		if t.Parent != prefix {
			continue
		}
		for _, r := range tx.rows(listKey{parent, t}) {
			if !yield(r) || !tx.walk(r.ID, t.Prefix, yield) {
				return false
			}
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
	rows := tx.rows(listKey{parent, tx.db.table(prefix)})
	if after != nil {
		end, _ := slices.BinarySearchFunc(rows, *after, func(r *Row, p Position) int { return r.compare(p) })
		rows = rows[:end]
	}
	page = make([]*Row, 0, min(limit, len(rows)))
	for _, r := range slices.Backward(rows) {
		if match != nil && !match(r) {
			continue
		}
		if len(page) == limit {
			return page, &page[limit-1].Position
		}
		page = append(page, r)
	}
	return page, nil
}
