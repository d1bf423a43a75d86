package rows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/recordfile"
)

// Salvaged says what [Salvage] found in a damaged file.
type Salvaged struct {
	recordfile.Salvaged
	Forged  []int     // lines with a record that is not in the form that this program writes
	LeftOut []LeftOut // rows that verify and cannot be applied
	Deleted []string  // ids of rows whose delete was put in: see Salvage
}

// LeftOut is a row that Salvage left out, because what it needs is lost.
type LeftOut struct {
	ID     string
	Reason string
}

// Salvage calls each with the records of a damaged file that verify, as a dump has them, and
// changes nothing. They can be applied one after the other: a record whose parent comes only
// later in the file, because a line with the parent is lost, stands behind it. A row whose
// parent never comes is left out, and so is one whose second name another row has, because the
// line that deleted or renamed that one is lost. A row that comes again with another parent or
// created_at, which never change, was deleted before: if the line with that is lost, a delete is put
// in its place. All other records keep their order.
func Salvage(path string, o Options, each func(record string) error) (Salvaged, error) {
	s := salvager{
		db:      New(o),
		each:    each,
		printed: map[string]*printedRow{},
		names:   map[string]string{},
		waiting: map[string][]waitingRow{},
	}
	var found Salvaged
	fromFile, err := recordfile.Salvage(path, o.forFile(), func(line recordfile.Line) error {
		missing := o.missing(line.Format)
		for line.Records != "" {
			var record string
			record, line.Records = cutRecord(line.Records)
			r := s.db.parse(record, missing)
			if r == nil || !s.db.hasKindOfParent(r) {
				if !slices.Contains(found.Forged, line.Number) {
					found.Forged = append(found.Forged, line.Number)
				}
				continue
			}
			kind, text, _ := split(record)
			err := s.add(r, `{"`+kind+`":`+text+"}")
			if err != nil {
				return err
			}
		}
		return nil
	})
	found.Salvaged = fromFile
	found.LeftOut = s.leftOut()
	found.Deleted = s.deleted
	return found, err
}

// hasKindOfParent reports whether the parent of a row, if it has one, is of the right kind.
func (db *DB) hasKindOfParent(r *Row) bool {
	return r.JSON == "" || r.Kind.Parent == "" || strings.HasPrefix(r.Parent, r.Kind.Parent+"_")
}

// salvager brings records into an order in which they can be applied.
type salvager struct {
	db      *DB // for its kinds; it stays empty
	each    func(record string) error
	printed map[string]*printedRow  // by their id, the rows that were printed and not deleted since
	names   map[string]string       // the id of the row that has a second name
	waiting map[string][]waitingRow // by the id of the parent, rows whose parent has not come
	clashes []LeftOut               // rows whose second name is taken
	deleted []string                // ids of rows whose delete was put in
}

// printedRow is what later records need to know of a row.
type printedRow struct {
	name     string
	parent   string
	created  time.Time
	children []string // ids of those that were printed with this parent
}

// waitingRow is a row whose parent has not come.
type waitingRow struct {
	*Row
	record string
}

// add takes the next record of the file.
func (s *salvager) add(r *Row, record string) error {
	if r.JSON == "" {
		s.drop(r.ID)
		for parent, rows := range s.waiting {
			s.waiting[parent] = slices.DeleteFunc(rows, func(w waitingRow) bool { return w.ID == r.ID })
		}
		return s.each(record)
	}
	if r.Parent != "" && s.printed[r.Parent] == nil {
		s.waiting[r.Parent] = append(s.waiting[r.Parent], waitingRow{r, record})
		return nil
	}
	return s.print(r, record)
}

// print prints a row and, behind it, those that have waited for it.
func (s *salvager) print(r *Row, record string) error {
	before := s.printed[r.ID]
	if before != nil && (before.parent != r.Parent || !before.created.Equal(r.Created)) {
		s.drop(r.ID)
		s.deleted = append(s.deleted, r.ID)
		err := s.each(string(s.db.appendChange(nil, &Row{Place: Place{ID: r.ID}, Kind: r.Kind})))
		if err != nil {
			return err
		}
	}
	other, taken := s.names[r.Name]
	if taken && other != r.ID {
		s.clashes = append(s.clashes, LeftOut{r.ID, "has a name that " + other + " has"})
		return nil
	}
	row := s.printed[r.ID]
	if row == nil {
		row = &printedRow{parent: r.Parent, created: r.Created}
		s.printed[r.ID] = row
		parent := s.printed[r.Parent]
		if parent != nil {
			parent.children = append(parent.children, r.ID)
		}
	}
	delete(s.names, row.name)
	row.name = r.Name
	s.names[r.Name] = r.ID
	err := s.each(record)
	if err != nil {
		return err
	}
	waiting := s.waiting[r.ID]
	delete(s.waiting, r.ID)
	for _, w := range waiting {
		err := s.print(w.Row, w.record)
		if err != nil {
			return err
		}
	}
	return nil
}

// drop forgets a row that was deleted, and all that belong to it, printed or waiting.
func (s *salvager) drop(id string) {
	row := s.printed[id]
	if row != nil {
		delete(s.names, row.name)
		delete(s.printed, id)
		for _, child := range row.children {
			row := s.printed[child]
			if row != nil && row.parent == id { // else it was deleted, and came again with another parent
				s.drop(child)
			}
		}
	}
	waiting := s.waiting[id]
	delete(s.waiting, id)
	for _, w := range waiting {
		s.drop(w.ID)
	}
}

// leftOut is the rows that were left out, each once.
func (s *salvager) leftOut() []LeftOut {
	var all []LeftOut
	for _, clash := range s.clashes {
		if s.printed[clash.ID] == nil { // else it came again with another name
			all = append(all, clash)
		}
	}
	for parent, rows := range s.waiting {
		for _, w := range rows {
			all = append(all, LeftOut{w.ID, fmt.Sprintf("belongs to %.80s, which is lost", parent)})
		}
	}
	slices.SortFunc(all, func(a, b LeftOut) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b LeftOut) bool { return a.ID == b.ID })
}
