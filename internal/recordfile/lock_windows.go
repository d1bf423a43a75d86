package recordfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	renamesOpen = false // a file has to be closed to be renamed

	diskFull  = syscall.Errno(112) // ERROR_DISK_FULL
	quotaFull = syscall.Errno(39)  // ERROR_HANDLE_DISK_FULL
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// lockFile takes the lock of f, which is released when f is closed. Its error is ErrLocked
// if another open file has it. Windows keeps others from reading what is
// locked, so the lock is on one byte that is far behind the process id.
func lockFile(f *os.File) error {
	const flags = 3 // LOCKFILE_EXCLUSIVE_LOCK and LOCKFILE_FAIL_IMMEDIATELY
	at := &syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	if ok != 0 {
		return nil
	}
	if err == syscall.Errno(33) || err == syscall.ERROR_IO_PENDING { // ERROR_LOCK_VIOLATION
		return ErrLocked
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}

// copyOwner does nothing: a file has the owner that its folder says.
func copyOwner(*os.File, fs.FileInfo) error { return nil }
