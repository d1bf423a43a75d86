package eventstest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	"example.com/events/internal/answer"
)

// withKey adds an API key to requests that have none.
type withKey struct {
	key  string
	next http.RoundTripper
}

func (t withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	for name := range r.Header { // some clients keep the case of a name
		if strings.EqualFold(name, "X-Service-Api-Key") || strings.EqualFold(name, "Authorization") {
			return t.next.RoundTrip(r)
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("x-service-api-key", t.key)
	return t.next.RoundTrip(r)
}

// transport returns what the clients of a server send their requests by: over
// sockets or, without a listener, over connections within the process.
func transport(h http.Handler, listens bool) *http.Transport {
	t := &http.Transport{}
	if !listens {
		t.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			accept := make(pipe, 1)
			accept <- server
			close(accept)
			go answer.NewServer(h).Serve(accept)
			return client, nil
		}
	}
	return t
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
func (p pipe) Addr() net.Addr { return &net.UnixAddr{Name: "eventstest"} }
