package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Each server has the whole drain time: a request that takes all of it on one server doesn't cut off a
// request on another.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	arrived := make(chan bool)
	release := make(chan bool)
	endless := func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-release
	}
	var servers []*Server
	responses := make([]chan error, 2)
	for i, handle := range []http.HandlerFunc{endless, slow} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, &Server{NewServer(handle), l})
		responses[i] = make(chan error, 1)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, time.Second, servers...) }()
	for i, s := range servers {
		go func() {
			_, err := http.Get("http://" + s.Listener.Addr().String())
			responses[i] <- err
		}()
		<-arrived
	}
	stop()
	for conn := error(nil); conn == nil; { // until both have stopped listening
		conn = dial(servers[0].Listener.Addr(), servers[1].Listener.Addr())
	}
	close(release)
	if err := <-responses[1]; err != nil {
		t.Errorf("the response within the drain time: %v", err)
	}
	if err := <-responses[0]; err == nil {
		t.Error("the request that took more than the drain time has a response, want none")
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

// dial returns an error if nobody listens at any of the addresses.
func dial(addresses ...net.Addr) error {
	for _, addr := range addresses {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			conn.Close()
			return nil
		}
	}
	return errors.New("nobody listens")
}

// Serve returns the failure of a server and stops the others.
func TestServeFails(t *testing.T) {
	t.Parallel()
	working := httptest.NewUnstartedServer(nil)
	broken := httptest.NewUnstartedServer(nil)
	broken.Listener.Close()
	err := Serve(t.Context(), 0,
		&Server{NewServer(http.NotFoundHandler()), working.Listener},
		&Server{NewServer(http.NotFoundHandler()), broken.Listener})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve = %v, want %v", err, net.ErrClosed)
	}
	if dial(working.Listener.Addr()) == nil {
		t.Error("the other server still listens")
	}
}
