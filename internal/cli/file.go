package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ReadInput reads a file, or stdin if the path is "-".
func (p *Program) ReadInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(p.Stdin)
	}
	return os.ReadFile(path)
}

// WriteFile writes a file with mode 0600, completely or not at all. It writes a temporary file, syncs it,
// renames it and syncs its directory. It replaces only regular files.
func WriteFile(path string, write func(io.Writer) error) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: give another path", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s was not written: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // does nothing after the rename
	err = errors.Join(write(tmp), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s was not written: %w", path, err)
	}
	err = syncDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("%s was written, but a power cut may undo that: %w", path, err)
	}
	return nil
}

// syncDir makes the file names in a directory durable, where the system can do that.
func syncDir(path string) error {
	dir, err := os.Open(path)
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
