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
	"syscall"
	"time"

	"example.com/events/internal/answer"
)

// DrainTimeout is how long a shutdown usually waits for the requests that run.
const DrainTimeout = 8 * time.Second // Docker kills after 10

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
		return nil, Usagef("-addr is empty: give HOST:PORT of this machine")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		err = fmt.Errorf("-addr %q: %w; give HOST:PORT of this machine, the port being free", addr, err)
		_, malformed := errors.AsType[*net.AddrError](err)
		if malformed {
			return nil, Usagef("%w", err)
		}
		return nil, err
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

// Serve runs servers until ctx is done or one of them fails, and shuts them down. Requests that run then
// have the drain timeout to finish before their connections are closed.
//
// Serve calls ready once the servers serve. An error of it stops them as well. It may take as long as it
// likes: that of a double with a command runs the command and ends with an error. Until it returns, neither
// the end of the context nor a failed server is noticed.
func Serve(ctx context.Context, drainTimeout time.Duration, ready func() error, servers []*Server) error {
	failed := make(chan error, len(servers))
	var serving sync.WaitGroup
	for _, srv := range servers {
		serving.Go(func() { failed <- srv.Serve(srv.Listener) })
	}
	err := ready()
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(draining) != nil {
			srv.Close()
		}
	}
	serving.Wait()
	return err
}
