package recordfile

import "errors"

// Append commits records, JSON objects joined by commas, as one line. When it
// returns nil they are on disk, whole.
//
// After an error that wraps neither [ErrBroken] nor [ErrReadOnly], later calls may
// succeed: a disk that refused the write because it was full may have room again. What
// the write left in the file is undone at once or, if the disk is too full even for that,
// by the next call, which fails until it can. If a full disk shows only at the sync (a
// quota, delayed or thin allocation), the sync has failed, which is ErrBroken.
//
// After ErrBroken, and as long as a write is not undone, the commit may or may not be
// there at the next [Open], but never a part of it.
func (f *File) Append(records []byte) error {
	return f.change("nothing was added", func() error {
		if !f.settled {
			return errors.New("append before settle")
		}
		next := f.content
		err := next.add(records)
		if err != nil {
			return err
		}
		next.buf = append(next.buf, closing...)
		_, err = f.data.WriteAt(next.buf, f.end)
		if err != nil {
			f.mustUndo = true
			f.undo() // if that fails, it ends writing, or is tried again
			return err
		}
		err = f.sync()
		if err == nil {
			f.content = next
		}
		return err
	})
}

// undo ends the file after its last commit again, if a write has failed. How much of that
// was written is not known: os.File.WriteAt may return 0 although it wrote something. If
// the disk is too full to undo it, checkWritable tries again.
func (f *File) undo() error {
	if !f.mustUndo {
		return nil
	}
	err := f.endWith(f.end)
	if errors.Is(err, diskFull) || errors.Is(err, quotaFull) {
		return err
	}
	f.mustUndo = false
	err = f.orEndWriting(ErrBroken, "ending the file after its last commit", err)
	if err != nil {
		return err
	}
	return f.sync()
}

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
func (f *File) sync() error { return f.orEndWriting(ErrBroken, "sync", f.data.Sync()) }

// syncDir makes the name of the file durable.
func (f *File) syncDir() error {
	return f.orEndWriting(ErrBroken, "sync of the folder", f.fs.SyncDir(f.dir))
}

// checkWritable returns why nothing can be written, or nil. The file at the path must be
// the one that is open, and as long as it was left: what is written to any other
// would be lost. If a write is still to be undone, it has to be possible now.
func (f *File) checkWritable() error {
	if f.lock == nil {
		return errors.New("the file is closed")
	}
	err := f.Err()
	if err != nil {
		return err
	}
	size, err := f.fs.Size(f.path, f.data)
	if err != nil {
		return err
	}
	if size == f.size || f.mustUndo && size >= f.end {
		return f.undo()
	}
	return f.orEndWriting(ErrBroken, "looking for the file",
		errors.New("it was removed or replaced, or its length was changed, while it was open; "+
			"keep what is in memory, with eventsd dump, before you stop"))
}
