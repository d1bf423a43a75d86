package operator

import (
	"errors"
	"path/filepath"
)

// errNoServer is wrapped by errors of dialSocket if the data file has no socket that a server listens on.
var errNoServer = errors.New("no server can be reached")

// socketPath returns the path of the socket of a data file, whose symbolic links are followed.
func socketPath(data string) string {
	resolved, err := filepath.EvalSymlinks(data)
	if err == nil {
		data = resolved
	}
	return data + ".sock"
}
