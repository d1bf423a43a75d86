package recordfile

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	renamesOpen = false
	noFollow    = syscall.FILE_FLAG_OPEN_REPARSE_POINT
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// lock takes the lock of f, which is released when f is closed. Its error wraps
// ErrLocked if another open file has it. Windows keeps others from reading what is
// locked, so the lock is on one byte that is far behind the process id.
func lock(f *os.File) error {
	const (
		failImmediately = 1
		exclusive       = 2
		lockViolation   = syscall.Errno(33)
	)
	at := &syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	switch {
	case ok != 0:
		return nil
	case err == lockViolation || err == syscall.ERROR_IO_PENDING:
		err = ErrLocked
	}
	return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
}

// unlock leaves it to the close, which releases the lock.
func unlock(*os.File) {}

// lockData does nothing: a data file has to be closed to be renamed, and its lock
// would be lost then. FILE.lock is alone here.
func lockData(*os.File) error { return nil }

// names does not look for hard links.
func names(fs.FileInfo) uint64 { return 1 }

// own does nothing: a file has the owner that its folder says.
func own(*os.File, fs.FileInfo) error { return nil }
