// Package serve runs HTTP servers: their limits, the operator's socket, what is
// told when they are ready, and an end that finishes what runs.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The timeouts and limits of every server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 120 * time.Second
	stopTimeout   = 8 * time.Second // Docker kills after 10
	maxHeader     = 16 << 10        // bytes
)

// New returns a server for HTTP/1 with the limits.
func New(h http.Handler, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		Protocols:                    protocols,
	}
}

// Logged logs a line a request: never a key, a query or a body.
func Logged(h http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			logger.Debug("request", "method", r.Method, "path", r.URL.Path, "route", r.Pattern, "status", seen.status, "took", time.Since(start).String())
		}()
		h.ServeHTTP(seen, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wsaAddrInUse is EADDRINUSE on Windows.
const wsaAddrInUse = syscall.Errno(10048)

// Listen listens on HOST:PORT, the value of -addr.
func Listen(addr string, logger *slog.Logger) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaAddrInUse) {
		return nil, fmt.Errorf("the address %s is taken; stop what uses it, or give another with -addr", addr)
	}
	if _, _, bad := net.SplitHostPort(addr); bad != nil {
		return nil, fmt.Errorf("-addr %q: %w; give HOST:PORT", addr, bad)
	}
	if err != nil {
		return nil, fmt.Errorf("-addr %q: %w; give the HOST:PORT of this machine", addr, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		logger.Info("the address is not loopback: others reach this server; put TLS and rate limits in front of it", "addr", l.Addr().String())
	}
	return l, nil
}

// URL is where a client reaches an address: at local where it is a wildcard.
func URL(addr, local string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		addr = net.JoinHostPort(local, port)
	}
	return "http://" + addr
}

// SocketPath is the path of the operator's socket beside a data file.
func SocketPath(data string) string {
	if real, err := filepath.EvalSymlinks(data); err == nil {
		return real + ".sock"
	}
	// The file may be gone from under a server that runs.
	for range 40 { // links, as many as Linux follows
		to, err := os.Readlink(data)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(data) + string(filepath.Separator) + to // no Join: .. may follow a link
		}
		data = to
	}
	return data + ".sock"
}

const maxSocketPath = 103 // bytes, with the NUL behind them: the least of the systems

// Socket makes a Unix socket for its owner alone. What is at the path must be of
// a process that is gone: the caller holds a lock that says so.
func Socket(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket is longer than %d bytes", maxSocketPath)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := listenUnix(path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Until serves until ctx is done or a server fails, then takes no more and
// finishes what runs. It calls ready once it serves.
func Until(ctx context.Context, servers []*http.Server, listeners []net.Listener, ready func() error) error {
	var serving sync.WaitGroup
	failed := make(chan error, len(servers)+1)
	for i, srv := range servers {
		serving.Go(func() {
			if err := srv.Serve(listeners[i]); err != http.ErrServerClosed {
				failed <- err
			}
		})
	}
	if err := ready(); err != nil {
		failed <- err
	}
	var all error
	select {
	case err := <-failed:
		all = err
	case <-ctx.Done():
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, srv := range servers {
		serving.Go(func() {
			if srv.Shutdown(finish) != nil {
				srv.Close()
			}
		})
	}
	serving.Wait()
	close(failed)
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}
