//go:build unix

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

func socketPath(data string) string { return resolve(data) + ".sock" }

// Listen creates the socket of a data file, with mode 0600. It replaces an old socket, so lock the data file
// first.
func Listen(data string) (net.Listener, error) {
	path := socketPath(data)
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is not a socket: remove it, and start the server again", path)
	}
	os.Remove(path) // left by a killed server
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		// On Linux, this sets the mode before anyone can connect.
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: its directory must be writable, and its path at most 100 bytes long", err)
	}
	err = os.Chmod(path, 0o600)
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// dialSocket connects to the server of a data file.
func dialSocket(data string) (net.Conn, error) {
	path := socketPath(data)
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.EINVAL): // the path is too long for a socket
		return nil, fmt.Errorf("%w at %s: start it, or check -data and EVENTSD_DATA", errNoServer, path)
	default:
		return nil, fmt.Errorf("the server can't be reached: %w: run this as the server's user", err)
	}
}
