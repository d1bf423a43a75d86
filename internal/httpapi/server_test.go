package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener accepts connections inside the process, so it works in a bubble of [testing/synctest].
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} } // not used

// checkClosed checks that the listener was closed.
func (l *pipeListener) checkClosed(t *testing.T) {
	t.Helper()
	select {
	case <-l.closed:
	default:
		t.Error("listener: got open, want closed")
	}
}

// get returns the error of a GET, which is nil if there is a response.
func (l *pipeListener) get() error {
	client, server := net.Pipe()
	defer client.Close()
	l.conns <- server
	_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if err != nil {
		return err
	}
	_, err = http.ReadResponse(bufio.NewReader(client), nil)
	return err
}

// Each server has the whole drain time: a request that takes all of it on one server doesn't cut off a
// request on another.
func TestServeDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		const drain = 8 * time.Second
		listeners := []*pipeListener{newPipeListener(), newPipeListener()}
		endless := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		slow := func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Second) // until the other request has arrived
			stop()
			time.Sleep(drain - time.Second)
			for _, l := range listeners {
				l.checkClosed(t)
			}
		}
		var servers []*BoundServer
		responses := make([]chan error, 2)
		for i, handle := range []http.HandlerFunc{endless, slow} {
			servers = append(servers, &BoundServer{NewServer(handle), listeners[i]})
			responses[i] = make(chan error, 1)
			go func() { responses[i] <- listeners[i].get() }()
		}
		start := time.Now()
		err := Serve(ctx, drain, servers...)
		if err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
		if took := time.Since(start).Truncate(time.Second); took != time.Second+drain {
			t.Errorf("time of Serve: got %v, want %v", took, time.Second+drain)
		}
		if err := <-responses[0]; err == nil {
			t.Error("a request that takes more than the drain time: got a response, want none")
		}
		if err := <-responses[1]; err != nil {
			t.Errorf("a request that takes less than the drain time: got %v, want a response", err)
		}
	})
}

// lateListener accepts a connection just when it is closed.
type lateListener struct {
	*pipeListener
	conn net.Conn
}

func (l *lateListener) Accept() (net.Conn, error) {
	<-l.closed
	conn := l.conn
	l.conn = nil
	if conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// A connection that is accepted at the last moment is closed, too.
func TestServeClosesLateConnection(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	client.SetReadDeadline(time.Now().Add(time.Second))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := Serve(ctx, 0, &BoundServer{NewServer(nil), &lateListener{newPipeListener(), server}})
	if err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	_, err = client.Read(make([]byte, 1))
	if err != io.EOF {
		t.Errorf("read from a connection accepted at the end: got %v, want %v", err, io.EOF)
	}
}

// Serve returns the failure of a server and stops the others.
func TestServeFails(t *testing.T) {
	t.Parallel()
	working := newPipeListener()
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken.Close()
	err = Serve(t.Context(), 0,
		&BoundServer{NewServer(http.NotFoundHandler()), working},
		&BoundServer{NewServer(http.NotFoundHandler()), broken})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: got %v, want %v", err, net.ErrClosed)
	}
	working.checkClosed(t)
}

// A connection that keeps the server waiting is closed.
func TestTimeouts(t *testing.T) {
	const end = "Host: x\r\n\r\n"
	for _, tt := range []struct {
		name, sent string
		want       time.Duration
	}{
		{"nothing", "", 5 * time.Second},
		{"half of the headers", "GET / HTTP/1.1\r\n", 5 * time.Second},
		{"no body", "POST / HTTP/1.1\r\nContent-Length: 1\r\n" + end, 10 * time.Second},
		{"no second request", "GET / HTTP/1.1\r\n" + end, 120 * time.Second},
		{"an unread response", "GET /unread HTTP/1.1\r\n" + end, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				defer client.Close()
				server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if r.URL.Path == "/unread" {
						w.Write(make([]byte, 1<<20))
					}
				}))
				closed := make(chan time.Time, 1)
				server.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						closed <- time.Now()
					}
				}
				start := time.Now()
				ServeConn(server, conn)
				io.WriteString(client, tt.sent)
				if !strings.HasPrefix(tt.sent, "GET /unread ") {
					go io.Copy(io.Discard, client)
				}
				select {
				case end := <-closed:
					if got := end.Sub(start).Truncate(time.Second); got != tt.want {
						t.Errorf("connection closed after: got %v, want %v", got, tt.want)
					}
				case <-time.After(time.Hour):
					t.Errorf("connection closed after: got never, want %v", tt.want)
				}
			})
		})
	}
}
