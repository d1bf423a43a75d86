package recordfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"syscall"
)

// Rewrite replaces the file by one that holds commits, one line each, as its
// snapshot. It ranges over commits twice, first to count them. The rename is the
// commit: on an error before it the old file goes on as it was, after it the file
// is broken. At a start it may come in the place of [File.Settle].
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
	if err := f.keepTorn(); err != nil {
		return err
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
		_ = f.o.fs.Remove(tmp) // if that fails, the next start does it
		return fmt.Errorf("%s: not rewritten: %w", f.path, err)
	}
	f.salt, f.n, f.empty = h.salted(), h.snap, true
	f.snapEnd, f.end, f.size = end, end, end+int64(len(closing))
	f.setSettled()
	return nil
}

// writeTmp writes the new file and makes it durable. It returns where its closing
// bracket stands.
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
