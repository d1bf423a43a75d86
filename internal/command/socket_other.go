//go:build !unix

package command

import (
	"errors"
	"net"
	"runtime"
)

const asItIs = 0 // there are no flags for it: a link or a pipe was looked for before

func listenUnix(string) (net.Listener, error) {
	return nil, errors.New("not on " + runtime.GOOS)
}

// dialUnix finds nobody, as no server makes a socket here.
func dialUnix(_, _ string) (net.Conn, error) { return nil, ErrNobody }
