package rows

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"example.com/events/internal/recordfile"
)

const (
	maxQueue    = 4096     // updates that wait for the next commit; more block in Batch
	bulkChanges = 256      // a commit of more changes than these is published in bulk
	minOutdated = 64 << 20 // bytes: see DB.compact
)

// call is one call of [DB.Batch].
type call struct {
	fn     func(*Tx) error
	err    error         // of the call
	shares bool          // it fails if the commit does: it made changes, or saw those of updates before it
	done   chan struct{} // closed once err is final; nil if nobody waits
}

// Batch calls f, which changes the database, and commits the changes, together with
// those of other calls that wait at the same time. It returns once the changes are on
// disk and Views see them, or with the error of f, and nothing is changed then.
//
//  1. On a file, f is called by another goroutine. It may be called a second time, with
//     another Tx, if what it changed did not fit into a commit beside the changes of others.
//     So f must set what it returns anew in each call, and do nothing else that cannot be
//     done twice. In memory, without a file, f is called once.
//  2. [ErrNotWritten] means that the changes are not visible now. After a failed sync
//     they may still be found at the next start.
//  3. If f fails because of a change of another call that in the end was not written,
//     the error is [ErrNotWritten], not that of f.
//  4. Once ctx is done, Batch no longer waits for a place in the queue. With a place, it
//     waits for the commit, even if ctx is done.
func (db *DB) Batch(ctx context.Context, f func(*Tx) error) error {
	c := &call{fn: f}
	if db.file == nil {
		db.commit([]*call{c})
		return c.err
	}
	c.done = make(chan struct{})
	select {
	case db.queue <- c:
	default: // it is full; looking at ctx takes time, so it is only done here
		select {
		case db.queue <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if db.waiting.Add(1) == 1 {
		go db.commitQueue()
	}
	<-c.done
	return c.err
}

// commitQueue commits updates until none waits.
func (db *DB) commitQueue() {
	for {
		runtime.Gosched() // whoever is about to wait shares this commit and its sync
		n := db.waiting.Load()
		waiting := make([]*call, n)
		for i := range waiting {
			waiting[i] = <-db.queue // at once: an update is in the queue before it is counted
		}
		for len(waiting) > 0 {
			waiting = db.commit(waiting)
		}
		if db.waiting.Add(-n) == 0 {
			return
		}
	}
}

// commit makes one commit of as many updates as fit into one, at least one, and
// returns the others. The calls of Batch return before the file is compacted; the
// next commit waits for that.
//
// Every update that shares the commit fails with it: it made changes, or it may have
// seen rows that were not written, even if it changed nothing or failed by itself.
func (db *DB) commit(waiting []*call) (rest []*call) {
	db.writer.Lock()
	defer db.writer.Unlock()
	calls, pending := db.gather(waiting)
	var err error
	if pending != nil {
		err = notWritten(db.write(pending))
		if err == nil {
			db.publish(pending)
			db.expireKeys()
		}
	}
	for _, c := range calls {
		if err != nil && c.shares {
			c.err = err
		}
	}
	if pending != nil {
		db.noteCommit(err) // before the calls return: Trouble knows of what they know
	}
	for _, c := range calls {
		if c.done != nil {
			close(c.done)
		}
	}
	if db.file != nil {
		db.compact()
		db.bytes.Store(db.file.Size())
	}
	return waiting[len(calls):]
}

// gather runs updates until their changes fill one commit, and puts the records of these
// into db.records. It returns the updates of the commit and their changes together, nil if there
// are none. An update that does not fit beside the ones before it is not one of them: it is run
// again, as the first of the next commit. An update that does not fit into a line even alone is a
// commit by itself.
func (db *DB) gather(waiting []*call) (calls []*call, batch *Tx) {
	db.records = db.records[:0]
	for i, c := range waiting {
		tx := db.newTx(batch)
		c.shares = batch != nil
		c.err = db.run(c.fn, tx)
		if c.err != nil || tx.Changes() == 0 {
			continue
		}
		c.shares = true
		fits := db.addRecords(tx.changes)
		switch {
		case fits && batch == nil:
			batch = tx
		case fits:
			batch.merge(tx)
		case batch == nil:
			return waiting[:i+1], tx
		default:
			return waiting[:i], batch
		}
	}
	return waiting, batch
}

// addRecords appends the records of changes to db.records, if a line of the file has
// room for all of them. If not, it leaves db.records as it was and returns false.
func (db *DB) addRecords(changes []*Row) (fit bool) {
	if db.file == nil {
		return true
	}
	before := len(db.records)
	for _, r := range changes {
		db.records = db.appendChange(db.records, r)
		if len(db.records) > recordfile.MaxCommit {
			db.records = db.records[:before]
			return false
		}
	}
	return true
}

// run runs one update. A panic in it fails it alone.
func (db *DB) run(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if db.closed {
		return ErrClosed
	}
	return fn(tx)
}

// write makes changes durable, if there is a file. It writes a new file if there is none yet, and
// if their records do not fit into one line.
func (db *DB) write(pending *Tx) error {
	switch {
	case db.file == nil:
		return nil
	case db.file.Size() == 0:
		db.Logger.Warn("making a new data file", "data", db.path) // the path may be a wrong one
		return db.rewrite(pending.changes, "it was new")
	case len(db.records) > 0:
		db.began.Store(new(time.Now()))
		defer db.began.Store(nil)
		return db.file.Append(db.records)
	}
	db.records = nil // which may be large, and is not needed
	return db.rewrite(pending.changes, "a change was too large for one commit")
}

// publish publishes durable changes to readers.
func (db *DB) publish(pending *Tx) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(pending.changes) > bulkChanges {
		db.unsorted = map[*childList]bool{}
	}
	for _, r := range pending.changes {
		db.apply(db.names[r.ID], r)
	}
	db.endBulk()
}

// rewrite replaces the file by one that holds the records of all rows and then of changes, and
// logs why.
func (db *DB) rewrite(changes []*Row, why string) error {
	before := db.file.Size()
	snapshot := func(yield func([]byte) bool) {
		var record []byte
		yieldRow := func(r *Row) bool {
			record = db.appendChange(record[:0], r)
			return yield(record)
		}
		if !db.walk(&db.root, yieldRow) {
			return
		}
		for _, r := range changes {
			if !yieldRow(r) {
				return
			}
		}
	}
	began := time.Now()
	err := db.file.Rewrite(snapshot)
	if err == nil {
		db.Logger.Info("the data file was written anew", "why", why,
			"bytes_before", before, "bytes", db.file.Size(), "took_ms", time.Since(began).Milliseconds())
	}
	return err
}

// emptyFile is about how many bytes a file without rows has: its header, two empty commits
// and the brackets.
const emptyFile = 160

// outdated is about how many bytes of the file hold what is no longer so.
func (db *DB) outdated() int64 { return max(0, db.file.Size()-emptyFile-db.live) }

// compact rewrites the file when its outdated part exceeds both compactAt, at first
// 64 MiB, and the live part. The next commit waits meanwhile, reads go on. If it fails,
// the file stays as it is, and it is tried again when 64 MiB more are outdated, or when writes
// work again after they failed.
func (db *DB) compact() {
	if db.outdated() < max(db.compactAt, db.live) {
		return
	}
	db.dropOutdated("most of it was outdated")
	db.compactAt = db.outdated() + minOutdated
}

// dropOutdated rewrites the file without what is outdated in it.
func (db *DB) dropOutdated(why string) {
	err := db.rewrite(nil, why)
	switch {
	case db.Err() != nil: // that has ended writing
		db.noteCommit(db.Err())
	case err != nil:
		db.Logger.Error("the data file was not rewritten", "error", err)
	}
}
