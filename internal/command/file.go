package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// WriteFile writes a file with mode 0600, whole or not at all: under a temporary name
// beside it, which gets the name of the file once all of it is on disk. If write fails, the
// file is as it was before. WriteFile refuses to replace what is no regular file. A link is
// none: whoever can write to the folder could have put it there, and it could lead to any file.
func WriteFile(path string, write func(io.Writer) error) error {
	err := checkRegular(path)
	if err != nil {
		return err
	}
	err = replace(path, write)
	if err != nil {
		return err
	}
	err = syncFolder(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("%s was written, but a power cut may take it back: %w", path, err)
	}
	return nil
}

// checkRegular refuses a path at which something else than a regular file is.
func checkRegular(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; give another path", path)
	}
	return nil
}

// tryReplace returns an error if replace could not write a file in the folder of the path.
func tryReplace(path string) error {
	tried := errors.New("tried")
	err := replace(path, func(io.Writer) error { return tried })
	if errors.Is(err, tried) {
		return nil
	}
	return err
}

// replace makes a file with mode 0600, in the place of any file or link that has its path,
// once all of it is on disk. Others may be able to write to its folder, such as /tmp. So it
// is written through the descriptor that made it: what has its temporary name later could
// be a link to another file by then, or a pipe.
func replace(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, errors.Unwrap(err))
	}
	err = write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return fmt.Errorf("%s was not written: %w", path, err)
	}
	return nil
}

// syncFolder makes the names of the files in a folder durable. Windows has no such call, nor
// have file systems that answer EINVAL.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// openRegular opens a regular file to read it. It follows no link at the path, does not wait
// for a pipe there, and opens nothing else.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := os.OpenFile(path, os.O_RDONLY|asItIs, 0)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat() // of what was opened, whatever is at the path by now
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
