package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
)

// ErrNobody is the error of [Program.DialSocket] where no process can be listening.
var ErrNobody = errors.New("nobody listens")

// DialSocket connects to the Unix socket at a path, whose server works on a file. It takes only
// a server that runs as root, as the caller, or as the owner of the file: anyone who can write to
// the folder could have made the socket, and would be told records and keys. It warns of a
// file that is another user's. The error is [ErrNobody] only if nobody can be listening; a server
// that cannot be reached is another one.
func (p *Program) DialSocket(path, file string) (net.Conn, error) {
	trusted := []int{0, os.Geteuid()}
	owner, isOther := OtherOwner(file)
	if isOther {
		p.Warn("%s belongs to user %d and not to you", file, owner)
		trusted = append(trusted, owner)
	}
	before, lookErr := os.Lstat(path)
	conn, err := dialUnix(path)
	if isNobody(err) {
		return nil, ErrNobody
	}
	if err != nil {
		return nil, Failed(fmt.Errorf("the server cannot be reached: %w", err))
	}
	if lookErr == nil {
		lookErr = checkPeer(conn.(*net.UnixConn), path, before, trusted)
	}
	if lookErr != nil {
		conn.Close()
		return nil, fmt.Errorf("who listens on %s must be root, you, or the owner of %s: %w",
			path, file, lookErr)
	}
	return conn, nil
}

// isNobody reports whether an error of a dial means that no process listens: there is no such
// file, its process has ended, or the path is longer than any socket's.
func isNobody(err error) bool {
	return errors.Is(err, ErrNobody) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EINVAL)
}

// checkLooks judges the socket at a path by what was there before the client connected and what
// is there now: both must be the same socket of a trusted user. Who else can write to the folder
// cannot have put another one there in between.
func checkLooks(path string, before os.FileInfo, trusted []int) error {
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(before, now) {
		return errors.New("another socket took its place meanwhile")
	}
	owner, isOwned := ownerOf(now, nil)
	if !isOwned {
		return nil // on a system where files have no owners by number
	}
	return checkUser(owner, trusted)
}

// checkUser refuses a user who is none of the trusted ones.
func checkUser(user int, trusted []int) error {
	if slices.Contains(trusted, user) {
		return nil
	}
	return fmt.Errorf("it is user %d; see what that is, and remove the socket", user)
}

// OtherOwner is the user whom a file belongs to, if that is not the one who runs the program.
func OtherOwner(file string) (user int, isOther bool) {
	owner, isOwned := ownerOf(os.Stat(file))
	return owner, isOwned && owner != os.Geteuid()
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
