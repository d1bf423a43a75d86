package commitlog

import (
	"errors"
	"io/fs"
)

var (
	// ErrLocked is returned by [Open] if the file is already open, in this process or another.
	ErrLocked = errors.New("is in use")
	// ErrDamaged is returned if the file has an invalid line that no crash leaves. The message names the
	// line.
	ErrDamaged = errors.New("is damaged")
	// ErrFormat is returned for an empty file, a file without a header and a file of a newer format.
	ErrFormat = errors.New("not a readable data file")
	// ErrBroken is returned if the log can't be written until the file is opened again.
	ErrBroken = errors.New("nothing can be written until a restart")

	errReplaced = errors.New("another program removed, replaced or changed it")
	errUnknown  = errors.New("the file may have been replaced or not")
	errAppeared = errors.New("another process has created the file")
)

// withoutPath removes the path from an error, because a file keeps the name that it had before a rename.
func withoutPath(err error) error {
	pathErr, ok := err.(*fs.PathError)
	if ok {
		return pathErr.Err
	}
	return err
}
