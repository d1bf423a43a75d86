// Package rows is a small database of JSON objects: in memory, and durable if
// it has a data file (package recordfile). It has the shape of bbolt: [DB.View]
// reads one state, [DB.Update] changes it, all or nothing.
//
//	db := rows.New(rows.Options{Kinds: kinds})
//	err := db.Update(ctx, func(tx *rows.Tx) error {
//		tx.Put(nil, []byte(`{"id":"usr_1","name":"Ada"}`), nil)
//		return nil
//	})
//	db.View(func(tx *rows.Tx) { fmt.Println(tx.Find("usr_1").JSON) })
//
// A row is the text of one JSON object, kept and returned as it was put. The
// database does not know what its members mean. A table of [Kind]s has the
// little that it needs: how to read a row's id, its parent, its second name, its
// status and its time of creation out of the text.
//
// A row is found by its id and by its second name: an alternate name of any form,
// which a row may have and no two rows share. A row belongs to at most one other
// row, its parent, and is deleted with it. Each row has ordered lists of its
// children: one for each kind and, of children with a status, one more for each
// kind and status.
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

	// Head is the names of the leading members of a row, in order. Their values are
	// strings. A question mark after a name means that its value may be null. One of
	// them is created_at. Read sets what the database must know of a row from these
	// values, in which null is "".
	Head []string
	Read func(r *Row, head [maxHead]string)
}

// maxHead is the most members that a [Kind.Head] can have.
const maxHead = 6

// Row is one row. Nobody but its database changes it, and only while no View
// runs: its fields are valid until the View or Update that found it returns.
type Row struct {
	// Read sets these. The id begins with the kind's prefix and an underscore.
	ID     string
	Parent string // id of the row that it belongs to, or ""
	Name   string // a second name by which it is found, or "": never equal to an id
	Status string // what lists of it can be filtered by, or ""

	Created     time.Time
	Kind        *Kind
	JSON        string
	Idempotency *IdempotencyKey // that it was created with, or nil

	lists   *list // of its children: the first of a chain
	deleted bool  // it may still be in lists, until the end of a change in bulk
}

// IdempotencyKey is the key of the request that created a row. It is valid for
// [KeyLifetime] while the row exists. A later rewrite drops it from the file; in
// memory it stays until its row is deleted.
type IdempotencyKey struct {
	Key  string    `json:"key"`
	Body string    `json:"body"` // SHA-256 of the request's body, hexadecimal
	At   time.Time `json:"at"`
}

// KeyLifetime is how long an idempotency key is valid.
const KeyLifetime = 24 * time.Hour

// expired reports whether there is a key and it has expired.
func (k *IdempotencyKey) expired(now time.Time) bool { return k != nil && now.Sub(k.At) >= KeyLifetime }

// idempotencyName is the name under which the row of an idempotency key is found. Ids
// have no colon, and no second name begins with "idempotency:", so it is never
// another row's name.
func idempotencyName(parent, key string) string { return "idempotency:" + parent + ":" + key }

// Options of [New], [Open] and [Check].
type Options struct {
	Kinds  []Kind           // parents before their children
	Now    func() time.Time // the clock by which idempotency keys expire
	Logger *slog.Logger     // gets repairs and failures of the data file
}

// The errors that those of [Open] and [DB.Update] can wrap.
var (
	// ErrLocked: another process, or another DB of this one, has the data file.
	ErrLocked = recordfile.ErrLocked
	// ErrDamaged: the data file is not as it was written.
	ErrDamaged = recordfile.ErrDamaged
	// ErrFormat: the file is not a data file, or one of another version.
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
	view Tx               // of every View: it has no changes

	slots      chan struct{} // a semaphore: one slot for each update that waits or is committed
	queueing   sync.Mutex    // guards the two below
	waiting    []*update
	committing bool // a goroutine commits what waits, and owns the file meanwhile

	commits atomic.Uint64 // that took effect

	writer    sync.Mutex // held by the commit in progress; guards the three fields below
	closed    bool
	records   []byte // the records of that commit
	compactAt int64  // bytes of the file that may be outdated before it is compacted

	// The state that readers see. The fields below mu change only while both writer and
	// mu are held, so a holder of either may read them. The loader of Open needs neither:
	// it runs before the DB is shared.
	mu       sync.RWMutex
	names    map[string]*Row
	root     Row   // its children are the rows without a parent
	live     int64 // bytes of the file that the rows take, about
	newest   time.Time
	bulk     bool    // many changes are being published: lists are put in order at the end
	unsorted []*list // to be put in order then
	parent   *Row    // the last one that was looked up, as many rows in turn have the same
}

// New returns an empty database in memory.
func New(o Options) *DB {
	db := &DB{Options: o, names: map[string]*Row{}, compactAt: minOutdated}
	db.view.db = db
	db.slots = make(chan struct{}, maxQueue)
	return db
}

// View calls f with the state as of now. Changes wait until f returns, so f should
// do nothing but look.
func (db *DB) View(f func(*Tx)) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	f(&db.view)
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

// Commits is how many commits took effect, in memory or on disk. Two calls return the
// same number if nothing changed between them.
func (db *DB) Commits() uint64 { return db.commits.Load() }

// Close waits for the commit in progress and closes the file. Updates that are still
// queued, and later ones, get [ErrClosed]. Reads go on. The error is why writing had
// ended before, if it had, or why the file could not be closed.
func (db *DB) Close() error {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.closed = true
	if db.file == nil {
		return nil
	}
	return notWritten(db.file.Close())
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
