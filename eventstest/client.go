package eventstest

import (
	"context"
	"io"
	"net"
	"net/http"

	"example.com/events/internal/httpapi"
)

// Client returns a client that adds [Server.Key] to requests without a key.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: keyTransport{s.Key, s.transport}}
}

// keyTransport adds an API key to requests without a key.
type keyTransport struct {
	key  string
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for name := range r.Header { // some clients don't use canonical names
		switch http.CanonicalHeaderKey(name) {
		case "X-Service-Api-Key", "Authorization":
			return t.next.RoundTrip(r)
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("x-service-api-key", t.key)
	return t.next.RoundTrip(r)
}

// dial returns a connection inside the process. Its server runs in the same bubble of
// [testing/synctest] as the client, even if the test double was created outside.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l := make(oneConnListener, 1)
	l <- server
	close(l)
	go httpapi.NewServer(s.double).Serve(l)
	return client, nil
}

// oneConnListener accepts one connection.
type oneConnListener chan net.Conn

// Accept implements [net.Listener].
func (l oneConnListener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, io.EOF
	}
	return conn, nil
}

// Close implements [net.Listener].
func (l oneConnListener) Close() error { return nil }

// Addr implements [net.Listener]. net/http doesn't call it.
func (l oneConnListener) Addr() net.Addr { return nil }
