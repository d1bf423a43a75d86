//go:build unix

package commitlog

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

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

// lockData locks a data file in addition to its lock file. A hard link has a lock file of its own.
func lockData(f *os.File) error { return lock(f) }

// Replace renames path.tmp, which is open as tmp, to path, which is open as old unless that is nil. It
// returns the open file that is at path now and closes the other. If it returns no file, it is unknown what
// is there.
func (osFS) Replace(tmp, old file, path string) (file, error) {
	err := os.Rename(path+tmpSuffix, path)
	if err != nil {
		tmp.Close()
		return old, err
	}
	if old != nil {
		old.Close()
	}
	return tmp, nil
}

// copyOwner gives f the owner, group and mode of the data file, so that root doesn't take it away from its
// service. A user who may not change the owner becomes the owner, with mode 0600.
func copyOwner(f *os.File, data fs.FileInfo) {
	stat := data.Sys().(*syscall.Stat_t)
	err := f.Chown(int(stat.Uid), int(stat.Gid))
	if err == nil {
		f.Chmod(data.Mode().Perm())
	}
}
