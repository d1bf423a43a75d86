package cli

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

// WriteFile writes a file with mode 0600, whole or not at all: under a temporary name, which becomes its name
// when everything is on disk. It replaces only regular files. If write fails, nothing is changed.
func WriteFile(path string, write func(io.Writer) error) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: give another path", path)
	}
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s was not written: %w", path, withoutPath(err))
	}
	defer os.Remove(tmp.Name()) // has no effect after the rename
	defer tmp.Close()
	err = write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if err == nil {
		err = tmp.Close()
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s was not written: %w", path, withoutPath(err))
	}
	return syncDir(dir)
}

// withoutPath removes a temporary path from an error.
func withoutPath(err error) error {
	pathErr, ok := errors.AsType[*fs.PathError](err)
	if ok {
		return pathErr.Err
	}
	return err
}

// syncDir makes the names of the files in a directory durable. Windows can't do that, nor can some file
// systems.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}
