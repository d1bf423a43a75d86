package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// A BoundServer is an HTTP server with its listener.
type BoundServer struct {
	*http.Server
	Listener net.Listener
}

// Serve runs servers until ctx is done or a server fails, and returns that failure. Requests in flight then
// have the drain time to finish, and their connections are closed after that.
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
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, s := range servers { // all at once, because each has the whole drain time
		serving.Go(func() {
			if s.Shutdown(draining) != nil {
				s.Close()
			}
		})
	}
	serving.Wait()
	return err
}
