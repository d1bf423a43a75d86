package recordfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"syscall"
)

// Rewrite replaces the file by one of the newest format that holds commits, one line
// each, as its snapshot. It ranges over commits twice, first to count them. The rename
// makes it take effect. An error before it leaves the old file in use. If the outcome of
// the rename or of the folder's sync is uncertain, no more is written: see [ErrBroken].
// At a start Rewrite may be called instead of [File.Settle]. If it fails on a file of an
// older format, the error wraps [ErrReadOnly], and nothing can be written.
func (f *File) Rewrite(commits iter.Seq[[]byte]) (err error) {
	defer f.wrap(&err, "not rewritten")
	err = f.checkWritable()
	if err != nil {
		return err
	}
	head := header{n: f.n + 1, snap: f.n + 2, format: f.latest()}
	head.salt = fmt.Sprintf("%016x", rand.Uint64())
	for records := range commits {
		err = checkRecords(records)
		if err != nil {
			return err
		}
		head.snap++
	}
	err = f.putAside()
	if err != nil {
		return err
	}
	tmp := f.path + ".tmp"
	data, err := f.fs.Create(tmp, f.data)
	if err != nil {
		return err
	}
	size, err := writeAll(data, head, commits)
	if err == nil {
		err = f.replaceBy(data, tmp)
	} else {
		_ = data.Close()
	}
	if err != nil {
		_ = f.fs.Remove(tmp) // if that fails, the next start does it
		return err
	}
	f.head = head
	f.salt = head.saltSum()
	f.n = head.snap
	f.empty = true
	f.size = size
	f.end = size - int64(len(closing))
	f.snapEnd = f.end
	f.setSettled()
	return nil
}

// writeAll writes a new file and makes it durable. It returns the size of the file.
func writeAll(data handle, head header, commits iter.Seq[[]byte]) (size int64, err error) {
	out := io.NewOffsetWriter(data, 0)
	w := bufio.NewWriterSize(out, 64<<10)
	_, _ = w.Write(head.text()) // Flush reports all errors
	n := head.n
	var line []byte
	write := func(records []byte) {
		n++
		line = appendCommit(line[:0], head.saltSum(), n, records)
		_, _ = w.Write(line)
	}
	for records := range commits {
		write(records)
	}
	write(nil)
	_, _ = w.WriteString(closing)
	err = w.Flush()
	if err == nil && n != head.snap {
		err = errors.New("the commits changed while they were written")
	}
	if err == nil {
		err = data.Sync()
	}
	if err != nil {
		return 0, err
	}
	return out.Seek(0, io.SeekCurrent)
}

// replaceBy puts data, which is at tmp, in the place of the file. Both are open and locked
// during the rename, so that no other process can take the lock of either. Windows
// renames nothing that is open, and has no lock on the data file.
func (f *File) replaceBy(data handle, tmp string) error {
	renamesOpen := f.fs.RenamesOpen()
	if !renamesOpen {
		_ = closeAll(f.data, data) // all in them was synced
	}
	renameErr := f.fs.Rename(tmp, f.path)
	unused := data
	if renameErr == nil {
		unused = f.data
		f.data = data
	}
	var err error
	if renamesOpen {
		_ = closeAll(unused)
	} else if f.data != nil {
		f.data, err = f.fs.Open(f.path, os.O_RDWR)
	}
	switch {
	case err != nil:
		return f.orEndWriting(ErrBroken, "opening it again", err)
	case renameErr == nil:
		return f.syncDir()
	case errors.Is(renameErr, syscall.EIO): // with which POSIX leaves open whether it happened
		return f.orEndWriting(ErrBroken, "rename", renameErr)
	case errors.Is(renameErr, syscall.EBUSY), errors.Is(renameErr, syscall.EXDEV):
		return fmt.Errorf("%w; the file is a mount of its own: mount the folder", renameErr)
	}
	return renameErr
}
