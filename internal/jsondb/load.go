package jsondb

import (
	"encoding/json"
	"maps"
	"os"
	"strings"

	"example.com/events/internal/commitlog"
)

// Open opens or creates a data file and locks it until [DB.Close]. It rewrites a file that has an older
// format or stale records. If the error wraps [ErrLocked], [ErrDamaged] or [ErrFormat], the file is
// unchanged.
func Open(path string, o Options) (*DB, error) {
	l := newLoader(path, o)
	db := l.db
	log, err := commitlog.Open(path, o.logOptions(), l.replay)
	if err != nil {
		return nil, err
	}
	db.log = log
	l.finish()
	db.rewriteAt = db.nextRewrite()
	switch {
	case l.olderFormat:
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
	Rows map[string]int // number of rows by table name
}

// Check reads a data file like [Open]. It takes no lock and changes nothing. If a server is writing the file,
// Check reads whole commits.
func Check(path string, o Options) (Report, error) {
	l := newLoader(path, o)
	report, err := commitlog.Check(path, o.logOptions(), l.replay)
	l.finish()
	return Report{report, l.db.Stats().Rows}, err
}

func (o Options) logOptions() commitlog.Options {
	return commitlog.Options{Formats: o.Formats, Logger: o.Logger}
}

const (
	bytesPerKey = 300     // estimated file size per index entry; an event has two, its ID and its slug
	maxKeys     = 1 << 23 // index entries to preallocate at most

	textBlock = 64 << 10 // bytes
	rowBlock  = 128      // rows
)

// loader loads records into an empty database, as pending changes.
//
// Rows share blocks of memory, which speeds up loading. A block stays in memory as long as one of its rows.
type loader struct {
	db          *DB
	tx          *Tx
	format      string // current format
	olderFormat bool   // the file has an older one
	stale       bool   // the file has stale records, so pending lists may hold old versions
	texts       strings.Builder
	rows        []Row
}

func newLoader(path string, o Options) *loader {
	db := New(o)
	tx := db.begin()
	info, err := os.Stat(path)
	if err == nil { // preallocate the index
		tx.pending.index = make(map[string]*Row, min(info.Size()/bytesPerKey, maxKeys))
	}
	return &loader{db: db, tx: tx, format: o.Formats[len(o.Formats)-1]}
}

// replay loads one commit.
func (l *loader) replay(c commitlog.Commit) error {
	l.olderFormat = c.Format != l.format
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
	if l.olderFormat {
		var err error
		row, err = l.upgrade(string(name), row)
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

// keepText copies a text into the current block.
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

// delete loads the content {"guest":"gst_9"} of a delete record.
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

// upgrade converts a row of an older format to the current one.
func (l *loader) upgrade(name, json string) (string, error) {
	for i := range l.db.tables {
		if l.db.tables[i].Name == name {
			return l.db.tables[i].Upgrade(json)
		}
	}
	return "", errRecord
}

// finish moves the loaded rows into the database.
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
