package rows

import (
	"errors"
	"fmt"
	"sync"

	"example.com/events/internal/recordfile"
)

const (
	fileFormat   = "events/1"
	bytesPerName = 300     // of a data file, about: an event has two names
	maxNames     = 1 << 23 // that room is made for at once, as the size of a file may be false
	batchSize    = 512     // changes that are handed over at once
	maxBatches   = 8       // that are filled, wait or are inserted at a time
)

// Open returns the database that a data file holds, or an empty one if there is no
// file: the first change makes it. The file is locked until [DB.Close]. A file that
// is in use, damaged, of another program or of a newer version is refused and left as
// it is: the error is [ErrLocked], [ErrDamaged] or [ErrFormat] and says what to do.
func Open(path string, o Options) (*DB, error) {
	l := newLoader(o)
	db := l.db
	file, err := recordfile.Open(path, l.options(), l.line)
	if err = l.finish(path, err); err == nil {
		db.file, db.path = file, file.Path()
		err = db.settle(l.deletes)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return db, nil
}

func (l *loader) options() recordfile.Options {
	return recordfile.Options{Formats: []string{fileFormat},
		Logf: func(format string, args ...any) { l.db.Logger.Warn(fmt.Sprintf(format, args...)) }}
}

// settle makes durable what was read, before anything of it is shown. It writes a new
// file if more than half of the file is outdated or something in it was deleted, or if
// more than half of it was appended since the last rewrite: writing that again, as
// recordfile's Settle does, would cost as much. If the file cannot be written, the
// database can only be read, and Err returns why.
func (db *DB) settle(deletes bool) error {
	f := db.file
	if deletes || db.outdated() > f.Size()/2 || f.BytesSinceRewrite() > f.Size()/2 {
		err := db.rewrite(nil)
		if err == nil {
			return nil
		}
		db.Logger.Warn("the data file was not rewritten", "error", err)
	}
	err := f.Settle()
	if errors.Is(err, recordfile.ErrReadOnly) {
		db.Logger.Error("serving reads only", "error", err)
		return nil
	}
	return err
}

// loader puts the records of a file into a database. The work is shared: package
// recordfile reads the file in one goroutine and verifies what was read in another, one
// after the other for each chunk. The latter calls line, which parses records into
// batches. A third goroutine, insert, puts the batches into the database.
type loader struct {
	db      *DB
	batch   []loaded // what line has parsed and not handed over yet; nil before the first line
	deletes bool     // a record deletes something

	full, free chan []loaded // the batches to be inserted, and those that line can fill again

	inserting sync.WaitGroup          // the goroutine that inserts
	damage    *recordfile.DamageError // a record that could not be inserted, or nil
}

// loaded is a change and the line that it stands in.
type loaded struct {
	change
	number int
	offset int64
}

func newLoader(o Options) *loader {
	l := &loader{db: New(o), full: make(chan []loaded, maxBatches)}
	l.free = make(chan []loaded, maxBatches+1) // one more for the nil of a finish without lines
	for range maxBatches {
		l.free <- make([]loaded, 0, batchSize)
	}
	l.inserting.Go(l.insert)
	return l
}

// line takes one line of the file.
func (l *loader) line(line recordfile.Line) error {
	if l.batch == nil { // insert has no batch yet, so it does not use the names
		l.db.names = make(map[string]*Row, min(line.Size/bytesPerName, maxNames))
		l.batch = <-l.free
	}
	for text := range records(line.Records) {
		c, err := l.db.parse(text)
		if err != nil {
			return err
		}
		l.deletes = l.deletes || c.delete
		if l.batch = append(l.batch, loaded{c, line.Number, line.Offset}); len(l.batch) == batchSize {
			l.full <- l.batch
			l.batch = <-l.free
		}
	}
	return nil
}

// finish waits until all is inserted. It returns the error of a record that could not
// be inserted or, if there is none, that of reading the file: reading had ended there,
// so every record that was to be inserted comes before it.
func (l *loader) finish(path string, err error) error {
	l.full <- l.batch
	close(l.full)
	l.inserting.Wait()
	l.db.endBulk()
	if l.damage != nil {
		l.damage.File = path
		return l.damage
	}
	return err
}

// insert inserts batches until there are no more, but nothing after a record that could
// not be inserted. The file is read to its end all the same.
func (l *loader) insert() {
	db := l.db
	db.bulk = true // until finish
	for batch := range l.full {
		for _, c := range batch {
			switch {
			case l.damage != nil:
			case c.delete:
				db.delete(c.row.ID)
			case db.parentOf(c.row) == nil:
				l.damage = &recordfile.DamageError{Line: c.number, Offset: c.offset, Reason: fmt.Sprintf(
					"%.80s belongs to %.80q, which is not in the file", c.row.ID, c.row.Parent)}
			case c.row.Name != "" && db.names[c.row.Name] != nil && db.names[c.row.Name].ID != c.row.ID:
				l.damage = &recordfile.DamageError{Line: c.number, Offset: c.offset,
					Reason: fmt.Sprintf("%.80s has a name that is taken", c.row.ID)}
			default:
				db.put(c.row)
			}
		}
		l.free <- batch[:0]
	}
}

// Check reads a data file by the rules of [Open] and changes nothing. It reports what
// it found, and how many rows there are of each kind, by its name.
func Check(path string, o Options) (recordfile.Report, map[string]int, error) {
	l := newLoader(o)
	report, err := recordfile.Read(path, l.options(), l.line)
	err = l.finish(path, err)
	count := map[string]int{}
	for r := range l.db.view.All(nil) {
		count[r.Kind.Name]++
	}
	return report, count, err
}

// Salvage calls each with every record of a damaged file that verifies, as a dump
// has it, and changes nothing. It returns the parts of the file that do not verify, and
// how many commits are missing at least.
func Salvage(path string, each func(record string) error) ([]recordfile.Span, int, error) {
	o := recordfile.Options{Formats: []string{fileFormat}}
	return recordfile.Salvage(path, o, func(line string) error {
		for text := range records(line) {
			kind, row, _ := split(text)
			if err := each(`{"` + kind + `":` + row + "}"); err != nil {
				return err
			}
		}
		return nil
	})
}

// IsDataFile reports whether a text begins as a data file does.
func IsDataFile(text []byte) bool { return recordfile.Is(text) }
