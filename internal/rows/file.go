package rows

import "example.com/events/internal/recordfile"

// The errors of a data file that say more than the variables that they wrap. None names a command
// or a flag: what a person can do is added by who prints them.
type (
	LockedError = recordfile.LockedError
	DamageError = recordfile.DamageError
	FormatError = recordfile.FormatError
	EndedError  = recordfile.EndedError
)

// ErrReplaced: something else than this process changed the data file while it was open.
var ErrReplaced = recordfile.ErrReplaced

// SocketPath returns the path of the socket of the process that has a data file open.
func SocketPath(data string) string { return recordfile.SocketPath(data) }
