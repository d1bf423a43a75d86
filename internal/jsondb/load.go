package jsondb

import (
	"encoding/json"
	"maps"
	"os"
	"strings"

	"example.com/events/internal/commitlog"
)

// Open opens the database in a data file, which it creates if it is missing, and locks the file until
// [DB.Close]. A file of an older format is rewritten in the current one. If the file is in use, damaged, not
// a data file or of a newer format, Open returns [ErrLocked], [ErrDamaged] or [ErrFormat] and leaves it
// unchanged.
func Open(path string, o Options) (*DB, error) {
	l := newLoader(path, o)
	db := l.db
	log, err := commitlog.Open(path, o.forLog(), l.replay)
	if err != nil {
		return nil, err
	}
	db.log = log
	l.finish()
	db.rewriteAt = db.nextRewrite()
	switch {
	case l.old:
		err = db.rewrite(&db.view, "it had an older format")
		if err != nil {
			log.Close()
			return nil, err
		}
	case l.stale:
		db.rewriteAt = 0 // compact rewrites the file
	}
	db.compact()
	return db, nil
}

// A Report describes a data file.
type Report struct {
	commitlog.Report
	Rows map[string]int // by the name of the table
}

// Check reads a data file by the rules of [Open] and changes nothing. It takes no lock: if a server is
// writing, it reads whole commits.
func Check(path string, o Options) (Report, error) {
	l := newLoader(path, o)
	report, err := commitlog.Check(path, o.forLog(), l.replay)
	l.finish()
	return Report{report, l.db.Stats().Rows}, err
}

func (o Options) forLog() commitlog.Options {
	return commitlog.Options{Formats: o.Formats, Logger: o.Logger}
}

const (
	bytesPerKey = 300     // bytes of a data file per key of the index, about: an event has an ID and a slug
	maxKeys     = 1 << 23 // room for more isn't made in advance, whatever the size of the file

	textBlock = 64 << 10 // bytes
	rowBlock  = 128      // rows
)

// loader puts the records of a file into a database. It does so with a transaction without committed rows,
// whose pending changes become the state of the database.
//
// The rows of a file share blocks of memory. A block stays in memory as long as any of its rows does, but
// without blocks of texts startup takes 10 % more CPU time, and without blocks of rows another 18 %.
type loader struct {
	db     *DB
	tx     *Tx
	format string // current format
	old    bool   // the file has an older one
	stale  bool   // rows were deleted or replaced, so lists may have old versions
	texts  strings.Builder
	rows   []Row
}

func newLoader(path string, o Options) *loader {
	db := New(o)
	tx := db.begin()
	info, err := os.Stat(path)
	if err == nil { // growing the map would take another 20 % of the time
		tx.pending.index = make(map[string]*Row, min(info.Size()/bytesPerKey, maxKeys))
	}
	return &loader{db: db, tx: tx, format: o.Formats[len(o.Formats)-1]}
}

// replay applies one commit.
func (l *loader) replay(c commitlog.Commit) error {
	l.old = c.Format != l.format
	for rest := c.Records; len(rest) > 0; {
		var record []byte
		record, rest = cutRecord(rest)
		err := l.apply(record)
		if err != nil {
			return err
		}
	}
	for _, c := range l.tx.changes {
		l.stale = l.stale || c.old != nil
	}
	l.tx.changes = l.tx.changes[:0]
	return nil
}

func (l *loader) apply(record []byte) error {
	name, text, key := splitRecord(record)
	if string(name) == "delete" {
		return l.delete(text)
	}
	row := l.keepText(text)
	if l.old {
		var err error
		row, err = l.recode(string(name), row)
		if err != nil {
			return err
		}
	}
	r := l.newRow()
	r.JSON = row
	err := l.db.scan(r)
	if err != nil {
		return err
	}
	if r.Table.Name != string(name) {
		return errRecord
	}
	if len(key) > 0 {
		err = json.Unmarshal(key, &r.idempotency)
		if err != nil {
			return errRecord
		}
	}
	_, err = l.tx.put(r)
	return err
}

// keepText returns a copy of a text in the current block.
func (l *loader) keepText(text []byte) string {
	start := l.texts.Len()
	if start+len(text) > l.texts.Cap() {
		l.texts.Reset()
		l.texts.Grow(max(textBlock, len(text)))
		start = 0
	}
	l.texts.Write(text)
	return l.texts.String()[start:]
}

// newRow returns an empty row in the current block.
func (l *loader) newRow() *Row {
	if len(l.rows) == cap(l.rows) {
		l.rows = make([]Row, 0, rowBlock)
	}
	l.rows = append(l.rows, Row{})
	return &l.rows[len(l.rows)-1]
}

// delete applies the inside of a record that deletes: {"guest":"gst_9"}.
func (l *loader) delete(text []byte) error {
	var ids map[string]string
	err := json.Unmarshal(text, &ids)
	if err != nil {
		return errRecord
	}
	for name, id := range ids {
		t := l.db.table(id)
		if t == nil || t.Name != name {
			return errRecord
		}
		l.tx.Delete(id)
	}
	l.stale = true // even if there was no such row
	return nil
}

// recode returns the text of a row of an older format in the current one.
func (l *loader) recode(name, json string) (string, error) {
	for i := range l.db.tables {
		if l.db.tables[i].Name == name {
			return l.db.tables[i].Recode(json)
		}
	}
	return "", errRecord
}

// finish makes the records that were read the state of the database.
func (l *loader) finish() {
	db := l.db
	s := &l.tx.pending
	for key, rows := range s.lists {
		if l.stale {
			current := l.tx.appendCurrent(rows[:0], key, rows)
			clear(rows[len(current):])
			rows = current
		}
		rows = sortRows(rows)
		s.setList(key, rows)
		db.count[key.table] += len(rows)
	}
	if l.stale {
		maps.DeleteFunc(s.index, func(_ string, r *Row) bool { return r == nil })
		maps.DeleteFunc(s.requests, func(_ requestKey, r *Row) bool { return r == nil })
	}
	s.addStatusLists()
	db.state = *s
}

// addStatusLists adds the lists by status to the lists of all rows.
func (s *state) addStatusLists() {
	added := map[listKey][]*Row{}
	for key, all := range s.lists {
		var lists map[string][]*Row // by status
		for _, r := range all {
			if r.Status == "" {
				continue
			}
			if lists == nil {
				lists = map[string][]*Row{}
			}
			lists[r.Status] = append(lists[r.Status], r)
		}
		for status, rows := range lists {
			added[listKey{key.parent, key.table, status}] = rows
		}
	}
	maps.Copy(s.lists, added)
}
