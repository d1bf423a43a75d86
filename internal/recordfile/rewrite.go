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
func (f *File) Rewrite(commits iter.Seq[[]byte]) error {
	return f.change("not rewritten", func() error {
		head := header{
			before:   f.n + 1,
			snap:     f.n + 2,
			format:   f.latest(),
			saltText: fmt.Sprintf("%016x", rand.Uint64()),
		}
		for range commits {
			head.snap++
		}
		err := f.putAside()
		if err != nil {
			return err
		}
		var next tail
		tmp := f.path + tmpSuffix
		data, err := f.create(tmp, func(w *bufio.Writer) error {
			next, err = head.write(w, commits)
			return err
		})
		if err == nil {
			err = f.replaceBy(data, tmp)
		}
		if err != nil {
			f.fs.Remove(tmp) // if that fails, the next start does it
			return err
		}
		f.setSettled()
		f.format = head.format
		f.tail = next
		f.snapEnd = next.end
		return nil
	})
}

// write writes a whole file: the header, the snapshot, and the closing bracket. It returns the
// tail of that file.
func (h header) write(w *bufio.Writer, commits iter.Seq[[]byte]) (t tail, err error) {
	t = tail{salt: h.saltSum(), n: h.before}
	n, _ := w.Write(h.text()) // Flush returns the first error of all writes
	t.end = int64(n)
	var line []byte
	for records := range commits {
		t, line, err = t.add(line[:0], records)
		if err != nil {
			return t, err
		}
		w.Write(line)
	}
	t, line, _ = t.add(line[:0], nil)
	w.Write(line)
	w.WriteString(closing)
	if t.n != h.snap {
		return t, errors.New("the commits changed while they were written")
	}
	return t, w.Flush()
}

// create makes a new file, which is open and belongs to the owner of the data file,
// of what write writes and flushes, and makes that durable. If anything fails, a part
// of it may be left at the path.
func (f *File) create(path string, write func(*bufio.Writer) error) (handle, error) {
	f.fs.Remove(path) // if that fails, so does opening a new file
	file, err := f.fs.Open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, f.data)
	if err == nil {
		err = write(bufio.NewWriterSize(io.NewOffsetWriter(file, 0), 64<<10))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		closeAll(file)
		return nil, err
	}
	return file, nil
}

// replaceBy puts data, which is at tmp, in the place of the file. Windows renames nothing that is open.
func (f *File) replaceBy(data handle, tmp string) error {
	renamesOpen := f.fs.RenamesOpen()
	if !renamesOpen {
		closeAll(f.data, data) // all in them was synced
	}
	err := f.fs.Rename(tmp, f.path)
	if err == nil {
		f.data, data = data, f.data
	}
	if renamesOpen {
		closeAll(data)
	} else if f.data != nil {
		var openErr error
		f.data, openErr = f.fs.Open(f.path, os.O_RDWR, nil)
		if openErr != nil {
			return f.endedError(ErrBroken, "opening it again", openErr)
		}
	}
	switch {
	case err == nil:
		return f.syncDir()
	case errors.Is(err, syscall.EIO): // with which POSIX leaves open whether it happened
		return f.endedError(ErrBroken, "rename", err)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return fmt.Errorf("%w; the file is a mount of its own: mount the folder", err)
	}
	return err
}
