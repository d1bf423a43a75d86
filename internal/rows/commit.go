package rows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"runtime/debug"
	"strings"

	"example.com/events/internal/recordfile"
)

const (
	maxQueue    = 4096     // updates that wait or are committed at a time; more block in Batch
	bulkChanges = 256      // a commit of more changes than these is published in bulk
	minOutdated = 64 << 20 // bytes: see DB.minOutdated
)

// update is one call of [DB.Batch].
type update struct {
	fn      func(*Tx) error
	err     error         // of the call
	depends bool          // it made changes, or saw those of updates before it in the same commit
	done    chan struct{} // closed once err is final
}

// Batch calls f, which changes the database, and commits the changes, together with
// those of other calls that wait at the same time. It returns once the changes are on
// disk and Views see them, or with the error of f, and nothing is changed then.
//
//  1. f may be called a second time, with another Tx, if what it changed did not fit
//     into a commit beside the changes of others. So f must set what it returns anew in
//     each call, and do nothing else that cannot be done twice. In memory, without a
//     file, f is called once.
//  2. [ErrNotWritten] means that the changes are not visible now. After a failed sync
//     they may still be found at the next start.
//  3. If f fails because of a change of another call that in the end was not written,
//     the error is [ErrNotWritten], not that of f.
//  4. Once ctx is done, Batch no longer waits for one of the slots of the queue. With a
//     slot, it waits for the commit, even if ctx is done.
func (db *DB) Batch(ctx context.Context, f func(*Tx) error) error {
	u := &update{fn: f}
	if db.file == nil {
		db.commit([]*update{u})
		return u.err
	}
	select {
	case db.slots <- struct{}{}:
	default: // all are taken; looking at ctx takes time, so it is only done here
		select {
		case db.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	u.done = make(chan struct{})
	db.queueing.Lock()
	db.waiting = append(db.waiting, u)
	if !db.committing {
		db.committing = true
		go db.commitWaiting()
	}
	db.queueing.Unlock()
	<-u.done
	<-db.slots
	return u.err
}

// commitWaiting commits updates until none waits.
func (db *DB) commitWaiting() {
	for {
		runtime.Gosched() // whoever is about to wait shares this commit and its sync
		db.queueing.Lock()
		waiting := db.waiting
		db.waiting = nil
		db.committing = len(waiting) > 0
		db.queueing.Unlock()
		if len(waiting) == 0 {
			return
		}
		for len(waiting) > 0 {
			waiting = db.commit(waiting)
		}
	}
}

// commit makes one commit of as many updates as fit into one, at least one, and
// returns the others. Its callers are released before the file is compacted; the
// next commit waits for that.
//
// Every update that depends on the commit fails with it: it made changes, or it may have
// seen rows that were not written, even if it changed nothing or failed by itself.
func (db *DB) commit(waiting []*update) (rest []*update) {
	db.writer.Lock()
	defer db.writer.Unlock()
	c := db.gather(waiting)
	err := db.write(c)
	if err == nil && len(c.changes) > 0 {
		db.publish(c.changes)
		db.commits.Add(1)
		if db.failed {
			db.Logger.Info("writes work again")
		}
	}
	if len(c.changes) > 0 {
		db.failed = err != nil
	}
	for _, u := range c.updates {
		if err != nil && u.depends {
			u.err = err
		}
		if u.done != nil {
			close(u.done)
		}
	}
	if err == nil && len(c.changes) > 0 {
		db.compact()
	}
	if db.file != nil {
		db.size.Store(db.file.Size())
	}
	return waiting[len(c.updates):]
}

// commit is what is committed at once: the changes of some updates.
type commit struct {
	updates []*update
	changes []change
	isLong  bool // the records are too many for one line, and not all in DB.records
}

// gather runs updates until their changes fill one commit, and puts their records into
// db.records. An update that does not fit beside the ones before it is not one of
// them: it is run again, as the first of the next commit. An update that does not
// fit into a line even alone is a commit by itself.
func (db *DB) gather(waiting []*update) commit {
	var batch *Tx // of the updates so far that have changed something
	db.records = db.records[:0]
	c := commit{updates: waiting}
	for i, u := range waiting {
		own := newTx(db, batch)
		u.depends = batch != nil
		u.err = db.run(u.fn, own)
		if u.err != nil || len(own.changes) == 0 {
			continue
		}
		u.depends = true
		fits := db.addRecords(own.changes)
		if !fits && batch != nil {
			c.updates = waiting[:i]
			return c
		}
		if batch == nil {
			batch = own
		} else {
			batch.merge(own)
		}
		c.changes = batch.changes
		if !fits {
			c.updates = waiting[:i+1]
			c.isLong = true
			return c
		}
	}
	return c
}

// addRecords appends the records of changes to db.records, if a line of the file has
// room for all of them. If not, it leaves db.records as it was and returns false.
func (db *DB) addRecords(changes []change) (fit bool) {
	if db.file == nil {
		return true
	}
	before := len(db.records)
	for _, c := range changes {
		db.records = appendChange(db.records, c)
		if len(db.records) > recordfile.MaxCommit {
			db.records = db.records[:before]
			return false
		}
	}
	return true
}

// run runs one update. A panic in it fails it alone, be it a defect or a row that is
// found damaged.
func (db *DB) run(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		damaged, isError := p.(error)
		if isError && errors.Is(damaged, ErrDamaged) {
			err = damaged
		} else {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if db.closed {
		return ErrClosed
	}
	return fn(tx)
}

// write makes a commit durable, if there is a file. It writes a new file if the records
// do not fit into one line, and if the database is empty: then there may be no file yet,
// and Append needs one with a header.
func (db *DB) write(c commit) error {
	if db.file == nil || len(c.changes) == 0 {
		return nil
	}
	if !c.isLong && len(db.names) > 0 {
		return notWritten(db.timed("commit", func() error { return db.file.Append(db.records) }))
	}
	if db.file.Size() == 0 {
		db.Logger.Info("making a new data file", "data", db.path)
	}
	db.records = nil // which may be large, and is not needed
	return notWritten(db.rewrite(c.changes))
}

// publish publishes durable changes to readers.
func (db *DB) publish(changes []change) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.bulk = len(changes) > bulkChanges
	for _, c := range changes {
		if c.delete {
			db.delete(c.row.ID)
		} else {
			db.put(db.names[c.row.ID], c.row)
		}
	}
	db.endBulk()
}

// rewrite replaces the file by one that holds the rows and then the changes.
func (db *DB) rewrite(changes []change) error {
	return db.timed("rewrite", func() error { return db.file.Rewrite(db.snapshot(changes)) })
}

// snapshot yields the records of a new file: the rows, without idempotency keys that have
// expired, and then the changes.
func (db *DB) snapshot(changes []change) iter.Seq[[]byte] {
	now := db.Now()
	return func(yield func([]byte) bool) {
		var record []byte
		goesOn := db.walk(&db.root, func(r *Row) bool {
			if r.Idempotency.expired(now) {
				record = AppendRecord(record[:0], r.Kind, r.JSON)
			} else {
				record = appendChange(record[:0], change{row: r})
			}
			return yield(record)
		})
		for _, c := range changes {
			if !goesOn {
				return
			}
			record = appendChange(record[:0], c)
			goesOn = yield(record)
		}
	}
}

// outdated is about how many bytes of the file hold changes that later ones replaced.
func (db *DB) outdated() int64 { return db.file.Size() - db.live }

// compact rewrites the file when its outdated part exceeds both compactAt, at first
// 64 MiB, and the live part. The next commit waits meanwhile, reads go on. If it fails,
// the file stays as it is, and it is tried again when 64 MiB more are outdated.
func (db *DB) compact() {
	if db.file == nil || db.file.Err() != nil {
		return
	}
	if db.outdated() < db.compactAt || db.outdated() < db.live {
		return
	}
	err := db.dropOutdated()
	if err != nil {
		db.Logger.Error("the data file was not compacted", "error", err)
	}
	db.compactAt = db.outdated() + db.minOutdated
}

// dropOutdated rewrites the file without what is outdated in it. If that was much, the
// memory that it took is released, too.
func (db *DB) dropOutdated() error {
	dropped := db.outdated()
	err := db.rewrite(nil)
	if err == nil && dropped >= db.minOutdated {
		db.repack()
	}
	return err
}

// repack makes copies of all that the database keeps in memory, so that nothing of it is
// a part of something larger. When a file is loaded, all rows are parts of the one text
// that was read: as long as one of them is left, that text stays, however short the row
// is. A map does not shrink by itself either. Readers go on meanwhile, as the lock is
// held for one row at a time.
func (db *DB) repack() {
	for name, r := range db.names {
		if name == r.ID {
			copied, _ := db.readRow(strings.Clone(r.JSON)) // no error, as r was read from the same text
			db.mu.Lock()
			db.put(r, copied)
			db.mu.Unlock()
		}
	}
	names := maps.Clone(db.names)
	db.mu.Lock()
	defer db.mu.Unlock()
	db.names = names
}
