package commitlog

import (
	"errors"
	"io/fs"
)

var (
	// ErrLocked is wrapped by the error of [Open] for a file that another process has open.
	ErrLocked = errors.New("is in use")
	// ErrDamaged is wrapped by the error for a file with an invalid line that no crash can leave. The error
	// has the position of the line.
	ErrDamaged = errors.New("is damaged")
	// ErrFormat is wrapped by the error for an empty file, a file without a header, and a file of a newer
	// format.
	ErrFormat = errors.New("not a data file of this program")
	// ErrBroken is wrapped by errors of a log that can't be written until the file is opened again.
	ErrBroken = errors.New("nothing can be written until a restart")

	errReplaced = errors.New("another program removed, replaced or changed it")
)

// unnamed removes the path from an error. The name that a file was opened by is out of date after a rename.
func unnamed(err error) error {
	pathErr, ok := err.(*fs.PathError)
	if ok {
		return pathErr.Err
	}
	return err
}
