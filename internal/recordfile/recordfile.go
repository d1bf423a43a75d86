// Package recordfile keeps commits of JSON records in one append-only file that
// is a JSON array while at rest. It knows lines, not what the records mean.
//
// One line is one commit is one write and one sync:
//
//	[
//	{"c":"8hex","n":41,"format":"events/1","salt":"16hex","snap":44}
//	,{"c":"8hex","n":42,"w":[{"user":{…}}]}
//	,{"c":"8hex","n":43,"w":[{"event":{…}}]}
//	,{"c":"8hex","n":44,"w":[]}
//	,{"c":"8hex","n":45,"w":[{"event":{…}},{"event":{…}}]}
//	]
//
// The members of a line, in this order and without spaces:
//
//   - c is the CRC-32C of the salt's 16 characters and then of the line from
//     "n": to its last brace; the header's own c has no salt before it.
//   - n rises by one from line to line.
//   - salt is new whenever the file is rewritten, so that no block of an older
//     life of the file can pass for a line of this one.
//   - snap is the n of the empty line that ends what the last rewrite wrote.
//     All of that was made durable as a whole, so a crash cannot tear it.
//
// A line begins with its comma, and the next one overwrites only the closing
// bracket: no byte of an answered commit is ever written with another value.
//
// # Crashes and damage
//
// A crash can leave the last write in pieces, in any order. Opening takes the
// lines while they are right; what follows them is cut if one write can have
// left it, after a copy was put aside. All else is damage, which nothing but
// hardware, a defect or an editor makes: such a file is refused and left as it
// is, because cutting it could lose what was answered.
//
// A sync that failed leaves bytes in the page cache that a restart reads and
// that are not on disk, and a process that dies within a rewrite leaves a name
// that is not; so [File.Settle] writes the end of the file again and syncs both.
//
// What the tests show: the death of the process at any byte, and loss of power
// as simulated from the writes and syncs that this package issues, with any
// blocks of 512 or 4,096 bytes lost and the others kept. What they cannot show:
// that a disk keeps what it says it has flushed and leaves the bytes around a
// write alone, and what network file systems do. Damage to the one last commit
// can look like a torn write (the copy put aside has it), and lines that are
// missing at the end, behind the snapshot, as if they had never been there.
//
// # Files beside it
//
//	FILE.lock       the lock and the process id of who holds it; never deleted
//	FILE.tmp        a rewrite that has not happened yet; removed by Open once FILE is found good
//	FILE.torn-TIME  what Open cut; the newest five stay
package recordfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

const (
	// MaxCommit is how many bytes of records one commit holds at most.
	MaxCommit = 4 << 20

	// maxTail is the longest rest that one unfinished write can leave.
	maxTail = MaxCommit + 8<<10

	// chunk is how much is read or written at once, in bytes.
	chunk = 1 << 20
)

// Options of [Open], [Read] and [Salvage].
type Options struct {
	Format   string                           // the header's format, "events/1"; a greater number is a newer one
	Logf     func(format string, args ...any) // repairs and what was put aside, one line each; nil discards
	Progress func(done, total int64)          // bytes read so far, after each MiB; nil for none

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

// A File is an open data file and its lock. One goroutine at a time may use
// it; only [File.Err] is safe for concurrent use.
type File struct {
	path string
	o    Options
	lock io.Closer // nil once closed
	file file      // nil while there is none

	salt    uint32 // the checksum of the salt alone
	n       uint64 // of the last commit
	snapEnd int64  // bytes up to the end of the snapshot
	end     int64  // where the closing bracket stands
	tail    string // what Settle writes again: from snapEnd to end
	settled bool   // Append may go on

	buf []byte
	err atomic.Pointer[error]
}

// New reports whether there is no file yet: the first [File.Rewrite] makes it.
func (f *File) New() bool { return f.file == nil && f.end == 0 }

// Path is the absolute path of the file, symbolic links resolved.
func (f *File) Path() string { return f.path }

// Size is the length of the file in bytes.
func (f *File) Size() int64 {
	if f.New() {
		return 0
	}
	return f.end + int64(len(closing))
}

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

// Close frees the lock. It reports what broke the file, if something did:
// nothing is left to be written, as each commit was synced.
func (f *File) Close() error {
	if f.lock == nil {
		return nil
	}
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	f.settled = false
	err = errors.Join(err, f.lock.Close())
	f.lock = nil
	if broken := f.Err(); errors.Is(broken, ErrBroken) {
		return broken
	}
	return err
}

// Settle makes durable again what Open read behind the snapshot: the same bytes
// are written once more in their place and synced. It or [File.Rewrite] comes
// before the first Append and before anything read is shown as durable. Where
// it fails nothing can be written, and [File.Err] says so; reading may go on.
// On a file that is new it does nothing.
func (f *File) Settle() error {
	if err := f.writable(); err != nil || f.settled || f.New() {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f.file, f.snapEnd), min(chunk, len(f.tail)+len(closing)))
	_, _ = w.WriteString(f.tail) // Flush reports all errors
	_, _ = w.WriteString(closing)
	if err := w.Flush(); err != nil {
		return f.fail(ErrReadOnly, "writing the end of the file again", err)
	}
	if err := f.sync(); err != nil {
		return err
	}
	// The name, too: the process that renamed the file may have died before it synced the folder.
	if err := f.o.fs.SyncDir(filepath.Dir(f.path)); err != nil {
		return f.fail(ErrBroken, "sync of the folder", err)
	}
	f.tail, f.settled = "", true
	return nil
}

// Append commits records, JSON objects joined by commas, as one line. When it
// returns nil they are on disk, whole. An error that wraps neither ErrBroken
// nor ErrReadOnly left the file as it was, and later calls may succeed: a full
// disk heals. After ErrBroken the commit may or may not be there at the next
// Open, but never a part of it.
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
		if cutErr := f.cut(ErrBroken); cutErr != nil {
			return cutErr
		}
		return fmt.Errorf("%s: nothing was added: %w", f.path, err)
	}
	if err := f.sync(); err != nil {
		return err
	}
	f.n++
	f.end += int64(len(f.buf) - len(closing))
	return nil
}

// cut ends the file after its last commit.
func (f *File) cut(sentinel error) error {
	_, err := f.file.WriteAt([]byte(closing), f.end)
	if err == nil {
		err = f.file.Truncate(f.Size())
	}
	if err != nil {
		return f.fail(sentinel, "ending the file after its last commit", err)
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

// Rewrite replaces the file by one that holds commits, one line each, as its
// snapshot. It ranges over commits twice, first to count. The rename is the
// commit: on an error before it the old file goes on as it was, after it the
// file is broken.
func (f *File) Rewrite(commits iter.Seq[[]byte]) error {
	if err := f.writable(); err != nil {
		return err
	}
	h := header{n: f.n + 1, snap: f.n + 2, format: f.o.Format, salt: newSalt()}
	for records := range commits {
		if err := f.check(records); err != nil {
			return err
		}
		h.snap++
	}
	tmp := f.path + ".tmp"
	end, err := f.writeTmp(tmp, h, commits)
	if err == nil {
		err = f.replace(tmp)
	}
	if f.Err() != nil {
		return f.Err()
	}
	if err != nil {
		_ = f.o.fs.Remove(tmp) // else Open does
		return fmt.Errorf("%s: not rewritten: %w", f.path, err)
	}
	f.salt, f.n, f.end, f.snapEnd = h.salted(), h.snap, end, end
	f.tail, f.settled = "", true
	return nil
}

// writeTmp writes the new file and makes it durable. It returns where its
// closing bracket stands.
func (f *File) writeTmp(tmp string, h header, commits iter.Seq[[]byte]) (end int64, err error) {
	t, err := f.o.fs.Create(tmp, f.file)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(t, 0), 64<<10)
	write := func(line []byte) {
		f.buf = line
		end += int64(len(line))
		_, _ = w.Write(line) // Flush reports all errors
	}
	n, salt := h.n, h.salted()
	write(h.append(append(f.buf[:0], opening...)))
	for records := range commits {
		n++
		write(appendCommit(f.buf[:0], salt, n, records))
	}
	write(appendCommit(f.buf[:0], salt, n+1, nil))
	_, _ = w.WriteString(closing)
	err = w.Flush()
	if err == nil && n+1 != h.snap {
		err = errors.New("the commits changed while they were written")
	}
	if err == nil {
		err = t.Sync()
	}
	return end, errors.Join(err, t.Close())
}

// replace puts tmp in the place of the file. Windows renames nothing that is
// open, so both are closed, everywhere: one way for all systems.
func (f *File) replace(tmp string) error {
	isNew := f.New()
	if !isNew {
		_ = f.file.Close() // all in it was synced
	}
	err := f.o.fs.Rename(tmp, f.path)
	switch {
	case err == nil:
		if err := f.o.fs.SyncDir(filepath.Dir(f.path)); err != nil {
			return f.fail(ErrBroken, "sync of the folder", err)
		}
	case errors.Is(err, syscall.EIO): // the one with which POSIX leaves open whether it happened
		return f.fail(ErrBroken, "rename", err)
	case isNew:
		return err
	case errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV):
		err = fmt.Errorf("%w; the file is a mount of its own: mount the folder", err)
	}
	var openErr error
	if f.file, openErr = f.o.fs.Open(f.path, true); openErr != nil {
		return f.fail(ErrBroken, "opening it again", openErr)
	}
	return err
}

var errReplaced = errors.New("it was removed or replaced while it was open; keep what is in memory, with eventsd dump, before you stop")

// writable is why nothing can be written at all.
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
	if !same { // what is added to it now would be lost
		return f.fail(ErrBroken, "looking for the file", errReplaced)
	}
	return nil
}

// check refuses what cannot be one line.
func (f *File) check(records []byte) error {
	if len(records) > MaxCommit {
		return fmt.Errorf("%s: %w: %d bytes, the limit is %d", f.path, ErrTooLarge, len(records), MaxCommit)
	}
	if bytes.IndexByte(records, '\n') >= 0 {
		return fmt.Errorf("%s: a commit cannot hold a line break", f.path)
	}
	return nil
}
