//go:build !unix

package command

import (
	"errors"
	"net"
	"os"
	"runtime"
)

const asItIs = 0 // there are no flags for it: a link or a pipe was looked for before

func listenUnix(string) (net.Listener, error) {
	return nil, errors.New("not on " + runtime.GOOS)
}

// dialUnix finds nobody, as no server makes a socket here.
func dialUnix(string) (net.Conn, error) { return nil, ErrNobody }

// ownerOf finds no user, as they have no numbers here.
func ownerOf(os.FileInfo, error) (user int, isOwned bool) { return 0, false }
