package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// NewServer creates a server with the limits of all servers in this program.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 30 * time.Second, // see RestartWriteTimeout
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               16 << 10, // bytes
	}
}

// DisableReadTimeout removes the server's ReadTimeout from a request.
func DisableReadTimeout(w http.ResponseWriter) {
	http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// DisableWriteTimeout removes the server's WriteTimeout from a response.
func DisableWriteTimeout(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// RestartWriteTimeout makes the server's WriteTimeout begin now. It has begun when the request headers were
// read, so a request that waits for the disk would lose its response.
func RestartWriteTimeout(w http.ResponseWriter, r *http.Request) {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if ok && server.WriteTimeout > 0 {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(server.WriteTimeout))
	}
}

// A BoundServer is a server with its listener.
type BoundServer struct {
	*http.Server
	Listener net.Listener
}

// Serve runs servers until ctx is done or a server fails, and returns that failure. Then it closes the
// listeners, and running requests have the drain time to finish. After that, it closes their connections.
func Serve(ctx context.Context, drain time.Duration, servers ...*BoundServer) error {
	failed := make(chan error, len(servers))
	var serving sync.WaitGroup
	for _, s := range servers {
		serving.Go(func() { failed <- s.Serve(s.Listener) })
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	for _, s := range servers {
		s.Listener.Close()
	}
	serving.Wait() // no connection is accepted from now on
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, s := range servers { // in parallel, because each has the whole drain time
		serving.Go(func() {
			if s.Shutdown(draining) != nil {
				s.Close()
			}
		})
	}
	serving.Wait()
	return err
}

// ServeConn starts to serve a connection, such as one end of a [net.Pipe], and returns. The server closes it.
func ServeConn(s *http.Server, conn net.Conn) {
	s.Serve(&connListener{conn}) // returns when the goroutine of the connection has started
}

// connListener accepts one connection, and then fails, which ends Serve.
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
