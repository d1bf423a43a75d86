package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// WriteFile writes a file with mode 0600, whole or not at all: under a temporary name
// beside it, which gets the name of the file once all of it is on disk. If write fails, the
// file is as it was before. A link is followed. WriteFile refuses to replace what is no
// regular file, and the data file with what belongs to it, such as FILE.lock.
func WriteFile(path, data string, write func(io.Writer) error) error {
	path = target(path)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; give another path", path)
	}
	dataInfo, _ := os.Stat(data)
	if ofData.MatchString(strings.TrimPrefix(path, target(data))) || os.SameFile(info, dataInfo) {
		return fmt.Errorf("%s belongs to the data file; give another path", path)
	}
	return replace(path, write)
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

// ofData matches what follows the path of a data file in the paths of its companions.
var ofData = regexp.MustCompile(`^(|\.lock|\.sock|\.tmp|\.torn-.*)$`)

// target is the absolute path that a path leads to, which may be that of no file yet.
func target(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved, err = filepath.EvalSymlinks(filepath.Dir(path))
		resolved = filepath.Join(resolved, filepath.Base(path))
	}
	if err == nil {
		path = resolved
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}
