//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package recordfile

import (
	"os"
	"syscall"
)

// unlock frees the lock at once: a child that is being started has a copy of
// the descriptor, and with it the lock, until it is another program.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lock reports whether another open file has the lock. It ends with f.
func lock(f *os.File) (locked bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EWOULDBLOCK:
			return true, nil
		}
		return false, err
	}
}
