package eventstest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
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
//
// Each request has a connection of its own. If one that was used before is closed
// without an answer, Go's transport sends a GET, or a request with an Idempotency-Key,
// again by itself. Then a fault that closes connections would not count the same each
// time.
func transport(h http.Handler, listens bool) *http.Transport {
	t := &http.Transport{MaxIdleConnsPerHost: -1}
	if !listens {
		t.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			accept := make(pipe, 1)
			accept <- server
			close(accept)
			go newServer(h).Serve(accept)
			return client, nil
		}
	}
	return t
}

// newServer returns a server that accepts the same requests as eventsd.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, DisableGeneralOptionsHandler: true, MaxHeaderBytes: 16 << 10}
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
