package answer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// serve serves what answers 204 by the usual server, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }))
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// ask sends a request, and returns the connection and the answer.
func ask(t *testing.T, addr, request string) (net.Conn, *http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	if resp.ContentLength > 0 {
		io.CopyN(&body, resp.Body, resp.ContentLength)
	}
	return conn, resp, body.String()
}

// TestHeaderFields: a request may have 100 header fields, however they are called.
func TestHeaderFields(t *testing.T) {
	t.Parallel()
	addr := serve(t)
	const message = `{"error":{"code":"header_fields_too_large",` +
		`"message":"a request may have at most 100 header fields; leave out what is not needed"}}`
	for _, tt := range []struct {
		name, field string // the field has a number in its name if it has a verb
		fields      int    // beside Host
		status      int
	}{
		{"100 names", "X-%d: a\r\n", 99, 204},
		{"101 names", "X-%d: a\r\n", 100, 431},
		{"100 values of one name", "X:%.0d\r\n", 99, 204},
		{"101 values of one name", "X:%.0d\r\n", 100, 431},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var request strings.Builder
			request.WriteString("POST / HTTP/1.1\r\nHost: x\r\n")
			for i := range tt.fields {
				request.WriteString(fmt.Sprintf(tt.field, i+1))
			}
			_, resp, body := ask(t, addr, request.String()+"\r\n")
			want := ""
			if tt.status == 431 {
				want = message
			}
			if resp.StatusCode != tt.status || body != want || resp.Close != (tt.status == 431) {
				t.Errorf("%s %s, close %v; want %d %s", resp.Status, body, resp.Close, tt.status, want)
			}
			if tt.status == 431 && resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("the answer has the headers %v", resp.Header)
			}
		})
	}
}

// TestHeaderMemory: a request that was refused for its header fields holds none of them while
// its body does not come. It counts all memory, so it runs alone.
func TestHeaderMemory(t *testing.T) {
	addr := serve(t)
	var request strings.Builder
	request.WriteString("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n")
	for i := range 3000 { // as many as fit
		fmt.Fprintf(&request, "%03x:\r\n", i)
	}
	request.WriteString("\r\n")
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one finds in a sync.Pool goes now
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const connections = 100
	before := inUse()
	for range connections {
		_, resp, _ := ask(t, addr, request.String())
		if resp.StatusCode != 431 {
			t.Fatalf("%s, want 431", resp.Status)
		}
	}
	held := (int64(inUse()) - int64(before)) / connections
	if held > 64<<10 {
		t.Errorf("a refused request holds %d bytes, want at most 64 KiB", held)
	}
	t.Logf("a refused request holds %d bytes", held)
}

// deadlineWriter keeps the time by which an answer has to be written.
type deadlineWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *deadlineWriter) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

// An answer gets the time of its server to be written, where there is a server that has one.
func TestRestartWriteTimeout(t *testing.T) {
	t.Parallel()
	of := func(server *http.Server) context.Context {
		return context.WithValue(t.Context(), http.ServerContextKey, server)
	}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want time.Duration // from now; 0: there is no deadline
	}{
		{"no server", t.Context(), 0},
		{"a server without a limit", of(&http.Server{}), 0},
		{"a server with one", of(&http.Server{WriteTimeout: time.Hour}), time.Hour},
	} {
		var w deadlineWriter
		before := time.Now()
		RestartWriteTimeout(tt.ctx, &w)
		isSet := !w.deadline.IsZero()
		if isSet != (tt.want > 0) || isSet && w.deadline.Before(before.Add(tt.want)) {
			t.Errorf("%s: the deadline is %v, want %v after %v", tt.name, w.deadline, tt.want, before)
		}
	}
}
