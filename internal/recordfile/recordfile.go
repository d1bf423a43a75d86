// Package recordfile keeps commits of JSON records in one append-only file that
// is a JSON array while at rest. It knows lines, not what the records mean.
//
// One line is one commit, written by one write and made durable by one sync:
//
//	[
//	{"c":"8hex","n":41,"format":"events/1","salt":"16hex","snap":44}
//	,{"c":"8hex","n":42,"w":[{"user":{…}}]}
//	,{"c":"8hex","n":43,"w":[{"event":{…}}]}
//	,{"c":"8hex","n":44,"w":[]}
//	,{"c":"8hex","n":45,"w":[{"event":{…}},{"event":{…}}]}
//	]
//
// The first line is the header, all others are commits. Their members stand in
// this order, without spaces:
//
//   - c is the checksum: the CRC-32C of the 16 characters of the salt, followed
//     by the bytes of the line from "n": to its last brace. The header's own
//     checksum has no salt before it.
//   - n is the number of the line. It rises by one from line to line, and goes on
//     through rewrites: an older life of the file has lower numbers.
//   - salt is random and new whenever the file is rewritten, so that a block of
//     an older life of the file, which a disk may still hold, never verifies.
//   - snap is the number of the empty commit that ends the snapshot, which is
//     what the last rewrite wrote. The snapshot was made durable as a whole
//     before the file had its name, so a crash cannot tear it.
//   - w is the records, JSON objects. Inside a JSON string each quote is escaped,
//     so no string in a record can look like the beginning of a line, {"c":".
//
// A line begins with its comma, and the next line overwrites only the closing
// bracket: no byte of a commit that was answered is written again with another
// value.
//
// # Crashes and damage
//
// A crash can leave the last write in pieces, in any order: the disk writes
// blocks, not lines. So [Open] takes the lines while they are right. What one
// unfinished write can have left behind the last of them is put aside and cut;
// the method judge says how that is decided. Everything else is damage, which
// hardware, a defect or an editor makes and no crash does: such a file is
// refused and left as it is, because cutting it could lose what was answered.
//
// A sync that failed leaves bytes in the page cache that the next process reads
// although they are not on disk, and a process that dies within a rewrite leaves
// a name that is not on disk either. So [File.Settle] writes the end of the file
// once more and syncs both, before anything that was read counts as durable.
//
// The tests show two things: what the death of the process at any byte leaves,
// and what a loss of power leaves, simulated from the writes and syncs that this
// package issues, where any blocks of 512 or 4,096 bytes are lost and the others
// kept. They cannot show that a disk keeps what it says it has flushed and leaves
// the bytes around a write alone, nor what network file systems do. Lines that
// are missing at the end, behind the snapshot, look as if they had never been
// there. A file system that shows blocks of deleted files after a crash (FAT, ext4
// with data=writeback) may show a part of a rewrite that failed, with numbers that
// look like damage: the file is refused then, and nothing is lost.
//
// # Files beside it
//
//	FILE.lock       the lock, and the id of the process that holds it; never deleted
//	FILE.tmp        a rewrite that was not finished; removed once FILE is found good
//	FILE.torn-TIME  an unfinished write that was cut; the newest five stay
package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	// MaxCommit is how many bytes of records one commit holds at most.
	MaxCommit = 4 << 20

	// maxTail is the longest rest that one unfinished write can leave, in bytes.
	maxTail = MaxCommit + 8<<10

	// chunk is how much is read or written at once, in bytes.
	chunk = 1 << 20
)

// Options of [Open], [Read] and [Salvage].
type Options struct {
	Format   string                           // of the header, "events/1"; a greater number is a newer format
	Logf     func(format string, args ...any) // takes repairs and warnings, one line each; nil discards them
	Progress func(done, total int64)          // takes the bytes read so far, after each MiB; may be nil

	fs fileSystem // nil is the real one
}

func (o *Options) setDefaults() {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	if o.fs == nil {
		o.fs = osFS{}
	}
}

// A File is an open data file and its lock. Its life is [Open], then [File.Settle]
// or [File.Rewrite], then any number of [File.Append] and Rewrite, then [File.Close].
// One goroutine at a time may use it; only [File.Err] is safe for concurrent use.
type File struct {
	path string
	o    Options
	lock io.Closer // nil once closed
	file file      // nil while there is none

	salt    uint32 // the checksum of the salt alone
	n       uint64 // the number of the last commit
	empty   bool   // the last commit holds no records
	snapEnd int64  // where the snapshot ends
	end     int64  // where the last commit ends and the closing bracket stands
	size    int64  // of the file, as it was read or as the last write left it

	// What Open found, for Settle.
	tail   string // the commits from snapEnd to end, to be written once more
	torn   string // an unfinished write behind them, to be put aside and cut
	repair string // what is wrong with the end of the file, in words; empty where nothing is

	settled bool   // Append may write
	buf     []byte // the line that is being written; kept for its memory
	err     atomic.Pointer[error]
}

// New reports whether there is no file yet: the first [File.Rewrite] makes it.
func (f *File) New() bool { return f.file == nil && f.end == 0 }

// Path is the absolute path of the file, symbolic links resolved.
func (f *File) Path() string { return f.path }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Tail is how many bytes of commits were added since the last rewrite.
func (f *File) Tail() int64 { return f.end - f.snapEnd }

// Err is nil, or why nothing can be written any more until the file is opened
// again: it wraps [ErrBroken] or [ErrReadOnly]. It is safe for concurrent use.
func (f *File) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// fail ends writing for the life of f.
func (f *File) fail(sentinel error, doing string, cause error) error {
	err := fmt.Errorf("%s: %w: %s: %w", f.path, sentinel, doing, cause)
	f.err.Store(&err)
	return err
}

// Close ends the file with an empty commit, where it was settled and has none there
// yet, and releases the lock. It returns what broke the file, if something did.
func (f *File) Close() error {
	if f.lock == nil {
		return nil
	}
	if f.settled && f.Err() == nil {
		f.endEmpty()
	}
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	err = errors.Join(err, f.lock.Close())
	f.lock, f.settled = nil, false
	if broken := f.Err(); errors.Is(broken, ErrBroken) {
		return broken
	}
	return err
}

// Append commits records, JSON objects joined by commas, as one line. When it
// returns nil they are on disk, whole. An error that wraps neither [ErrBroken]
// nor [ErrReadOnly] left the file as it was, and later calls may succeed: a full
// disk heals. After ErrBroken the commit may or may not be there at the next
// [Open], but never a part of it.
func (f *File) Append(records []byte) error {
	if err := f.writable(); err != nil {
		return err
	}
	if !f.settled {
		return fmt.Errorf("%s: append before settle", f.path)
	}
	if err := f.check(records); err != nil {
		return err
	}
	f.buf = append(appendCommit(f.buf[:0], f.salt, f.n+1, records), closing...)
	// How much of it a failed write wrote is not known: os.File.WriteAt may say 0.
	if _, err := f.file.WriteAt(f.buf, f.end); err != nil {
		if undoErr := f.undo(); undoErr != nil {
			return undoErr
		}
		return fmt.Errorf("%s: nothing was added: %w", f.path, err)
	}
	if err := f.sync(); err != nil {
		return err
	}
	f.n++
	f.empty = len(records) == 0
	f.size = f.end + int64(len(f.buf))
	f.end = f.size - int64(len(closing))
	return nil
}

// endEmpty adds an empty commit where the last one holds records, so that damage to
// those can be told from an unfinished write, which nothing follows: see judge. A
// file without room for it is as good as before.
func (f *File) endEmpty() {
	if f.empty {
		return
	}
	if err := f.Append(nil); err != nil && f.Err() == nil {
		f.o.Logf("%s: no empty commit was added at the end: %v", f.path, err)
	}
}

// undo ends the file after its last commit again, where a write failed.
func (f *File) undo() error {
	_, err := f.file.WriteAt([]byte(closing), f.end)
	if err == nil {
		err = f.file.Truncate(f.size)
	}
	if err != nil {
		return f.fail(ErrBroken, "ending the file after its last commit", err)
	}
	return f.sync()
}

// sync is tried once: a second one could succeed although the first lost bytes.
func (f *File) sync() error {
	if err := f.file.Sync(); err != nil {
		return f.fail(ErrBroken, "sync", err)
	}
	return nil
}

var errReplaced = errors.New("it was removed or replaced while it was open; " +
	"keep what is in memory, with eventsd dump, before you stop")

// writable returns why nothing can be written, or nil. What is written to a file
// that was replaced would be lost.
func (f *File) writable() error {
	if f.lock == nil {
		return fmt.Errorf("%s: the file is closed", f.path)
	}
	if err := f.Err(); err != nil || f.file == nil {
		return err
	}
	same, err := f.o.fs.Same(f.path, f.file)
	if err != nil {
		return fmt.Errorf("%s: nothing was added: %w", f.path, err)
	}
	if !same {
		return f.fail(ErrBroken, "looking for the file", errReplaced)
	}
	return nil
}

// check refuses records that cannot be one line.
func (f *File) check(records []byte) error {
	if len(records) > MaxCommit {
		return fmt.Errorf("%s: %w: %d bytes, the limit is %d", f.path, ErrTooLarge, len(records), MaxCommit)
	}
	if bytes.IndexByte(records, '\n') >= 0 {
		return fmt.Errorf("%s: a commit cannot hold a line break", f.path)
	}
	return nil
}
