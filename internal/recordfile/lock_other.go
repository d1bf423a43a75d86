//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package recordfile

import (
	"errors"
	"os"
)

func unlock(*os.File) error { return nil }

// lock refuses: without a lock two servers could write one file.
func lock(*os.File) (locked bool, err error) { return false, errors.ErrUnsupported }
