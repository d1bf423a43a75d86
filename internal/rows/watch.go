package rows

import (
	"errors"
	"time"
)

// hungAppend is how long a commit may be appended to the data file before that is trouble.
const hungAppend = 10 * time.Second

// ErrHung: a commit has been written for more than 10 s.
var ErrHung = errors.New("the disk has been writing to the data file for more than 10 s, " +
	"and changes wait for that")

// Trouble returns why nothing can be written at present, or nil. It is [ErrHung], the error of
// the last commit, or that of [DB.Err]. It waits for nothing.
func (db *DB) Trouble() error {
	began := db.began.Load()
	if began != nil && time.Since(*began) > hungAppend {
		return ErrHung
	}
	failed := db.failed.Load()
	if failed != nil {
		return *failed
	}
	return db.Err()
}

// noteCommit notes whether a commit was written, or why not. It logs the first that was not, and
// the first that was after that. Package recordfile has logged what ends writing.
func (db *DB) noteCommit(err error) {
	failedBefore := db.failed.Load() != nil
	if err == nil {
		if failedBefore {
			db.failed.Store(nil)
			db.Logger.Info("writes work again")
			db.compactAt = minOutdated // a rewrite for which there was no room is tried again
		}
		return
	}
	db.failed.Store(&err)
	_, logged := errors.AsType[*EndedError](err)
	if !failedBefore && !logged {
		db.Logger.Error("changes are refused", "error", err)
	}
}

// Stats is how much a database holds.
type Stats struct {
	Rows   map[string]int // by the name of their kind
	Bytes  int64          // of the data file
	Newest time.Time      // the latest time of creation of any row since the start, or in the file then
}

// Stats returns how much the database holds. It does not wait for a commit that is under
// way.
func (db *DB) Stats() Stats {
	s := Stats{Rows: map[string]int{}, Bytes: db.bytes.Load()}
	db.mu.RLock()
	defer db.mu.RUnlock()
	for i := range db.Kinds {
		kind := &db.Kinds[i]
		s.Rows[kind.Name] = db.count[kind]
	}
	s.Newest = db.newest
	return s
}
