//go:build !unix

package operator

import (
	"fmt"
	"net"
	"runtime"
)

// Listen fails, because this system has no Unix sockets with owners.
func Listen(string) (net.Listener, error) {
	return nil, fmt.Errorf("there are no Unix sockets on %s", runtime.GOOS)
}

func dialSocket(string) (net.Conn, error) {
	return nil, fmt.Errorf("%w on %s", errNoServer, runtime.GOOS)
}
