package jsondb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"example.com/events/internal/commitlog"
)

// Open opens or creates a data file and locks it until [DB.Close]. It rewrites a file that has an older
// format, deletes or old versions. If the error wraps [ErrLocked], [ErrDamaged] or [ErrFormat], the file is
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
	switch {
	case l.olderFormat:
		err = db.rewrite(&db.view, "it had an older format")
		if err != nil {
			log.Close()
			if errors.Is(err, syscall.ENOSPC) {
				err = fmt.Errorf("%w: the file has an older format, so free as much space as it takes", err)
			}
			return nil, err
		}
	case l.stale:
		db.rewriteStale("it held deletes or old versions")
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

// loader loads records into an empty database.
type loader struct {
	db          *DB
	tables      []tableLoader
	now         time.Time
	format      string // current format
	olderFormat bool   // the file has an older one
	stale       bool   // the file has deletes or old versions; until finish, so may the lists
}

// tableLoader loads the rows of a table. They share blocks of memory, which speeds up loading. A block stays
// in memory as long as one of its rows, so rows of other tables, which may stay longer, aren't in it.
type tableLoader struct {
	*Table
	texts strings.Builder
	rows  []Row
}

func newLoader(path string, o Options) *loader {
	db := New(o)
	info, err := os.Stat(path)
	if err == nil { // preallocate the index
		db.index = make(map[string]*Row, min(info.Size()/bytesPerKey, maxKeys))
	}
	l := &loader{db: db, now: db.now(), format: o.Formats[len(o.Formats)-1]}
	for i := range db.tables {
		l.tables = append(l.tables, tableLoader{Table: &db.tables[i]})
	}
	return l
}

// replay loads one commit.
func (l *loader) replay(c commitlog.Commit) error {
	l.olderFormat = c.Format != l.format
	for rest := c.Records; len(rest) > 0; {
		var record []byte
		record, rest = cutRecord(rest)
		name, text := splitRecord(record)
		var err error
		if string(name) == "delete" {
			err = l.delete(text)
		} else {
			err = l.put(name, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put loads a row in place of an earlier version. If the row isn't worth keeping, it only removes that.
func (l *loader) put(name, text []byte) error {
	table := l.table(name)
	if table == nil {
		return errRecord
	}
	if l.olderFormat {
		upgraded, err := table.Upgrade(string(text))
		if err != nil {
			return err
		}
		text = []byte(upgraded)
	}
	r := table.add(text)
	err := l.db.scan(r)
	if err != nil {
		return err
	}
	if r.Table != table.Table {
		return errRecord
	}
	if table.Keep != nil && !table.Keep(r, l.now) {
		l.remove(r.ID)
		table.removeLast()
		return nil
	}
	return l.store(r)
}

func (l *loader) table(name []byte) *tableLoader {
	for i := range l.tables {
		if l.tables[i].Name == string(name) {
			return &l.tables[i]
		}
	}
	return nil
}

// add adds a row with a copy of its text.
func (t *tableLoader) add(text []byte) *Row {
	start := t.texts.Len()
	if start+len(text) > t.texts.Cap() {
		t.texts.Reset()
		t.texts.Grow(max(textBlock, len(text)))
		start = 0
	}
	t.texts.Write(text)
	if len(t.rows) == cap(t.rows) {
		t.rows = make([]Row, 0, rowBlock)
	}
	t.rows = append(t.rows, Row{JSON: t.texts.String()[start:]})
	return &t.rows[len(t.rows)-1]
}

// removeLast removes the row that was added last. Its text stays in memory only as long as the block has
// rows.
func (t *tableLoader) removeLast() { t.rows = t.rows[:len(t.rows)-1] }

// store makes a row the current version.
func (l *loader) store(r *Row) error {
	old := l.db.index[r.ID]
	err := l.db.view.checkConflict(old, r)
	if err != nil {
		return err
	}
	l.db.view.link(old, r)
	l.db.reindex(old, r)
	if old == nil {
		key := r.listKey()
		l.db.lists[key] = append(l.db.lists[key], r)
	} else {
		l.stale = true // the list has the old version
	}
	return nil
}

// remove removes the row with an ID, everything below it, and the rows that these own. It does nothing if
// there is no such row.
func (l *loader) remove(id string) {
	r := l.db.index[id]
	if r == nil {
		return
	}
	l.stale = true
	l.db.reindex(r, nil)
	if r.owned != nil {
		l.remove(r.owned.ID)
	}
	for i := range l.db.tables {
		table := &l.db.tables[i]
		if table.Parent != r.Table.Prefix {
			continue
		}
		key := listKey{parent: r.ID, table: table}
		for _, child := range l.db.lists[key] {
			current := l.db.index[child.ID]
			if current != nil && current.Parent == r.ID { // it may have been put again below another
				l.remove(current.ID)
			}
		}
		delete(l.db.lists, key)
	}
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
		l.remove(id)
	}
	l.stale = true // even if there was no such row
	return nil
}

// finish puts the lists in order, after the last commit.
func (l *loader) finish() {
	db := l.db
	byStatus := map[listKey][]*Row{}
	for key, rows := range db.lists {
		if l.stale {
			rows = db.view.appendCurrent(nil, key, rows)
		}
		rows = sortRows(rows)
		db.setList(key, rows)
		db.count[key.table] += len(rows)
		statuses := map[string][]*Row{}
		for _, r := range rows {
			db.live += r.lineSize()
			if r.Status != "" {
				statuses[r.Status] = append(statuses[r.Status], r)
			}
		}
		for status, rows := range statuses {
			byStatus[listKey{key.parent, key.table, status}] = rows
		}
	}
	maps.Copy(db.lists, byStatus)
}
