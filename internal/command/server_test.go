package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// isOpen reports whether a server still listens.
func isOpen(s *Server) bool {
	return s.Listener.(*net.TCPListener).SetDeadline(time.Now()) == nil
}

// A shutdown takes no more connections and waits for the requests that run, but not for longer than the
// drain timeout.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		drainTimeout time.Duration
		want         string // the response to a request that runs until the servers don't listen any more
	}{
		{"in time", time.Minute, "HTTP/1.0 200 OK"},
		{"at once", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			running, finish := make(chan bool), make(chan bool)
			servers := twoServers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(running)
				select {
				case <-finish:
				case <-r.Context().Done():
				}
			}))
			stopped, response := make(chan error), make(chan string)
			isReady := func() error { return nil }
			go func() { stopped <- Serve(ctx, tt.drainTimeout, isReady, servers) }()
			go func() { response <- exchange(servers[0].Listener, "GET / HTTP/1.0\r\n\r\n") }()
			<-running
			stop()
			for isOpen(servers[0]) {
				time.Sleep(time.Millisecond)
			}
			if tt.drainTimeout > 0 {
				close(finish)
			}
			if err := <-stopped; err != nil {
				t.Errorf("Serve = %v", err)
			}
			if isOpen(servers[1]) {
				t.Error("the second server still listens")
			}
			if got, _, _ := strings.Cut(<-response, "\r\n"); got != tt.want {
				t.Errorf("the request was answered %q, want %q", got, tt.want)
			}
		})
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
		err := Serve(ctx, DrainTimeout, func() error { return ready }, servers)
		first, second := isOpen(servers[0]), isOpen(servers[1])
		if !errors.Is(err, want) || first || second {
			t.Errorf("Serve = %v, want %v; the servers listen: %v, %v", err, want, first, second)
		}
	}
}
