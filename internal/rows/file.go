package rows

import (
	"errors"

	"example.com/events/internal/recordfile"
)

// The errors of a data file that say more than the variables that they wrap. None names a command
// or a flag: what a person can do is added by who prints them.
type (
	LockedError = recordfile.LockedError
	DamageError = recordfile.DamageError
	FormatError = recordfile.FormatError
	AccessError = recordfile.AccessError
	EndedError  = recordfile.EndedError
)

// ErrReplaced: something else than this process changed the data file while it was open.
var ErrReplaced = recordfile.ErrReplaced

// ErrLooking is the error of a change to a database that [OpenToRead] opened.
var ErrLooking = errors.New("the data file was opened to be read only")

// BelongsTo reports whether a path leads to a data file or to what stands beside it, such as
// its lock file or the socket of its server. Links are followed, and neither of the two need be
// there yet.
func BelongsTo(data, path string) bool { return recordfile.BelongsTo(data, path) }

// SocketPath is the path of the socket of the process that has a data file open.
func SocketPath(data string) string { return recordfile.SocketPath(data) }

// LockHolder is the process that the lock file of a data file names, and what that says it is:
// see [Options]. The id is 0 if there is no such process. It takes no lock, so it can be out of date.
func LockHolder(data string) (pid int, holder string) { return recordfile.LockHolder(data) }

// SetHolder changes what this process is to others that find the data file locked: see
// [Options]. It waits for the commit in progress. In memory it does nothing.
func (db *DB) SetHolder(text string) error {
	if db.file == nil {
		return nil
	}
	db.writer.Lock()
	defer db.writer.Unlock()
	return db.file.SetHolder(text)
}

// OpenToRead returns the database that a data file holds at the moment, whole commits alone. It
// takes no lock and changes nothing, not even the folder, so it works beside a server that writes.
// A change is refused with [ErrLooking]. The report says what was found.
func OpenToRead(path string, o Options) (*DB, recordfile.Report, error) {
	l := loader{db: New(o)}
	report, err := recordfile.Read(path, o.forFile(), l.line)
	l.finish()
	if err != nil {
		return nil, report, err
	}
	l.db.readOnly = true
	l.db.path = report.File
	l.db.bytes.Store(report.Size)
	return l.db, report, nil
}
