package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// fileSystem is all that this package does to a disk, so that tests can crash
// it, fill it and let it fail.
type fileSystem interface {
	Resolve(path string) (string, error)          // absolute, no symbolic link left; a regular file, or none yet
	Lock(path string) (io.Closer, error)          // a *LockedError if another has it
	Open(path string, write bool) (file, error)   // that exists
	Create(path string, like file) (file, error)  // mode 0600, in the place of what is there, with the owner of like, which may be nil
	Rename(from, to string) error                 // in the place of what is there
	Remove(path string) error                     // nil if it is missing
	Names(dir string) (names []string, err error) // sorted
	SyncDir(dir string) error
	Same(path string, f file) (bool, error) // whether f is what is at path
}

// file is the part of *os.File that is used.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

type osFS struct{}

// Resolve refuses a link to nothing: a rename would replace the link.
func (osFS) Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, regular(real)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a symbolic link that leads to nothing: give the path it should lead to", path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%w: make the folder of the data file first", err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// regular refuses what no data file can be, before a lock is made beside it:
// opening a pipe would wait.
func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		return err
	}
	what := "is not a regular file"
	if info.IsDir() {
		what = "is a folder"
	}
	return &FormatError{path, what + ": give the path of the data file"}
}

func (osFS) Open(path string, write bool) (file, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (o osFS) Create(path string, like file) (file, error) {
	if err := o.Remove(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if like == nil {
		return f, nil
	}
	info, err := like.Stat()
	if err == nil {
		err = own(f, info)
	}
	if err != nil {
		err = fmt.Errorf("%s: cannot have the owner of the data file: %w", path, err)
		return nil, errors.Join(err, f.Close(), o.Remove(path))
	}
	return f, nil
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (osFS) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// SyncDir makes names durable. Windows has no such call, as NTFS keeps names in
// its journal; nor have file systems that answer EINVAL.
func (osFS) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = d.Sync(); errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

func (osFS) Same(path string, f file) (bool, error) {
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	then, err := f.Stat()
	return err == nil && os.SameFile(now, then), err
}

// Lock takes the lock and leaves the process id in the file. The file stays for
// good: if it were deleted, two processes could each lock one of that name.
func (osFS) Lock(path string) (io.Closer, error) {
	_, missing := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if data, err := os.Stat(strings.TrimSuffix(path, ".lock")); err == nil && missing != nil {
		_ = own(f, data) // else who owns the data file could not lock it
	}
	locked, err := lock(f)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: cannot be locked: %w", path, err)
	case locked:
		e := &LockedError{File: path}
		_, _ = fmt.Fscan(io.NewSectionReader(f, 0, 20), &e.PID)
		err = e
	default:
		if err = f.Truncate(0); err == nil {
			_, err = fmt.Fprintln(f, os.Getpid())
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return lockFile{f}, nil
}

type lockFile struct{ *os.File }

func (l lockFile) Close() error { return errors.Join(unlock(l.File), l.File.Close()) }
