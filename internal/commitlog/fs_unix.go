//go:build unix

package commitlog

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// lock locks f until it is closed. It returns ErrLocked if another open file has the lock.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// lockData locks the data file itself, because a hard link to it has another lock file.
func lockData(f *os.File) error { return lock(f) }

func (osFS) Replace(tmp, old file, path string) (file, error) {
	err := install(path, old)
	if err != nil {
		tmp.Close()
		return old, err
	}
	if old != nil {
		old.Close()
	}
	return tmp, nil
}

// copyOwner gives f the owner, group and mode of the data file, so that a service can still use its files
// after root ran a subcommand. Without the permission to change owners, f keeps mode 0600.
func copyOwner(f *os.File, data fs.FileInfo) {
	stat := data.Sys().(*syscall.Stat_t)
	err := f.Chown(int(stat.Uid), int(stat.Gid))
	if err == nil {
		f.Chmod(data.Mode().Perm())
	}
}
