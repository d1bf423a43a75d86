package answer

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// maxFields is how many header fields a request may have. Each line counts.
const maxFields = 100

// NewServer returns a server for HTTP/1 with the limits that all servers of this program
// have.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      limitFields(h),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               16 << 10, // bytes
	}
}

// limitFields refuses requests with more than maxFields header fields. What they hold is
// released before the answer is sent: 16 KiB of empty fields take 270 KB in the map of
// net/http, which a body that never comes would keep in memory for 10 s.
func limitFields(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := 1 // Host, which net/http keeps elsewhere
		for _, values := range r.Header {
			fields += len(values)
		}
		if fields <= maxFields {
			h.ServeHTTP(w, r)
			return
		}
		r.Header = http.Header{"Expect": r.Header["Expect"]} // which Refuse looks at
		SetHeaders(w.Header())
		w.Header()["Access-Control-Allow-Origin"] = []string{"*"}
		message := fmt.Sprintf("a request may have at most %d header fields; leave out what is not needed",
			maxFields)
		Refuse(w, r, NewError(431, message, "Connection", "close"))
	})
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
