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
// the method judge says how that is decided. A last commit that is whole stays,
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
//	FILE.lock       the lock, and the id of the process that holds it; never deleted.
//	                On Unix FILE itself is locked, too
//	FILE.tmp        a rewrite that was not finished; removed once FILE is found good
//	FILE.torn-TIME  an unfinished write that was cut; the newest five stay
package recordfile

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// MaxCommit is how many bytes of records one commit holds at most.
	MaxCommit = 4 << 20

	// maxUnfinished is the most that one unfinished write can leave after the last commit, in bytes.
	maxUnfinished = MaxCommit + 8<<10

	// chunk is how much is read or written at once, in bytes.
	chunk = 1 << 20

	// maxTorn is how many files with unfinished writes are kept.
	maxTorn = 5
)

// Options of [Open], [Read] and [Salvage].
type Options struct {
	// Formats are the names of the formats that can be read, such as "events/1" and
	// "events/2", the oldest first. A rewrite writes the last. A file of any other is refused.
	Formats []string

	// Logf takes repairs and warnings, one line each. If it is nil, they are discarded.
	Logf func(format string, args ...any)

	fs fileSystem // nil is the real one
}

func (o *Options) setDefaults() {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.fs == nil {
		o.fs = osFS{}
	}
}

// A File is an open data file and its lock. The order of calls is [Open], [File.Settle]
// or [File.Rewrite], then any number of [File.Append] and Rewrite, then [File.Close].
// One goroutine at a time may use it; only [File.Err] is safe for concurrent use.
type File struct {
	path string
	o    Options
	lock io.Closer // nil once closed
	dir  file      // the folder, open all the time: no later lack of descriptors can end writing
	file file      // nil while there is none

	format  string // of the file; of a new one, the last of Options.Formats
	salt    uint32 // the checksum of the salt alone
	n       uint64 // the number of the last commit
	empty   bool   // the last commit holds no records
	snapEnd int64  // where the snapshot ends
	end     int64  // where the last commit ends and the closing bracket stands
	size    int64  // of the file, as it was read or as the last write left it

	// What Open found, for Settle.
	appended string // the commits from snapEnd to end, to be written once more
	rest     string // what follows them: the closing bracket, or an unfinished write
	repair   string // what is wrong with the end of the file, in words; empty if nothing is

	settled bool   // Append may write
	buf     []byte // the line that is being written; kept for its memory
	err     atomic.Pointer[error]
}

// Open takes the lock of the file at path, reads the file and calls replay once for
// each commit, in order, from goroutines of its own and never from two at once. An error
// from replay refuses the file: it becomes the reason of a [*DamageError] for that line.
//
// Open changes nothing on disk but the lock file, so that its caller can still
// refuse what was read and leave the file as it is; [File.Settle] repairs what one
// unfinished write left at the end. A file that is missing is new: the first
// [File.Rewrite] makes it. If Open fails, its error is a [*DamageError], wraps
// [ErrLocked] or [ErrFormat], or is the system's own.
func Open(path string, o Options, replay func(Line) error) (*File, error) {
	o.setDefaults()
	f := &File{o: o}
	err := f.open(path, replay)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w: who runs this must own the data file and be able to write in its folder; "+
			"eventsd check and eventsd dump -salvage only read it", err)
	}
	return nil, err
}

// open does the work of Open. If it fails, f holds what is to be closed.
func (f *File) open(path string, replay func(Line) error) (err error) {
	if f.path, err = f.o.fs.Resolve(path); err != nil {
		return err
	}
	if f.lock, err = f.o.fs.Lock(f.path); err != nil {
		return err
	}
	if f.dir, err = f.o.fs.Open(filepath.Dir(f.path), os.O_RDONLY); err != nil {
		return err
	}
	f.format = f.current()
	if f.file, err = f.o.fs.Open(f.path, os.O_RDWR); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := scan{path: f.path, formats: f.o.Formats, replay: replay}
	if err := s.load(f.file); err != nil {
		return err
	}
	if f.repair, err = s.judge(); err != nil {
		return err
	}
	f.format, f.salt, f.n, f.empty = s.head.format, s.salt, s.n, s.empty
	f.end, f.snapEnd, f.size = s.offset(), s.snapEnd, int64(len(s.text))
	f.appended, f.rest = s.text[f.snapEnd:f.end], s.rest()
	return nil
}

// Path is the absolute path of the file, symbolic links resolved.
func (f *File) Path() string { return f.path }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Format is the format of the file, one of Options.Formats. Of a file that is not there
// yet, and after a [File.Rewrite], it is the last of them.
func (f *File) Format() string { return f.format }

// current is the format that a rewrite writes.
func (f *File) current() string { return f.o.Formats[len(f.o.Formats)-1] }

// BytesSinceRewrite is how many bytes of commits were appended since the last rewrite.
func (f *File) BytesSinceRewrite() int64 { return f.end - f.snapEnd }

// Err is nil, or why nothing can be written any more until the file is opened
// again: it wraps [ErrBroken] or [ErrReadOnly]. It is safe for concurrent use.
func (f *File) Err() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// fail ends writing through f. The first reason stays.
func (f *File) fail(sentinel error, doing string, cause error) error {
	err := fmt.Errorf("%s: %w: %s: %w", f.path, sentinel, doing, cause)
	f.err.CompareAndSwap(nil, &err)
	return err
}

// Close ends the file with an empty commit, if it was settled and has none there yet,
// and releases the lock. It returns what broke the file, if something did. Closing a
// nil or a closed file does nothing.
func (f *File) Close() error {
	if f == nil || f.lock == nil {
		return nil
	}
	if f.settled && f.Err() == nil {
		f.endEmpty()
	}
	err := closeAll(f.file, f.dir, f.lock)
	f.lock, f.settled = nil, false
	if broken := f.Err(); errors.Is(broken, ErrBroken) {
		return broken
	}
	return err
}

// Settle makes the end of the file, as [Open] read it, right and durable: what an
// unfinished write left is put aside and cut, a closing bracket that is missing is
// added, and the commits after the snapshot are written once more in their place
// and synced. An empty commit ends them, as after a clean [File.Close]. Settle or
// [File.Rewrite] comes before the first [File.Append], and before anything that was
// read is shown as durable. If it fails, nothing can be written, and [File.Err]
// returns why; reading may go on. On a new file it does nothing. It fails on a file of an
// older format, because [File.Append] would write the newest: such a file needs a Rewrite.
func (f *File) Settle() error {
	if err := f.writable(); err != nil || f.settled || f.file == nil {
		return err
	}
	if f.format != f.current() {
		err := fmt.Errorf("a file of the format %q must be rewritten", f.format)
		return f.fail(ErrReadOnly, "settle", err)
	}
	if err := f.o.fs.Remove(f.path + ".tmp"); err != nil { // it is not needed: this file is good
		return f.fail(ErrReadOnly, "removing an unfinished rewrite", err)
	}
	if err := f.keepTorn(); err != nil {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f.file, f.snapEnd), min(chunk, len(f.appended)+len(closing)))
	_, _ = w.WriteString(f.appended) // Flush reports all errors
	_, _ = w.WriteString(closing)
	err := w.Flush()
	size := f.end + int64(len(closing))
	if err == nil && f.size > size {
		err = f.file.Truncate(size)
	}
	if err != nil {
		return f.fail(ErrReadOnly, "writing the end of the file again", err)
	}
	f.size = size
	// The name, too: the process that renamed the file may have died before it synced the folder.
	if err := cmp.Or(f.sync(), f.syncDir()); err != nil {
		return err
	}
	f.setSettled()
	f.endEmpty()
	return f.Err()
}

// setSettled notes, and logs, that the end of the file is right. It drops the parts of
// the string that the file was read into, so that they do not keep its memory.
func (f *File) setSettled() {
	if f.repair != "" {
		f.o.Logf("%s: repaired: %s", f.path, f.repair)
	}
	f.appended, f.rest, f.repair, f.settled = "", "", "", true
}

// keepTorn copies an unfinished write that is about to be cut to a file of its own.
func (f *File) keepTorn() error {
	if strings.HasPrefix(closing, f.rest) { // no more than the closing bracket
		return nil
	}
	prefix := f.path + ".torn-"
	name := prefix + time.Now().UTC().Format("20060102T150405.000000000Z")
	t, err := f.o.fs.Create(name, f.file)
	if err == nil {
		_, err = t.WriteAt([]byte(f.rest), 0)
		if err = errors.Join(err, t.Sync(), t.Close(), f.o.fs.SyncDir(f.dir)); err != nil {
			err = errors.Join(err, f.o.fs.Remove(name))
		}
	}
	if err != nil {
		return f.fail(ErrReadOnly, "putting an unfinished write aside", err)
	}
	f.rest = ""
	f.repair += ", cut and kept in " + name
	kept, err := f.o.fs.WithPrefix(prefix)
	for _, old := range kept[:max(0, len(kept)-maxTorn)] {
		err = errors.Join(err, f.o.fs.Remove(old))
	}
	if err != nil {
		f.o.Logf("%s: old unfinished writes stay: %v", f.path, err)
	}
	return nil
}

// Append commits records, JSON objects joined by commas, as one line. When it
// returns nil they are on disk, whole. An error that wraps neither [ErrBroken]
// nor [ErrReadOnly] left the file as it was, and later calls may succeed: a disk
// that refused the write because it was full may have room again. If a full disk shows
// only at the sync (a quota, delayed or thin allocation), the sync has failed, which is
// ErrBroken. After ErrBroken the commit may or may not be there at the next [Open],
// but never a part of it.
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
	// How much of it a failed write wrote is not known: os.File.WriteAt may return 0
	// although it wrote something. So undo assumes that any part of it was written.
	if _, err := f.file.WriteAt(f.buf, f.end); err != nil {
		return cmp.Or(f.undo(), fmt.Errorf("%s: nothing was added: %w", f.path, err))
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

// endEmpty adds an empty commit if the last one holds records, so that damage to
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

// undo ends the file after its last commit again, when a write failed.
func (f *File) undo() error {
	_, err := f.file.WriteAt([]byte(closing), f.end)
	if err = errors.Join(err, f.file.Truncate(f.size)); err != nil {
		return f.fail(ErrBroken, "ending the file after its last commit", err)
	}
	return f.sync()
}

// sync makes the bytes of the file durable.
func (f *File) sync() error { return f.synced("sync", f.file.Sync()) }

// syncDir makes the name of the file durable.
func (f *File) syncDir() error { return f.synced("sync of the folder", f.o.fs.SyncDir(f.dir)) }

// synced ends writing if a sync has failed. It is not tried again: a second one could
// succeed although the first lost bytes.
func (f *File) synced(doing string, err error) error {
	if err != nil {
		return f.fail(ErrBroken, doing, err)
	}
	return nil
}

// writable returns why nothing can be written, or nil. The file at the path must be
// the one that is open, and as long as it was left: what is written to any other
// would be lost.
func (f *File) writable() error {
	if f.lock == nil {
		return fmt.Errorf("%s: the file is closed", f.path)
	}
	if err := f.Err(); err != nil {
		return err
	}
	size, err := f.o.fs.Size(f.path, f.file)
	if err != nil {
		return fmt.Errorf("%s: nothing was added: %w", f.path, err)
	}
	if size != f.size {
		return f.fail(ErrBroken, "looking for the file",
			errors.New("it was removed or replaced, or its length was changed, while it was open; "+
				"keep what is in memory, with eventsd dump, before you stop"))
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

// Rewrite replaces the file by one that holds commits, one line each, as its
// snapshot. It ranges over commits twice, first to count them. The rename makes it
// take effect. An error before it leaves the old file in use. If the outcome of the
// rename or of the folder's sync is uncertain, no more is written: see [ErrBroken].
// At a start Rewrite may be called instead of [File.Settle]. If it fails on a file of an older
// format, the error wraps [ErrReadOnly], and nothing can be written.
func (f *File) Rewrite(commits iter.Seq[[]byte]) error {
	err := f.rewrite(commits)
	if err != nil && f.format != f.current() && f.Err() == nil {
		return f.fail(ErrReadOnly, "upgrading it to the format "+f.current(), err)
	}
	return err
}

func (f *File) rewrite(commits iter.Seq[[]byte]) error {
	if err := f.writable(); err != nil {
		return err
	}
	h := header{n: f.n + 1, snap: f.n + 2, format: f.current(), salt: fmt.Sprintf("%016x", rand.Uint64())}
	for records := range commits {
		if err := f.check(records); err != nil {
			return err
		}
		h.snap++
	}
	if err := f.keepTorn(); err != nil {
		return err
	}
	tmp := f.path + ".tmp"
	t, end, err := f.writeTmp(tmp, h, commits)
	if err == nil {
		err = f.replace(tmp, t)
	}
	if err != nil && f.Err() == nil {
		_ = f.o.fs.Remove(tmp) // if that fails, the next start does it
		err = fmt.Errorf("%s: not rewritten: %w", f.path, err)
	}
	if err != nil {
		return err
	}
	f.format, f.salt, f.n, f.empty = h.format, h.saltSum(), h.snap, true
	f.snapEnd, f.end, f.size = end, end, end+int64(len(closing))
	f.setSettled()
	return nil
}

// writeTmp writes the new file and makes it durable. It returns the open file, and
// where its closing bracket stands.
func (f *File) writeTmp(tmp string, h header, commits iter.Seq[[]byte]) (t file, end int64, err error) {
	if t, err = f.o.fs.Create(tmp, f.file); err != nil {
		return nil, 0, err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(t, 0), 64<<10)
	write := func(line []byte) {
		f.buf = line
		end += int64(len(line))
		_, _ = w.Write(line) // Flush reports all errors
	}
	n, salt := h.n, h.saltSum()
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
	if err != nil {
		_ = t.Close()
	}
	return t, end, err
}

// replace puts t, which is at tmp, in the place of the file. Both are open and locked
// during the rename, so that no other process can take the lock of either. Windows
// renames nothing that is open, and has no lock on the data file.
func (f *File) replace(tmp string, t file) error {
	old, reopen := f.file, !f.o.fs.RenamesOpen()
	if reopen {
		_ = closeAll(old, t) // all in them was synced
	}
	err := f.o.fs.Rename(tmp, f.path)
	kept, other := t, old
	if err != nil {
		kept, other = old, t
	}
	var openErr error
	if !reopen {
		_ = closeAll(other)
	} else if kept != nil {
		kept, openErr = f.o.fs.Open(f.path, os.O_RDWR)
	}
	f.file = kept
	switch {
	case openErr != nil:
		return f.fail(ErrBroken, "opening it again", openErr)
	case err == nil:
		return f.syncDir()
	case errors.Is(err, syscall.EIO): // the one with which POSIX leaves open whether it happened
		return f.fail(ErrBroken, "rename", err)
	case errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV):
		return fmt.Errorf("%w; the file is a mount of its own: mount the folder", err)
	}
	return err
}

var (
	// ErrBroken: a write, a rename or a sync failed, and it is unknown what is on disk.
	// Nothing is written until the file is opened again.
	ErrBroken = errors.New("writing has ended until a restart")
	// ErrReadOnly: the file was read but could not be made ready for writing.
	ErrReadOnly = errors.New("read-only until a restart")
	// ErrTooLarge: the records are over MaxCommit.
	ErrTooLarge = errors.New("too large for one commit")
	// ErrFormat: the file is of another program, or of another version of this one.
	ErrFormat = errors.New("not a data file of this version")
	// ErrLocked: another process, or another Open in this one, has the file open.
	ErrLocked = errors.New("the data file is in use by another server: stop that first")
	// ErrDamaged is what each [DamageError] wraps.
	ErrDamaged = errors.New("the data file is damaged")
)

// A DamageError says where a file stops being right, and why no crash can have
// left it so. The file was not changed. Line 1 of a file is its opening bracket, line
// 2 the header, and line 3 the first commit.
type DamageError struct {
	File   string
	Line   int   // counted from 1
	Offset int64 // where the line begins, in bytes
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at line %d, byte %d: %s; nothing was changed: "+
		"get out what verifies with eventsd dump -salvage -data '%[1]s', and begin a new data file with "+
		"that or with a dump from before as -seed", e.File, e.Line, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return ErrDamaged }
