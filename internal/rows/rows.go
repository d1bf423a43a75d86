// Package rows is a small database of JSON objects: in memory, and durable if
// it has a data file (package recordfile). It has the shape of bbolt: [DB.View]
// reads one state, [DB.Batch] changes it, all or nothing.
//
//	db := rows.New(rows.Options{Kinds: kinds})
//	err := db.Batch(ctx, func(tx *rows.Tx) error {
//		tx.Put(nil, []byte(`{"id":"usr_1","name":"Ada","created_at":"2027-01-01T09:00:00Z"}`), nil)
//		return nil
//	})
//	db.View(func(v rows.View) { fmt.Println(v.Find("usr_1").JSON) })
//
// A row is the text of one JSON object, kept and returned as it was put, and
// beside it the little that the database must know: the row's id, its parent, its
// second name, its status and its time of creation. These are read out of the text, by
// a table of [Kind]s.
//
// A row is found by its id and by its second name: an alternate name of any form but
// that of an id, which a row may have and no two rows share. A row belongs to at most one
// other row, its parent, and is deleted with it. Each row has an ordered list of its
// children of each kind.
//
// The database does not know what else a row says or whether that is right: who puts a row
// has checked it. There are no queries but by name and by list.
//
// # How a change becomes durable
//
// Updates run one after the other, each on the state that the ones before it
// leave. What an update puts and deletes is kept aside as pending changes, which
// are simply dropped if the update fails. Updates that wait at the same time
// share one commit: their changes are written to the file as one line, synced
// once, and only then published to readers. So a reader sees nothing that
// is not on disk, and nothing ever has to be rolled back.
package rows

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/events/internal/recordfile"
)

// Kind describes the rows of one kind.
type Kind struct {
	Name   string // of the kind in a record: "event" in {"event":{…}}
	Prefix string // of its ids, before the underscore: "evt" in evt_1
	Parent string // prefix of the kind of row that these belong to; "" for none

	// Members are what the database reads of a row, each as it stands in the text, such as
	// `"id":`, and in that order, at most maxMembers. The first is the id. If the kind has a
	// parent, the second is the parent's id. One of the others is `"created_at":`.
	Members []string

	// Index makes the row's second name and its status from the values of Members: "" for
	// none. The value null is "", too. A second name is never equal to an id.
	Index func(v Values) (name, status string)
}

// Values are the values of the members that a kind names.
type Values [maxMembers]string

const maxMembers = 5

// Row is one row. Nobody but its database changes it, and only while no View
// runs: its fields are valid until the View or Batch that found it returns.
type Row struct {
	Place         // the id, which begins with the prefix of its kind and an underscore, and the creation
	Parent string // id of the row that it belongs to, or ""
	Name   string // a second name by which it is found, or again its id
	Status string // what lists of it can be filtered by, or ""
	JSON   string // from which the fields above are read

	Kind        *Kind           // nil once the row is deleted
	Idempotency *IdempotencyKey // that it was created with, or nil
	children    *childList      // its children: the first of a chain of lists
}

// Finder looks rows up: in the current state ([View]), or with the pending changes of an
// update on top of it ([Tx]).
type Finder interface {
	// Find returns the row that has an id or a second name, or nil.
	Find(name string) *Row
	// Get returns the row with an id, if it is of the kind with this prefix, or nil.
	Get(prefix, id string) *Row
}

// Options of [New], [Open] and [Check].
type Options struct {
	Kinds   []Kind           // parents before their children
	Formats []Format         // of the data file, the oldest first; the last is the one that is written
	Now     func() time.Time // the clock by which idempotency keys expire
	Logger  *slog.Logger     // gets repairs and failures of the data file
}

// The errors that those of [Open] and [DB.Batch] can wrap.
var (
	// ErrLocked: another process, or another DB of this one, has the data file.
	ErrLocked = recordfile.ErrLocked
	// ErrDamaged: the data file is not as it was written.
	ErrDamaged = recordfile.ErrDamaged
	// ErrFormat: the file is not a data file, or one of a newer version.
	ErrFormat = recordfile.ErrFormat
	// ErrNotWritten: a change is not on disk, or it is unknown whether it is.
	ErrNotWritten = errors.New("not written to the data file")
	// ErrClosed: the database is closed and takes no more changes.
	ErrClosed = errors.New("the store is closed")
)

// DB is a database. It is safe for concurrent use.
type DB struct {
	Options
	file *recordfile.File // nil in memory
	path string           // of the file

	queue   chan *call   // what waits for a commit; nil in memory
	waiting atomic.Int64 // how many are in the queue or in the commit; the first one starts commitQueue

	bytes  atomic.Int64              // of the file, after the last commit
	failed atomic.Pointer[error]     // why the last commit was not written; nil: it was
	began  atomic.Pointer[time.Time] // of the commit that is being appended; nil: there is none

	writer    sync.Mutex // held by the commit in progress; guards the fields up to swept
	closed    bool
	records   []byte    // the records of that commit; kept for its memory
	compactAt int64     // bytes of the file that may be outdated before it is compacted
	swept     time.Time // when expireKeys last looked at all idempotency keys

	// The state that readers see. It changes only while both writer and mu are held, so a
	// holder of either may read it. The loader of Open needs neither: it runs before the DB
	// is shared.
	mu sync.RWMutex
	state
}

// state is the rows of a database.
type state struct {
	names    map[string]*Row
	root     Row // its children are the rows without a parent
	count    map[*Kind]int
	live     int64 // bytes that the rows would take in a new file, about
	newest   time.Time
	unsorted map[*childList]bool // lists to be put in order at the end of a change in bulk; else nil

	// idempotent has the rows that were created with an idempotency key, by keyName. Updates
	// and commits alone use it, so writer is enough to change it, and no View sees it.
	idempotent map[string]*Row
}

func newState() state {
	return state{
		names:      map[string]*Row{},
		count:      map[*Kind]int{},
		idempotent: map[string]*Row{},
	}
}

// New returns an empty database in memory.
func New(o Options) *DB {
	return &DB{
		Options:   o,
		compactAt: minOutdated,
		state:     newState(),
	}
}

// Path is the absolute path of the data file, symbolic links resolved; "" in memory.
func (db *DB) Path() string { return db.path }

// Err is nil, or why nothing can be written any more. Reads go on.
func (db *DB) Err() error {
	if db.file == nil {
		return nil
	}
	return notWritten(db.file.Err())
}

// Close waits for the commit in progress and closes the file. Updates that are still
// queued, and later ones, get [ErrClosed]. Reads go on. The error is why writing had
// ended before, if it had, or why the file could not be closed.
func (db *DB) Close() error {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.closed = true
	return notWritten(db.file.Close()) // nil in memory
}

func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotWritten, err)
}

// kindOf is the kind of the row with an id, or nil if no kind has its prefix.
func (db *DB) kindOf(id string) *Kind {
	prefix, _, _ := strings.Cut(id, "_")
	for i := range db.Kinds {
		if db.Kinds[i].Prefix == prefix {
			return &db.Kinds[i]
		}
	}
	return nil
}
