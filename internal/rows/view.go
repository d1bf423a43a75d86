package rows

import (
	"iter"
	"slices"
)

// View is the current state: all that is committed and nothing else. It is valid
// until the function that it was given to returns.
type View struct{ db *DB }

// View calls f with the current state. Changes wait until f returns, so f should
// do nothing but look.
func (db *DB) View(f func(View)) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	f(View{db})
}

// Find is that of [Finder].
func (v View) Find(name string) *Row { return v.db.names[name] }

// Get is that of [Finder].
func (v View) Get(prefix, id string) *Row { return v.Find(id).withID(prefix, id) }

// withID returns r if it has the id and is of the kind with the prefix, else nil.
func (r *Row) withID(prefix, id string) *Row {
	if r == nil || r.ID != id || r.Kind.Prefix != prefix {
		return nil
	}
	return r
}

// List names an ordered list of the database.
type List struct {
	Parent string // the id of the row that those of the list belong to
	Prefix string // of the ids of their kind
	Status string // that they have, or "" for all
}

// Page appends to page the texts of at most limit rows of a list, from the newest to the oldest. If
// after is not nil they begin after that place, whether or not a row is there. If more follow, it
// returns the place of the last row of the page, else nil.
func (v View) Page(list List, after *Place, limit int, page []string) ([]string, *Place) {
	r := v.db.names[list.Parent]
	if r == nil {
		return page, nil
	}
	l := r.childrenOf(v.db.kindOf(list.Prefix))
	end := len(l.rows)
	if after != nil {
		end = l.position(*after)
	}
	var last *Row // of the page
	for _, r := range slices.Backward(l.rows[:end]) {
		if list.Status != "" && list.Status != r.Status {
			continue
		}
		if limit == 0 {
			return page, new(last.Place)
		}
		limit--
		last = r
		page = append(page, r.JSON)
	}
	return page, nil
}

// Children yields the rows of the kind with this prefix that belong to the row with an id, the
// oldest first: for the id "" the rows without a parent.
func (v View) Children(id, prefix string) iter.Seq[*Row] {
	parent := v.db.names[id]
	if id == "" {
		parent = &v.db.root
	}
	if parent == nil {
		parent = &Row{}
	}
	return slices.Values(parent.childrenOf(v.db.kindOf(prefix)).rows)
}

// Tree yields a row and all that belongs to it, each before its children.
func (v View) Tree(r *Row) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if yield(r) {
			v.db.walk(r, yield)
		}
	}
}

// All yields all rows, as in "for r := range v.All". Each comes before its children.
func (v View) All(yield func(*Row) bool) { v.db.walk(&v.db.root, yield) }
