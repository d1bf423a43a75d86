//go:build unix

package command

import (
	"context"
	"net"
	"syscall"
)

// listenUnix gives the socket its mode before it has a name, if the system can do
// that (Linux): nobody else can connect in between.
func listenUnix(path string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	return c.Listen(context.Background(), "unix", path)
}

// owner is the user whom the file at a path belongs to, or the caller if there is none.
func owner(path string, caller int) int {
	var file syscall.Stat_t
	if syscall.Stat(path, &file) != nil {
		return caller
	}
	return int(file.Uid)
}
