package eventstest

import (
	"context"
	"io"
	"net"
	"net/http"

	"example.com/events/internal/answer"
)

// withKey adds an API key to requests that have none.
type withKey struct {
	key  string
	next http.RoundTripper
}

func (t withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	for name := range r.Header { // some clients keep the case of a name
		switch http.CanonicalHeaderKey(name) {
		case "X-Service-Api-Key", "Authorization":
			return t.next.RoundTrip(r)
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("x-service-api-key", t.key)
	return t.next.RoundTrip(r)
}

// dial returns a connection within the process to a server without a listener.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	accept := make(pipe, 1)
	accept <- server
	close(accept)
	go answer.NewServer(s.handler).Serve(accept)
	return client, nil
}

// pipe is a listener for one connection, with a server of its own: what serves the
// connection is then in the same bubble of testing/synctest as the client, also if
// the double was made outside.
type pipe chan net.Conn

func (p pipe) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, io.EOF
}

func (p pipe) Close() error   { return nil }
func (p pipe) Addr() net.Addr { return nil } // net/http does not ask for it
