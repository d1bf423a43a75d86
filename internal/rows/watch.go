package rows

import (
	"errors"
	"time"
)

const (
	slowWrite   = time.Second      // a commit that takes longer is logged
	slowRewrite = 50 << 20         // bytes a second: a rewrite that writes fewer is logged as well
	slowEvery   = 10 * time.Second // between two of them that are logged

	hungWrite   = 10 * time.Second // a write that takes longer is trouble
	repeatEvery = 10 * time.Minute // that writes still fail is logged again
)

// Trouble says that changes are refused at present, or wait for a write that does not end.
type Trouble struct {
	Err     error     // why: of the last commit, or ErrHung
	Since   time.Time // the first commit that failed without one that worked after it
	Refused int       // updates since then that were not written
}

// ErrHung: a write to the data file has been under way for more than 10 s.
var ErrHung = errors.New("the disk has been writing to the data file for more than 10 s, " +
	"and changes wait for that")

// Trouble returns nil if the database can write, as far as it knows: the last commit was
// written, nothing has ended writing since then, and no commit or rewrite has been under way for
// long. It waits for nothing.
func (db *DB) Trouble() *Trouble {
	failed := db.trouble.Load()
	began := db.began.Load()
	switch {
	case failed != nil:
		return failed
	case began != nil && time.Since(*began) > hungWrite:
		return &Trouble{Err: ErrHung, Since: *began}
	}
	return nil
}

// noteCommit notes whether a commit was written, or why not and how many updates were refused with
// it. The first failure is logged, each other cause, and every 10 minutes that it goes on. What
// ends writing is a cause that package recordfile has logged.
func (db *DB) noteCommit(err error, refused int) {
	before := db.trouble.Load()
	if err == nil {
		if before != nil {
			db.trouble.Store(nil)
			db.Logger.Info("writes work again", "refused", before.Refused, "since", before.Since)
			db.compactAt = minOutdated // a rewrite for which there was no room is tried again
		}
		return
	}
	now := time.Now()
	trouble := &Trouble{Err: err, Since: now, Refused: refused}
	isNew := true
	if before != nil {
		trouble.Since = before.Since
		trouble.Refused += before.Refused
		isNew = before.Err.Error() != err.Error()
	}
	db.trouble.Store(trouble)
	if _, isLogged := errors.AsType[*EndedError](err); isLogged && isNew {
		db.repeated = now
		return
	}
	if isNew || now.Sub(db.repeated) >= repeatEvery {
		db.repeated = now
		db.Logger.Error("changes are refused",
			"since", trouble.Since, "refused", trouble.Refused, "error", err)
	}
}

// Writing is for how long the commit or rewrite that is under way has been going on, 0 if
// none is, and how long the longest took.
func (db *DB) Writing() (now, longest time.Duration) {
	began := db.began.Load()
	if began != nil {
		now = time.Since(*began)
	}
	return now, max(now, time.Duration(db.longest.Load()))
}

// Stats is how much a database holds.
type Stats struct {
	Rows     map[string]int // by the name of their kind
	Bytes    int64          // of the data file
	Outdated int64          // of these, about, how many hold what later ones replaced
	Newest   time.Time      // the latest time of creation of any row since the start, or in the file then
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
	s.Outdated = db.outdatedIn(s.Bytes)
	s.Newest = db.newest
	return s
}

// timed calls write, which commits or rewrites so many bytes, and returns how long it took. It
// logs that the disk is slow, once while the write is under way and when it has ended.
func (db *DB) timed(what string, bytes int64, write func() error) (took time.Duration, err error) {
	began := time.Now()
	db.began.Store(&began)
	isQuiet := began.Sub(db.logged) < slowEvery
	slow := max(slowWrite, time.Duration(float64(bytes)/slowRewrite*float64(time.Second)))
	warn := time.AfterFunc(slow, func() {
		if !isQuiet {
			db.Logger.Warn("the disk is slow: a "+what+" is still under way", "after", slow.String())
		}
	})
	err = write()
	warn.Stop()
	took = time.Since(began)
	db.began.Store(nil)
	db.longest.Store(max(db.longest.Load(), int64(took)))
	if took >= slow && !isQuiet {
		db.logged = time.Now()
		db.Logger.Warn("the disk is slow: a "+what+" has ended",
			"took_ms", took.Milliseconds(), "bytes", bytes, "error", err)
	}
	return took, err
}
