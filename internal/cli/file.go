package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReadInput reads a file, or stdin if the path is "-".
func (p *Program) ReadInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(p.Stdin)
	}
	return os.ReadFile(path)
}

// WriteFile writes a file with mode 0600, completely or not at all. It writes a temporary file, syncs it and
// renames it. It replaces only regular files.
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
	return nil
}
