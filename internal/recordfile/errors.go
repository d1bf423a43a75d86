package recordfile

import (
	"errors"
	"fmt"
)

var (
	// ErrBroken: a write, a rename or a sync failed, and it is unknown what is on disk, or the
	// file is no longer the one at its path. Nothing is written until it is opened again.
	ErrBroken = errors.New("writing has ended until a restart")
	// ErrReadOnly: the file was read but could not be made ready for writing.
	ErrReadOnly = errors.New("read-only until a restart")
	// ErrReplaced: something else than this process changed the file while it was open.
	ErrReplaced = errors.New("it was removed or replaced, or its length was changed, while it was open")
	// ErrFormat is what each [FormatError] wraps.
	ErrFormat = errors.New("not a data file of this version")
	// ErrLocked is what each [LockedError] wraps.
	ErrLocked = errors.New("the data file is in use")
	// ErrDamaged is what each [DamageError] wraps.
	ErrDamaged = errors.New("the data file is damaged")
)

// An EndedError says why nothing can be written any more until the file is opened again.
type EndedError struct {
	File  string
	State error  // ErrBroken or ErrReadOnly
	Doing string // what failed, such as "sync"
	Err   error  // why; ErrReplaced if the file is no longer the one at its path
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("%s: %v: %s: %v", e.File, e.State, e.Doing, e.Err)
}

func (e *EndedError) Unwrap() []error { return []error{e.State, e.Err} }

// A FormatError says why a file is not one that this program reads. The file was not changed.
type FormatError struct {
	File   string
	Format string // of a newer program, or of another one; "" if the file is no data file at all
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s: %v: %s", e.File, ErrFormat, e.Reason) }

func (e *FormatError) Unwrap() error { return ErrFormat }

// A DamageError says where a file stops being right, and why no crash can have
// left it so. The file was not changed. Line 1 of a file is its opening bracket, line
// 2 the header, and line 3 the first commit.
type DamageError struct {
	File   string
	Line   int   // counted from 1
	Offset int64 // where the line begins, in bytes
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at line %d, byte %d: %s; nothing was changed",
		e.File, e.Line, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return ErrDamaged }
