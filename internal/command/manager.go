package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A service manager, such as systemd, starts a server and keeps it running. It speaks to the
// server by variables of the environment, which every function here takes as [os.Environ]
// returns them:
//
//	LISTEN_PID=4711                     the process that the next variable is for
//	LISTEN_FDS=1                        one socket listens already: it is descriptor 3
//	NOTIFY_SOCKET=/run/systemd/notify   who wants to know that the server is ready
//
// The first two are socket activation, of sd_listen_fds(3). The manager holds the socket, so
// connections wait in the kernel while one server ends and the next one starts: nobody is
// refused meanwhile. The last one is of sd_notify(3).
var managerVariables = []string{
	"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID", "NOTIFY_SOCKET",
}

const handedOver = 3 // the first descriptor behind stdin, stdout and stderr

// managerListener returns the listener that the service manager hands to this process, or nil
// if it hands over none.
func managerListener(environ []string) (net.Listener, error) {
	forUs := variable(environ, "LISTEN_PID") == strconv.Itoa(os.Getpid())
	count := variable(environ, "LISTEN_FDS")
	if !forUs || count == "" || count == "0" {
		return nil, nil
	}
	if count != "1" {
		return nil, fmt.Errorf("LISTEN_FDS is %q: this server serves one socket; "+
			"give its socket unit one ListenStream", count)
	}
	f := os.NewFile(handedOver, "LISTEN_FDS")
	defer f.Close() // both below have a copy, which no command beside the server gets
	conn, err := net.FileConn(f)
	if err == nil {
		defer conn.Close()
		if conn.RemoteAddr() != nil {
			return nil, errors.New("LISTEN_FDS: descriptor 3 is a connection, and must be a socket that " +
				"listens; set Accept=no in the socket unit")
		}
	}
	l, err := net.FileListener(f)
	if err != nil {
		if operation, is := errors.AsType[*net.OpError](err); is {
			err = operation.Err // without the name of a file that there is not
		}
		// Not %w: the next try has no other socket, so this is refused, and no failure.
		return nil, fmt.Errorf("LISTEN_FDS: descriptor 3 must be a TCP socket that listens: %v", err)
	}
	if _, isTCP := l.(*net.TCPListener); !isTCP {
		l.Close()
		return nil, fmt.Errorf("LISTEN_FDS: descriptor 3 must be a TCP socket, and is %s %s; "+
			"give HOST:PORT as ListenStream of the socket unit", l.Addr().Network(), l.Addr())
	}
	return l, nil
}

// NotifyManager tells the service manager, if it wants to know, that the server has a new
// state: "READY=1" once it serves, and "STOPPING=1" when it begins to stop.
func NotifyManager(environ []string, state string) error {
	path := variable(environ, "NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path) // "@name" is an abstract address for package net, too
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return nil
}

// withoutManager returns environ without what the service manager said to this process, for a
// command that it starts.
func withoutManager(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(managerVariables, name)
	})
}

// variable returns the value of a variable, or "". The last one of a name counts, as it does
// for a command that is started with environ.
func variable(environ []string, name string) (value string) {
	for _, v := range environ {
		n, val, _ := strings.Cut(v, "=")
		if n == name {
			value = val
		}
	}
	return value
}
