package rows

import (
	"errors"
	"fmt"
	"slices"

	"example.com/events/internal/recordfile"
)

// Format is a format of the data file: its name in the header, such as "events/2", and
// what its rows have that those of the format before it lack.
type Format struct {
	Name string

	// Added has the members that the format added, by the name of a kind:
	//
	//	map[string]string{"event": `"subtitle":null,"price":0`}
	//
	// They stand at the end of a row. The values are those that a row gets which was
	// written without these members.
	Added map[string]string
}

// missing is what the rows in a file of a format lack: by the name of a kind, the members
// that later formats added, each after a comma.
func (o Options) missing(format string) map[string]string {
	missing := map[string]string{}
	for _, f := range slices.Backward(o.Formats) {
		if f.Name == format {
			break
		}
		for kind, members := range f.Added {
			missing[kind] = "," + members + missing[kind]
		}
	}
	return missing
}

// Open returns the database that a data file holds, or an empty one if there is no
// file: the first change makes it. The file is locked until [DB.Close]. A file of an
// older format is written anew in the current one. A file that is in use, damaged, of
// another program or of a newer format is refused and left as it is: the error is
// [ErrLocked], [ErrDamaged] or [ErrFormat] and says what to do.
func Open(path string, o Options) (*DB, error) {
	l := loader{db: New(o)}
	db := l.db
	file, err := recordfile.Open(path, o.forFile(), l.line)
	l.finish()
	if err == nil {
		db.file = file
		db.path = file.Path()
		db.queue = make(chan *call, maxQueue)
		err = db.settle(l.deletes)
		db.bytes.Store(file.Size())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return db, nil
}

func (o Options) forFile() recordfile.Options {
	file := recordfile.Options{Logger: o.Logger}
	for _, f := range o.Formats {
		file.Formats = append(file.Formats, f.Name)
	}
	return file
}

// settle makes durable what was read, before anything of it is shown. It writes a new
// file in four cases: the file has an older format; something in it was deleted; more
// than half of it is outdated; or more than half of it was appended since the last
// rewrite, because recordfile's Settle would write that part again anyway. If the file cannot
// be written, the database can only be read, and Err returns why. Settle refuses a file of
// an older format, so nothing is ever appended to one.
func (db *DB) settle(deletes bool) error {
	f := db.file
	half := f.Size() / 2
	why := ""
	switch {
	case f.IsOld():
		why = "it had an older format"
	case deletes:
		why = "it held what was deleted"
	case db.outdated() > half:
		why = "most of it was outdated"
	case f.BytesSinceRewrite() > half:
		why = "most of it was added since it was last written anew"
	}
	if why != "" {
		db.dropOutdated(why)
	}
	err := f.Settle() // does nothing after a rewrite
	if errors.Is(err, recordfile.ErrReadOnly) {
		return nil // Err returns why
	}
	return err
}

// Growing the map of names takes a third of the time of a startup with a million rows.
const (
	bytesPerName = 300     // of a data file, about: an event has two names
	maxNames     = 1 << 23 // as the size of a file may be false
)

// loader puts the records of a file into a database.
type loader struct {
	db      *DB
	missing map[string]string // see Options.missing; nil before the first line
	deletes bool              // a record deletes something
}

// line takes one line of the file. The error is why no program of ours can have written it.
func (l *loader) line(line recordfile.Line) error {
	if l.missing == nil {
		l.missing = l.db.missing(line.Format)
		l.db.names = make(map[string]*Row, min(line.Size/bytesPerName, maxNames))
		l.db.unsorted = map[*childList]bool{} // in bulk, until finish
	}
	for line.Records != "" {
		var record string
		record, line.Records = cutRecord(line.Records)
		r := l.db.parse(record, l.missing)
		if r == nil {
			return errForm
		}
		l.deletes = l.deletes || r.JSON == ""
		err := l.insert(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// finish ends the load.
func (l *loader) finish() {
	l.db.endBulk()
	l.db.expireKeys()
}

// insert makes a change, or returns why no program of ours can have written it.
func (l *loader) insert(r *Row) error {
	current := l.db.names[r.ID]
	named := l.db.names[r.Name]
	reason := ""
	switch {
	case r.JSON == "": // nothing is wrong with deleting what is not there
	case l.db.parentOf(r) == nil:
		reason = fmt.Sprintf("belongs to %.80q, which is not in the file", r.Parent)
	case named != nil && named.ID != r.ID, current != nil && current.ID != r.ID:
		reason = "has a name that is taken"
	case current != nil && (current.Parent != r.Parent || !current.Created.Equal(r.Created)):
		reason = "has another parent or created_at than before"
	}
	if reason != "" {
		return fmt.Errorf("%.80s %s", r.ID, reason)
	}
	l.db.apply(current, r)
	return nil
}

// Check reads a data file by the rules of [Open] and changes nothing. It reports what
// it found, and how many rows there are of each kind, by its name.
func Check(path string, o Options) (recordfile.Report, map[string]int, error) {
	l := loader{db: New(o)}
	report, err := recordfile.Read(path, o.forFile(), l.line)
	l.finish()
	return report, l.db.Stats().Rows, err
}

// IsDataFile reports whether a text begins as a data file does.
func IsDataFile(text []byte) bool { return recordfile.Is(text) }
