package commitlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"syscall"
)

// Append appends a commit. The records are JSON objects separated by commas, without line feeds and at most
// [MaxCommit] bytes. When Append returns nil, the commit is durable.
//
// If the error wraps [ErrBroken], the commit may still be there, whole, when the file is opened again. After
// any other error, it is gone, and later calls may succeed.
func (l *Log) Append(records []byte) error {
	err := l.checkFile()
	if err != nil {
		return err
	}
	err = checkRecords(records)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.path, err)
	}
	l.buf = appendLine(l.buf[:0], l.end.salt, l.end.n+1, records)
	lineLen := len(l.buf)
	l.buf = append(l.buf, closing...)
	_, err = l.file.WriteAt(l.buf, l.end.offset)
	if err != nil {
		// Undo all of it: WriteAt may return 0 although it wrote something.
		undoErr := l.writeClosing()
		if undoErr != nil {
			cause := fmt.Errorf("%w, after %w", withoutPath(undoErr), withoutPath(err))
			return l.markBroken("undo a failed write", cause)
		}
		return fmt.Errorf("append to %s: %w", l.path, withoutPath(err))
	}
	err = l.file.Sync()
	if err != nil {
		return l.markBroken("sync", err)
	}
	l.end.n++
	l.end.empty = len(records) == 0
	l.end.offset += int64(lineLen)
	return nil
}

func checkRecords(records []byte) error {
	if len(records) > MaxCommit {
		return fmt.Errorf("too large for one commit: %d bytes, the maximum is %d", len(records), MaxCommit)
	}
	if bytes.IndexByte(records, '\n') >= 0 {
		return errors.New("a commit can't contain a line feed")
	}
	return nil
}

// appendEmpty appends an empty commit, unless the last commit is empty. If there is no room for it, the file
// is still valid.
func (l *Log) appendEmpty() {
	if l.end.empty {
		return
	}
	err := l.Append(nil)
	if err != nil && l.Err() == nil {
		l.options.Logger.Warn("data file has no end mark", "error", err)
	}
}

// checkFile returns an error if the log can't be written. It breaks the log if another program has replaced
// the file or changed its length.
func (l *Log) checkFile() error {
	if l.Err() != nil {
		return l.Err()
	}
	size, err := l.options.fs.Size(l.path, l.file)
	if err != nil {
		return err
	}
	if size != l.Size() {
		return l.markBroken("check the file", errReplaced)
	}
	return nil
}

// Rewrite replaces the file with a snapshot of n commits in the newest format. The sequence may reuse a slice
// for the next commit. If the error wraps [ErrBroken], the file may have been replaced. After any other
// error, the old file is still in use.
func (l *Log) Rewrite(n int, commits iter.Seq[[]byte]) error {
	err := l.checkFile()
	if err != nil {
		return err
	}
	return l.rewrite(n, commits)
}

func (l *Log) rewrite(n int, commits iter.Seq[[]byte]) error {
	disk := l.options.fs
	formats := l.options.Formats
	head := header{
		n:          l.end.n + 1,
		format:     formats[len(formats)-1],
		salt:       fmt.Sprintf("%016x", rand.Uint64()),
		snapCommit: l.end.n + 2 + uint64(n), // after the header and n commits
	}
	var next tail
	tmp, err := l.create(l.path+tmpSuffix, func(w io.Writer) (err error) {
		next, err = writeSnapshot(w, head, commits)
		return err
	})
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", l.path, err)
	}
	l.file, err = disk.Replace(tmp, l.file, l.path)
	if errors.Is(err, errUnknown) { // a crash would lose the commits that are appended to the wrong file
		return l.markBroken("rename", err)
	}
	if err != nil {
		disk.Remove(l.path + tmpSuffix)
		if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) {
			err = fmt.Errorf("%w: the file is a mount point: mount its directory instead", err)
		}
		return fmt.Errorf("rewrite %s: %w", l.path, err)
	}
	err = disk.SyncDir(l.path)
	if err != nil {
		return l.markBroken("sync the directory", err)
	}
	l.end = next
	return nil
}

// create creates a durable file with the content that write writes, and with the owner and mode of the data
// file. After an error, there is no such file.
func (l *Log) create(path string, write func(io.Writer) error) (file, error) {
	disk := l.options.fs
	disk.Remove(path) // from an unfinished rewrite
	f, err := disk.Create(path, l.file)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 32<<10)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		disk.Remove(path)
		return nil, err
	}
	return f, nil
}

// writeSnapshot writes a whole file and returns its tail. It leaves write errors to the Flush of w.
func writeSnapshot(w io.Writer, h header, commits iter.Seq[[]byte]) (tail, error) {
	t := tail{salt: h.saltSum(), n: h.n, empty: true}
	text := h.text()
	w.Write(text)
	t.offset = int64(len(text))
	var line []byte
	add := func(records []byte) {
		t.n++
		line = appendLine(line[:0], t.salt, t.n, records)
		w.Write(line)
		t.offset += int64(len(line))
	}
	for records := range commits {
		err := checkRecords(records)
		if err != nil {
			return t, err
		}
		add(records)
	}
	add(nil)
	if t.n != h.snapCommit {
		return t, fmt.Errorf("%d commits, want %d", t.n-h.n-1, h.snapCommit-h.n-1)
	}
	io.WriteString(w, closing)
	return t, nil
}
