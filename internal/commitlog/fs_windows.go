package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const noFollow = 0

// lock locks f until it is closed. It returns ErrLocked if another open file has the lock. Windows doesn't
// let other processes read locked bytes, so it locks one byte far behind the process ID.
func lock(f *os.File) error {
	const flags = 3 // LOCKFILE_EXCLUSIVE_LOCK and LOCKFILE_FAIL_IMMEDIATELY
	offset := &syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(offset)))
	if ok != 0 {
		return nil
	}
	if err == syscall.Errno(33) || err == syscall.ERROR_IO_PENDING { // ERROR_LOCK_VIOLATION
		return ErrLocked
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}

// lockData does nothing: other processes, such as eventsd check, couldn't read a locked file.
func lockData(*os.File) error { return nil }

// Replace closes both files, because Windows can't rename open files, and reopens the file at path.
func (o osFS) Replace(tmp, old file, path string) (file, error) {
	tmp.Close()
	if old != nil {
		old.Close()
	}
	err := install(path, old)
	if err == errAppeared {
		return nil, err
	}
	f, openErr := o.OpenLocked(path)
	if openErr != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, errors.Join(err, openErr))
	}
	return f, err
}

// copyOwner does nothing: files inherit their permissions from the directory.
func copyOwner(*os.File, fs.FileInfo) {}
