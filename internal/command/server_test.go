package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// must is for what a test needs and does not test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// logger returns a logger and what it logs, in JSON.
func logger() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}

// exchange sends bytes and returns what comes back until the connection ends.
func exchange(l net.Listener, sent string) string {
	conn := must(net.Dial("tcp", l.Addr().String()))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute)) // a server that waits for more has failed
	io.WriteString(conn, sent)
	b, _ := io.ReadAll(conn)
	return string(b)
}

func TestURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ addr, local, want string }{
		{"0.0.0.0:80", "localhost", "http://localhost:80"},
		{"[::]:80", "localhost", "http://localhost:80"},
		{":80", "127.0.0.1", "http://127.0.0.1:80"},
		{":80", "::1", "http://[::1]:80"},
		{"127.0.0.1:80", "localhost", "http://127.0.0.1:80"},
		{"[::1]:80", "localhost", "http://[::1]:80"},
		{"example.com:80", "localhost", "http://example.com:80"},
		{"example.com", "localhost", "http://example.com"},
		{"0.0.0.0", "localhost", "http://0.0.0.0"},
	} {
		if got := URL(tt.addr, tt.local); got != tt.want {
			t.Errorf("URL(%q, %q) = %q, want %q", tt.addr, tt.local, got, tt.want)
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	logger, log := logger()
	l := must(Listen("127.0.0.1:0", logger))
	defer l.Close()
	taken := l.Addr().String()
	for addr, want := range map[string]string{
		taken: "free", "nowhere": `-addr "nowhere": `, "127.0.0.1:99999": `-addr "127.0.0.1:99999": `,
	} {
		l, err := Listen(addr, logger)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr) {
			t.Errorf("Listen(%q) = %v, %v, want %s", addr, l, err, want)
		}
	}
	if log.Len() > 0 {
		t.Errorf("Listen(127.0.0.1:0) logged %s", log)
	}
	open := must(Listen(":0", logger))
	open.Close()
	const notice = `"level":"INFO","msg":"the address is not loopback: `
	if got := log.String(); !strings.Contains(got, notice) || !strings.Contains(got, open.Addr().String()) {
		t.Errorf("Listen(:0) logged %q, want that %s is not loopback", got, open.Addr())
	}
}

func TestNewServer(t *testing.T) {
	t.Parallel()
	logger, log := logger()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	srv := NewServer(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Method+" "+r.RequestURI)
	}), logger, noMore)
	got := []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, 120 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("the timeouts are %v, want %v", got, want)
	}
	srv.ErrorLog.Print("http: \"raw\"\nlevel=ERROR")
	var line struct{ Level, Msg string }
	err := json.Unmarshal(log.Bytes(), &line)
	if err != nil || line.Level != "WARN" || line.Msg != "http: \"raw\"\nlevel=ERROR" {
		t.Errorf("ErrorLog logged %s, %v", log, err)
	}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	const maxHeader = 16 << 10 // bytes, to which net/http adds 4 KiB
	longest, tooLong := strings.Repeat("x", maxHeader-1000), strings.Repeat("x", maxHeader+4096)
	for _, tt := range []struct{ sent, begin, end string }{
		{"OPTIONS * HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "OPTIONS *"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "HTTP/1.1 ", ""},
		{"GET / HTTP/1.0\r\nX: " + longest + "\r\n\r\n", "HTTP/1.0 200 ", "GET /"},
		{"GET / HTTP/1.0\r\nX: " + tooLong + "\r\n\r\n", "HTTP/1.1 431 ", ""},
	} {
		if got := exchange(l, tt.sent); !strings.HasPrefix(got, tt.begin) || !strings.HasSuffix(got, tt.end) {
			t.Errorf("%.40q is answered %q, want %q … %q", tt.sent, got, tt.begin, tt.end)
		}
	}
}

func TestLogged(t *testing.T) {
	t.Parallel()
	logger, log := logger()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /events/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "I am one.")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r := httptest.NewRequest("POST", "/events/one?key=secret", strings.NewReader("secret"))
	r.Header.Set("X-Service-Api-Key", "secret")
	w := httptest.NewRecorder()
	more := func(r *http.Request, _ http.Header) []any { return []any{"id", r.PathValue("id")} }
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the panic is %v", p)
			}
		}()
		logged(mux, logger, more).ServeHTTP(w, r)
	}()
	if w.Code != http.StatusTeapot || !w.Flushed {
		t.Errorf("the answer is %d, flushed %v", w.Code, w.Flushed)
	}
	const want = `"msg":"request","method":"POST","path":"/events/one",` +
		`"route":"POST /events/{id}","status":418,"took_ms":\d+(\.\d+)?,"bytes":9,` +
		`"remote":"192\.0\.2\.1:1234","id":"one"}`
	got, lines := log.String(), bytes.Count(log.Bytes(), []byte("\n"))
	isThere := regexp.MustCompile(strings.ReplaceAll(want, "{id}", `\{id\}`)).MatchString(got)
	if !isThere || strings.Contains(got, "secret") || lines != 1 {
		t.Errorf("logged %q, want one line with %q and no secret", got, want)
	}
}

func noMore(*http.Request, http.Header) []any { return nil }

// twoServers are servers on ports of their own, the second without a route.
func twoServers(h http.Handler) []*Server {
	logger, _ := logger()
	return []*Server{
		NewServer(must(net.Listen("tcp", "127.0.0.1:0")), h, logger, noMore),
		NewServer(must(net.Listen("tcp", "127.0.0.1:0")), http.NotFoundHandler(), logger, noMore),
	}
}

func life(patience time.Duration, ready func() error) Life {
	return Life{Ready: ready, Patience: patience}
}

// isOpen reports whether a server still listens.
func isOpen(s *Server) bool {
	return s.Listener.(*net.TCPListener).SetDeadline(time.Now()) == nil
}

// pipes is a listener in memory, for tests in a bubble of synctest.
type pipes struct {
	taken chan net.Conn
	open  context.Context
	close func()
}

func listenInMemory() *pipes {
	open, end := context.WithCancel(context.Background())
	return &pipes{make(chan net.Conn), open, end}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.taken:
		return conn, nil
	case <-p.open.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial returns a connection that the server has taken.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.taken <- server
	return client
}

// request is one of a client while a server stops.
type request struct {
	path  string        // /2s is answered after 2 s
	after time.Duration // the stop; before it, if negative
	want  string        // the status of the answer, or "" if there is none
	last  bool          // the answer says that the connection ends
}

// send sends requests on a connection, and waits for its end.
func send(t *testing.T, conn net.Conn, stop time.Time, requests []request) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for _, r := range requests {
		time.Sleep(time.Until(stop.Add(r.after)))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", r.path)
		got, last := "", false
		resp, err := http.ReadResponse(in, nil)
		if err == nil {
			got, last = resp.Status[:3], resp.Close
			resp.Body.Close()
		}
		if got != r.want || last != r.last {
			t.Errorf("%s, %v after the stop, was answered %q (%v), as the last one: %v; want %q, %v",
				r.path, r.after, got, err, last, r.want, r.last)
		}
	}
	n, err := conn.Read(make([]byte, 1))
	if n > 0 || err == nil {
		t.Errorf("the connection did not end: %d, %v", n, err)
	}
}

// A stop takes no more connections. Those that were taken get a moment for their request,
// which is answered, and what runs is finished. Nothing else is waited for.
func TestServe(t *testing.T) {
	t.Parallel()
	const before, later, tooLate = -time.Second, 100 * time.Millisecond, time.Second
	const poll = 20 * time.Millisecond // at first; half a second in the end
	for _, tt := range []struct {
		name     string
		requests []request     // of one connection; nil: there is none
		took     time.Duration // to stop
		poll     time.Duration // how often it is looked whether the stop has ended
	}{
		{"no connection", nil, 0, 0},
		{"a silent connection", []request{}, silentTimeout, poll},
		{"a request in time", []request{{"/0s", later, "200", true}}, later, poll},
		{"a long request in time", []request{{"/2s", later, "200", true}}, later + 2*time.Second, time.Second},
		{"a request too late", []request{{"/0s", tooLate, "", false}}, silentTimeout, poll},
		{"a request that runs", []request{{"/3s", before, "200", true}}, 2 * time.Second, time.Second},
		{"one that runs for too long", []request{{"/1h", before, "", false}}, StopTimeout, poll},
		{"no second request", []request{{"/0s", before, "200", false}}, silentTimeout, poll},
		{"a second request in time", []request{
			{"/0s", before, "200", false},
			{"/0s", later, "200", true},
		}, later, poll},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testStop(t, tt.requests, tt.took, tt.poll) })
		})
	}
}

func testStop(t *testing.T, requests []request, want, poll time.Duration) {
	logger, _ := logger()
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		work, _ := time.ParseDuration(r.URL.Path[1:])
		select {
		case <-time.After(work):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
	first, second := listenInMemory(), listenInMemory()
	servers := []*Server{
		NewServer(first, h, logger, noMore),
		NewServer(second, h, logger, noMore),
	}
	readied := 0
	life := Life{
		Ready:    func() error { readied++; return nil },
		Patience: StopTimeout,
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- Serve(ctx, life, servers) }()
	stopping := time.Now().Add(2 * time.Second)
	var client sync.WaitGroup
	if requests != nil {
		conn := first.dial()
		client.Go(func() { send(t, conn, stopping, requests) })
	}
	time.Sleep(time.Until(stopping))
	stop()
	synctest.Wait()
	if first.open.Err() == nil || second.open.Err() == nil {
		t.Error("a server that stops takes more")
	}
	err := <-stopped
	took := time.Since(stopping)
	if err != nil || took < want || took > want+poll {
		t.Errorf("Serve = %v after %v, want nil after %v", err, took, want)
	}
	if readied != 1 {
		t.Errorf("Ready was called %d times, want once", readied)
	}
	client.Wait()
}

// A stop that waits for nothing cuts requests off. When Serve returns, no handler runs
// any more, also if it had not read the body: net/http does not notice then that the
// client has gone.
func TestServeAtOnce(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan bool)
	var ended atomic.Bool
	servers := twoServers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(running)
		<-r.Context().Done()
		time.Sleep(50 * time.Millisecond)
		ended.Store(true)
	}))
	stopped, answer := make(chan error), make(chan string)
	go func() { stopped <- Serve(ctx, life(0, func() error { return nil }), servers) }()
	go func() { answer <- exchange(servers[0].Listener, "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n") }()
	<-running
	stop()
	if err := <-stopped; err != nil || !ended.Load() {
		t.Errorf("Serve = %v, the handler has ended: %v", err, ended.Load())
	}
	if got := <-answer; got != "" {
		t.Errorf("the request was answered %q", got)
	}
}

// What fails stops every server.
func TestServeFails(t *testing.T) {
	t.Parallel()
	errReady := errors.New("stdout is closed")
	for want, ready := range map[error]error{errReady: errReady, net.ErrClosed: nil} {
		servers := twoServers(http.NotFoundHandler())
		if ready == nil {
			servers[0].Listener.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it must not get so far
		defer cancel()
		err := Serve(ctx, life(StopTimeout, func() error { return ready }), servers)
		first, second := isOpen(servers[0]), isOpen(servers[1])
		if !errors.Is(err, want) || first || second {
			t.Errorf("Serve = %v, want %v; the servers listen: %v, %v", err, want, first, second)
		}
	}
}
