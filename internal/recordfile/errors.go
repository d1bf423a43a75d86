package recordfile

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrBroken: a write, a rename or a sync failed, and it is unknown what is on disk.
	// Nothing is written until the file is opened again.
	ErrBroken = errors.New("writing has ended until a restart")
	// ErrReadOnly: the file was read but could not be made ready for writing.
	ErrReadOnly = errors.New("read-only until a restart")
	// ErrFormat: the file is of another program, or of a newer version of this one.
	ErrFormat = errors.New("not a data file of this version")
	// ErrLocked is what each [LockedError] wraps.
	ErrLocked = errors.New("the data file is in use")
	// ErrDamaged is what each [DamageError] wraps.
	ErrDamaged = errors.New("the data file is damaged")
)

// A DamageError says where a file stops being right, and why no crash can have
// left it so. The file was not changed. Line 1 of a file is its opening bracket, line
// 2 the header, and line 3 the first commit.
type DamageError struct {
	File   string
	Line   int   // counted from 1
	Offset int64 // where the line begins, in bytes
	Reason string
	remedy string // what to do; empty for what can be done as a rule
}

func (e *DamageError) Error() string {
	remedy := e.remedy
	if remedy == "" {
		remedy = "get out what verifies with eventsd dump -salvage -data " + quoted(e.File) + ", and " +
			"begin a new data file with that or with a dump from before as -seed"
	}
	return fmt.Sprintf("%s is damaged at line %d, byte %d: %s; nothing was changed: %s",
		e.File, e.Line, e.Offset, e.Reason, remedy)
}

// quoted is a path as one word of a shell.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

func (e *DamageError) Unwrap() error { return ErrDamaged }
