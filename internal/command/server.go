package command

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"example.com/events/internal/answer"
)

// StopTimeout is how long a stop usually waits for the requests that run.
const StopTimeout = 8 * time.Second // Docker kills after 10

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

// connections are those of some servers. A stop closes the fresh ones: net/http would
// wait up to 5 s for their first byte, which the spare connection of a browser or the probe
// of a port never sends.
type connections struct {
	open  sync.WaitGroup // or their last request runs
	fresh sync.Map       // its keys are those on which no request has begun
}

// track is [http.Server.ConnState].
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
		c.fresh.Store(conn, nil)
		return
	case http.StateClosed, http.StateHijacked:
		c.open.Done()
	}
	c.fresh.Delete(conn)
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
	// An empty address must be a mistake: for net it is any port of all interfaces.
	l, err := net.Listen("tcp", cmp.Or(addr, "nothing"))
	if err != nil {
		return nil, fmt.Errorf("-addr %q: %w; give HOST:PORT of this machine, the port being free", addr, err)
	}
	a := l.Addr().(*net.TCPAddr) // of what listens on tcp
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

// Serve runs servers until ctx is done or one of them fails. It calls meanwhile once
// they serve; an error of it stops them too. It may take as long as it likes: that of a
// double with a command runs the command and ends with an error. Until it returns,
// neither the end of ctx nor a failed server is noticed. A stop takes no more
// connections and gives the requests that run as long as wait to finish. Then it ends
// their contexts, closes their connections, and waits until no handler runs any more.
func Serve(ctx context.Context, wait time.Duration, servers []*Server, meanwhile func() error) error {
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	failed := make(chan error, len(servers))
	var accepting sync.WaitGroup
	var conns connections
	for _, srv := range servers {
		srv.BaseContext = func(net.Listener) context.Context { return requests }
		srv.ConnState = conns.track
		accepting.Go(func() {
			failed <- srv.Serve(srv.Listener)
			for conn := range conns.fresh.Range { // this server adds no more
				conn.(net.Conn).Close()
			}
		})
	}
	err := meanwhile()
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	finish, cancel := context.WithTimeout(requests, wait)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(finish) != nil {
			cutOff()
			srv.Close()
		}
	}
	accepting.Wait() // each server closes its listener and adds no connection after that
	conns.open.Wait()
	return err
}
