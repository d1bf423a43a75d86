package rows

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Place is the position of a row in a list: rows are ordered by their time of
// creation and then by their id.
type Place struct {
	Created time.Time
	ID      string
}

func compare(r *Row, p Place) int {
	return cmp.Or(r.Created.Compare(p.Created), cmp.Compare(r.ID, p.ID))
}

// childList is the children of one row that are of one kind, from the oldest to the newest.
type childList struct {
	kind *Kind
	rows []*Row
	next *childList // of the same parent
}

// noChildren is the list of a row that has no children of a kind.
var noChildren childList

// childrenOf returns the list of r's children of a kind. A row has few lists, so they are a chain
// that is searched from its beginning.
func (r *Row) childrenOf(kind *Kind) *childList {
	for l := r.children; l != nil; l = l.next {
		if l.kind == kind {
			return l
		}
	}
	return &noChildren
}

// position is how many rows of the list come before a place. A row at the place itself
// does not count.
func (l *childList) position(p Place) int {
	i, _ := slices.BinarySearchFunc(l.rows, p, compare)
	return i
}

// addTo puts a row into its parent's list, which it makes if there is none. Nearly always the
// row is the newest and goes to the end.
func (db *DB) addTo(parent, r *Row) {
	l := parent.childrenOf(r.Kind)
	if l == &noChildren {
		l = &childList{kind: r.Kind, next: parent.children}
		parent.children = l
	}
	n := len(l.rows)
	if n == cap(l.rows) {
		l.rows = slices.Grow(l.rows, max(1, n)) // double: append would add a quarter, and copy more often
	}
	at := n
	switch {
	case n == 0 || compare(l.rows[n-1], r.Place) < 0:
	case db.unsorted != nil:
		db.unsorted[l] = true
	default:
		at = l.position(r.Place)
	}
	l.rows = slices.Insert(l.rows, at, r)
}

// removeFrom removes a row from its parent's list. In bulk the list is only marked: at the end, a
// row that is deleted by then is removed from it.
func (db *DB) removeFrom(parent, r *Row) {
	l := parent.childrenOf(r.Kind)
	if db.unsorted != nil {
		db.unsorted[l] = true
		return
	}
	at := l.position(r.Place)
	l.rows = slices.Delete(l.rows, at, at+1)
}

// endBulk ends a change in bulk, of many rows, and puts the lists in order. One by one,
// each change in the middle of a list would move all that follow it: for a million of
// them that takes time that grows with their square. A row that is deleted now is removed.
func (db *DB) endBulk() {
	for l := range db.unsorted {
		l.rows = slices.DeleteFunc(l.rows, func(r *Row) bool { return r.Kind == nil })
		slices.SortFunc(l.rows, func(a, b *Row) int { return compare(a, b.Place) })
	}
	db.unsorted = nil
}

// parentOf is the row that r belongs to, root for one without a parent, and nil
// if its parent is not in the database or of another kind than it must be.
func (db *DB) parentOf(r *Row) *Row {
	if r.Parent == "" && r.Kind.Parent == "" {
		return &db.root
	}
	return db.names[r.Parent].withID(r.Kind.Parent, r.Parent)
}

// apply makes the change r of the row with its id, which is current, or nil if there is
// none: it deletes that row if r has no text, and else puts r in its place.
func (db *DB) apply(current, r *Row) {
	if r.JSON == "" {
		if current != nil {
			db.delete(current)
		}
		return
	}
	if current == nil {
		current = r
		db.count[r.Kind]++
		db.addTo(db.parentOf(r), r)
		if r.Idempotency != nil {
			db.idempotent[keyName(r.Parent, r.Idempotency.Key)] = r
		}
		if r.Created.After(db.newest) {
			db.newest = r.Created
		}
	} else {
		// The row is changed in place, as it has children and is in lists. Its parent, its time
		// of creation and its idempotency key never change.
		db.live -= fileBytes(current)
		delete(db.names, current.Name)
		r.children = current.children
		r.Idempotency = current.Idempotency
		*current = *r
	}
	db.live += fileBytes(current)
	// Also if they are there, as the keys must be parts of the text that stays.
	db.names[r.ID] = current
	db.names[r.Name] = current
}

// delete deletes a row and all that belongs to it.
func (db *DB) delete(r *Row) {
	db.removeFrom(db.parentOf(r), r)
	db.unbind(r)
}

// unbind removes a row and all that belongs to it from the names. The lists of its
// children are released with it.
func (db *DB) unbind(r *Row) {
	for child := range db.allChildren(r) {
		db.unbind(child)
	}
	db.live -= fileBytes(r)
	delete(db.names, r.ID)
	delete(db.names, r.Name)
	if r.Idempotency != nil {
		db.forgetKey(r)
	}
	db.count[r.Kind]--
	r.Kind = nil
}

// allChildren yields the rows that belong to r, kind by kind, the oldest first.
func (db *DB) allChildren(r *Row) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for i := range db.Kinds {
			for _, child := range r.childrenOf(&db.Kinds[i]).rows {
				if child.Kind != nil && !yield(child) {
					return
				}
			}
		}
	}
}

// walk yields all rows that belong to r, each before its own children.
func (db *DB) walk(r *Row, yield func(*Row) bool) bool {
	for child := range db.allChildren(r) {
		if !yield(child) || !db.walk(child, yield) {
			return false
		}
	}
	return true
}
