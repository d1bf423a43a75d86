// Package jsondb is a small transactional database of JSON objects. It keeps all rows in memory and writes
// every commit to a data file before anyone can read it.
//
//	db, err := jsondb.Open("events.json", jsondb.Options{Tables: tables, Formats: []string{"events/2"}})
//	…
//	err = db.Batch(func(tx *jsondb.Tx) error {
//		tx.Put([]byte(`{"id":"usr_1","name":"Ada","created_at":"2027-01-01T09:00:00Z"}`))
//		return nil
//	})
//	db.View(func(tx *jsondb.Tx) { fmt.Println(tx.Find("usr_1").JSON) })
//
// A [Row] is one JSON object, stored and returned unchanged. You can find a row by its ID or by a unique key,
// such as an email address. You can list the rows of a parent, such as the events of a user, or only its rows
// with one status. Deleting a row deletes its children, and a row that it owns. There are no other queries.
// Validate rows before you put them.
//
// # Commits
//
// Read with [DB.View] and write with [DB.Batch] or [DB.Update]. A write has five steps:
//
//  1. Run. Write transactions run one after another. Their changes are pending: only later transactions of
//     the same commit see them. If the transaction fails, its changes are dropped.
//  2. Append. The pending changes become one commit, one line in the data file (package commitlog).
//  3. Sync. The file is synced. If the append or the sync fails, all pending changes are dropped.
//  4. Publish. Views see the changes.
//  5. Return. Batch or Update returns nil.
//
// So a reader sees only what is on disk. Concurrent Batch calls share a commit.
//
// # Rewrites
//
// A rewrite replaces the file with a snapshot, which has one record for each row. That removes stale records:
// deletes, deleted rows, old versions, and rows that their table no longer wants to keep. The file is
// rewritten
//
//   - if a commit doesn't fit into a line. If the rewrite fails, so does the commit.
//   - when stale records take at least 64 MiB and at least half of the file. If the rewrite fails, the
//     database logs that, continues with the old file and tries again after another 64 MiB.
//   - by [Open], if the file has deletes or old versions, because this is how erased data leaves it.
//   - by [Open], if the file has an older format. If the rewrite fails, so does Open.
//
// So adding rows causes no rewrite as long as they stay and their commit fits into a line. And unless a
// rewrite failed, the file is at most twice as large as a snapshot of the rows in memory, plus 64 MiB and one
// line.
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

// A Table describes one kind of row.
type Table struct {
	Name   string // in records: "event" in {"event":{…}}; lower-case letters, but not "delete"
	Prefix string // ID prefix, before the underscore: "evt" in evt_1
	Parent string // prefix of the parent table; "" if rows have no parent

	// Scan sets the Parent, UniqueKey, Status and Created of a row. It must read the fields in the order in
	// which they are in the JSON. Unique keys must not look like IDs, and tables must not share any.
	Scan func(s *Scanner, r *Row)

	// Keep reports whether a row is still worth keeping. If it is nil, rows stay until they are deleted.
	//
	// Once Keep has returned false for a row, don't rely on finding it, nor on not finding it: Open doesn't
	// load it, a rewrite removes it from the file and from memory, and each commit removes some of the oldest
	// ones from memory. If the clock is set back, it may even reappear. So call Keep again whenever you find
	// a row.
	//
	// A table with Keep has no parent, unique keys or status. A new version of a row may have another
	// creation time, because the old one may have disappeared.
	Keep func(r *Row, now time.Time) bool

	// Owner returns the ID of the row that owns r. If the owner is deleted, so is r, although it isn't one of
	// its children. Put the owner first, in the same transaction. A row owns at most one other. If Owner is
	// nil, rows have no owners.
	Owner func(r *Row) string

	// Upgrade converts a row from an older format to the current one. The row may be followed by more text,
	// which an older format had there.
	Upgrade func(json string) (string, error)
}

// A Row is one version of a row. Its exported fields never change, so you can keep it after the transaction.
type Row struct {
	Table     *Table
	Position         // orders lists by creation time and ID
	Parent    string // parent ID, or ""
	UniqueKey string // or ""
	Status    string // adds the row to another list of its parent; or ""
	JSON      string // the row itself

	owned *Row // the row that this one owns, perhaps in an older version, or nil; only commits use it
}

// lineSize returns the approximate size of the row's line in a snapshot.
func (r *Row) lineSize() int64 {
	const overhead = 48 // bytes of {"c":…,"n":…,"w":[{"event":…}]}
	return int64(len(r.JSON)) + overhead
}

// A Position is a place in a list, whether or not a row is there.
type Position struct {
	Created time.Time
	ID      string
}

func (p Position) compare(q Position) int {
	return cmp.Or(p.Created.Compare(q.Created), strings.Compare(p.ID, q.ID))
}

// Options configure a [DB].
type Options struct {
	Tables  []Table          // parents before their children
	Formats []string         // readable file formats, oldest first; the last one is written
	Now     func() time.Time // clock for Keep; the system clock if nil
	Logger  *slog.Logger     // discards if nil

	minStale int64 // bytes; defaultMinStale if 0
}

var (
	// ErrLocked is returned by [Open] if the data file is open, in this process or another.
	ErrLocked = commitlog.ErrLocked
	// ErrDamaged is returned by [Open] if the data file is damaged.
	ErrDamaged = commitlog.ErrDamaged
	// ErrFormat is returned by [Open] if the file isn't a data file or has a newer format.
	ErrFormat = commitlog.ErrFormat
	// ErrNotWritten is returned if a commit could not be written. Its changes aren't visible, but after a
	// failed sync they may reappear on restart.
	ErrNotWritten = errors.New("not written to the data file")
	// ErrClosed is returned by Batch and Update after Close.
	ErrClosed = errors.New("the database is closed")
)

// A DB is a database. It is safe for concurrent use.
type DB struct {
	tables   []Table
	now      func() time.Time
	logger   *slog.Logger
	minStale int64
	log      *commitlog.Log // nil in memory
	view     Tx             // shared by all views, because it has no pending changes

	queueMu sync.Mutex
	queue   []*call // Batch calls for the next commit

	bytes   atomic.Int64          // file size
	lastErr atomic.Pointer[error] // last commit error, or nil

	// commitMu is locked during a commit. It guards this group.
	commitMu  sync.Mutex
	closed    bool
	records   []byte // commit records, without brackets
	live      int64  // line size of all rows; the rest of the file is stale
	retrySize int64  // after a failed rewrite: the file size at which it is tried again

	// mu guards the committed rows. Only a commit, which also holds commitMu, locks it for writing.
	mu    sync.RWMutex
	index map[string]*Row    // by ID and by unique key
	lists map[listKey][]*Row // in order
	count map[*Table]int     // number of rows
}

// listKey names a list: the rows of a parent that have a status, or all its rows if the status is empty.
type listKey struct {
	parent string // "" for rows without a parent
	table  *Table
	status string
}

// New returns an empty database in memory.
func New(o Options) *DB {
	db := &DB{
		tables:   slices.Clone(o.Tables),
		now:      o.Now,
		logger:   cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		minStale: cmp.Or(o.minStale, defaultMinStale),
		index:    map[string]*Row{},
		lists:    map[listKey][]*Row{},
		count:    map[*Table]int{},
	}
	if db.now == nil {
		db.now = time.Now
	}
	db.view = Tx{db: db}
	return db
}

// View calls f with a transaction that reads the committed rows. A commit can't publish until f returns, so f
// must not call methods of db.
func (db *DB) View(f func(*Tx)) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	f(&db.view)
}

// Path returns the absolute path of the data file, or "" for a database in memory.
func (db *DB) Path() string {
	if db.log == nil {
		return ""
	}
	return db.log.Path()
}

// Err returns the error that stopped writes, or nil.
func (db *DB) Err() error {
	if db.log == nil {
		return nil
	}
	return db.log.Err()
}

// Close waits for the current commit and closes the data file. Later writes return [ErrClosed]. Views still
// work.
func (db *DB) Close() error {
	db.commitMu.Lock()
	defer db.commitMu.Unlock()
	closed := db.closed
	db.closed = true
	if closed || db.log == nil {
		return nil
	}
	return db.log.Close()
}

// Stats describe a database.
type Stats struct {
	Rows    map[string]int // number of rows by table name
	Bytes   int64          // file size
	LastErr error          // of the last commit; nil if it was written
}

// Stats returns the current statistics. It doesn't wait for a commit.
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

// table returns the table with a prefix or for an ID. It returns nil if there is none.
func (db *DB) table(prefix string) *Table {
	prefix, _, _ = strings.Cut(prefix, "_")
	for i := range db.tables {
		if db.tables[i].Prefix == prefix {
			return &db.tables[i]
		}
	}
	return nil
}

// Batch calls f in a transaction and commits its changes. It returns when they are durable and visible to
// View. If f fails or panics, Batch returns that error and drops the changes. Concurrent calls may share a
// commit, so use [DB.Update] for more than a few rows.
//
// f runs once, on any goroutine. If the commit fails, Batch returns [ErrNotWritten] even if f failed, because
// f may have read other changes that were not written.
//
// f must not call Batch, Update or Close. It must not exit the goroutine, as [testing.T.FailNow] does,
// because other calls wait for it.
func (db *DB) Batch(f func(*Tx) error) error {
	if db.log == nil { // a shared commit would save nothing
		return db.Update(f)
	}
	c := &call{f: f, done: make(chan struct{})}
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

// Update is like [DB.Batch], but its changes have a commit of their own. There may be any number of them: if
// they don't fit into a line, the file is rewritten.
func (db *DB) Update(f func(*Tx) error) error {
	c := &call{f: f, done: make(chan struct{})}
	db.lockAndCommit([]*call{c})
	return c.err
}
