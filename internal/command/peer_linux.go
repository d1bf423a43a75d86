package command

import (
	"net"
	"os"
	"syscall"
)

// checkPeer judges the server at the other end of a connection by the user that the kernel names:
// the one who made the socket listen, whatever is at its path by now.
func checkPeer(conn *net.UnixConn, _ string, _ os.FileInfo, trusted []int) error {
	peer, err := Peer(conn)
	if err != nil {
		return err
	}
	return checkUser(peer, trusted)
}

// Peer is the user id of the process at the other end of a connection by a Unix socket.
func Peer(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) {
		peer, optErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil {
		return 0, err
	}
	if optErr != nil {
		return 0, os.NewSyscallError("getsockopt", optErr)
	}
	return int(peer.Uid), nil
}
