package recordfile

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"time"
)

// Settle makes the end of the file, as [Open] read it, right and durable: what an
// unfinished write left is put aside and cut, a closing bracket that is missing is
// added, and the commits after the snapshot are written once more in their place
// and synced. An empty commit ends them, as after a clean [File.Close]. Settle or
// [File.Rewrite] comes before the first [File.Append], and before anything that was
// read is shown as durable. If it fails, nothing can be written, and [File.Err]
// returns why; reading may go on. On a new file it does nothing. It fails on a file of an
// older format, because [File.Append] would write the newest: such a file needs a Rewrite.
func (f *File) Settle() error {
	needed := f.unsettled != nil && f.data != nil
	err := f.change("not settled", func() error {
		if !needed {
			return nil
		}
		return f.settle()
	})
	if err != nil || !needed {
		return err
	}
	f.endEmpty()
	return f.Err()
}

// settle does the work of Settle, but for the empty commit.
func (f *File) settle() error {
	if f.IsOld() {
		return errors.New("it must be rewritten")
	}
	f.fs.Remove(f.path + tmpSuffix) // it is not needed: this file is good
	err := f.putAside()
	if err != nil {
		return err
	}
	err = f.writeAgain()
	if err != nil {
		return f.endedError(ErrReadOnly, "writing the end of the file again", err)
	}
	err = f.sync()
	if err != nil {
		return err
	}
	err = f.syncDir() // the process that renamed the file may have died before it did that
	if err != nil {
		return err
	}
	f.setSettled()
	return nil
}

// setSettled notes that the end of the file is right and durable. It drops the text that
// was read, so that the file does not keep its memory.
func (f *File) setSettled() {
	f.logUnclean()
	f.unsettled = nil
}

// logUnclean logs, once, that the last process that had the file did not end well: it left half a write or no
// empty commit.
func (f *File) logUnclean() {
	u := f.unsettled
	if u == nil || u.repair == "" && f.empty {
		return
	}
	args := []any{"data", f.path}
	if u.repair != "" {
		args = append(args, "found", u.repair)
	}
	f.Logger.Warn("the last run did not end cleanly", args...)
	f.unsettled = &unsettled{rest: u.rest}
}

// writeAgain writes the commits behind the snapshot again, in their place, and ends the file after
// them.
func (f *File) writeAgain() error {
	appended := io.NewSectionReader(f.data, f.snapEnd, f.end-f.snapEnd)
	_, err := io.Copy(io.NewOffsetWriter(f.data, f.snapEnd), appended)
	if err != nil {
		return err
	}
	return f.endHere()
}

// endHere ends the file after its last commit.
func (f *File) endHere() error {
	_, err := f.data.WriteAt([]byte(closing), f.end)
	if err != nil {
		return err
	}
	f.size = f.end + int64(len(closing))
	return f.data.Truncate(f.size)
}

// putAside copies an unfinished write, which is about to be cut, to a file of its own.
func (f *File) putAside() error {
	if f.unsettled == nil || strings.HasPrefix(closing, f.unsettled.rest) {
		return nil // there is no more than the closing bracket
	}
	name := f.path + tornSuffix + time.Now().UTC().Format("20060102T150405.000000000Z")
	torn, err := f.create(name, func(w *bufio.Writer) error {
		w.WriteString(f.unsettled.rest)
		return w.Flush()
	})
	if err == nil {
		torn.Close()
		err = f.fs.SyncDir(f.dir)
	}
	if err != nil {
		f.fs.Remove(name)
		return f.endedError(ErrReadOnly, "putting an unfinished write aside", err)
	}
	f.unsettled.rest = ""
	f.unsettled.repair += ", cut and kept in " + name
	return nil
}
