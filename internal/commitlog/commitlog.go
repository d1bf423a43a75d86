// Package commitlog keeps commits of JSON records in one append-only file, durable, a JSON array at rest.
//
// A commit is a list of records, which are JSON objects, that is stored whole or not at all. This package
// doesn't look into records. Each commit is one line, written by one write and made durable by one fsync:
//
//	[
//	{"c":"8hex","n":41,"format":"events/1","salt":"16hex","snap":44}
//	,{"c":"8hex","n":42,"w":[{"user":{…}}]}
//	,{"c":"8hex","n":43,"w":[{"event":{…}}]}
//	,{"c":"8hex","n":44,"w":[]}
//	,{"c":"8hex","n":45,"w":[{"event":{…}},{"event":{…}}]}
//	]
//
// The line after the opening bracket is the header; all others are commits. Their fields have this order,
// without spaces:
//
//   - c is a checksum: the CRC-32C of the 16 characters of the salt, followed by the bytes of the line from
//     "n": to its last brace. The checksum of the header has no salt before it.
//   - n is the number of the commit. It increases by one per line. The header has a number as well.
//   - format names the form of the records.
//   - salt is random, and new after each rewrite. A stale block, which a disk may still hold from before the
//     rewrite, therefore never has a valid checksum.
//   - snap is the number of the empty commit that ends the snapshot. The snapshot is everything that the last
//     rewrite wrote. All of it was durable before the file got its name, so no crash can tear it.
//   - w holds the records. Every quote within a JSON string is escaped, so no record can contain the
//     beginning of a line, {"c":".
//
// # Appending
//
// [Log.Append] writes a comma, the line, its line feed and a new closing bracket over the closing bracket, in
// one write, and then syncs the file. When the sync has returned, the commit is durable. A durable commit is
// never overwritten by other bytes, because the next write begins at its end.
//
// A write that fails, for example on a full disk, is undone: the closing bracket is restored and the file
// truncated and synced, and later commits may succeed. If this fails, or if a sync fails, it is unknown what
// is on disk. A second sync could succeed although the first has lost bytes. The log is broken then, and
// writes nothing until the file is opened again. It also breaks if the file at its path is no longer the open
// one, or has another length than the log left it with, because whatever it wrote would be lost.
//
// [Log.Rewrite] writes a snapshot to FILE.tmp, syncs it, renames it to FILE and syncs the directory.
//
// [Log.Close] appends an empty commit. If the last commit with records is damaged later, the empty commit
// after it proves that it was durable. Without it, the damage would look like a torn write (see below).
//
// # Recovering
//
// A crash is the death of the process or of the machine. [Open] reads lines while they are valid and then
// judges the rest, which is everything after the last valid line. It finds one of these:
//
//   - Closed: the rest is the closing bracket.
//   - Killed between two writes: the same, but without an empty commit at the end.
//   - Killed or cut off within a write: the rest is a torn write, some of the bytes of one commit in any
//     order, because disks write blocks and not lines. The commit was never acknowledged. Open saves the rest
//     as FILE.torn-TIME and truncates it. If all bytes of the commit are there, it is valid and stays.
//     Open fails if it can't save the rest, for example on a full disk: after a kill, damage to the last
//     commit, which was acknowledged, looks like a torn write, and the rest is then all that is left of it.
//   - Killed between a write and its sync, or restarted after a failed sync: the last lines are valid, but
//     perhaps only in the page cache. Before Open returns, it copies everything after the snapshot onto
//     itself, which marks it as unwritten again, and syncs the file.
//   - Killed within a rewrite: FILE is the old file or the new one, whole. Open deletes FILE.tmp, and syncs
//     the directory because the rename may not be durable yet.
//   - Anything else, such as a wrong byte with valid commits after it, is damage. No crash leaves it, but
//     hardware, defects and editors do. Open returns [ErrDamaged] and changes nothing, because truncating
//     could delete commits that were acknowledged.
//
// Open decides all this before it changes anything, and then appends an empty commit unless the file ends
// with one. A crash while it recovers leaves one of the same cases.
//
// The tests simulate a disk that loses power: any blocks of 512 or 4,096 bytes that were written since the
// last sync are lost, and the others kept. They can't show that a disk keeps what it reports as flushed, that
// it leaves the bytes around a write alone, or what a network file system does. A file system that shows
// blocks of deleted files after a crash may show part of a rewrite that failed, with numbers that look like
// damage: the file is refused then, and nothing is lost. Whole lines that are missing at the end, after the
// snapshot, leave no trace.
//
// # Files
//
//	FILE            the commits
//	FILE.lock       locked by the process that has FILE open, whose ID it contains; never deleted
//	FILE.tmp        an unfinished rewrite
//	FILE.torn-TIME  a torn write; never deleted
//
// On Unix, FILE is locked as well, and so is FILE.tmp before it is renamed. Neither a hard link to FILE nor a
// replaced FILE.lock lets a second process in.
package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// MaxCommit is the maximum size of the records of one commit, in bytes.
	MaxCommit = 4 << 20

	// maxTornWrite is the maximum size of what one write can leave after the last commit, in bytes. Next to
	// the records, a line and the closing bracket have under 100 bytes. A file system may round the length
	// of the file up to a whole block, usually of 4 KiB.
	maxTornWrite = MaxCommit + 8<<10

	lockTimeout  = 5 * time.Second // for which Open retries to lock the file
	lockInterval = 20 * time.Millisecond

	tmpSuffix  = ".tmp"
	tornSuffix = ".torn-"
)

// Options configures [Open] and [Check].
type Options struct {
	// Formats are the names of the formats that can be read, the oldest first. Rewrite writes the last.
	// There must be at least one.
	Formats []string

	// Logger receives a line when Open opens, creates or recovers the file. If nil, nothing is logged.
	Logger *slog.Logger

	fs fileSystem // if nil, the operating system's
}

func (o Options) withDefaults() Options {
	if o.fs == nil {
		o.fs = osFS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Log is an open file of commits. It can be written until [Log.Close], or until it breaks (see [Log.Err]).
// Only Err is safe for concurrent use; callers must serialize the other methods.
type Log struct {
	options Options
	path    string
	lock    io.Closer
	file    file
	broken  atomic.Pointer[error] // nil while the log can be written

	tail
	snapEnd int64  // offset of the end of the snapshot
	buf     []byte // the last line written, kept for its memory
}

// Open locks the file at path, reads it, calls replay for each commit in order, and recovers what a crash
// left. If the file is missing, Open creates it. Symbolic links are followed, but not to a missing file. If
// another process has the file open, Open retries for five seconds.
//
// If replay returns an error, the file is refused as damaged at that line. A file that is refused is not
// changed. When Open has returned, everything passed to replay is durable.
//
// The error wraps [ErrLocked], [ErrDamaged] or [ErrFormat], or is the file system's.
func Open(path string, o Options, replay func(Commit) error) (*Log, error) {
	l := &Log{options: o.withDefaults()}
	err := l.open(path, replay)
	if err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *Log) open(path string, replay func(Commit) error) (err error) {
	disk := l.options.fs
	l.path, err = disk.Resolve(path)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(lockTimeout)
	l.lock, err = retry(deadline, func() (io.Closer, error) { return disk.Lock(l.path) })
	if err != nil {
		return err
	}
	l.file, err = retry(deadline, func() (file, error) { return disk.OpenLocked(l.path) })
	if errors.Is(err, fs.ErrNotExist) {
		return l.createFile()
	}
	if err != nil {
		return err
	}
	size, err := disk.Size(l.path, l.file)
	if err != nil {
		return err
	}
	l.options.Logger.Info("opening data file", "data", l.path, "bytes", size)
	r := reader{path: l.path, file: l.file, formats: l.options.Formats, replay: replay}
	err = r.read()
	if err != nil {
		return err
	}
	err = l.repair(&r)
	if err != nil {
		return fmt.Errorf("recover %s: %w", l.path, err)
	}
	return nil
}

func (l *Log) createFile() error {
	err := l.rewrite(0, func(func([]byte) bool) {})
	if err != nil {
		return err
	}
	l.options.Logger.Info("created data file", "data", l.path)
	return nil
}

// retry calls open again while it returns ErrLocked, until the deadline.
func retry[T any](deadline time.Time, open func() (T, error)) (opened T, err error) {
	for {
		opened, err = open()
		if !errors.Is(err, ErrLocked) || !time.Now().Before(deadline) {
			return opened, err
		}
		time.Sleep(lockInterval)
	}
}

// Path returns the absolute path of the file, with symbolic links followed.
func (l *Log) Path() string { return l.path }

// Size returns the length of the file in bytes.
func (l *Log) Size() int64 { return l.offset + int64(len(closing)) }

// SnapshotSize returns the length in bytes that the file had after its last rewrite.
func (l *Log) SnapshotSize() int64 { return l.snapEnd + int64(len(closing)) }

// Err returns the error that broke the log, which wraps [ErrBroken], or nil.
func (l *Log) Err() error {
	err := l.broken.Load()
	if err == nil {
		return nil
	}
	return *err
}

// fail breaks the log and returns the error for it.
func (l *Log) fail(action string, cause error) error {
	err := fmt.Errorf("%s: %w: %s: %w", l.path, ErrBroken, action, unnamed(cause))
	l.broken.Store(&err)
	return err
}

// Close appends an empty commit unless the file ends with one, and unlocks the file. It returns the error
// that broke the log, if any. After Close, only Path, Size, SnapshotSize and Err may be called.
func (l *Log) Close() error {
	if l.Err() == nil {
		l.appendEmpty()
	}
	err := l.release()
	if l.Err() != nil {
		return l.Err()
	}
	return err
}

// release closes everything that is open, the lock last.
func (l *Log) release() (err error) {
	if l.file != nil {
		err = l.file.Close()
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}
