//go:build unix

package recordfile

import (
	"io/fs"
	"os"
	"syscall"
)

const (
	renamesOpen = true // a file that is open can be renamed

	// noFollow makes opening a symbolic link fail, and opening a pipe not wait.
	noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

// lock takes the lock of f, which is released when f is closed. Its error wraps
// ErrLocked if another open file has it.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch err {
	case nil:
		return nil
	case syscall.EWOULDBLOCK:
		err = ErrLocked
	}
	return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
}

func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockData takes the lock of a data file, beside that of FILE.lock.
func lockData(f *os.File) error { return lock(f) }

// names is how many names a file has.
func names(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }

// own gives a new file the owner and group of another: root must not take the data
// file away from the service. Others cannot give a file away, and need not.
func own(f *os.File, like fs.FileInfo) error {
	want := like.Sys().(*syscall.Stat_t)
	if err := f.Chown(int(want.Uid), int(want.Gid)); os.Geteuid() == 0 {
		return err
	}
	return nil
}
