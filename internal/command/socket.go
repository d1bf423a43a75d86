package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"
)

// SocketPath is the path of the operator's socket beside a data file: beside the
// file itself if the path is a link, so that every link leads to one server.
func SocketPath(data string) string { return target(data) + ".sock" }

// DialSocket connects to the socket beside a data file. It returns nil if nobody listens
// there. A socket that belongs to neither root, the caller, nor the owner of the data file
// is refused: anyone who can write to the folder could have made it, and would be told
// records and keys. It warns of a data file that is another user's.
func (p *Program) DialSocket(data string) (net.Conn, error) {
	caller := os.Geteuid()
	dataOwner := owner(data, caller)
	if dataOwner != caller && caller != 0 {
		p.Notice("warning: %s belongs to user %d and not to you", data, dataOwner)
	}
	path := SocketPath(data)
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return nil, nil
	}
	made := owner(path, caller)
	if made != 0 && made != caller && made != dataOwner {
		conn.Close()
		return nil, fmt.Errorf("user %d made %s, who is neither root, nor you, nor the owner of the data "+
			"file; remove it", made, path)
	}
	return conn, nil
}

// WhyNoSocket is why nobody listens on the socket beside a data file that a server has
// locked. A server locks the file, reads it, writes the end of it once more, and then makes
// the socket.
func WhyNoSocket(data string) string {
	path := SocketPath(data)
	socket, missing := os.Lstat(path)
	isOther := missing == nil && socket.Mode().Type() != os.ModeSocket
	if isOther || len(path) > maxSocket || runtime.GOOS == "windows" {
		return "it has no socket for the operator (operator: off), so stop it first"
	}
	locked, lockErr := os.Stat(target(data) + ".lock")
	written, err := os.Stat(data)
	if missing == nil || lockErr != nil || err != nil || written.ModTime().Before(locked.ModTime()) {
		return "it is starting, so try again when it is ready"
	}
	return "its socket " + path + " is gone, so stop it first, or restart it to get a new one"
}

const maxSocket = 103 // bytes of the path of a socket, on the system that takes the least

// Socket makes a Unix socket that only its owner can connect to. A socket that
// is at the path is replaced: its process has ended, as the caller holds the lock
// of the data file.
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
