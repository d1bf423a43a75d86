package commitlog

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// repair makes the last valid line durable and the end of the file clean. After a crash during repair, the
// file recovers to the same commits.
func (l *Log) repair(r *reader) error {
	l.end = r.end
	l.options.fs.Remove(l.path + tmpSuffix)
	saved := "nothing"
	if !strings.HasPrefix(closing, string(r.rest)) {
		saved = l.path + tornSuffix + time.Now().UTC().Format("20060102T150405.000000000Z")
		err := l.saveTornWrite(saved, r.rest)
		if err != nil {
			return fmt.Errorf("%w; the file is unchanged", err)
		}
	}
	// After a failed sync, the page cache may count the last line as written although the disk doesn't have
	// it, and another sync would skip it. Writing the same bytes again can't tear them.
	line := io.NewSectionReader(l.file, r.lastOffset, l.end.offset-r.lastOffset)
	_, err := io.Copy(io.NewOffsetWriter(l.file, r.lastOffset), line)
	if err != nil {
		return err
	}
	err = l.writeClosing()
	if err != nil {
		return err
	}
	err = l.options.fs.SyncDir(l.path) // a process may have died between a rename and its SyncDir
	if err != nil {
		return err
	}
	if r.torn != "" {
		l.options.Logger.Warn("data file recovered after an interrupted write",
			"data", l.path, "found", r.torn, "saved", saved)
	}
	l.appendEmpty()
	return l.Err()
}

// saveTornWrite saves a torn write in a file of its own.
func (l *Log) saveTornWrite(name string, rest []byte) error {
	f, err := l.create(name, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(rest))
		return err
	})
	if err != nil {
		return err
	}
	f.Close()
	return l.options.fs.SyncDir(l.path)
}

// writeClosing ends the file after the last commit with a closing bracket and syncs it.
func (l *Log) writeClosing() error {
	_, err := l.file.WriteAt([]byte(closing), l.end.offset)
	if err != nil {
		return err
	}
	err = l.file.Truncate(l.Size())
	if err != nil {
		return err
	}
	return l.file.Sync()
}
