package httpapi

import (
	"net"
	"net/http"
)

// ServeConn serves a connection, such as one end of a [net.Pipe], and returns at once. The connection
// is served until it is closed.
func ServeConn(s *http.Server, conn net.Conn) { s.Serve(&connListener{conn}) }

// connListener accepts one connection.
type connListener struct{ conn net.Conn }

func (l *connListener) Accept() (net.Conn, error) {
	conn := l.conn
	l.conn = nil
	if conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *connListener) Close() error   { return nil }
func (l *connListener) Addr() net.Addr { return &net.UnixAddr{} } // not used
