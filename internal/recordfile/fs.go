package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// fileSystem is all that this package does to a disk, so that tests can crash
// it, fill it and let it fail.
type fileSystem interface {
	Resolve(path string) (string, error)       // absolute, links resolved; a regular file or none
	Rename(from, to string) error              // replaces what is at to
	RenamesOpen() bool                         // whether Rename takes open files; not on Windows
	Remove(path string)                        // if it can
	SyncDir(dir handle) error                  // makes the names in an open folder durable
	Size(path string, f handle) (int64, error) // of f; 0 if none is at path, -1 if another is

	// Lock takes path.lock. The error is a LockedError if another process has it.
	Lock(path string) (io.Closer, error)

	// Open opens a file as os.OpenFile does. A new file has the mode 0600 or, if like is not nil, the
	// owner and mode of like.
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
		reason := "it is a folder or another thing that is not a regular file"
		return "", &FormatError{File: path, Reason: reason}
	}
	return filepath.EvalSymlinks(path)
}

func (osFS) Open(path string, flag int, like handle) (handle, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if like != nil {
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
	return f, nil
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
