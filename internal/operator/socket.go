package operator

import (
	"errors"
	"path/filepath"
)

// errNoServer is wrapped by errors of dialSocket if no server can be running.
var errNoServer = errors.New("no server is running")

// socketPath returns the path of the socket of a data file, whose symbolic links are followed.
func socketPath(data string) string {
	resolved, err := filepath.EvalSymlinks(data)
	if err == nil {
		data = resolved
	}
	return data + ".sock"
}
