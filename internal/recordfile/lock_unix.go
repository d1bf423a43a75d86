//go:build unix

package recordfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	renamesOpen = true // a file that is open can be renamed

	diskFull  = syscall.ENOSPC
	quotaFull = syscall.EDQUOT
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

// copyOwner gives a new file the owner, group and mode of another, because a rewrite by root must not take
// the data file away from the service. Users who may not give a file away keep it, with mode 0600.
func copyOwner(f *os.File, like fs.FileInfo) error {
	want := like.Sys().(*syscall.Stat_t)
	err := f.Chown(int(want.Uid), int(want.Gid))
	if err == nil {
		return f.Chmod(like.Mode().Perm())
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return fmt.Errorf("%w: it cannot be given the owner of the data file", err)
}
