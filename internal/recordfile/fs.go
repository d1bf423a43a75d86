package recordfile

import (
	"cmp"
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
	Resolve(path string) (string, error)         // absolute, links resolved; a regular file or none
	Lock(path string) (io.Closer, error)         // takes path.lock; ErrLocked if another process has it
	Open(path string, flag int) (file, error)    // opens an existing file; os.O_RDWR also locks it
	Create(path string, like file) (file, error) // new, locked, mode 0600; like says the owner, if not nil
	Rename(from, to string) error                // replaces what is at to
	RenamesOpen() bool                           // whether Rename takes open files; on Windows it does not
	Remove(path string) error                    // nil if it is missing
	WithPrefix(path string) ([]string, error)    // the paths that begin with this one, sorted
	SyncDir(dir file) error                      // makes the names in an open folder durable
	Size(path string, f file) (int64, error)     // of f; -1 if the file at path is not f, 0 if there is none
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
	if real, err := filepath.EvalSymlinks(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		info, err := os.Stat(real)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: %w: it is a folder or another thing that is not a regular file",
				real, ErrFormat)
		}
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%s is a symbolic link that leads to nothing: give the path to the file", path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%w: make the folder of the data file first", err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// Lock takes the lock and leaves the process id in the lock file. That file stays for
// good: if it were deleted, two processes could each lock one of that name.
//
// The folder may belong to another user, who puts there what this process is to
// overwrite or to give away: a symbolic or hard link, even between two of the calls
// below. So no link is followed, only a file that was just made here gets another
// owner, and the rest is asked of the open file, not of its name. A hard link that was
// deleted after it was opened shows no second name any more; that is why the file
// must also hold nothing but a process id, or what a crash leaves of one.
func (osFS) Lock(path string) (io.Closer, error) {
	name := path + ".lock"
	refused := fmt.Errorf("%s must be a regular file with one name, which holds a process id, and no link: "+
		"it was left as it is; see what it is and remove it", name)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if data, err := os.Stat(path); err == nil {
			_ = own(f, data) // else who owns the data file could not lock it
		}
	} else if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(name, os.O_RDWR|noFollow, 0)
	}
	if err != nil {
		if info, statErr := os.Lstat(name); statErr == nil && !info.Mode().IsRegular() {
			err = refused
		}
		return nil, err
	}
	info, err := f.Stat()
	held := make([]byte, 30)
	n, _ := f.ReadAt(held, 0)
	pid := strings.Trim(string(held[:n]), "\r\n\x00")
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || names(info) != 1 || n == len(held),
		strings.Trim(pid, "0123456789") != "":
		err = refused
	default:
		err = lock(f)
	}
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w (process %s)", err, cmp.Or(pid, "unknown"))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

// osFile is an open file, which may be locked.
type osFile struct{ *os.File }

// Close releases the lock at once. Closing alone would not: a child process that is
// being started has a copy of the descriptor, and so the lock, until its exec.
func (f osFile) Close() error {
	unlock(f.File)
	return f.File.Close()
}

// Open locks a file that is opened for writing. FILE.lock names the process that has it;
// this lock is on the file itself, so that no second path to it, such as a hard link, and
// no removal of FILE.lock lets a second server in.
func (o osFS) Open(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	if flag == os.O_RDWR {
		size := int64(0)
		if err = lockData(f); err == nil {
			size, err = o.Size(path, f)
		}
		if err == nil && size < 0 { // by a rewrite through another path, between opening and locking
			err = fmt.Errorf("%s was replaced while it was opened: try again", path)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

func (o osFS) Create(path string, like file) (file, error) {
	if err := o.Remove(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if like != nil {
		var info fs.FileInfo
		if info, err = like.Stat(); err == nil {
			err = own(f, info)
		}
	}
	if err == nil {
		err = lockData(f)
	}
	if err != nil {
		err = fmt.Errorf("%s: cannot be given the owner of the data file, or be locked: %w", path, err)
		return nil, errors.Join(err, f.Close(), o.Remove(path))
	}
	return osFile{f}, nil
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) RenamesOpen() bool { return renamesOpen }

func (osFS) Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (osFS) WithPrefix(path string) (paths []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)) {
			paths = append(paths, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return paths, err
}

// SyncDir does nothing if there is no such call: on Windows, as NTFS keeps names in
// its journal, and on file systems that answer EINVAL.
func (osFS) SyncDir(dir file) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if err := dir.Sync(); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

func (osFS) Size(path string, f file) (int64, error) {
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
