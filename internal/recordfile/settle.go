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
	return f.change("not settled", func() error {
		if f.settled || f.data == nil {
			return nil
		}
		if f.IsOld() {
			return errors.New("it must be rewritten")
		}
		f.fs.Remove(f.path + ".tmp") // it is not needed: this file is good
		err := f.putAside()
		if err == nil {
			err = f.orEndWriting(ErrReadOnly, "writing the end of the file again",
				f.endWith(f.snapEnd, f.appended...))
		}
		if err == nil {
			err = f.sync()
		}
		if err == nil { // the process that renamed the file may have died before it synced the folder
			err = f.syncDir()
		}
		if err != nil {
			return err
		}
		f.setSettled()
		f.endEmpty()
		return f.Err()
	})
}

// setSettled notes, and logs, that the end of the file is right. It drops the text that
// was read, so that the file does not keep its memory.
func (f *File) setSettled() {
	if f.repair != "" {
		f.Logger.Warn(f.path + ": repaired: " + f.repair)
	}
	f.repair = ""
	f.rest = ""
	f.appended = nil
	f.settled = true
}

// endWith writes commits where they stand already, at an offset, and ends the file after them.
func (f *File) endWith(at int64, commits ...string) error {
	out := io.NewOffsetWriter(f.data, at)
	for _, text := range append(commits, closing) {
		_, err := io.WriteString(out, text)
		if err != nil {
			return err
		}
	}
	f.size = f.end + int64(len(closing))
	return f.data.Truncate(f.size)
}

// putAside copies an unfinished write, which is about to be cut, to a file of its own.
func (f *File) putAside() error {
	if strings.HasPrefix(closing, f.rest) { // no more than the closing bracket
		return nil
	}
	name := f.path + ".torn-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	torn, err := f.create(name, func(w *bufio.Writer) error {
		w.WriteString(f.rest)
		return w.Flush()
	})
	if err == nil {
		torn.Close()
		err = f.fs.SyncDir(f.dir)
	}
	if err != nil {
		f.fs.Remove(name)
		return f.orEndWriting(ErrReadOnly, "putting an unfinished write aside", err)
	}
	f.rest = ""
	f.repair += ", cut and kept in " + name
	return nil
}
