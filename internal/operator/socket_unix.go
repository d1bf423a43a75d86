//go:build unix

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// socketPath returns the path of the socket of a data file, whose symbolic links are followed.
func socketPath(data string) string {
	resolved, err := filepath.EvalSymlinks(data)
	if err == nil {
		data = resolved
	}
	return data + ".sock"
}

// Listen creates the socket of a data file, with mode 0600. It replaces an old socket, so the caller must
// have locked the data file.
func Listen(data string) (net.Listener, error) {
	path := socketPath(data)
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s is not a socket: remove it, and start the server again", path)
	}
	os.Remove(path) // is there after a kill
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		// On Linux, this sets the mode before others can connect.
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

// dialSocket connects to the server of a data file. The socket must belong to root, the caller or the owner
// of the data file, because records and keys are sent to it.
func dialSocket(data string) (net.Conn, error) {
	path := socketPath(data)
	noServer := fmt.Errorf("%w at %s: start it, or give its -data", errNoServer, path)
	socket, err := os.Lstat(path)
	if err != nil {
		return nil, noServer
	}
	trusted := []uint32{0, uint32(os.Geteuid())}
	file, err := os.Stat(data)
	if err == nil {
		trusted = append(trusted, owner(file))
	}
	if !slices.Contains(trusted, owner(socket)) {
		return nil, fmt.Errorf("%s belongs to user %d: it must belong to root, you or the owner of %s",
			path, owner(socket), data)
	}
	conn, err := net.Dial("unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, noServer
	}
	if err != nil {
		return nil, fmt.Errorf("the server can't be reached: %w: run this as the server's user", err)
	}
	return conn, nil
}

func owner(info os.FileInfo) (uid uint32) { return info.Sys().(*syscall.Stat_t).Uid }
