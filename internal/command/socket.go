package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrNobody is returned by [DialSocket] if no process can be listening.
var ErrNobody = errors.New("nobody listens")

// DialSocket connects to the Unix socket at a path, whose server works on a data file. The socket file
// must belong to root, the caller or the owner of the data file: anyone else who can write to the
// directory could have made it, to be sent records and keys. The error is [ErrNobody] only if nobody
// can be listening; a server that cannot be reached is another one.
func DialSocket(path, file string) (net.Conn, error) {
	conn, err := dialUnix(path, file)
	if isNobody(err) {
		return nil, ErrNobody
	}
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", err)
	}
	return conn, nil
}

// isNobody reports whether an error of a dial means that no process listens: there is no such
// file, its process has ended, or the path is longer than any socket's.
func isNobody(err error) bool {
	return errors.Is(err, ErrNobody) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EINVAL)
}

// Socket makes a Unix socket that only its owner can connect to. A socket that
// is at the path is replaced: its process must have ended, as the caller has locked what the
// socket is for.
func Socket(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == os.ModeSocket {
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
