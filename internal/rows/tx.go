package rows

import (
	"maps"

	"example.com/events/internal/strict"
)

// Tx is an update: the current state with pending changes on top of it, which are
// made but not published yet. These are its own and those of the updates before it in
// the same commit. It is for one goroutine, and valid until the function that it was
// given to returns.
type Tx struct {
	db      *DB                 // that has the current state
	before  *Tx                 // the changes of the updates before it, or nil
	changes []*Row              // its own, in their order: a row without a text is deleted
	names   map[string]*Row     // what each changed name leads to now; nil: to no row any more
	created map[string]*Row     // the rows that it creates with an idempotency key, by keyName
	added   map[string][]string // ids of the rows in its changes, by their parents' ids
	indexed int                 // how many changes are in added: most updates never need it
}

// newTx returns an update of the current state with the changes of the updates before it in the
// same commit, which may be nil.
func (db *DB) newTx(before *Tx) *Tx {
	return &Tx{db: db, before: before, names: map[string]*Row{}, created: map[string]*Row{}}
}

// merge adds the changes of the next update.
func (tx *Tx) merge(next *Tx) {
	tx.changes = append(tx.changes, next.changes...)
	maps.Copy(tx.names, next.names)
	maps.Copy(tx.created, next.created)
}

// Find is that of [Finder].
func (tx *Tx) Find(name string) *Row {
	for t := tx; t != nil; t = t.before {
		r, changed := t.names[name]
		if changed {
			return r
		}
	}
	return tx.db.names[name]
}

// Get is that of [Finder].
func (tx *Tx) Get(prefix, id string) *Row { return tx.Find(id).withID(prefix, id) }

// FindIdempotent returns the row that was created with an idempotency key under a
// parent, or nil, also if the key has expired. A key may lead to an old version of the row, so
// the row is looked up again by its id. All versions share the key: a row with another one
// was created after that row was deleted.
func (tx *Tx) FindIdempotent(parent, key string) *Row {
	created := tx.createdWith(keyName(parent, key))
	if created == nil || !tx.db.isValid(created.Idempotency) {
		return nil
	}
	r := tx.Find(created.ID)
	if r == nil || r.Idempotency != created.Idempotency {
		return nil
	}
	return r
}

func (tx *Tx) createdWith(keyName string) *Row {
	for t := tx; t != nil; t = t.before {
		r := t.created[keyName]
		if r != nil {
			return r
		}
	}
	return tx.db.idempotent[keyName]
}

// Changes is how many changes the update has made so far.
func (tx *Tx) Changes() int { return len(tx.changes) }

// Put stores the row that a text stands for: replacing old, or as a new row if old is nil. It
// copies the text. It returns the row as it is now, which is old if the text is the same. A new row is
// created with the key, which may be nil, too. The parent must be in the database, and the
// names must not be another row's: the caller has to check that. Put panics if the text has
// not the members of a kind.
func (tx *Tx) Put(old *Row, text []byte, key *IdempotencyKey) *Row {
	if old != nil && old.JSON == string(text) {
		return old
	}
	r := tx.db.readRow(string(text))
	if r == nil {
		panic(errForm)
	}
	if old == nil && key != nil {
		key.bytes = len(idempotencyMember) + len(strict.Encode(key))
		r.Idempotency = key
	}
	switch {
	case old != nil:
		r.Idempotency = old.Idempotency
		tx.names[old.Name] = nil
	case key != nil:
		tx.created[keyName(r.Parent, key.Key)] = r
	}
	tx.names[r.ID] = r
	tx.names[r.Name] = r
	tx.changes = append(tx.changes, r)
	return r
}

// Delete deletes the row with an id, if there is one, and all that belongs to it.
func (tx *Tx) Delete(id string) {
	r := tx.Find(id) // and it has the id, as no second name is equal to one
	if r == nil {
		return
	}
	tx.unbind(r)
	tx.changes = append(tx.changes, &Row{Place: r.Place, Kind: r.Kind})
}

// unbind makes the names of a row, and of all that belongs to it, lead to no row.
func (tx *Tx) unbind(r *Row) {
	tx.names[r.ID] = nil
	tx.names[r.Name] = nil
	for _, child := range tx.Children(r.ID) {
		tx.unbind(child)
	}
	delete(tx.added, r.ID) // else it keeps the ids of deleted children
}

// Children returns the rows that belong to the row with an id, in no order: for ""
// the rows without a parent. One that was changed in this commit may come twice.
func (tx *Tx) Children(id string) (children []*Row) {
	add := func(childID string) {
		child := tx.Find(childID)
		if child != nil && child.Parent == id {
			children = append(children, child)
		}
	}
	parent := tx.db.names[id]
	if id == "" {
		parent = &tx.db.root
	}
	if parent != nil {
		for child := range tx.db.allChildren(parent) {
			add(child.ID)
		}
	}
	for t := tx; t != nil; t = t.before {
		if t.added == nil {
			t.added = map[string][]string{}
		}
		for _, c := range t.changes[t.indexed:] {
			t.added[c.Parent] = append(t.added[c.Parent], c.ID)
		}
		t.indexed = len(t.changes)
		for _, childID := range t.added[id] {
			add(childID)
		}
	}
	return children
}
