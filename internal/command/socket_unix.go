//go:build unix

package command

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"
)

// asItIs opens what is at a path without following a link and without waiting for a pipe.
const asItIs = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// listenUnix gives the socket its mode before it has a name, if the system can do
// that (Linux): nobody else can connect in between.
func listenUnix(path string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	return c.Listen(context.Background(), "unix", path)
}

func dialUnix(path string) (net.Conn, error) { return net.DialTimeout("unix", path, time.Second) }

// ownerOf is the user whom a file belongs to that os.Stat or os.Lstat found, if it did.
func ownerOf(info os.FileInfo, err error) (user int, isOwned bool) {
	if err != nil {
		return 0, false
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), true
}
