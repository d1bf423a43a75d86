// Package jsondb is a small transactional database of JSON objects. It keeps all rows in memory. If it has a
// data file, every commit is durable before it becomes visible.
//
//	db, err := jsondb.Open("events.json", jsondb.Options{Tables: tables, Formats: []string{"events/1"}})
//	…
//	err = db.Batch(func(tx *jsondb.Tx) error {
//		tx.Put([]byte(`{"id":"usr_1","name":"Ada","created_at":"2027-01-01T09:00:00Z"}`))
//		return nil
//	})
//	db.View(func(tx *jsondb.Tx) { fmt.Println(tx.Find("usr_1").JSON) })
//
// A [Row] is the text of one JSON object, which is stored and returned as it was put, and the few fields that
// the database reads of it. A [Table] names them. Rows are found by their ID and by their unique key, such as
// an email address, and are listed by their parent, the row that they belong to and are deleted with. There
// are no other queries. Callers validate rows before they put them.
//
// # How a change becomes durable
//
// All reading and writing happens in a transaction, [Tx]. [DB.View] runs one that only reads. [DB.Batch] and
// [DB.Update] run one that writes:
//
//  1. Run. Transactions that write run one after the other. Their changes are pending: kept apart from the
//     committed rows, visible to later transactions of the same commit only, and dropped if the transaction
//     fails.
//  2. Append. The records of all pending changes become one commit, which is one line of the data file
//     (package commitlog).
//  3. Sync. The file is synced. If that or the append fails, all pending changes are dropped.
//  4. Publish. The pending changes replace the committed rows, and views see them.
//  5. Return. Batch and Update return nil.
//
// A reader therefore sees nothing that is not on disk. Transactions of concurrent calls of Batch share a
// commit.
//
// # When the file is rewritten
//
// To rewrite the file is to replace it by a snapshot of all rows. That removes stale records, which are the
// records of rows that were changed or deleted since. The file is rewritten
//
//   - if the records of a commit don't fit into a line. If that fails, so does the commit.
//   - when it has 64 MiB or more, and twice the size that it had after the last rewrite.
//   - by [Open] if it holds stale records.
//   - by [Open] if it has an older format. If that fails, so does Open.
//
// If one of the other rewrites fails, this is logged, and the old file stays in use.
package jsondb

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/events/internal/commitlog"
)

// A Table describes the rows of one kind.
type Table struct {
	Name   string // name in records: "event" in {"event":{…}}
	Prefix string // ID prefix, before the underscore: "evt" in evt_1
	Parent string // prefix of the parent table, or "" if the rows have no parent

	// Scan sets the Parent, Key, Status and Created of a row from its text. It must read the fields in their
	// order in the text. No two tables may have keys in common, and no key may look like an ID.
	Scan func(s *Scanner, r *Row)

	// Recode returns the current form of a row that has an older format.
	Recode func(json string) (string, error)
}

// A Row is one version of a row. It never changes, so you can keep it after the transaction.
type Row struct {
	Table    *Table
	Position        // creation time and ID, which order lists
	Parent   string // ID of the parent, or ""
	Key      string // unique key, or ""
	Status   string // list of the parent that the row is also in, or ""
	JSON     string // the row itself

	idempotency *idempotency // nil if the row was created without a key
}

// A Position is a place in a list, whether or not a row is there.
type Position struct {
	Created time.Time
	ID      string
}

func (p Position) compare(q Position) int {
	return cmp.Or(p.Created.Compare(q.Created), strings.Compare(p.ID, q.ID))
}

// idempotency is the idempotency key of the request that created a row.
type idempotency struct {
	Key  string    `json:"key"`
	Body string    `json:"body"` // digest of the request body
	At   time.Time `json:"at"`
}

const keyLifetime = 24 * time.Hour // lifetime of an idempotency key

// Options configure a [DB].
type Options struct {
	Tables  []Table          // parents before their children
	Formats []string         // formats of files that can be read, the oldest first; the last is written
	Now     func() time.Time // clock by which idempotency keys expire; nil is the system clock
	Logger  *slog.Logger     // nil discards

	minRewrite int64 // defaultMinRewrite if 0
}

var (
	// ErrLocked is returned by Open if another process, or another DB of this one, has the data file open.
	ErrLocked = commitlog.ErrLocked
	// ErrDamaged is returned if the data file isn't as it was written.
	ErrDamaged = commitlog.ErrDamaged
	// ErrFormat is returned if the file isn't a data file, or has a newer format.
	ErrFormat = commitlog.ErrFormat
	// ErrNotWritten is returned if a commit could not be written. Nothing of it is visible. If a sync failed,
	// it may still be found after a restart.
	ErrNotWritten = errors.New("not written to the data file")
	// ErrClosed is returned by Batch and Update after Close.
	ErrClosed = errors.New("the database is closed")
)

// A DB is a database. It is safe for concurrent use.
type DB struct {
	tables     []Table
	now        func() time.Time
	logger     *slog.Logger
	minRewrite int64
	log        *commitlog.Log // nil in memory
	view       Tx             // has no pending changes; all views share it

	queueMu sync.Mutex
	queue   []*call // calls of Batch that wait for the next commit

	bytes   atomic.Int64          // file size
	lastErr atomic.Pointer[error] // error of the last commit, or nil

	// writer is locked during a commit. It guards this group.
	writer    sync.Mutex
	closed    bool
	records   []byte // records of the commit, without the brackets
	rewriteAt int64  // file size that causes a rewrite

	// mu guards the committed rows. A commit, which also holds writer, locks it to publish its changes.
	mu sync.RWMutex
	state
	count map[*Table]int // number of rows
}

// state is the committed rows or, in a transaction, the pending changes.
type state struct {
	index    map[string]*Row     // rows by ID and unique key; a pending nil is a delete
	lists    map[listKey][]*Row  // in order; pending lists only have new rows, in the order of Put
	requests map[requestKey]*Row // rows by their idempotency keys; a pending nil is a delete
}

// listKey names a list of a parent's rows: those with a status, or all if the status is empty. Pending lists
// have no status.
type listKey struct {
	parent string // "" for rows without a parent
	table  *Table
	status string
}

// requestKey names a request by its idempotency key and the ID of its sender.
type requestKey struct{ owner, key string }

func newState() state {
	return state{index: map[string]*Row{}, lists: map[listKey][]*Row{}, requests: map[requestKey]*Row{}}
}

// New returns an empty database in memory.
func New(o Options) *DB {
	db := &DB{
		tables:     slices.Clone(o.Tables),
		now:        o.Now,
		logger:     cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		minRewrite: cmp.Or(o.minRewrite, defaultMinRewrite),
		state:      newState(),
		count:      map[*Table]int{},
	}
	if db.now == nil {
		db.now = time.Now
	}
	db.view = Tx{db: db}
	return db
}

// View calls f with a transaction that reads the committed rows. Commits wait for f to return, so f must not
// call methods of db.
func (db *DB) View(f func(*Tx)) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	f(&db.view)
}

// Path returns the absolute path of the data file, or "" in memory.
func (db *DB) Path() string {
	if db.log == nil {
		return ""
	}
	return db.log.Path()
}

// Err returns the error because of which nothing can be written until a restart, or nil.
func (db *DB) Err() error {
	if db.log == nil {
		return nil
	}
	return db.log.Err()
}

// Close waits for the commit under way and closes the data file. Calls of Batch and Update that haven't run
// yet return [ErrClosed]. Views go on.
func (db *DB) Close() error {
	db.writer.Lock()
	defer db.writer.Unlock()
	closed := db.closed
	db.closed = true
	if closed || db.log == nil {
		return nil
	}
	return db.log.Close()
}

// Stats describe a database at one moment.
type Stats struct {
	Rows    map[string]int // by the name of the table
	Bytes   int64          // size of the data file
	LastErr error          // why the last commit was not written; nil if it was
}

// Stats returns the current statistics. It doesn't wait for a commit that is under way.
func (db *DB) Stats() Stats {
	s := Stats{Rows: map[string]int{}, Bytes: db.bytes.Load()}
	if err := db.lastErr.Load(); err != nil {
		s.LastErr = *err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	for i := range db.tables {
		s.Rows[db.tables[i].Name] = db.count[&db.tables[i]]
	}
	return s
}

// table returns the table with a prefix, or the table of a row with an ID, or nil.
func (db *DB) table(prefix string) *Table {
	prefix, _, _ = strings.Cut(prefix, "_")
	for i := range db.tables {
		if db.tables[i].Prefix == prefix {
			return &db.tables[i]
		}
	}
	return nil
}

// Batch calls f in a transaction and commits its changes, which may share the commit with other
// concurrent calls. It returns when the changes are durable and visible to View. If f fails or panics, Batch
// returns that error, and nothing that f did is committed.
//
// f runs once, on any goroutine. If the commit fails, Batch returns [ErrNotWritten], whatever f returned: f
// may have seen pending changes of other calls.
//
// f must not call Batch, Update or Close, and must not exit the goroutine as [testing.T.FailNow] does: the
// other calls of the commit wait for it.
func (db *DB) Batch(f func(*Tx) error) error {
	c := &call{f: f, done: make(chan struct{})}
	if db.log == nil {
		db.commitAll([]*call{c})
		return c.err
	}
	db.queueMu.Lock()
	db.queue = append(db.queue, c)
	first := len(db.queue) == 1
	db.queueMu.Unlock()
	if first {
		db.commitQueue()
	}
	<-c.done
	return c.err
}

// Update calls f in a transaction that has a commit of its own and may be of any size. In all else it is like
// [DB.Batch].
func (db *DB) Update(f func(*Tx) error) error {
	c := &call{f: f, done: make(chan struct{})}
	db.commitAll([]*call{c})
	return c.err
}
