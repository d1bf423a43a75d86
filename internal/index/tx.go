package index

// Tx is what is staged on top of an index. It can be taken back to what it was
// after any of its steps.
type Tx struct {
	Steps []Step // what to do to the index, in order

	index *Index
	names map[string]*Row     // by id, alias and origin; nil: gone
	added map[string][]string // ids of rows that were new, by parent
	undo  []change            // of names, in order
}

// Step is a row as it is to be, or the id of one that is to go.
type Step struct {
	Row  *Row
	Gone string
}

// change is what a name stood for before a step.
type change struct {
	step   int
	name   string
	row    *Row
	staged bool
}

// Begin returns what nothing is staged in yet.
func (x *Index) Begin() *Tx {
	return &Tx{index: x, names: map[string]*Row{}, added: map[string][]string{}}
}

// Back takes back all that was staged after the first steps.
func (t *Tx) Back(steps int) {
	for last := len(t.undo) - 1; last >= 0 && t.undo[last].step >= steps; last-- {
		c := t.undo[last]
		if t.undo = t.undo[:last]; c.staged {
			t.names[c.name] = c.row
		} else {
			delete(t.names, c.name)
		}
	}
	t.Steps = t.Steps[:steps] // who hangs on whom is looked up: added may name too many
}

func (t *Tx) set(name string, r *Row) {
	before, staged := t.names[name]
	t.undo = append(t.undo, change{len(t.Steps), name, before, staged})
	t.names[name] = r
}

// Find returns the row that has this name once t is done, or nil.
func (t *Tx) Find(name string) *Row {
	if r, staged := t.names[name]; staged {
		return r
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
			t.set(old.Alias, nil)
		}
	} else {
		t.added[r.Parent] = append(t.added[r.Parent], r.ID)
	}
	t.set(r.ID, r)
	if r.Alias != "" {
		t.set(r.Alias, r)
	}
	if r.Origin != nil {
		t.set(r.Origin.Name, r)
	}
	t.Steps = append(t.Steps, Step{Row: r})
}

// Remove stages that the row with this id goes, with all that hangs on it.
func (t *Tx) Remove(id string) {
	if r := t.Find(id); r != nil {
		t.drop(r)
		t.Steps = append(t.Steps, Step{Gone: id})
	}
}

func (t *Tx) drop(r *Row) {
	t.set(r.ID, nil)
	if r.Alias != "" {
		t.set(r.Alias, nil)
	}
	if stored := t.index.rows[r.ID]; stored != nil {
		for kid := range stored.each() {
			t.dropKid(kid.ID, r.ID)
		}
	}
	for _, kid := range t.added[r.ID] {
		t.dropKid(kid, r.ID)
	}
}

// dropKid drops a row that hung on parent, unless it was made again elsewhere.
func (t *Tx) dropKid(id, parent string) {
	r := t.Find(id)
	if r == nil || r.Parent != parent {
		return
	}
	if r.Origin != nil {
		t.set(r.Origin.Name, nil)
	}
	t.drop(r)
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
