// Package index keeps rows in memory under their names and in ordered lists,
// with changes staged on top of it. It knows neither what a row says nor where
// it is kept, and locks nothing: its user does.
//
// A row hangs on at most one other, its parent, and goes when that goes. It
// stands in its parent's list of its kind and, where it has a state, in that of
// its kind and state, by creation and then id. The rows without a parent have a
// list of their own. The kind is what an id has before its underscore.
package index

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// Row is one thing that is kept. Rows of an index are only changed by it.
type Row struct {
	ID      string
	Parent  string // the id of the row that it hangs on, or ""
	Alias   string // its other name, or "": unique, and never an id
	Raw     string // what is kept
	State   string
	Created time.Time
	Origin  *Origin // what it was created with, if that is to be known again
	kids    map[shelf]*list
}

// shelf is what the rows of a list have in common beside their parent.
type shelf struct{ kind, state string }

// Origin is the idempotency key that a row was created with. Its name finds the
// row's id for as long as it is not forgotten, even when the row is gone, but
// not when its parent is.
type Origin struct {
	Name string    `json:"-"`
	Key  string    `json:"key"`
	Body string    `json:"body"` // SHA-256 of the body, hexadecimal
	At   time.Time `json:"at"`
}

// Kind is what the id has before its first underscore.
func (r *Row) Kind() string {
	kind, _, _ := strings.Cut(r.ID, "_")
	return kind
}

// Place is where a row stands in a list.
type Place struct {
	Created time.Time
	ID      string
}

func compare(r *Row, p Place) int {
	return cmp.Or(r.Created.Compare(p.Created), cmp.Compare(r.ID, p.ID))
}

// list is rows from the oldest to the newest.
type list struct {
	rows []*Row

	// In the middle of a change in bulk:
	unsorted bool
	gone     map[*Row]bool // that stand in rows still
}

func (x *Index) add(l *list, r *Row, bulk bool) {
	place := Place{r.Created, r.ID}
	switch n := len(l.rows); {
	case l.gone[r]:
		delete(l.gone, r)
	case n == 0 || compare(l.rows[n-1], place) < 0:
		l.rows = append(l.rows, r)
	case bulk:
		l.rows = append(l.rows, r)
		x.unsort(l)
	default:
		l.rows = slices.Insert(l.rows, l.before(place), r)
	}
}

func (x *Index) remove(l *list, r *Row, bulk bool) {
	if bulk { // one by one would take the square of the time
		if l.gone == nil {
			l.gone = map[*Row]bool{}
		}
		l.gone[r] = true
		x.unsort(l)
		return
	}
	if i := l.before(Place{r.Created, r.ID}); i < len(l.rows) && l.rows[i] == r {
		l.rows = slices.Delete(l.rows, i, i+1)
	}
}

// unsort leaves a list to [Index.Sort].
func (x *Index) unsort(l *list) {
	if !l.unsorted {
		l.unsorted = true
		x.unsorted = append(x.unsorted, l)
	}
}

// before is how many rows come before a place.
func (l *list) before(p Place) int {
	i, _ := slices.BinarySearchFunc(l.rows, p, compare)
	return i
}

// Index is rows under their names. Its zero value is not ready: see [New].
type Index struct {
	rows    map[string]*Row // by id, alias and origin
	root    *list
	origins []*Row // oldest first
	last    *Row   // the parent that was looked up last

	unsorted []*list // in the middle of a change in bulk
}

// New returns an empty index.
func New() *Index { return &Index{rows: map[string]*Row{}, root: &list{}} }

// Grow makes room for about that many names in an index that is empty.
func (x *Index) Grow(names int) {
	if len(x.rows) == 0 {
		x.rows = make(map[string]*Row, names)
	}
}

// Find returns the row with this id, alias or origin, or nil.
func (x *Index) Find(name string) *Row { return x.rows[name] }

// Empty reports whether there is nothing in the index.
func (x *Index) Empty() bool { return len(x.rows) == 0 }

// lists yields the lists that a row stands in, and makes those it is the first
// to stand in.
func (x *Index) lists(r *Row) iter.Seq[*list] {
	return func(yield func(*list) bool) {
		if r.Parent == "" {
			yield(x.root)
			return
		}
		if yield(x.parent(r.Parent).list(shelf{r.Kind(), ""})) && r.State != "" {
			yield(x.stateList(r))
		}
	}
}

// stateList is the list of a row's state; nil where it has none.
func (x *Index) stateList(r *Row) *list {
	if r.State == "" {
		return nil
	}
	return x.parent(r.Parent).list(shelf{r.Kind(), r.State})
}

// parent is the row with this id, most often the same as before.
func (x *Index) parent(id string) *Row {
	if x.last == nil || x.last.ID != id {
		x.last = x.rows[id]
	}
	return x.last
}

func (r *Row) list(s shelf) *list {
	l := r.kids[s]
	if l == nil {
		if r.kids == nil {
			r.kids = map[shelf]*list{}
		}
		l = &list{}
		r.kids[s] = l
	}
	return l
}

// Put puts r into the index, or what it says into the row with its id, whose
// parent, creation and origin stay. The parent must be there. In bulk, lists
// may be out of order until [Index.Sort].
func (x *Index) Put(r *Row, bulk bool) {
	old := x.rows[r.ID]
	switch {
	case old == nil:
		old = r
		x.rows[r.ID] = r
		for l := range x.lists(r) {
			x.add(l, r, bulk)
		}
		if r.Origin != nil {
			x.rows[r.Origin.Name] = r
			x.origins = append(x.origins, r)
		}
	case old.State != r.State && old.Parent != "":
		if l := x.stateList(old); l != nil {
			x.remove(l, old, bulk)
		}
		old.State = r.State
		if l := x.stateList(old); l != nil {
			x.add(l, old, bulk)
		}
	}
	if old.Alias != r.Alias {
		delete(x.rows, old.Alias)
	}
	old.Alias, old.Raw, old.State = r.Alias, r.Raw, r.State
	if old.Alias != "" {
		x.rows[old.Alias] = old
	}
}

// Remove takes the row with this id out of the index, with all that hangs on it.
// In bulk it stays in its lists until [Index.Sort].
func (x *Index) Remove(id string, bulk bool) {
	r := x.rows[id]
	if r == nil {
		return
	}
	for l := range x.lists(r) {
		x.remove(l, r, bulk)
	}
	x.drop(r)
	if r.Parent != "" { // only what has no parent is one of rows with an origin
		return
	}
	x.origins = slices.DeleteFunc(x.origins, func(o *Row) bool {
		if o.Parent == id && x.rows[o.Origin.Name] == o {
			delete(x.rows, o.Origin.Name)
		}
		return o.Parent == id
	})
}

func (x *Index) drop(r *Row) {
	x.last = nil
	delete(x.rows, r.ID)
	delete(x.rows, r.Alias)
	for kid := range r.each() {
		x.drop(kid)
	}
}

// kinds are the kinds of rows that hang on others, in the order of [Index.All].
var kinds = []string{"key", "evt", "gst"}

// each yields the rows that hang on r.
func (r *Row) each() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, kind := range kinds {
			if l := r.kids[shelf{kind, ""}]; l != nil {
				for _, kid := range l.rows {
					if !l.gone[kid] && !yield(kid) {
						return
					}
				}
			}
		}
	}
}

// All yields the rows so that each comes after the one it hangs on.
func (x *Index) All() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for _, r := range x.root.rows {
			if !x.root.gone[r] && !r.walk(yield) {
				return
			}
		}
	}
}

// All yields r and all that hangs on it.
func (r *Row) All() iter.Seq[*Row] { return func(yield func(*Row) bool) { r.walk(yield) } }

func (r *Row) walk(yield func(*Row) bool) bool {
	if !yield(r) {
		return false
	}
	for kid := range r.each() {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}

// Sort ends a change in bulk.
func (x *Index) Sort() {
	slices.SortStableFunc(x.origins, func(a, b *Row) int { return a.Origin.At.Compare(b.Origin.At) })
	for _, l := range x.unsorted {
		l.rows = slices.DeleteFunc(l.rows, func(r *Row) bool { return l.gone[r] })
		slices.SortFunc(l.rows, func(a, b *Row) int { return compare(a, Place{b.Created, b.ID}) })
		l.unsorted, l.gone = false, nil
	}
	x.unsorted = nil
}

// Forget lets go of origins from before a time.
func (x *Index) Forget(before time.Time) {
	for len(x.origins) > 0 && x.origins[0].Origin.At.Before(before) {
		r := x.origins[0]
		if x.rows[r.Origin.Name] == r {
			delete(x.rows, r.Origin.Name)
		}
		r.Origin = nil
		x.origins = x.origins[1:]
	}
}

// Page appends to raws what up to limit rows say, from the newest to the oldest
// and from behind a place on, where that is not nil. They hang on parent, are of
// this kind and, unless it is "", state. Next is where the list goes on behind
// them, nil at its end.
func (x *Index) Page(parent, kind, state string, after *Place, limit int, raws []string) (page []string, next *Place) {
	r := x.rows[parent]
	if r == nil || r.kids[shelf{kind, state}] == nil {
		return raws, nil
	}
	l := r.kids[shelf{kind, state}]
	end := len(l.rows)
	if after != nil {
		end = l.before(*after)
	}
	start := max(0, end-limit)
	for _, r := range slices.Backward(l.rows[start:end]) {
		raws = append(raws, r.Raw)
	}
	if start > 0 {
		next = &Place{l.rows[start].Created, l.rows[start].ID}
	}
	return raws, next
}
