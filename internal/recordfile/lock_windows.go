package recordfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	// A data file has to be closed to be renamed, and its lock would be lost then.
	renamesOpen = false

	diskFull  = syscall.Errno(112) // ERROR_DISK_FULL
	quotaFull = syscall.Errno(39)  // ERROR_HANDLE_DISK_FULL
	noFollow  = syscall.FILE_FLAG_OPEN_REPARSE_POINT
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

// isRunning reports whether there is a process with an id. One that may not be looked at is there.
func isRunning(pid int) bool {
	const stillRuns = 258 // WAIT_TIMEOUT
	process, err := syscall.OpenProcess(syscall.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return err == syscall.ERROR_ACCESS_DENIED
	}
	defer syscall.CloseHandle(process)
	event, err := syscall.WaitForSingleObject(process, 0)
	return err != nil || event == stillRuns
}

// hasOneName does not look for hard links.
func hasOneName(fs.FileInfo) bool { return true }

// copyOwner does nothing: a file has the owner that its folder says.
func copyOwner(*os.File, fs.FileInfo) error { return nil }
