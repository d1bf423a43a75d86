package jsondb

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"example.com/events/internal/commitlog"
)

const (
	maxSharedCommit = 1 << 20 // bytes of records; a larger commit takes no further call

	// defaultMinStale is the minimum size in bytes of stale records that cause a rewrite. Loading them takes
	// a fraction of a second, so fewer don't matter.
	defaultMinStale = 64 << 20

	// maxDropped is the maximum number of rows that each change removes from memory because they aren't worth
	// keeping. With more than one, they leave faster than they arrive; with few, no commit takes long.
	maxDropped = 4
)

// call is a Batch or Update call.
type call struct {
	f    func(*Tx) error
	err  error
	done chan struct{} // closed once err is final
}

// commitQueue commits all queued calls. The first call that joins the queue in the meantime runs commitQueue
// next.
func (db *DB) commitQueue() {
	db.commitMu.Lock()
	defer db.commitMu.Unlock()
	// The callers of the last commit have just returned. Let their next calls join this commit.
	runtime.Gosched()
	db.queueMu.Lock()
	calls := db.queue
	db.queue = nil
	db.queueMu.Unlock()
	db.commitLocked(calls)
}

func (db *DB) lockAndCommit(calls []*call) {
	db.commitMu.Lock()
	defer db.commitMu.Unlock()
	db.commitLocked(calls)
}

func (db *DB) commitLocked(calls []*call) {
	for len(calls) > 0 {
		calls = db.commit(calls)
		db.compact()
	}
}

// commit commits at least one call and returns the calls that didn't fit.
func (db *DB) commit(calls []*call) (rest []*call) {
	tx := db.begin()
	db.records = db.records[:0]
	n := 0
	for n < len(calls) && len(db.records) < maxSharedCommit {
		db.run(tx, calls[n])
		n++
	}
	calls, rest = calls[:n], calls[n:]
	var err error
	if len(tx.changes) > 0 {
		err = db.write(tx)
		db.report(err)
		if err == nil {
			db.publish(tx)
		}
	}
	for _, c := range calls {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
	return rest
}

// run runs one call and appends its records to db.records.
func (db *DB) run(tx *Tx, c *call) {
	tx.savepoint = len(tx.changes)
	before := len(db.records)
	c.err = db.try(tx, c)
	if c.err != nil {
		tx.rollback()
		db.records = db.records[:before] // a panic may have left a part
	}
}

// try runs a call's function and appends its records. It returns a panic as an error, because the
// goroutine may belong to another call.
func (db *DB) try(tx *Tx, c *call) (err error) {
	defer func() {
		p := recover()
		if p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if db.closed {
		return ErrClosed
	}
	err = c.f(tx)
	if err == nil && db.log != nil {
		db.appendChanges(tx.changes[tx.savepoint:])
	}
	return err
}

// appendChanges appends changes to db.records. It stops when they no longer fit into a line,
// because a rewrite doesn't need them.
func (db *DB) appendChanges(changes []change) {
	for _, c := range changes {
		db.records = appendChange(db.records, c)
		if len(db.records) > commitlog.MaxCommit {
			return
		}
	}
}

// write makes the pending changes durable.
func (db *DB) write(tx *Tx) (err error) {
	if db.log == nil {
		return nil
	}
	if len(db.records) > commitlog.MaxCommit {
		db.records = nil
		err = db.rewrite(tx, "a change was larger than 4 MiB")
	} else {
		err = db.log.Append(db.records)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return nil
}

// report logs the first failed commit and the first successful one after it.
func (db *DB) report(err error) {
	failed := db.lastErr.Load() != nil
	if err == nil {
		if failed {
			db.lastErr.Store(nil)
			db.logger.Info("data file can be written again")
		}
		return
	}
	db.lastErr.Store(&err)
	if !failed {
		db.logger.Error("data file cannot be written", "error", err)
	}
}

// publish makes pending changes visible. It changes lists in place, because readers wait for it.
func (db *DB) publish(tx *Tx) {
	db.mu.Lock()
	defer db.mu.Unlock()
	edits := map[listKey]*listEdit{}
	for _, c := range tx.changes {
		id := cmp.Or(c.new, c.old).ID
		before, after := db.index[id], tx.pending.index[id]
		if before == after {
			continue // published with an earlier change
		}
		db.replace(before, after)
		db.relist(edits, before, after)
	}
	db.edit(edits)
	for i := range db.tables {
		if db.tables[i].Keep != nil {
			db.drop(&db.tables[i], maxDropped*len(tx.changes))
		}
	}
}

// replace replaces a row in the index and in the statistics. Either version may be nil.
func (db *DB) replace(before, after *Row) {
	db.reindex(before, after)
	if before != nil {
		db.count[before.Table]--
		db.live -= before.lineSize()
	}
	if after != nil {
		db.count[after.Table]++
		db.live += after.lineSize()
	}
}

// reindex replaces a row in the index. Either version may be nil.
func (db *DB) reindex(before, after *Row) {
	if before != nil && after == nil {
		delete(db.index, before.ID)
	}
	// The unique key is free unless another row has taken it over.
	if before != nil && before.UniqueKey != "" && db.index[before.UniqueKey] == before &&
		(after == nil || after.UniqueKey != before.UniqueKey) {
		delete(db.index, before.UniqueKey)
	}
	if after != nil {
		db.index[after.ID] = after
		if after.UniqueKey != "" {
			db.index[after.UniqueKey] = after
		}
	}
	if before != nil {
		owner := db.view.owner(before)
		if owner != nil && owner.owned == before {
			owner.owned = nil // free its memory
		}
	}
}

// drop removes at most n of the oldest rows of a table from memory, as long as they aren't worth keeping.
func (db *DB) drop(table *Table, n int) {
	key := listKey{table: table}
	rows, now := db.lists[key], db.now()
	dropped := 0
	for dropped < min(n, len(rows)) && !table.Keep(rows[dropped], now) {
		db.replace(rows[dropped], nil)
		dropped++
	}
	clear(rows[:dropped])
	db.setList(key, rows[dropped:])
}

// forget removes rows from memory that a rewrite has left out of the file. Otherwise, if their table wanted
// to keep them again, readers would find rows that aren't on disk. A row isn't in memory yet if it is
// pending.
func (db *DB) forget(rows []*Row) {
	db.mu.Lock()
	defer db.mu.Unlock()
	edits := map[listKey]*listEdit{}
	for _, r := range rows {
		if db.index[r.ID] == r {
			db.replace(r, nil)
			db.relist(edits, r, nil)
		}
	}
	db.edit(edits)
}

// relist replaces a row in its lists. Either version may be nil. It makes the usual changes immediately: a
// new version takes the place of the old one, and a new row goes to the end. It leaves all others to edits.
func (db *DB) relist(edits map[listKey]*listEdit, before, after *Row) {
	edit := func(key listKey) *listEdit {
		if edits[key] == nil {
			edits[key] = &listEdit{}
		}
		return edits[key]
	}
	samePlace := before != nil && after != nil && before.compare(after.Position) == 0
	oldKeys, newKeys := before.listKeys(), after.listKeys()
	for _, key := range oldKeys {
		if !samePlace || !slices.Contains(newKeys, key) {
			e := edit(key)
			e.removed = append(e.removed, before)
		}
	}
	for _, key := range newKeys {
		rows := db.lists[key]
		switch {
		case samePlace && slices.Contains(oldKeys, key):
			i, _ := slices.BinarySearchFunc(rows, after.Position, (*Row).compare)
			rows[i] = after
		case len(rows) == 0 || rows[len(rows)-1].compare(after.Position) < 0:
			db.lists[key] = append(rows, after)
		default:
			e := edit(key)
			e.added = append(e.added, after)
		}
	}
}

// A listEdit collects the rows that a commit removes from a list and adds to it.
type listEdit struct{ removed, added []*Row }

// apply edits a sorted list in place. It moves each run of rows between two edits once, so many edits cost
// little more than one.
func (e *listEdit) apply(rows []*Row) []*Row {
	kept, rest := 0, 0
	for _, r := range sortRows(e.removed) {
		i, _ := slices.BinarySearchFunc(rows[rest:], r.Position, (*Row).compare)
		kept += copy(rows[kept:], rows[rest:rest+i])
		rest += i + 1
	}
	rows = slices.Delete(rows, kept, rest)

	end := len(rows)
	added := sortRows(e.added)
	rows = append(rows, added...)
	for n := len(added); n > 0; n-- {
		i, _ := slices.BinarySearchFunc(rows[:end], added[n-1].Position, (*Row).compare)
		copy(rows[i+n:], rows[i:end])
		rows[i+n-1] = added[n-1]
		end = i
	}
	return rows
}

// edit applies edits to the lists.
func (db *DB) edit(edits map[listKey]*listEdit) {
	for key, edit := range edits {
		db.setList(key, edit.apply(db.lists[key]))
	}
}

func (db *DB) setList(key listKey, rows []*Row) {
	if len(rows) == 0 {
		delete(db.lists, key)
	} else {
		db.lists[key] = rows
	}
}

// compact rewrites the file if enough of it is stale. If the rewrite fails, the old file stays in use.
func (db *DB) compact() {
	if db.log == nil || db.closed {
		return
	}
	stale := db.log.Size() - db.live
	if stale >= db.minStale && stale >= db.log.Size()/2 {
		db.rewriteStale("at least half of it was stale")
	}
	db.bytes.Store(db.log.Size())
}

// rewriteStale rewrites the file to remove stale records, unless that has just failed.
func (db *DB) rewriteStale(reason string) {
	if db.log.Size() < db.retrySize {
		return
	}
	err := db.rewrite(&db.view, reason)
	if err != nil {
		db.logger.Error("data file not rewritten", "error", err)
		db.retrySize = db.log.Size() + db.minStale
	}
}

// rewrite replaces the file with a snapshot, including pending changes.
func (db *DB) rewrite(tx *Tx, reason string) error {
	began := time.Now()
	before := db.log.Size()
	var rows, left []*Row // lists, because the header depends on their number
	now := db.now()
	for r := range tx.All() {
		if r.Table.Keep == nil || r.Table.Keep(r, now) {
			rows = append(rows, r)
		} else {
			left = append(left, r)
		}
	}
	var record []byte
	err := db.log.Rewrite(len(rows), func(yield func([]byte) bool) {
		for _, r := range rows {
			record = r.appendRecord(record[:0])
			if !yield(record) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	db.retrySize = 0
	db.forget(left)
	db.logger.Info("data file rewritten", "reason", reason,
		"bytes_before", before, "bytes", db.log.Size(), "took_ms", time.Since(began).Milliseconds())
	return nil
}
