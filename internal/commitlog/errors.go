package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	// ErrLocked is wrapped by every [LockedError].
	ErrLocked = errors.New("the data file is in use")
	// ErrDamaged is wrapped by every [DamageError].
	ErrDamaged = errors.New("the data file is damaged")
	// ErrFormat is wrapped by the error for an empty file, another program's file, and a file of a newer
	// format.
	ErrFormat = errors.New("not a data file of this program")
	// ErrBroken is wrapped by errors of a log that can't be written until the file is opened again.
	ErrBroken = errors.New("nothing can be written until a restart")
	// ErrClosed is returned by methods of a closed log.
	ErrClosed = errors.New("the data file is closed")

	errReplaced = errors.New("another program removed, replaced or changed it")
)

// A LockedError is returned by [Open] if another process has the file open.
type LockedError struct {
	File string
	PID  int // ID of that process; 0 if unknown
}

func (e *LockedError) Error() string {
	process := "another process"
	if e.PID != 0 {
		process = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: stop it first, or try again if it is starting", e.File, process)
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// A DamageError reports the first invalid line of a file. It is returned only if a crash can't explain the
// damage. The file was not changed.
type DamageError struct {
	File   string
	Line   int   // counted from 1; line 1 is the opening bracket, line 2 the header
	Offset int64 // where the line begins, in bytes
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at line %d, byte %d: %s; nothing was changed: restore a backup",
		e.File, e.Line, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return ErrDamaged }

// unnamed removes the path from an error. The name that a file was opened by is out of date after a rename.
func unnamed(err error) error {
	pathErr, ok := err.(*fs.PathError)
	if ok {
		return pathErr.Err
	}
	return err
}
