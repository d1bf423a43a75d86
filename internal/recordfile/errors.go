package recordfile

import (
	"errors"
	"fmt"
	"os"
)

var (
	// ErrBroken: a write or a sync failed in a way that leaves open what is on
	// disk. Nothing is written until the file is opened again.
	ErrBroken = errors.New("writing has ended until a restart")
	// ErrReadOnly: the file was read but could not be made ready for writing.
	ErrReadOnly = errors.New("can be read only until a restart")
	// ErrTooLarge: the records are over MaxCommit.
	ErrTooLarge = errors.New("too large for one commit")

	// What the types of error below wrap, for errors.Is.
	ErrDamaged = errors.New("the data file is damaged")
	ErrFormat  = errors.New("not a data file of this version")
	ErrLocked  = errors.New("the data file is in use")
)

// A DamageError says where a file stops being right, and why no crash can have
// left it so. The file was not changed.
type DamageError struct {
	File   string
	Line   int   // counted from 1
	Offset int64 // where the line begins, in bytes
	Reason string
	Err    error // of replay, if it refused the line
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at line %d, byte %d: %s; nothing was changed: "+
		"get out what verifies with eventsd dump -salvage, and begin a new data file with that "+
		"or with a dump from before as -seed", e.File, e.Line, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.Err} }

// A FormatError says that a file is not one of this program's version.
type FormatError struct {
	File   string
	Reason string // with what to do
}

func (e *FormatError) Error() string { return e.File + " " + e.Reason }

func (e *FormatError) Unwrap() error { return ErrFormat }

// A LockedError says that another process, or another Open in this one, has
// the file open.
type LockedError struct {
	File string
	PID  int // 0 if it is not known
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.PID == os.Getpid() {
		who = "this process, or one of that id in another container"
	}
	return fmt.Sprintf("%s is in use by %s, which holds its lock: stop that first", e.File, who)
}

func (e *LockedError) Unwrap() error { return ErrLocked }
