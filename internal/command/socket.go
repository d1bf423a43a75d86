package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// SocketPath is the path of the operator's socket beside a data file: beside the
// file itself if the path is a link, so that every link leads to one server.
func SocketPath(data string) string {
	if target, err := filepath.EvalSymlinks(data); err == nil {
		data = target
	}
	return data + ".sock"
}

// Socket makes a Unix socket that only its owner can connect to. A socket that
// is at the path is replaced: its process has ended, as the caller holds the lock
// of the data file.
func Socket(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := listenUnix(path)
	if err != nil {
		return nil, fmt.Errorf("%w; its folder must be writable, and its path at most 100 bytes long", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
