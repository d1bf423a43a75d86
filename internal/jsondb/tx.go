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

// FindIdempotent returns the row that an owner's request with an idempotency key created in the last 24
// hours, and the digest of the request body. It returns nil if there is no such row.
func (tx *Tx) FindIdempotent(owner, key string) (r *Row, body string) {
	r = tx.findRequest(requestKey{owner, key})
	if r == nil || !tx.db.valid(r.idempotency) {
		return nil, ""
	}
	return r, r.idempotency.Body
}

func (tx *Tx) findRequest(key requestKey) *Row {
	r, changed := tx.pending.requests[key]
	if changed {
		return r
	}
	return tx.db.requests[key]
}

// valid reports whether an idempotency key has not expired. A key from the future hasn't: the clock was set
// back, or is wrong until it is synchronized.
func (db *DB) valid(k *idempotency) bool {
	return k != nil && db.now().Sub(k.At) < keyLifetime
}

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
	r := &Row{JSON: string(json), idempotency: k}
	err := tx.db.scan(r)
	if err == nil {
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
		key := requestKey{r.Parent, r.idempotency.Key}
		// A new row takes the key from the row that had it before it expired.
		if c.old == nil || c.old == tx.findRequest(key) {
			tx.pending.requests[key] = c.new
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

// listKey returns the key of the list of all rows of the parent.
func (r *Row) listKey() listKey { return listKey{parent: r.Parent, table: r.Table} }

// listKeys returns the keys of all lists that the row is in. A nil row is in none.
func (r *Row) listKeys() []listKey {
	if r == nil {
		return nil
	}
	keys := []listKey{r.listKey()}
	if r.Status != "" {
		keys = append(keys, listKey{r.Parent, r.Table, r.Status})
	}
	return keys
}

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

// rows returns the rows of a list, the oldest first. The caller must not change the slice, nor use it after
// the transaction.
func (tx *Tx) rows(key listKey) []*Row {
	if len(tx.pending.index) == 0 {
		return tx.db.lists[key]
	}
	all := listKey{parent: key.parent, table: key.table}
	var rows []*Row
	rows = tx.appendCurrent(rows, key, tx.db.lists[all])
	rows = tx.appendCurrent(rows, key, tx.pending.lists[all])
	return sortRows(rows)
}

// appendCurrent appends the current versions of rows that are in a list now.
func (tx *Tx) appendCurrent(list []*Row, key listKey, rows []*Row) []*Row {
	all := listKey{parent: key.parent, table: key.table}
	for _, r := range rows {
		pending, changed := tx.pending.index[r.ID]
		if changed {
			r = pending
		}
		if r != nil && r.listKey() == all && (key.status == "" || key.status == r.Status) {
			list = append(list, r)
		}
	}
	return list
}

// sortRows puts the rows of a list in order and removes duplicates: a row that was deleted and put again in
// one commit may be in it twice.
func sortRows(rows []*Row) []*Row {
	if !slices.IsSortedFunc(rows, compareRows) {
		slices.SortFunc(rows, compareRows)
	}
	return slices.Compact(rows)
}

func compareRows(a, b *Row) int { return a.compare(b.Position) }

// Children yields the rows of the table with a prefix that belong to a parent, or, if parent is empty, the
// rows without a parent. The oldest comes first.
func (tx *Tx) Children(parent, prefix string) iter.Seq[*Row] {
	return slices.Values(tx.rows(listKey{parent: parent, table: tx.db.table(prefix)}))
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
		for _, r := range tx.rows(listKey{parent: parent, table: t}) {
			if !yield(r) || !tx.walk(r.ID, t.Prefix, yield) {
				return false
			}
		}
	}
	return true
}

// Page returns the rows of a parent that have a status, the newest first, or all if the status is empty. It
// begins after a position, or with the newest row if after is nil, and returns at most limit rows. If more
// follow, next is the position of the last row, otherwise nil.
func (tx *Tx) Page(
	parent, prefix, status string, after *Position, limit int,
) (page []*Row, next *Position) {
	rows := tx.rows(listKey{parent, tx.db.table(prefix), status})
	if after != nil {
		end, _ := slices.BinarySearchFunc(rows, *after, (*Row).compare)
		rows = rows[:end]
	}
	if len(rows) > limit {
		rows = rows[len(rows)-limit:]
		next = &rows[0].Position
	}
	page = slices.Clone(rows)
	slices.Reverse(page)
	return page, next
}
