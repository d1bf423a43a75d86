//go:build unix

package recordfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	renamesOpen = true // a file that is open can be renamed, so a data file is locked itself

	diskFull  = syscall.ENOSPC
	quotaFull = syscall.EDQUOT

	// noFollow makes opening a symbolic link fail, and opening a pipe not wait.
	noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

// lockFile takes the lock of f, which is released when f is closed. Its error is ErrLocked
// if another open file has it.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return nil
	}
	if err == syscall.EWOULDBLOCK {
		return ErrLocked
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}

// isRunning reports whether there is a process with an id.
func isRunning(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// Close releases the lock at once. Closing alone would not: a child process that is
// being started has a copy of the descriptor, and so the lock, until its exec.
func (f osFile) Close() error {
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return f.File.Close()
}

// hasOneName reports whether a file has no other hard link.
func hasOneName(info fs.FileInfo) bool { return info.Sys().(*syscall.Stat_t).Nlink == 1 }

// copyOwner gives a new file the owner and group of another: root must not take the data
// file away from the service. Others may be unable to give a file away, and need not.
func copyOwner(f *os.File, like fs.FileInfo) error {
	want := like.Sys().(*syscall.Stat_t)
	err := f.Chown(int(want.Uid), int(want.Gid))
	if err == nil || os.Geteuid() != 0 {
		return nil
	}
	return fmt.Errorf("%w: it cannot be given the owner of the data file", err)
}
