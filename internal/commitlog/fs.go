package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
)

// fileSystem has all disk operations of this package. Tests replace it with a disk that crashes.
type fileSystem interface {
	Resolve(path string) (string, error)         // absolute path without links; must be a regular file
	Lock(path string) (io.Closer, error)         // locks path.lock; ErrLocked if it is locked
	Open(path string) (file, error)              // opens for reading
	OpenLocked(path string) (file, error)        // opens for writing; ErrLocked if it is open
	Create(path string, like file) (file, error) // locked; with the owner and mode of like, or 0600
	SyncDir(path string) error                   // makes file names next to path durable
	Size(path string, f file) (int64, error)     // length of f; -1 if path leads to another file
	Remove(path string)                          // best effort

	// Replace renames path.tmp, which is open as tmp, to path, which is open as old, and closes the other
	// file. If old is nil, there must be no file at path. The outcomes are:
	//
	//	no error     tmp is at path
	//	errUnknown   nobody knows which file is at path; it may not be open
	//	errAppeared  old is nil, but there is a file at path
	//	others       old is still at path
	Replace(tmp, old file, path string) (current file, err error)
}

// file is the part of [os.File] that this package uses.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

type osFS struct{}

// Resolve refuses a symbolic link to a missing file, because a rename would replace the link. It refuses
// everything but regular files, because opening a pipe would block.
func (osFS) Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		link, err := os.Lstat(path)
		if err == nil && link.Mode()&fs.ModeSymlink != 0 { // otherwise the file has just appeared
			return "", fmt.Errorf("%s is a symbolic link to a missing file: give the path of the file", path)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", fmt.Errorf("%w: create the directory of the data file first", err)
		}
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w: it is not a regular file", path, ErrFormat)
	}
	return filepath.EvalSymlinks(path)
}

// Lock never deletes the lock file: two processes could then each lock a file with that name.
func (osFS) Lock(path string) (io.Closer, error) {
	f, err := openLockFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: this user must be able to write to the directory and the lock file", err)
	}
	err = lock(f)
	text := make([]byte, 24)
	n, _ := f.ReadAt(text, 0)
	pid := processID.FindSubmatch(text[:n])
	if errors.Is(err, ErrLocked) {
		process := "another process"
		if len(pid) > 0 && len(pid[1]) > 0 {
			process = fmt.Sprintf("process %s", pid[1])
		}
		err = fmt.Errorf("%s %w by %s: stop it first, or try again if it is starting", path, err, process)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if pid != nil { // leave another program's file alone
		f.Truncate(0) // ignore errors: the process ID is only for messages
		f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	return f, nil
}

// processID matches the content of our lock files. A new one is empty.
var processID = regexp.MustCompile(`^([0-9]{0,10})\n?$`)

// openLockFile opens or creates a lock file. A new one gets the owner of the data file, so that a subcommand
// run by root doesn't lock the service out. Symbolic links aren't followed, because they may lead to another
// file.
func openLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path+".lock", os.O_RDWR|noFollow, 0)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil {
		copyOwner(f, info)
	}
	return f, nil
}

func (osFS) Open(path string) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenLocked also returns ErrLocked if the file is replaced before it is locked, because another process may
// already have locked the new one.
func (o osFS) OpenLocked(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	err = lockData(f)
	if err == nil {
		var size int64
		size, err = o.Size(path, f)
		if size < 0 {
			err = ErrLocked
		}
	}
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%s %w by a process that uses another path or lock file: stop it first", path, err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (osFS) Create(path string, like file) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockData(f)
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	if like != nil {
		info, err := like.(*os.File).Stat()
		if err == nil {
			copyOwner(f, info)
		}
	}
	return f, nil
}

// SyncDir ignores errors where directories can't be synced: on Windows, where NTFS logs name changes, and on
// file systems that return EINVAL.
func (osFS) SyncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

func (osFS) Size(path string, f file) (int64, error) {
	info, err := f.(*os.File).Stat()
	if err != nil {
		return 0, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	if !os.SameFile(named, info) {
		return -1, nil
	}
	return info.Size(), nil
}

func (osFS) Remove(path string) { os.Remove(path) }

// install gives path.tmp its final name. If there is no old file, it never replaces one, unless the file
// system has no hard links.
func install(path string, old file) error {
	tmp := path + tmpSuffix
	if old == nil {
		err := os.Link(tmp, path)
		if errors.Is(err, fs.ErrExist) {
			return errAppeared
		}
		if err == nil {
			os.Remove(tmp) // otherwise the next startup removes it
			return nil
		}
	}
	return checkRename(os.Rename(tmp, path))
}

// checkRename returns the error of a rename. After an I/O error, the rename may have happened nevertheless.
// Other errors are refusals.
func checkRename(err error) error {
	if errors.Is(err, syscall.EIO) {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}
