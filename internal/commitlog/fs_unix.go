//go:build unix

package commitlog

import (
	"fmt"
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

// copyOwner gives f the owner, group and mode of another file, so that a rewrite by root doesn't take the
// file away from its service. Users who may not change the owner become the owner, with mode 0600.
func copyOwner(f, like *os.File) {
	info, err := like.Stat()
	if err != nil {
		return
	}
	stat := info.Sys().(*syscall.Stat_t)
	err = f.Chown(int(stat.Uid), int(stat.Gid))
	if err == nil {
		f.Chmod(info.Mode().Perm())
	}
}
