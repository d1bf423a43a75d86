package rows

import "time"

const (
	slowWrite = time.Second      // a commit or rewrite that takes longer is logged
	slowEvery = 10 * time.Second // between two of them that are logged
)

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
	for _, kind := range db.Kinds {
		s.Rows[kind.Name] = kind.count
	}
	s.Outdated = db.outdatedIn(s.Bytes)
	s.Newest = db.newest
	return s
}

// timed calls write, which commits or rewrites, and logs if that is slow: once while it is
// under way, and when it has ended.
func (db *DB) timed(what string, write func() error) error {
	began := time.Now()
	db.began.Store(&began)
	isQuiet := began.Sub(db.logged) < slowEvery
	warn := time.AfterFunc(slowWrite, func() {
		if !isQuiet {
			db.Logger.Warn("the disk is slow: a "+what+" is still under way", "after", slowWrite.String())
		}
	})
	err := write()
	warn.Stop()
	took := time.Since(began)
	db.began.Store(nil)
	db.longest.Store(max(db.longest.Load(), int64(took)))
	if took >= slowWrite && !isQuiet {
		db.logged = time.Now()
		db.Logger.Warn("the disk is slow: a "+what+" has ended", "took_ms", took.Milliseconds(), "error", err)
	}
	return err
}
