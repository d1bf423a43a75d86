// Package commitlog stores commits of JSON records in one append-only file. Each commit is stored whole or
// not at all. It is durable as soon as [Log.Append] returns. A closed file is a valid JSON array.
//
// Each commit is one line. Append writes it with one write and one sync. The package doesn't look into
// records.
//
//	[
//	{"c":"8hex","n":41,"format":"events/2","salt":"16hex","snap":44}
//	,{"c":"8hex","n":42,"w":[{"user":{…}}]}
//	,{"c":"8hex","n":43,"w":[{"event":{…}}]}
//	,{"c":"8hex","n":44,"w":[]}
//	,{"c":"8hex","n":45,"w":[{"event":{…}},{"event":{…}}]}
//	]
//
// The line after the opening bracket is the header; all others are commits. The fields always have this order
// and no spaces:
//
//   - c is the checksum, a CRC-32C over the 16 characters of the salt, followed by the line from "n": to its
//     last brace, inclusive. Only the header's checksum doesn't begin with the salt.
//   - n is the commit number. It increases by one per line. The header has a number, too.
//   - format names the record format.
//   - salt is random and changes with each rewrite. So stale blocks, which the disk may still hold from
//     before the rewrite, have no valid checksum.
//   - snap is the number of the empty commit that ends the snapshot. The snapshot is the content of the last
//     rewrite. It was durable before the file got its name, so a crash never tears it.
//   - w holds the records. No record contains {"c":", the beginning of a line: JSON escapes quotes inside
//     strings, and an object in a record must not begin with a field c.
//
// An older program must recognize a newer file, so that it can refuse it and say why. Therefore, no later
// format may change the opening bracket, the beginning of the header up to the format, and the header's
// checksum without the salt. A header also has at most 4 KiB, and n at most 63 bits.
//
// # Appending
//
// [Log.Append] overwrites the closing bracket with a comma, the line, a line feed and a new closing bracket.
// It does so in one write and then syncs the file. The bytes of durable commits never change, because each
// write starts after them.
//
// If a write fails, for example on a full disk, Append undoes it: it restores the closing bracket, truncates
// the file and syncs it. Later commits may succeed. If the undo fails too, or if a sync fails, nobody knows
// which bytes are on disk, and another sync could succeed although they are lost. Then the log is broken: it
// writes nothing until the file is opened again. The log also breaks if its path leads to another file, or if
// the file's length has changed, because new commits would be lost.
//
// [Log.Rewrite] writes a snapshot to FILE.tmp, syncs it, renames it to FILE and syncs the directory. A new
// file is created in the same way, but never replaces one that has appeared in the meantime.
//
// [Log.Close] appends an empty commit. If the last commit with records is damaged later, the empty commit
// proves that it was durable. Without it, the damage would look like a torn write.
//
// # Recovering
//
// [Open] reads lines while they are valid and then judges the rest of the file:
//
//   - The rest is the closing bracket: the log was closed, or its process was killed between two writes.
//   - The rest can be a torn write, which is a part of one commit that was never acknowledged. Open saves it
//     as FILE.torn-TIME and truncates the file. It fails if it can't save the rest, because after a kill, the
//     rest may also be an acknowledged commit that was damaged later.
//   - Anything else is damage, such as a wrong byte with valid commits behind it. Crashes don't leave it;
//     hardware, bugs and editors do. Open returns [ErrDamaged] and changes nothing.
//
// The last valid line may be in the page cache only, if the process was killed before a sync or if the sync
// failed. All lines before it are on disk, because each one was synced before the next was written. So Open
// copies the last line onto itself, so that the next sync writes it again, and syncs the file. It also
// deletes FILE.tmp and syncs the directory, because a rename may not be durable yet. A crash during recovery
// leaves one of the same cases. Open decides all this before it changes anything.
//
// The tests simulate a disk that loses power. It keeps or loses each block of 512 or 4,096 bytes that was
// written since the last sync. They assume that a disk keeps what it reports as flushed and doesn't corrupt
// neighboring bytes. They don't cover network file systems. On a file system that shows old blocks of deleted
// files after a crash, part of a failed rewrite can look like damage; the file is refused then, and nothing
// is lost. If whole lines after the snapshot are missing at the end, nothing shows that.
//
// # Files
//
//	FILE            the commits
//	FILE.lock       locked by the process that has FILE open, and contains its process ID; never deleted
//	FILE.tmp        an unfinished rewrite
//	FILE.torn-TIME  a torn write; never deleted
//
// On Unix, FILE itself is also locked, like FILE.tmp before its rename. So a second process can't open FILE
// after someone replaced FILE.lock or, until the next rewrite, through a hard link.
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
	// MaxCommit is the maximum size of a commit's records in bytes.
	MaxCommit = 4 << 20

	// maxTornWrite is the maximum size in bytes that an interrupted write can leave. A line and the closing
	// bracket add less than 100 bytes to the records, and a file system may round the file length up to a
	// whole block, usually of 4 KiB.
	maxTornWrite = MaxCommit + 8<<10

	lockTimeout  = 5 * time.Second
	lockInterval = 20 * time.Millisecond

	tmpSuffix  = ".tmp"
	tornSuffix = ".torn-"
)

// Options configures [Open] and [Check].
type Options struct {
	// Formats are the known formats, oldest first. Rewrite writes the last one. Formats must not be empty.
	Formats []string

	// Logger receives a line when the file is opened, created or recovered. If nil, nothing is logged.
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

// A Log is an open commit file. Only Err and Path are safe for concurrent use.
type Log struct {
	options Options
	path    string
	lock    io.Closer
	file    file
	broken  atomic.Pointer[error] // nil while the log can be written
	end     tail
	buf     []byte // reused by Append
}

// Open opens or creates the file at path. It locks the file, calls replay with each commit in order and
// recovers from a crash. Then everything that replay got is durable. If another process has the file open,
// Open retries for five seconds. It follows symbolic links, but not to a missing file.
//
// If replay returns an error, Open refuses the file as damaged at that line. It never changes a file that it
// refuses. The error wraps [ErrLocked], [ErrDamaged] or [ErrFormat], or comes from the file system.
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
		err = l.createFile()
		if !errors.Is(err, errAppeared) {
			return err
		}
		// Someone removed the lock file, and another process has just created the data file.
		l.file, err = retry(deadline, func() (file, error) { return disk.OpenLocked(l.path) })
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

// Path returns the absolute file path without symbolic links.
func (l *Log) Path() string { return l.path }

// Size returns the file length in bytes.
func (l *Log) Size() int64 { return l.end.offset + int64(len(closing)) }

// Err returns the error that broke the log, or nil. The error wraps [ErrBroken].
func (l *Log) Err() error {
	err := l.broken.Load()
	if err == nil {
		return nil
	}
	return *err
}

// markBroken breaks the log and returns the error that [Log.Err] reports from now on.
func (l *Log) markBroken(action string, cause error) error {
	err := fmt.Errorf("%s: %w: %s: %w", l.path, ErrBroken, action, withoutPath(cause))
	l.broken.Store(&err)
	return err
}

// Close appends an empty commit, unless the last commit is empty, and unlocks the file. If the log is broken,
// Close returns the error that broke it. After Close, call only Path, Size and Err.
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

// release closes the file and then its lock.
func (l *Log) release() (err error) {
	if l.file != nil {
		err = l.file.Close()
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}
