package answer

import (
	"context"
	"net/http"
	"time"
)

// NewServer returns a server for HTTP/1 with the limits that all servers of this program
// have.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               16 << 10, // bytes
	}
}

// NoTimeouts ends the server's time to write the answer to a request, because the work before
// it takes longer. A writer without a deadline has nothing to end.
func NoTimeouts(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// RestartWriteTimeout gives an answer the whole of the server's time to write, from now on.
// The context is that of the request.
func RestartWriteTimeout(ctx context.Context, w http.ResponseWriter) {
	server, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if ok && server.WriteTimeout > 0 {
		// A writer without a deadline needs none.
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(server.WriteTimeout))
	}
}
