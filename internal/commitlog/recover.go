package commitlog

import (
	"bytes"
	"io"
	"strings"
	"time"
)

// repair makes everything that was read durable and the end of the file clean. A crash within it leaves
// a file that recovers to the same commits.
func (l *Log) repair(r *reader) error {
	l.tail, l.snapEnd = r.tail, r.snapEnd
	l.options.fs.Remove(l.path + tmpSuffix)
	if !strings.HasPrefix(closing, string(r.rest)) {
		err := l.saveTornWrite(r.rest)
		if err != nil {
			return err
		}
	}
	// The lines may be only in the page cache, and clean there after a failed sync, so that a sync
	// alone would skip them. Writing them again with the same bytes can't tear them.
	lines := io.NewSectionReader(l.file, l.snapEnd, l.offset-l.snapEnd)
	_, err := io.Copy(io.NewOffsetWriter(l.file, l.snapEnd), lines)
	if err != nil {
		return err
	}
	err = l.terminate()
	if err != nil {
		return err
	}
	err = l.options.fs.SyncDir(l.path) // for a rename by a process that died before its own
	if err != nil {
		return err
	}
	if r.torn != "" {
		l.options.Logger.Warn("data file recovered after an interrupted write",
			"data", l.path, "found", r.torn)
	}
	l.appendEmpty()
	return l.Err()
}

// saveTornWrite stores a torn write in a file of its own before it is truncated.
func (l *Log) saveTornWrite(rest []byte) error {
	name := l.path + tornSuffix + time.Now().UTC().Format("20060102T150405.000000000Z")
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

// terminate writes the closing bracket after the last commit, ends the file there and syncs it.
func (l *Log) terminate() error {
	_, err := l.file.WriteAt([]byte(closing), l.offset)
	if err != nil {
		return err
	}
	err = l.file.Truncate(l.Size())
	if err != nil {
		return err
	}
	return l.file.Sync()
}
