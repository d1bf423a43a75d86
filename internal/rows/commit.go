package rows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"example.com/events/internal/recordfile"
)

const (
	maxQueue    = 4096     // updates that wait or are committed at a time; more block in Update
	bulkChanges = 256      // a commit of more changes than these is published in bulk
	minOutdated = 64 << 20 // bytes of the file that are outdated before it is compacted
)

// update is one call of [DB.Update].
type update struct {
	fn     func(*Tx) error
	err    error         // of the call
	joined bool          // it saw changes of updates before it in the same commit
	done   chan struct{} // closed once err is final
}

// Update calls f, which changes the database. It returns once the changes are on
// disk and Views see them, or with the error of f, and nothing is changed then.
// [ErrNotWritten] means that the changes are not visible now. After a failed sync
// they may still be found at the next start.
//
// Updates that wait at the same time share one commit. For that, f may be called
// a second time, when what it changed does not fit into the same commit; and an f
// that fails because of a change that in the end was not written is reported as
// not written. When ctx is done, Update stops waiting for one of the slots of the
// queue. Once it has a slot, it waits for the commit, even if ctx is done.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
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
// Every update that succeeded fails with the commit, even one that changed nothing:
// it may have seen rows that were not written. For the same reason an update that
// failed after it saw changes of the commit gets the error of the commit.
func (db *DB) commit(waiting []*update) (rest []*update) {
	db.writer.Lock()
	defer db.writer.Unlock()
	taken, changes := db.gather(waiting)
	err := db.write(changes)
	if err == nil && len(changes) > 0 {
		db.publish(changes)
		db.commits.Add(1)
	}
	for _, u := range taken {
		if err != nil && (u.err == nil || u.joined) {
			u.err = err
		}
		if u.done != nil {
			close(u.done)
		}
	}
	if err == nil {
		db.compact()
	}
	return waiting[len(taken):]
}

// gather runs updates until their changes fill one commit, whose records are then
// in db.records. It returns the updates of this commit and their changes. The update
// that did not fit is not one of them: it is run again in the next commit. An update
// whose changes alone are more than a commit holds is the only one in its commit:
// db.records is longer than a commit then, and does not hold all of its records.
func (db *DB) gather(waiting []*update) (taken []*update, changes []change) {
	var batch *Tx // of the updates so far that have changed something
	db.records = db.records[:0]
	for i, u := range waiting {
		own := newTx(db, batch)
		u.joined = batch != nil
		if u.err = db.run(u.fn, own); u.err != nil {
			continue
		}
		before := len(db.records)
		if db.file != nil {
			for _, c := range own.changes {
				if len(db.records) <= recordfile.MaxCommit {
					db.records = appendChange(db.records, c)
				}
			}
		}
		full := len(db.records) > recordfile.MaxCommit
		switch {
		case full && u.joined: // it is the first of the next commit
			db.records = db.records[:before]
			return waiting[:i], changes
		case u.joined:
			batch.merge(own)
		case len(own.changes) > 0:
			batch = own
		}
		if batch != nil {
			changes = batch.changes
		}
		if full {
			return waiting[:i+1], changes
		}
	}
	return waiting, changes
}

// run runs one update. A panic in it fails it alone, be it a defect or a row that is
// found damaged.
func (db *DB) run(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if err, _ = p.(error); !errors.Is(err, ErrDamaged) {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}
	}()
	if db.closed {
		return ErrClosed
	}
	return fn(tx)
}

// write makes changes durable, if there is a file. Their records are in db.records. It
// writes a new file if they do not fit into one commit, and if the database is empty:
// then there may be no file yet, and Append needs one with a header.
func (db *DB) write(changes []change) error {
	switch {
	case db.file == nil || len(changes) == 0:
		return nil
	case len(db.records) > recordfile.MaxCommit || len(db.names) == 0:
		if db.records = nil; db.file.Size() == 0 {
			db.Logger.Info("making a new data file", "data", db.path)
		}
		return notWritten(db.rewrite(changes))
	}
	return notWritten(db.file.Append(db.records))
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
			db.put(c.row)
		}
	}
	db.endBulk()
}

// rewrite replaces the file by one that holds the rows, without idempotency keys
// that have expired, and then the changes.
func (db *DB) rewrite(changes []change) error {
	now := db.Now()
	return db.file.Rewrite(func(yield func([]byte) bool) {
		var record []byte
		ok := db.walk(&db.root, func(r *Row) bool {
			if record = appendChange(record[:0], change{row: r}); r.Idempotency.expired(now) {
				record = AppendRecord(record[:0], r.Kind, r.JSON)
			}
			return yield(record)
		})
		for i := 0; ok && i < len(changes); i++ {
			record = appendChange(record[:0], changes[i])
			ok = yield(record)
		}
	})
}

// outdated is about how many bytes of the file hold changes that later ones replaced.
func (db *DB) outdated() int64 { return db.file.Size() - db.live }

// compact rewrites the file when its outdated part exceeds both compactAt, at first
// 64 MiB, and the live part. The next commit waits meanwhile, reads go on. If it fails,
// the file stays as it is, and it is tried again when 64 MiB more are outdated.
func (db *DB) compact() {
	if db.file == nil || db.outdated() < db.compactAt || db.outdated() < db.live || db.file.Err() != nil {
		return
	}
	if err := db.rewrite(nil); err != nil {
		db.Logger.Error("the data file was not compacted", "error", err)
	}
	db.compactAt = db.outdated() + minOutdated
}
