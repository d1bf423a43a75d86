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
// The line after the opening bracket is the header, all others are commits. Their
// members stand in this order, without spaces:
//
//   - c is the checksum: the CRC-32C of the 16 characters of the salt, followed
//     by the bytes of the line from "n": to its last brace. The header's own
//     checksum has no salt before it.
//   - n is the number of the commit, which is not the number of its line in the
//     file. The header has one, too. Each line's n is one more than that of the line
//     before. A rewrite begins a new generation of the file and goes on counting, so
//     an older generation has lower numbers.
//   - format names what the records are like. This package only looks for it in
//     the list of [Options].
//   - salt is random and new whenever the file is rewritten, so that a block of
//     an older generation, which a disk may still hold, never verifies.
//   - snap is the number of the empty commit that ends the snapshot, which is
//     what the last rewrite wrote. The snapshot was made durable as a whole
//     before the file had its name, so a crash cannot tear it.
//   - w is the records, JSON objects. Inside a JSON string each quote is escaped,
//     so no string in a record can look like the beginning of a line, {"c":".
//
// A line begins with its comma, and the next line overwrites only the closing
// bracket and what follows it. So no byte of a durable commit is ever overwritten
// with another value.
//
// # Crashes and damage
//
// A crash can leave the last write in pieces, in any order: the disk writes
// blocks, not lines. So [Open] accepts the lines while they are right. What one
// unfinished write can have left after the last of them is put aside and cut;
// the method judgeRest says how that is decided. A last commit that is whole stays,
// even if its [File.Append] never returned. Everything else is damage, which
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
// are missing at the end, after the snapshot, look as if they had never been
// there. A file system that shows blocks of deleted files after a crash (FAT, ext4
// with data=writeback) may show a part of a rewrite that failed, with numbers that
// look like damage: the file is refused then, and nothing is lost.
//
// # Files beside it
//
//	FILE.lock       the lock of the process that has FILE open, with its process ID; never deleted
//	FILE.sock       a socket of that process, which this package only knows by its name
//	FILE.tmp        a rewrite that was not finished; removed once FILE is found good
//	FILE.torn-TIME  an unfinished write that was cut; never deleted
package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
)

const (
	// MaxCommit is how many bytes of records one commit holds at most.
	MaxCommit = 4 << 20

	// maxUnfinished is the most that one unfinished write can leave after the last commit, in bytes.
	maxUnfinished = MaxCommit + 8<<10
)

// Options of [Open] and [Read].
type Options struct {
	// Formats are the names of the formats that can be read, such as "events/1" and
	// "events/2", the oldest first. A rewrite writes the last. A file of any other is refused.
	Formats []string

	// Logger takes what ends writing, and what a process left that did not end well. Nothing
	// is logged if it is nil.
	Logger *slog.Logger

	fs fileSystem // nil is the real one
}

// latest is the format that a rewrite writes.
func (o *Options) latest() string { return o.Formats[len(o.Formats)-1] }

// withDefaults is the options with a file system and a logger.
func (o Options) withDefaults() Options {
	if o.fs == nil {
		o.fs = osFS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A File is an open data file and its lock. The order of calls is [Open], [File.Settle]
// or [File.Rewrite], then any number of [File.Append] and Rewrite, then [File.Close].
// One goroutine at a time may use it; only [File.Err] is safe for concurrent use.
type File struct {
	Options
	path   string    // absolute, symbolic links resolved
	lock   io.Closer // nil once closed
	dir    handle    // the folder, open all the time: no later lack of descriptors can end writing
	data   handle    // the file at path; nil while there is none
	format string    // that it has

	tail           // where the next commit goes
	snapEnd  int64 // where the snapshot ends
	buf      []byte
	mustUndo bool // a write failed, and what it left after the last commit is still there

	// unsettled is what Settle or Rewrite has to make right and durable before Append may write;
	// nil once that is done.
	unsettled *unsettled

	// whyEnded is why nothing can be written any more; nil while the file is open for that. change
	// sets it, and nothing else.
	whyEnded atomic.Pointer[EndedError]
}

// Open takes the lock of the file at path, reads the file and calls replay once for
// each commit, in order. An error from replay refuses the file: it becomes the reason of a
// [*DamageError] for that line.
//
// Open changes nothing on disk but the lock file, so that its caller can still
// refuse what was read and leave the file as it is; [File.Settle] repairs what one
// unfinished write left at the end. A file that is missing is new: the first
// [File.Rewrite] makes it. If another process has the lock, Open tries again for 5 s. If Open fails, its
// error is a [*DamageError], a [*LockedError] or a [*FormatError], or is the system's own.
func Open(path string, o Options, replay func(Line) error) (*File, error) {
	f := &File{Options: o.withDefaults()}
	err := f.open(path, replay)
	if err == nil {
		return f, nil
	}
	f.release()
	return nil, err
}

// open does the work of Open. If it fails, f holds what is to be closed.
func (f *File) open(path string, replay func(Line) error) (err error) {
	f.path, err = f.fs.Resolve(path)
	if err != nil {
		return err
	}
	err = f.takeLock()
	if err != nil {
		return err
	}
	f.dir, err = f.fs.Open(filepath.Dir(f.path), os.O_RDONLY, nil)
	if err != nil {
		return err
	}
	f.data, err = f.fs.Open(f.path, os.O_RDWR, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.unsettled = &unsettled{}
	f.format = f.latest()
	f.empty = true
	if f.data == nil {
		return nil
	}
	r := reader{Options: f.Options, path: f.path, data: f.data, replay: replay}
	err = r.readHeader()
	if err != nil {
		return err
	}
	err = r.readLines()
	if err != nil {
		return err
	}
	err = r.judgeRest()
	if err != nil {
		return err
	}
	f.format = r.format
	f.tail = r.tail
	f.snapEnd = r.snapEnd
	f.unsettled = &r.unsettled
	return nil
}

// release closes all that open opened.
func (f *File) release() error {
	err := closeAll(f.data, f.dir, f.lock)
	f.data, f.dir, f.lock = nil, nil, nil
	return err
}

// Path is the absolute path of the file, symbolic links resolved.
func (f *File) Path() string { return f.path }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// IsOld reports whether the file has an older format than the newest. Nothing is written to
// such a file: [File.Rewrite] replaces it.
func (f *File) IsOld() bool { return f.format != f.latest() }

// BytesSinceRewrite is how many bytes of commits were appended since the last rewrite.
func (f *File) BytesSinceRewrite() int64 { return f.end - f.snapEnd }

// Err is nil, or an [*EndedError]: why nothing can be written any more until the file is opened
// again. It is safe for concurrent use.
func (f *File) Err() error {
	ended := f.whyEnded.Load()
	if ended == nil {
		return nil
	}
	return ended
}

// endedError makes of err, if it is not nil, an error that ends writing when change sees it.
func (f *File) endedError(state error, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &EndedError{f.path, state, doing, unnamed(err)}
}

// endsWriting reports whether an error ends writing.
func endsWriting(err error) bool {
	_, ends := errors.AsType[*EndedError](err)
	return ends
}

var errClosed = errors.New("the file is closed")

// change calls do, which writes, if the file can be written. An error of do that ends writing
// does so here, and is logged, whatever else was logged before. To any other it adds the outcome,
// for example "nothing was added". A file of an older format can only be rewritten: whatever keeps
// it from that ends writing.
func (f *File) change(outcome string, do func() error) error {
	if f.Err() != nil {
		return f.Err()
	}
	err := errClosed
	if f.lock != nil {
		err = f.checkWritable()
		if err == nil {
			err = do()
		}
		if f.IsOld() && !endsWriting(err) {
			err = f.endedError(ErrReadOnly, "upgrading its format", err)
		}
	}
	if err == nil {
		return nil
	}
	ended, ends := errors.AsType[*EndedError](err)
	if !ends {
		return fmt.Errorf("%s: %s: %w", f.path, outcome, unnamed(err))
	}
	f.logUnclean()
	f.whyEnded.Store(ended)
	f.Logger.Error("nothing more can be written to the data file", "error", ended)
	return ended
}

// unnamed takes the name of the file out of an error. It is the name that the file was
// opened by, and a rewrite has renamed it since then.
func unnamed(err error) error {
	named, is := err.(*fs.PathError)
	if is {
		return named.Err
	}
	return err
}

// Close ends the file with an empty commit, if it was settled and has none there yet,
// and releases the lock. It returns what broke the file, if something did. Closing a
// nil or a closed file does nothing.
func (f *File) Close() error {
	if f == nil || f.lock == nil {
		return nil
	}
	if f.unsettled == nil && f.Err() == nil {
		f.endEmpty()
	}
	err := f.release()
	if errors.Is(f.Err(), ErrBroken) {
		return f.Err()
	}
	return err
}
