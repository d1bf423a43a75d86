package eventstest

import (
	"context"
	"net"
	"net/http"

	"example.com/events/internal/httpapi"
)

// This file has the client of a server, and the connections in memory of a server without a port.

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
	httpapi.ServeConn(httpapi.NewServer(s.double), server)
	return client, nil
}
