package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	lockSuffix = ".lock"
	tmpSuffix  = ".tmp"
	tornSuffix = ".torn-"
)

// SocketPath returns the path of the socket of the process that has a data file open. It is next to the
// file that data leads to, so every symbolic link leads to one process.
func SocketPath(data string) string {
	path, err := osFS{}.Resolve(data)
	if err != nil {
		path = data
	}
	return path + ".sock"
}

// A LockedError is returned by [Open] if another process, or another Open in this one, has the data file
// open. It wraps [ErrLocked].
type LockedError struct {
	File string // the data file
	PID  int    // of the process that has it open; 0 if unknown
}

func (e *LockedError) Error() string {
	process := "another process"
	if e.PID != 0 {
		process = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s: %v by %s", e.File, ErrLocked, process)
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// Lock takes the lock and writes the process ID into the lock file. That file stays for good: if it were
// deleted, two processes could each lock one of that name.
func (osFS) Lock(path string) (io.Closer, error) {
	name := path + lockSuffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		data, err := os.Stat(path)
		if err == nil {
			copyOwner(f, data) // otherwise the owner of the data file could not lock it
		}
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(name, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	err = lockFile(f)
	if errors.Is(err, ErrLocked) {
		text, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		err = &LockedError{File: path, PID: pid}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.Truncate(0) // the process ID is only for messages, so a full disk is no reason to fail
	fmt.Fprintln(f, os.Getpid())
	return f, nil
}

const (
	lockTimeout  = 5 * time.Second // for which Open tries to take the lock
	lockInterval = 20 * time.Millisecond
)

// takeLock takes the lock of the file, and tries again while another process has it.
func (f *File) takeLock() (err error) {
	start := time.Now()
	for {
		f.lock, err = f.fs.Lock(f.path)
		if !errors.Is(err, ErrLocked) || time.Since(start) >= lockTimeout {
			return err
		}
		time.Sleep(lockInterval)
	}
}
