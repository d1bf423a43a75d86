//go:build unix

package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// listenUnix gives the socket its mode before it has a name, if the system can do
// that (Linux): nobody else can connect in between.
func listenUnix(path string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	return c.Listen(context.Background(), "unix", path)
}

func dialUnix(path, file string) (net.Conn, error) {
	socket, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	trusted := []int{0, os.Geteuid()}
	data, err := os.Stat(file)
	if err == nil {
		trusted = append(trusted, ownerOf(data))
	}
	if !slices.Contains(trusted, ownerOf(socket)) {
		return nil, fmt.Errorf("%s belongs to user %d: it must belong to root, you or the owner of %s",
			path, ownerOf(socket), file)
	}
	return net.DialTimeout("unix", path, time.Second)
}

// ownerOf returns the ID of the user whom a file belongs to.
func ownerOf(info os.FileInfo) (user int) { return int(info.Sys().(*syscall.Stat_t).Uid) }
