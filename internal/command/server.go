package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"example.com/events/internal/answer"
)

// StopTimeout is how long a stop usually waits for the requests that run.
const StopTimeout = 8 * time.Second // Docker kills after 10

// silentTimeout is how long a stop waits for a request on each connection that has sent none.
const silentTimeout = 250 * time.Millisecond

// Server is an HTTP server and the listener that it serves.
type Server struct {
	*http.Server
	Listener net.Listener
}

// More returns what the log of a request has beside the usual, in names and values, once
// it was answered with a header.
type More func(r *http.Request, answered http.Header) []any

// NewServer returns a server for HTTP/1 with the limits, whose requests are logged.
func NewServer(l net.Listener, h http.Handler, logger *slog.Logger, more More) *Server {
	s := &Server{answer.NewServer(logged(h, logger, more)), l}
	s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	return s
}

// connections are those that some servers have taken.
type connections struct {
	open     sync.WaitGroup // or their last request runs
	silent   atomic.Int64   // how many of them no handler serves at present
	fresh    sync.Map       // its keys are those on which no request has begun
	stopping atomic.Bool
}

// track is [http.Server.ConnState].
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
		c.silent.Add(1)
		c.fresh.Store(conn, nil)
		return
	case http.StateClosed, http.StateHijacked:
		c.silent.Add(-1)
		c.open.Done()
	}
	c.fresh.Delete(conn)
}

// serving counts the connections that h serves: with HTTP/1, each has one request at a time.
// While the servers stop, an answer says that it is the last one of its connection.
func (c *connections) serving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.silent.Add(-1)
		defer c.silent.Add(1)
		if c.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// hear waits until each connection is served or closed, but no longer than limit.
func (c *connections) hear(limit time.Duration) {
	end := time.Now().Add(limit)
	for c.silent.Load() > 0 && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
}

// closeFresh closes the connections on which no request has begun. net/http would wait up to
// 5 s for their first byte, which the spare connection of a browser or the probe of a port
// never sends.
func (c *connections) closeFresh() {
	for conn := range c.fresh.Range {
		conn.(net.Conn).Close()
	}
}

// logged logs a debug line for each request that h answers, without query and body.
func logged(h http.Handler, logger *slog.Logger, more More) http.Handler {
	if !logger.Enabled(context.Background(), slog.LevelDebug) {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		status := 0
		answered := &answer.StatusWriter{ResponseWriter: w, Seen: func(s int) { status = s }}
		defer func() {
			line := []any{
				"method", r.Method,
				"path", r.URL.Path,
				"route", r.Pattern,
				"status", status,
				"took_ms", float64(time.Since(start).Microseconds()) / 1000,
				"bytes", answered.Bytes,
				"remote", r.RemoteAddr,
			}
			line = append(line, more(r, w.Header())...)
			logger.Debug("request", line...)
		}()
		h.ServeHTTP(answered, r)
	})
}

// Listen listens on HOST:PORT, the value of -addr.
func Listen(addr string, logger *slog.Logger) (net.Listener, error) {
	if addr == "" { // for net that is any port of all interfaces
		return nil, errors.New("-addr is empty: give HOST:PORT of this machine")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-addr %q: %w; give HOST:PORT of this machine, the port being free", addr, err)
	}
	a := l.Addr().(*net.TCPAddr)
	if !a.IP.IsLoopback() {
		logger.Info("the address is not loopback: others reach this server; put TLS and limits before it",
			"addr", a.String())
	}
	return l, nil
}

// URL is the URL at which a client reaches an address, with the host local if the host
// of the address is a wildcard.
func URL(addr, local string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = local
	}
	return "http://" + net.JoinHostPort(host, port)
}

// StopSignal returns a context that SIGINT, SIGTERM and SIGHUP end. A second signal ends
// the process at once.
func StopSignal(ctx context.Context) context.Context {
	ctx, stop := signal.NotifyContext(ctx, stopSignals()...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// stopSignals are the signals that ask a program to end. A SIGHUP that was ignored when it
// started, as by nohup, stays ignored.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	if signal.Ignored(syscall.SIGHUP) {
		return signals[:2]
	}
	return signals
}

// Life is what a caller of [Serve] does at the turns of its servers' life.
type Life struct {
	// Ready is called once the servers serve. An error of it stops them, too. It may take as
	// long as it likes: that of a double with a command runs the command and ends with an
	// error. Until it returns, neither the end of the context nor a failed server is noticed.
	Ready func() error

	// Patience is how long a stop waits for the requests that run.
	Patience time.Duration
}

// Serve runs servers until ctx is done or one of them fails, and stops them so that no client
// that reached them goes without its answer. When it returns, no handler runs any more.
func Serve(ctx context.Context, life Life, servers []*Server) error {
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	failed := make(chan error, len(servers))
	var accepting sync.WaitGroup
	var conns connections
	for _, srv := range servers {
		srv.BaseContext = func(net.Listener) context.Context { return requests }
		srv.ConnState = conns.track
		srv.Handler = conns.serving(srv.Handler)
		accepting.Go(func() { failed <- srv.Serve(srv.Listener) })
	}
	err := life.Ready()
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
	}

	// First, take no more connections. Those that were taken are all tracked then.
	for _, srv := range servers {
		srv.Listener.Close()
	}
	accepting.Wait()

	// A client that was taken and has not sent its request yet gets a moment for it, and so does
	// one that is about to send its next: Shutdown would drop a request that it reads.
	conns.stopping.Store(true)
	conns.hear(min(life.Patience, silentTimeout))
	conns.closeFresh()

	// Then the requests that run get their answers, as far as patience goes. What is cut off by
	// its end has the end of its context before the end of its connection.
	patient, cancel := context.WithTimeout(requests, life.Patience)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(patient) != nil {
			cutOff()
			srv.Close()
		}
	}
	conns.open.Wait()
	return err
}
