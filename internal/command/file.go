package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// WriteFile writes a file with mode 0600, whole or not at all: under a temporary name next to it, which
// becomes the name of the file once all of it is on disk. If write fails, the file is as it was before.
// WriteFile refuses to replace anything but a regular file, such as a device.
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

// replace creates a file with mode 0600, in the place of any file that has its path, once all of it is on
// disk.
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
