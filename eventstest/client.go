package eventstest

import (
	"context"
	"net"
	"net/http"

	"example.com/events/internal/httpapi"
)

// This file has the client of a server, and the connections in memory of a server without a port.

// Client returns a client that reaches the server. It adds nothing to a request, so send [Server.Key].
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.transport} }

// dial returns a connection inside the process. Its server runs in the same bubble of
// [testing/synctest] as the client, even if the test double was created outside.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	httpapi.ServeConn(httpapi.NewServer(s.double), server)
	return client, nil
}
