package index

import "maps"

// Tx is what a change stages on top of an index, or of what another one stages.
type Tx struct {
	Steps []Step // what to do to the index, in order

	index *Index
	below *Tx
	names map[string]*Row     // by id, alias and origin; nil: gone
	added map[string][]string // ids of new rows, by parent
}

// Step is a row as it is to be, or the id of one that is to go.
type Step struct {
	Row  *Row
	Gone string
}

// Begin returns a change of nothing yet.
func (x *Index) Begin() *Tx {
	return &Tx{index: x, names: map[string]*Row{}, added: map[string][]string{}}
}

// Begin returns a change of nothing yet on top of t.
func (t *Tx) Begin() *Tx {
	top := t.index.Begin()
	top.below = t
	return top
}

// Take adds what top, which began on t, stages.
func (t *Tx) Take(top *Tx) {
	maps.Copy(t.names, top.names)
	for parent, ids := range top.added {
		t.added[parent] = append(t.added[parent], ids...)
	}
	t.Steps = append(t.Steps, top.Steps...)
}

// Find returns the row that has this name once t is done, or nil.
func (t *Tx) Find(name string) *Row {
	for v := t; v != nil; v = v.below {
		if r, staged := v.names[name]; staged {
			return r
		}
	}
	return t.index.rows[name]
}

// Get returns the row with this id, if it is of this kind, or nil.
func (t *Tx) Get(kind, id string) *Row {
	if r := t.Find(id); r != nil && r.ID == id && r.Kind() == kind {
		return r
	}
	return nil
}

// Put stages r, in the place of old where that is not nil.
func (t *Tx) Put(r, old *Row) {
	if old != nil {
		r.Origin = old.Origin
		if old.Alias != "" {
			t.names[old.Alias] = nil
		}
	} else {
		t.added[r.Parent] = append(t.added[r.Parent], r.ID)
	}
	t.names[r.ID] = r
	if r.Alias != "" {
		t.names[r.Alias] = r
	}
	if r.Origin != nil {
		t.names[r.Origin.Name] = r
	}
	t.Steps = append(t.Steps, Step{Row: r})
}

// Remove stages that the row with this id goes, with all that hangs on it.
func (t *Tx) Remove(id string) {
	if t.Find(id) != nil {
		t.drop(id)
		t.Steps = append(t.Steps, Step{Gone: id})
	}
}

func (t *Tx) drop(id string) {
	r := t.Find(id)
	if r == nil {
		return
	}
	t.names[id] = nil
	if r.Alias != "" {
		t.names[r.Alias] = nil
	}
	if stored := t.index.rows[id]; stored != nil {
		for kid := range stored.each() {
			t.dropKid(kid.ID, id)
		}
	}
	for v := t; v != nil; v = v.below {
		for _, kid := range v.added[id] {
			t.dropKid(kid, id)
		}
	}
}

// dropKid drops a row that hung on parent, unless it was made again elsewhere.
func (t *Tx) dropKid(id, parent string) {
	r := t.Find(id)
	if r == nil || r.Parent != parent {
		return
	}
	if r.Origin != nil {
		t.names[r.Origin.Name] = nil
	}
	t.drop(id)
}

// Do makes steps on the index.
func (x *Index) Do(steps []Step) {
	bulk := len(steps) > 256
	for _, step := range steps {
		if step.Row != nil {
			x.Put(step.Row, bulk)
		} else {
			x.Remove(step.Gone, bulk)
		}
	}
	if bulk {
		x.Sort()
	}
}
