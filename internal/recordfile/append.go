package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// tail is the end of a file: all that the next commit has to know of it.
type tail struct {
	salt  uint32 // the checksum of the header's salt alone
	n     uint64 // the number of the last commit
	empty bool   // it holds no records
	end   int64  // where it ends, and the closing bracket stands
	size  int64  // of the file, as it was read or as the last write left it
}

// add appends the line of the commit that is next, with its comma and line end, to b. It returns
// the tail of a file that ends with that line, and refuses records that cannot be one line.
func (t tail) add(b, records []byte) (after tail, line []byte, err error) {
	if len(records) > MaxCommit {
		err := fmt.Errorf("too large for one commit: %d bytes, the limit is %d", len(records), MaxCommit)
		return t, b, err
	}
	if bytes.IndexByte(records, '\n') >= 0 {
		return t, b, errors.New("a commit cannot hold a line break")
	}
	begin := len(b)
	t.n++
	b = append(b, ","+lineStart...)
	b = strconv.AppendUint(b, t.n, 10)
	b = append(b, `,"w":[`...)
	b = append(b, records...)
	b = append(b, "]}\n"...)
	seal(b[begin+1:len(b)-1], t.salt)
	t.empty = len(records) == 0
	t.end += int64(len(b) - begin)
	t.size = t.end + int64(len(closing))
	return t, b, nil
}

// Append commits records, JSON objects joined by commas, as one line. When it
// returns nil they are on disk, whole.
//
// After an error that is no [*EndedError], later calls may
// succeed: a disk that refused the write because it was full may have room again. What
// the write left in the file is undone at once or, if the disk is too full even for that,
// by the next call, which fails until it can. If a full disk shows only at the sync (a
// quota, delayed or thin allocation), the sync has failed, which is ErrBroken.
//
// After ErrBroken, and as long as a write is not undone, the commit may or may not be
// there at the next [Open], but never a part of it.
func (f *File) Append(records []byte) error {
	return f.change("nothing was added", func() error {
		if f.unsettled != nil {
			return errors.New("append before settle")
		}
		next, line, err := f.tail.add(f.buf[:0], records)
		if err != nil {
			return err
		}
		f.buf = append(line, closing...)
		_, err = f.data.WriteAt(f.buf, f.end)
		if err != nil {
			f.mustUndo = true
			undoErr := f.undo()
			if endsWriting(undoErr) {
				return undoErr
			}
			return err // if it is not undone, checkWritable tries that again
		}
		err = f.sync()
		if err == nil {
			f.tail = next
		}
		return err
	})
}

// undo ends the file after its last commit again, if a write has failed. How much of that
// was written is not known: os.File.WriteAt may return 0 although it wrote something. If
// the disk is too full to undo it, the error does not end writing.
func (f *File) undo() error {
	if !f.mustUndo {
		return nil
	}
	err := f.endHere()
	if isFull(err) {
		return err
	}
	f.mustUndo = false
	if err != nil {
		return f.endedError(ErrBroken, "ending the file after its last commit", err)
	}
	return f.sync()
}

// isFull reports whether an error says that a disk, or a user's part of it, is full.
func isFull(err error) bool { return errors.Is(err, diskFull) || errors.Is(err, quotaFull) }

// endEmpty adds an empty commit if the last one holds records, so that damage to
// those can be told from an unfinished write, which nothing follows: see judgeRest. A
// file without room for it is as good as before.
func (f *File) endEmpty() {
	if f.empty && !f.mustUndo {
		return
	}
	err := f.Append(nil)
	if err != nil && f.Err() == nil {
		f.Logger.Warn("no empty commit was added at the end of the data file", "error", err)
	}
}

// sync makes the bytes of the file durable. If it fails, it is not tried again, and
// neither is syncDir: a second sync could succeed although the first lost bytes.
func (f *File) sync() error { return f.endedError(ErrBroken, "sync", f.data.Sync()) }

// syncDir makes the name of the file durable.
func (f *File) syncDir() error {
	return f.endedError(ErrBroken, "sync of the folder", f.fs.SyncDir(f.dir))
}

// checkWritable returns why nothing can be written now, or nil. The file at the path must be
// the one that is open, and as long as it was left: what is written to any other
// would be lost. If a write is still to be undone, it has to be possible now.
func (f *File) checkWritable() error {
	size, err := f.fs.Size(f.path, f.data)
	if err != nil {
		return err
	}
	if size == f.size || f.mustUndo && size >= f.end {
		return f.undo()
	}
	return f.endedError(ErrBroken, "looking for the file", ErrReplaced)
}
