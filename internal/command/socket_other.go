//go:build !unix

package command

import (
	"errors"
	"net"
	"runtime"
)

func listenUnix(string) (net.Listener, error) {
	return nil, errors.New("not on " + runtime.GOOS)
}

// dialUnix finds nobody, as no server makes a socket here.
func dialUnix(_, _ string) (net.Conn, error) { return nil, ErrNobody }
