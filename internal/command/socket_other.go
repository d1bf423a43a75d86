//go:build !unix

package command

import (
	"errors"
	"net"
	"runtime"
)

func listenUnix(string) (net.Listener, error) { return nil, errors.New("not on " + runtime.GOOS) }
