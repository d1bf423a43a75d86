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

// run runs one call and appends its records to db.records. If the call fails, run drops its changes. It
// returns a panic as an error, because the goroutine may belong to another call.
func (db *DB) run(tx *Tx, c *call) {
	tx.savepoint = len(tx.changes)
	before := len(db.records)
	defer func() {
		p := recover()
		if p != nil {
			c.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if c.err != nil {
			tx.rollback()
			db.records = db.records[:before] // a panic may have left a part
		}
	}()
	if db.closed {
		c.err = ErrClosed
		return
	}
	c.err = c.f(tx)
	if c.err == nil && db.log != nil {
		db.appendChanges(tx.changes[tx.savepoint:])
	}
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
	edits := newListEdits()
	for _, c := range tx.changes {
		id := cmp.Or(c.new, c.old).ID
		before, after := db.index[id], tx.pending.index[id]
		if before == after {
			continue // published with an earlier change, or put and deleted
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
			owner.owned = nil // otherwise, it would stay in memory
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
	edits := newListEdits()
	for _, r := range rows {
		if db.index[r.ID] == r {
			db.replace(r, nil)
			db.relist(edits, r, nil)
		}
	}
	db.edit(edits)
}

// listEdits collects the rows that a commit removes from lists, or inserts before their ends.
type listEdits struct{ removed, inserted map[listKey][]*Row }

func newListEdits() listEdits { return listEdits{map[listKey][]*Row{}, map[listKey][]*Row{}} }

// relist replaces a row in its lists. Either version may be nil. It makes the usual changes immediately: a
// new version takes the place of the old one, and a new row goes to the end. It leaves the others to edits.
func (db *DB) relist(edits listEdits, before, after *Row) {
	for _, key := range before.listKeys() {
		if !after.isIn(key) || after.compare(before.Position) != 0 {
			edits.removed[key] = append(edits.removed[key], before)
		}
	}
	for _, key := range after.listKeys() {
		rows := db.lists[key]
		i, found := len(rows), false
		if i > 0 && rows[i-1].compare(after.Position) >= 0 {
			i, found = slices.BinarySearchFunc(rows, after.Position, (*Row).compare)
		}
		switch {
		case found:
			rows[i] = after
		case i == len(rows):
			db.lists[key] = append(rows, after)
		default:
			edits.inserted[key] = append(edits.inserted[key], after)
		}
	}
}

// edit applies edits to the lists.
func (db *DB) edit(edits listEdits) {
	for key, rows := range edits.removed {
		db.setList(key, removeRows(db.lists[key], sortRows(rows)))
	}
	for key, rows := range edits.inserted {
		db.setList(key, insertRows(db.lists[key], sortRows(rows)))
	}
}

// removeRows removes rows from a list. Both are sorted. It moves the rows between two removed ones together,
// so removing many costs little more than removing one. kept is the number of rows moved so far, and rest is
// the index of the first row to look at.
func removeRows(list, removed []*Row) []*Row {
	kept, rest := 0, 0
	for _, r := range removed {
		i, _ := slices.BinarySearchFunc(list[rest:], r.Position, (*Row).compare)
		kept += copy(list[kept:], list[rest:rest+i])
		rest += i + 1
	}
	return slices.Delete(list, kept, rest)
}

// insertRows inserts rows into a list. Both are sorted. Like removeRows, it moves the rows between two of
// them together, beginning with the last ones.
func insertRows(list, inserted []*Row) []*Row {
	end := len(list)
	list = append(list, inserted...)
	for n, r := range slices.Backward(inserted) { // n other rows come before r
		i, _ := slices.BinarySearchFunc(list[:end], r.Position, (*Row).compare)
		copy(list[i+n+1:], list[i:end])
		list[i+n] = r
		end = i
	}
	return list
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
