package cli

import (
	"errors"
	"fmt"
	"net"
)

// Listen listens on an address from a source, such as -addr.
func Listen(addr, source string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if _, malformed := errors.AsType[*net.AddrError](err); malformed {
		return nil, Usagef("%s: %v: expected HOST:PORT", source, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: try another address, such as 127.0.0.1:9000", source, err)
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
