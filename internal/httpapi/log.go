package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// LogRequests returns a handler that logs each request to h. It logs no query and no body. A path may contain
// an API key, which the logger should remove.
func LogRequests(h http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		counted := &countingWriter{ResponseWriter: w}
		defer func() { // also if h panics
			if r.Method == "HEAD" {
				counted.bytes = 0 // net/http doesn't send the body
			}
			logger.Info("request",
				"method", r.Method,
				"path", r.URL.Path, // decoded, so that no encoding hides a key
				"route", r.Pattern,
				"status", counted.status,
				"took_ms", float64(time.Since(start).Microseconds())/1000,
				"bytes", counted.bytes,
				"remote", r.RemoteAddr,
				"user", counted.caller.UserID,
				"key", counted.caller.KeyID)
		}()
		h.ServeHTTP(counted, r)
	})
}

// SetCaller tells [LogRequests] the caller of the request that w responds to. A [Mux] calls it.
func SetCaller(w http.ResponseWriter, caller Caller) {
	counted, ok := w.(*countingWriter)
	if ok {
		counted.caller = caller
	}
}

// countingWriter is a ResponseWriter that remembers the caller, the status and the body size.
type countingWriter struct {
	http.ResponseWriter
	caller Caller
	status int // 0 if no response was sent
	bytes  int64
}

func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.status = cmp.Or(w.status, 200)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
