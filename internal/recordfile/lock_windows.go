package recordfile

import (
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// unlock leaves it to the close, which frees the lock.
func unlock(*os.File) error { return nil }

// lock reports whether another open file has the lock. It ends with f. Windows
// keeps others from reading what is locked, so the lock is on one byte that
// is far behind the process id.
func lock(f *os.File) (locked bool, err error) {
	const (
		failImmediately = 1
		exclusive       = 2
		lockViolation   = syscall.Errno(33)
	)
	at := &syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	switch {
	case ok != 0:
		return false, nil
	case err == lockViolation || err == syscall.ERROR_IO_PENDING:
		return true, nil
	}
	return false, err
}
