package serve

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
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
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
	conn.SetDeadline(time.Now().Add(5 * time.Second)) // a server that waits for more has failed
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
	taken, isTaken := l.Addr().String(), "is taken; stop what uses it, or give another with -addr"
	if runtime.GOOS == "windows" {
		isTaken = "-addr"
	}
	for addr, want := range map[string]string{taken: isTaken, "nowhere": `-addr "nowhere": `, "127.0.0.1:99999": `-addr "127.0.0.1:99999": `} {
		if l, err := Listen(addr, logger); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr) {
			t.Errorf("Listen(%q) = %v, %v, want %s", addr, l, err, want)
		}
	}
	if log.Len() > 0 {
		t.Errorf("Listen(127.0.0.1:0) logged %s", log)
	}
	open := must(Listen(":0", logger))
	open.Close()
	if got := log.String(); !strings.Contains(got, `"level":"INFO","msg":"the address is not loopback: `) || !strings.Contains(got, open.Addr().String()) {
		t.Errorf("Listen(:0) logged %q, want that %s is not loopback", got, open.Addr())
	}
}

func TestSocketPath(t *testing.T) {
	t.Parallel()
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o700), os.WriteFile(filepath.Join(dir, "real", "data"), nil, 0o600),
		os.Symlink("real", filepath.Join(dir, "folder")), os.Symlink(filepath.Join("folder", "data"), filepath.Join(dir, "link")),
		os.Symlink(filepath.Join("real", "gone"), filepath.Join(dir, "dangling")), os.Symlink(filepath.Join(dir, "real", "gone"), filepath.Join(dir, "absolute"))); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{"real/data": "real/data.sock", "link": "real/data.sock", "folder/data": "real/data.sock", "none": "none.sock",
		"dangling": "real/gone.sock", "absolute": "real/gone.sock"} {
		if got := SocketPath(filepath.Join(dir, data)); got != filepath.Join(dir, want) {
			t.Errorf("SocketPath(%s) = %s, want %s", data, got, want)
		}
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets")
	}
	dir := must(os.MkdirTemp("", "s")) // its path is short
	t.Cleanup(func() { os.RemoveAll(dir) })
	longest := filepath.Join(dir, strings.Repeat("s", maxSocketPath-len(dir)-1))
	dead := must(net.Listen("unix", longest)).(*net.UnixListener)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	makers := []func(string) (net.Listener, error){Socket}
	if runtime.GOOS == "linux" {
		makers = append(makers, listenUnix) // already before the Chmod
	}
	for i, socket := range makers {
		l := must(socket(longest))
		if info := must(os.Lstat(longest)); info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("maker %d made %v, want a socket of 0600", i, info.Mode())
		}
		must(net.Dial("unix", longest)).Close()
		if l.Close(); len(must(os.ReadDir(dir))) > 0 {
			t.Errorf("maker %d left the socket behind", i)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{longest + "s": "longer than 103 bytes", filepath.Join(dir, "no", "s"): "no such file", file: "in use"} {
		if l, err := Socket(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Socket(%q) = %v, %v, want %q", path, l, err, want)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "mine" {
		t.Errorf("the file at the path of a socket is %q, %v", b, err)
	}
}

// TestSocketUmask is TestSocket in a process that takes no permissions away.
func TestSocketUmask(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets")
	}
	cmd := exec.Command("/bin/sh", "-c", `umask 0; exec "$0" -test.run='^TestSocket$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	logger, log := logger()
	srv := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Method+" "+r.RequestURI) }), logger)
	got := []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout}
	for i, want := range []time.Duration{headerTimeout, readTimeout, writeTimeout, idleTimeout} {
		if got[i] != want || want <= 0 {
			t.Errorf("the timeouts are %v, want %v as number %d", got, want, i)
		}
	}
	srv.ErrorLog.Print("http: \"raw\"\nlevel=ERROR")
	var line struct{ Level, Msg string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "WARN" || line.Msg != "http: \"raw\"\nlevel=ERROR" {
		t.Errorf("ErrorLog logged %s, %v", log, err)
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	for _, tt := range []struct{ sent, begin, end string }{
		{"OPTIONS * HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "OPTIONS *"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "HTTP/1.1 ", ""},
		{"GET / HTTP/1.0\r\nX: " + strings.Repeat("x", maxHeader-1000) + "\r\n\r\n", "HTTP/1.0 200 ", "GET /"},
		{"GET / HTTP/1.0\r\nX: " + strings.Repeat("x", maxHeader+4096) + "\r\n\r\n", "HTTP/1.1 431 ", ""}, // net/http adds 4 KiB
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
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r := httptest.NewRequest("POST", "/events/one?key=secret", strings.NewReader("secret"))
	r.Header.Set("X-Service-Api-Key", "secret")
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the panic is %v", p)
			}
		}()
		Logged(mux, logger).ServeHTTP(w, r)
	}()
	if w.Code != http.StatusTeapot || !w.Flushed {
		t.Errorf("the answer is %d, flushed %v", w.Code, w.Flushed)
	}
	const want = `"msg":"request","method":"POST","path":"/events/one","route":"POST /events/{id}","status":418,`
	if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Count(got, "\n") != 1 {
		t.Errorf("logged %q, want one line with %q and no secret", got, want)
	}
}

// twoServers are servers, and listeners whose state isOpen tells.
func twoServers(h http.Handler) (servers []*http.Server, listeners []net.Listener) {
	logger, _ := logger()
	return []*http.Server{New(h, logger), New(http.NotFoundHandler(), logger)},
		[]net.Listener{must(net.Listen("tcp", "127.0.0.1:0")), must(net.Listen("tcp", "127.0.0.1:0"))}
}

func isOpen(l net.Listener) bool {
	return l.(*net.TCPListener).SetDeadline(time.Now()) == nil
}

// TestUntil: when a server ends it takes no more and finishes what runs.
func TestUntil(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	running, ending, ready, ended, answer := make(chan bool), make(chan bool), make(chan bool, 2), make(chan error), make(chan string)
	var listeners []net.Listener
	servers, listeners := twoServers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-ending
		if isOpen(listeners[0]) {
			t.Error("a server that ends takes more")
		}
		io.WriteString(w, "done")
	}))
	servers[0].RegisterOnShutdown(func() { close(ending) })
	go func() {
		ended <- Until(ctx, servers, listeners, func() error { ready <- true; return nil })
	}()
	<-ready
	go func() { answer <- exchange(listeners[0], "GET / HTTP/1.0\r\n\r\n") }()
	<-running
	if got := exchange(listeners[1], "GET / HTTP/1.0\r\n\r\n"); !strings.Contains(got, " 404 ") {
		t.Errorf("the second server answered %q, want a 404", got)
	}
	end()
	if got := <-answer; !strings.HasSuffix(got, "done") {
		t.Errorf("the request that ran was answered %q", got)
	}
	if err := <-ended; err != nil || len(ready) > 0 || isOpen(listeners[1]) {
		t.Errorf("Until = %v, ready was called %d times more, the second listener is open: %v", err, len(ready), isOpen(listeners[1]))
	}
}

// TestUntilFails: what fails ends every server.
func TestUntilFails(t *testing.T) {
	t.Parallel()
	errReady := errors.New("stdout is closed")
	for want, ready := range map[error]error{errReady: errReady, net.ErrClosed: nil} {
		servers, listeners := twoServers(http.NotFoundHandler())
		if ready == nil {
			listeners[0].Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it must not get so far
		defer cancel()
		err := Until(ctx, servers, listeners, func() error { return ready })
		if !errors.Is(err, want) || isOpen(listeners[0]) || isOpen(listeners[1]) {
			t.Errorf("Until = %v, want %v; listeners are open: %v, %v", err, want, isOpen(listeners[0]), isOpen(listeners[1]))
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestUntilLosesNoError: also what fails at the very end is told.
func TestUntilLosesNoError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := errors.New("stdout is closed")
	for range 20 {
		servers, listeners := twoServers(http.NotFoundHandler())
		if err := Until(ctx, servers, listeners, func() error { return want }); !errors.Is(err, want) {
			t.Fatalf("Until = %v, want %v", err, want)
		}
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	dir, pid := t.TempDir(), strconv.Itoa(os.Getpid())
	path := filepath.Join(dir, "ready.json")
	for _, tt := range []struct {
		ready      Ready
		told, file string
	}{
		{Ready{"http://b", "k", "d", "o", "http://c", "t", "curl <&>", os.Getpid()},
			"base_url: http://b\napi_key: k\ndata: d\noperator: o\ncontrol_url: http://c\ncontrol_token: t\nready: curl <&>\n",
			`{"base_url":"http://b","api_key":"k","data":"d","operator":"o","control_url":"http://c","control_token":"t","ready":"curl <&>","pid":` + pid + "}\n"},
		{Ready{BaseURL: "http://b", Data: "d", Ready: "curl", PID: os.Getpid()},
			"base_url: http://b\ndata: d\nready: curl\n", `{"base_url":"http://b","data":"d","ready":"curl","pid":` + pid + "}\n"},
	} {
		if err := os.WriteFile(path, []byte(`{"ready":"of an earlier server","pid":1}`), 0o644); err != nil {
			t.Fatal(err)
		}
		file, told := must(NewReadyFile(path)), ""
		err := tt.ready.Tell(writerFunc(func(line []byte) (int, error) {
			told += string(line)
			b, err := os.ReadFile(path)
			if last := bytes.HasPrefix(line, []byte("ready: ")); last && string(b) != tt.file || last == (err != nil) {
				t.Errorf("at the line %q the ready file is %q, %v, want %q at the last one", line, b, err, tt.file)
			}
			return len(line), nil
		}), file)
		if told != tt.told || err != nil {
			t.Errorf("%+v told %q, %v, want %q", tt.ready, told, err, tt.told)
		}
		info, files := must(os.Stat(path)), must(os.ReadDir(dir))
		if len(files) != 1 || info.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("there are %v, the ready file with %v, want it alone with 0600", files, info.Mode())
		}
		file.Remove()
	}
}

func TestTellFails(t *testing.T) {
	t.Parallel()
	r, closed := io.Pipe()
	r.Close()
	path := filepath.Join(t.TempDir(), "ready.json")
	file := must(NewReadyFile(path))
	if err := (Ready{BaseURL: "http://b"}).Tell(closed, file); err != io.ErrClosedPipe {
		t.Errorf("Tell the first line to nobody = %v", err)
	}
	if err := (Ready{}).Tell(closed, nil); err != io.ErrClosedPipe {
		t.Errorf("Tell the last line to nobody = %v", err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // the ready file was not there
		t.Fatal(err)
	}
	var told bytes.Buffer
	if err := (Ready{}).Tell(&told, file); err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") || told.Len() > 0 {
		t.Errorf("Tell over a folder = %v, and told %q", err, &told)
	}
	file.Remove()
	if _, err := NewReadyFile(filepath.Join(path, "no", "ready.json")); err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") {
		t.Errorf("NewReadyFile in no folder = %v", err)
	}
}

// TestLateReadyFile: what came to the path meanwhile is left as it is.
func TestLateReadyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	file := must(NewReadyFile(path))
	if err := os.WriteFile(path, []byte("a data file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Ready{Ready: "curl", PID: os.Getpid()}).Tell(io.Discard, file); err == nil || !strings.Contains(err.Error(), "came while the server started") {
		t.Errorf("Tell = %v", err)
	}
	file.Remove()
	if b := must(os.ReadFile(path)); string(b) != "a data file" {
		t.Errorf("the file has %q", b)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	(*ReadyFile)(nil).Remove()
	const earlier, next = `{"ready":"of an earlier server","pid":1}`, `{"ready":"of the next server","pid":1}`
	ours := Ready{Ready: "curl", PID: os.Getpid()}
	for _, tt := range []struct {
		name, before string
		told         bool
		during, left string
	}{
		{"never told", "", false, "", ""},
		{"told", "", true, "", ""},
		{"told in the place of an earlier one", earlier, true, "", ""},
		{"an empty file", "\x00", true, "", ""}, // stands for no bytes
		{"never told: the earlier one may be running", earlier, false, "", earlier},
		{"never told, and another one came", earlier, false, next, next},
		{"told, and another one came", "", true, next, next},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ready.json")
			put := func(content string) {
				if content != "" {
					if err := os.WriteFile(path, []byte(strings.Trim(content, "\x00")), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			put(tt.before)
			file := must(NewReadyFile(path))
			if _, err := os.Stat(path); err == nil {
				t.Error("the ready file of an earlier server is there still")
			}
			if tt.told {
				if err := ours.Tell(io.Discard, file); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.during)
			file.Remove()
			b, _ := os.ReadFile(path)
			if files := must(os.ReadDir(dir)); string(b) != tt.left || len(files) > 1 {
				t.Errorf("Remove left %v with %q, want %q", files, b, tt.left)
			}
			put(strings.Replace(next, "1}", strconv.Itoa(os.Getpid())+"}", 1)) // of this process, too
			if file.Remove(); len(must(os.ReadDir(dir))) != 1 {
				t.Error("a second Remove took away the file of the next server")
			}
		})
	}
}

// TestNotReadyFiles: a wrong path must not cost a file.
func TestNotReadyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"data": "[\n{}\n]\n", "seed": " [", "text": "# Read me\n", "config": `{"my":"config"}`,
		"large": strings.Repeat(" ", 64<<10) + `{"ready":"curl","pid":1}`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReadyFile(path); err == nil || string(must(os.ReadFile(path))) != content {
			t.Errorf("NewReadyFile of %s = %v", name, err)
		}
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "link")} {
		if _, err := NewReadyFile(path); err == nil || !strings.Contains(err.Error(), "no ready file") {
			t.Errorf("NewReadyFile of %s = %v", path, err)
		}
	}
	if left := must(os.ReadDir(dir)); len(left) != 6 {
		t.Errorf("there is %v", left)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server := func(status int) (port string) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.RequestURI != "GET /healthz" {
				t.Errorf("%s %s, want GET /healthz", r.Method, r.RequestURI)
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(srv.Close)
		return srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	}
	well, ill := server(http.StatusOK), server(http.StatusServiceUnavailable)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"well": `{"base_url":"http://localhost` + well + `/api/v1"}`, "ill": `{"base_url":"http://127.0.0.1` + ill + `/api/v1"}`, "cut": `{"base_url":`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = "127.0.0.1:1" // tcpmux
	for _, tt := range []struct{ addr, file, want string }{
		{"127.0.0.1" + well, "", ""},
		{"localhost" + well, "none", ""},
		{well, "ill", ""},
		{"0.0.0.0" + well, "", ""},
		{"[::]" + well, "", ""},
		{":0", "well", ""},
		{"127.0.0.1:0", "well", ""},
		{"127.0.0.1:0", "ill", "http://127.0.0.1" + ill + " answered 503"},
		{"localhost" + ill, "well", "http://127.0.0.1" + ill + " answered 503 Service Unavailable: it cannot write"},
		{nobody, "well", "no answer from http://" + nobody + ": "},
		{":0", "none", "no answer from http://127.0.0.1:0: "},
		{":0", "cut", "no answer from http://127.0.0.1:0: "},
		{"a b:80", "well", `-addr "a b:80" is not HOST:PORT`},
	} {
		err := Health(tt.addr, filepath.Join(dir, tt.file))
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Health(%q, %q) = %v, want %q", tt.addr, tt.file, err, tt.want)
		}
	}
}
