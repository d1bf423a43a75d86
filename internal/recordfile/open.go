package recordfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Open takes the lock of the file at path, reads the file and calls replay, which
// may be nil, once for each commit, in order. An error from replay refuses the
// file: a [*DamageError] is returned with its File filled in, any other error
// becomes the cause of one for that line.
//
// Open changes nothing on disk but the lock file, so that its caller can still
// refuse what was read and leave the file as it is; [File.Settle] repairs what one
// unfinished write left at the end. A file that is missing is new: the first
// [File.Rewrite] makes it. Where Open fails it returns a [*LockedError], a
// [*FormatError], a [*DamageError] or the system's own error.
func Open(path string, o Options, replay func(Line) error) (*File, error) {
	o.setDefaults()
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, explain(err)
	}
	lock, err := o.fs.Lock(path + ".lock")
	if locked, ok := errors.AsType[*LockedError](err); ok {
		locked.File = path
	}
	if err != nil {
		return nil, explain(err)
	}
	f := &File{path: path, o: o, lock: lock}
	if err := f.open(replay); err != nil {
		_ = f.Close()
		return nil, explain(err)
	}
	return f, nil
}

// open reads the file, if there is one.
func (f *File) open(replay func(Line) error) error {
	data, err := f.o.fs.Open(f.path, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.file = data
	s := scan{path: f.path, format: f.o.Format, replay: replay}
	if err := s.load(f.file, f.o.Progress); err != nil {
		return err
	}
	if f.repair, err = s.judge(); err != nil {
		return err
	}
	f.salt, f.n, f.empty = s.salt, s.n, s.empty
	f.end, f.snapEnd, f.size = s.offset(), s.snapEnd, int64(len(s.text))
	f.tail = s.text[f.snapEnd:f.end]
	if s.torn() {
		f.torn = s.rest()
	}
	return nil
}

// explain adds what to do to the errors of the system that an operator meets.
func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: who runs this must own the data file and be able to write in its folder", err)
	}
	return err
}

// Settle makes the end of the file, as [Open] read it, right and durable: what an
// unfinished write left is put aside and cut, a closing bracket that is missing is
// added, and the commits behind the snapshot are written once more in their place
// and synced. An empty commit ends them, as after a clean [File.Close]. Settle or [File.Rewrite] comes before the first [File.Append], and
// before anything that was read is shown as durable. Where it fails nothing can be
// written, and [File.Err] says so; reading may go on. On a new file it does nothing.
func (f *File) Settle() error {
	if err := f.writable(); err != nil || f.settled || f.New() {
		return err
	}
	if err := f.o.fs.Remove(f.path + ".tmp"); err != nil { // it is not needed: this file is good
		return f.fail(ErrReadOnly, "removing an unfinished rewrite", err)
	}
	if err := f.keepTorn(); err != nil {
		return err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f.file, f.snapEnd), min(chunk, len(f.tail)+len(closing)))
	_, _ = w.WriteString(f.tail) // Flush reports all errors
	_, _ = w.WriteString(closing)
	err := w.Flush()
	size := f.end + int64(len(closing))
	if err == nil && f.size > size {
		err = f.file.Truncate(size)
	}
	if err != nil {
		return f.fail(ErrReadOnly, "writing the end of the file again", err)
	}
	if err := f.sync(); err != nil {
		return err
	}
	// The name, too: the process that renamed the file may have died before it synced the folder.
	if err := f.o.fs.SyncDir(filepath.Dir(f.path)); err != nil {
		return f.fail(ErrBroken, "sync of the folder", err)
	}
	f.size = size
	f.setSettled()
	f.endEmpty()
	return f.Err()
}

// setSettled notes, and logs, that the end of the file is right.
func (f *File) setSettled() {
	if f.repair != "" {
		f.o.Logf("%s: repaired: %s", f.path, f.repair)
	}
	f.tail, f.repair, f.settled = "", "", true
}

// maxKept is how many files with unfinished writes stay.
const maxKept = 5

// keepTorn copies an unfinished write that is about to be cut to a file of its own.
func (f *File) keepTorn() error {
	if f.torn == "" {
		return nil
	}
	dir := filepath.Dir(f.path)
	prefix := f.path + ".torn-"
	name := prefix + time.Now().UTC().Format("20060102T150405.000000000Z")
	t, err := f.o.fs.Create(name, f.file)
	if err == nil {
		_, err = t.WriteAt([]byte(f.torn), 0)
		if err == nil {
			err = t.Sync()
		}
		err = errors.Join(err, t.Close())
		if err == nil {
			err = f.o.fs.SyncDir(dir)
		}
		if err != nil {
			err = errors.Join(err, f.o.fs.Remove(name))
		}
	}
	if err != nil {
		return f.fail(ErrReadOnly, "putting an unfinished write aside", err)
	}
	f.torn = ""
	f.repair += ", cut and kept in " + name
	names, err := f.o.fs.Names(dir) // sorted, so the oldest first
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(filepath.Join(dir, n), prefix) })
	for _, old := range names[:max(0, len(names)-maxKept)] {
		err = errors.Join(err, f.o.fs.Remove(filepath.Join(dir, old)))
	}
	if err != nil {
		f.o.Logf("%s: old unfinished writes stay: %v", f.path, err)
	}
	return nil
}
