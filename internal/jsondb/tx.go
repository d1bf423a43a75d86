package jsondb

import (
	"fmt"
	"iter"
	"slices"
)

// A Tx is a transaction. It reads the committed rows and its own pending changes. A View can't make changes.
// Use a Tx only until your function returns and, if it writes, from one goroutine.
type Tx struct {
	db        *DB
	pending   pending
	changes   []change // the pending changes, in order
	savepoint int      // number of changes before this call
}

// pending holds the changes of a call and of earlier calls in the same commit.
type pending struct {
	index map[string]*Row    // by ID and by unique key; nil if a row or its key is gone
	added map[listKey][]*Row // new rows by their list without status, in the order in which they were put
}

type change struct {
	old, new *Row // nil before the row exists or after it is deleted
	cascaded bool // the row was deleted with another
}

func (db *DB) begin() *Tx { return &Tx{db: db, pending: newPending()} }

func newPending() pending { return pending{map[string]*Row{}, map[listKey][]*Row{}} }

// Find returns the row with this ID or unique key, or nil if there is none.
func (tx *Tx) Find(key string) *Row {
	r, changed := tx.pending.index[key]
	if changed {
		return r
	}
	return tx.db.index[key]
}

// Get returns the row with this ID in the table with this prefix, or nil if there is none.
func (tx *Tx) Get(prefix, id string) *Row {
	r := tx.Find(id)
	if r == nil || r.ID != id || r.Table.Prefix != prefix {
		return nil
	}
	return r
}

// NumChanges returns how many rows this transaction has changed so far. Rows that were deleted with
// others count, too.
func (tx *Tx) NumChanges() int { return len(tx.changes) - tx.savepoint }

// Put inserts or replaces a row and returns it. If the row exists with the same JSON, Put does nothing. Put
// copies json. It panics if json isn't a row, if its parent doesn't exist, if another row has its unique key,
// or if its parent or creation time would change.
func (tx *Tx) Put(json []byte) *Row {
	r := &Row{JSON: string(json)}
	err := tx.db.scan(r)
	if err != nil {
		panic(err)
	}
	old := tx.Find(r.ID)
	err = tx.checkConflict(old, r)
	if err != nil {
		panic(err)
	}
	if old != nil && old.JSON == r.JSON {
		return old
	}
	tx.link(old, r)
	tx.change(change{old: old, new: r})
	return r
}

// link links r to the row that it owns and to its owner. old is the version before r, or nil.
func (tx *Tx) link(old, r *Row) {
	if old != nil {
		r.owned = old.owned
	}
	owner := tx.owner(r)
	if owner != nil {
		owner.owned = r
	}
}

// owner returns the owner of a row, or nil.
func (tx *Tx) owner(r *Row) *Row {
	if r.Table.Owner == nil {
		return nil
	}
	return tx.Find(r.Table.Owner(r))
}

// checkConflict returns an error if r can't be stored. old is the row with its ID, or nil.
func (tx *Tx) checkConflict(old, r *Row) error {
	if r.Table.Parent != "" && tx.Get(r.Table.Parent, r.Parent) == nil {
		return fmt.Errorf("%.80s belongs to %.80q, which doesn't exist", r.ID, r.Parent)
	}
	if r.UniqueKey != "" {
		named := tx.Find(r.UniqueKey)
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
	if r.Table.Keep == nil && (old.Parent != r.Parent || !old.Created.Equal(r.Created)) {
		return fmt.Errorf("%.80s has another parent or created_at than before", r.ID)
	}
	return nil
}

// change adds a pending change.
func (tx *Tx) change(c change) {
	index := tx.pending.index
	if c.old != nil {
		index[c.old.ID] = nil
		if c.old.UniqueKey != "" {
			index[c.old.UniqueKey] = nil
		}
	}
	if c.new != nil {
		index[c.new.ID] = c.new
		if c.new.UniqueKey != "" {
			index[c.new.UniqueKey] = c.new
		}
	}
	if c.old == nil {
		key := c.new.listKey()
		tx.pending.added[key] = append(tx.pending.added[key], c.new)
	}
	tx.changes = append(tx.changes, c)
}

// listKey returns the key of the list that has all rows of the parent.
func (r *Row) listKey() listKey { return listKey{parent: r.Parent, table: r.Table} }

// isIn reports whether the row belongs in a list. A nil row doesn't.
func (r *Row) isIn(key listKey) bool {
	return r != nil && r.Parent == key.parent && r.Table == key.table &&
		(key.status == "" || key.status == r.Status)
}

// listKeys returns the keys of the row's lists. A nil row has none.
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

// rollback drops all changes since the savepoint. It does so by repeating the changes before it.
func (tx *Tx) rollback() {
	if len(tx.changes) == tx.savepoint {
		return
	}
	kept := tx.changes[:tx.savepoint]
	tx.pending, tx.changes = newPending(), nil
	for _, c := range kept {
		tx.change(c)
	}
}

// Delete deletes the row with an ID, everything below it, and the rows that these own. It does nothing if
// there is no such row.
func (tx *Tx) Delete(id string) {
	for i, r := range slices.Collect(tx.Tree(id)) {
		tx.change(change{old: r, cascaded: i > 0})
		if r.owned == nil {
			continue
		}
		owned := tx.Find(r.owned.ID)
		if owned != nil && owned.Table.Owner(owned) == r.ID { // not a later one of another owner
			tx.change(change{old: owned, cascaded: true})
		}
	}
}

// rows returns a list, oldest row first. The slice is valid only during the transaction, and the
// caller must not change it.
func (tx *Tx) rows(key listKey) []*Row {
	if len(tx.pending.index) == 0 {
		return tx.db.lists[key]
	}
	all := listKey{parent: key.parent, table: key.table}
	var rows []*Row
	rows = tx.appendCurrent(rows, key, tx.db.lists[all])
	rows = tx.appendCurrent(rows, key, tx.pending.added[all])
	return sortRows(rows)
}

// appendCurrent appends the current versions of rows, except those that have left the list.
func (tx *Tx) appendCurrent(list []*Row, key listKey, rows []*Row) []*Row {
	for _, r := range rows {
		r = tx.Find(r.ID)
		if r.isIn(key) {
			list = append(list, r)
		}
	}
	return list
}

// sortRows sorts rows and removes duplicates: a row that was deleted and put again in one commit may appear
// twice.
func sortRows(rows []*Row) []*Row {
	if !slices.IsSortedFunc(rows, compareRows) {
		slices.SortFunc(rows, compareRows)
	}
	return slices.Compact(rows)
}

func compareRows(a, b *Row) int { return a.compare(b.Position) }

// Children yields the rows of a parent in the table with a prefix, oldest first. If parent is empty, it
// yields the rows without a parent.
func (tx *Tx) Children(parent, prefix string) iter.Seq[*Row] {
	return slices.Values(tx.rows(listKey{parent: parent, table: tx.db.table(prefix)}))
}

// All yields all rows, parents before their children.
func (tx *Tx) All() iter.Seq[*Row] {
	return func(yield func(*Row) bool) { tx.walk("", "", yield) }
}

// Tree yields the row with an ID and everything below it, parents before their children.
func (tx *Tx) Tree(id string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		r := tx.Find(id)
		if r != nil && r.ID == id && yield(r) {
			tx.walk(r.ID, r.Table.Prefix, yield)
		}
	}
}

// walk yields everything below a row of the table with a prefix. If both are empty, it yields all rows. It
// returns false if yield did.
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

// Page returns the JSON of at most limit rows of a parent, newest first: those with a status, or all if
// status is empty. It starts after a position, or with the newest row if after is nil. If more rows follow,
// next is the position of the last one, otherwise nil.
func (tx *Tx) Page(
	parent, prefix, status string, after *Position, limit int,
) (page []string, next *Position) {
	rows := tx.rows(listKey{parent, tx.db.table(prefix), status})
	if after != nil {
		end, _ := slices.BinarySearchFunc(rows, *after, (*Row).compare)
		rows = rows[:end]
	}
	if len(rows) > limit {
		rows = rows[len(rows)-limit:]
		next = &rows[0].Position
	}
	page = make([]string, 0, len(rows))
	for _, r := range slices.Backward(rows) {
		page = append(page, r.JSON)
	}
	return page, next
}
