package cli

import (
	"errors"
	"fmt"
	"net"
)

// Listen listens on the address in the flag -addr.
func Listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if _, malformed := errors.AsType[*net.AddrError](err); malformed {
		return nil, Usagef("-addr: %v: expected HOST:PORT", err)
	}
	if err != nil {
		return nil, fmt.Errorf("-addr: %w: choose a free port on an address of this machine", err)
	}
	return l, nil
}

// BaseURL returns the URL of a server at an address. It replaces a wildcard with the local host.
func BaseURL(addr, local string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = local
	}
	return "http://" + net.JoinHostPort(host, port)
}
