package recordfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// fileSystem is all that this package does to a disk, so that tests can crash
// it, fill it and let it fail.
type fileSystem interface {
	Resolve(path string) (string, error)       // absolute, links resolved; a regular file or none
	Lock(path string) (io.Closer, error)       // takes path.lock; ErrLocked if another process has it
	Rename(from, to string) error              // replaces what is at to
	RenamesOpen() bool                         // whether Rename takes open files; not on Windows
	Remove(path string)                        // if it can
	SyncDir(dir handle) error                  // makes the names in an open folder durable
	Size(path string, f handle) (int64, error) // of f; 0 if none is at path, -1 if another is

	// Open opens a file as os.OpenFile does; os.O_RDWR also locks it. A new file has the mode
	// 0600 and, if like is not nil, the owner of like.
	Open(path string, flag int, like handle) (handle, error)
}

// handle is the part of *os.File that is used.
type handle interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// closeAll closes those files that are not nil.
func closeAll(files ...io.Closer) (err error) {
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

type osFS struct{}

// Resolve refuses a link to nothing, because a rename would replace the link, and
// what is no regular file: opening a pipe would wait.
func (osFS) Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Lstat(path)
		if err == nil {
			return "", fmt.Errorf("%s is a symbolic link that leads to nothing: "+
				"give the path to the file", path)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", fmt.Errorf("%w: make the folder of the data file first", err)
		}
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w: it is a folder or another thing that is not a regular file",
			path, ErrFormat)
	}
	return filepath.EvalSymlinks(path)
}

// foreignLock is the error for a lock file that is none.
const foreignLock = "%s must be a regular file with one name, which holds a process id, and no link: " +
	"it was left as it is; see what it is and remove it"

// Lock takes the lock and leaves the process id in the lock file. That file stays for
// good: if it were deleted, two processes could each lock one of that name.
//
// The folder may belong to another user, who puts there what this process is to
// overwrite or to give away: a symbolic or hard link, even between two of the calls
// below. So no link is followed, only a file that was just made here gets another
// owner, and the rest is asked of the open file, not of its name.
func (osFS) Lock(path string) (io.Closer, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		data, err := os.Stat(path)
		if err == nil {
			copyOwner(f, data) // else who owns the data file could not lock it
		}
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(name, os.O_RDWR|noFollow, 0)
	}
	if err != nil {
		info, statErr := os.Lstat(name)
		if statErr == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf(foreignLock, name)
		}
		return nil, err
	}
	err = takeLock(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

// takeLock locks a lock file and writes the process id into it, if it is a lock file. A hard
// link that was deleted after it was opened shows no second name any more. So the file must
// also hold nothing but a process id, or what a crash leaves of one.
func takeLock(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, 30) // more than any process id takes
	f.ReadAt(text, 0)
	pid := strings.Trim(string(text), "\r\n\x00")
	foreign := info.Size() > int64(len(text)) || strings.Trim(pid, "0123456789") != ""
	if foreign || !info.Mode().IsRegular() || !hasOneName(info) {
		return fmt.Errorf(foreignLock, f.Name())
	}
	err = lockFile(f)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w (process %s)", err, cmp.Or(pid, "unknown"))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	return err
}

// osFile is an open file, which may be locked. Closing it releases the lock.
type osFile struct{ *os.File }

// Open opens a file and, for writing, locks it. FILE.lock names the process that has
// it; this lock is on the file itself, so that no second path to it, such as a hard link, and
// no removal of FILE.lock lets a second server in.
func (o osFS) Open(path string, flag int, like handle) (handle, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if flag == os.O_RDONLY {
		return osFile{f}, nil
	}
	if renamesOpen {
		err = lockFile(f)
	}
	if err == nil {
		var size int64
		size, err = o.Size(path, f)
		if size < 0 && err == nil { // by a rewrite through another path, between opening and locking
			err = fmt.Errorf("%s was replaced while it was opened: try again", path)
		}
	}
	if err == nil && like != nil {
		var info fs.FileInfo
		info, err = like.Stat()
		if err == nil {
			err = copyOwner(f, info)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) RenamesOpen() bool { return renamesOpen }

func (osFS) Remove(path string) { os.Remove(path) }

// SyncDir has no errors where there is no such call: on Windows, as NTFS keeps names in
// its journal, and on file systems that answer EINVAL.
func (osFS) SyncDir(dir handle) error {
	err := dir.Sync()
	if !renamesOpen || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

func (osFS) Size(path string, f handle) (int64, error) {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || f == nil {
		return -1, err
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(there, info) {
		return -1, err
	}
	return info.Size(), nil
}
