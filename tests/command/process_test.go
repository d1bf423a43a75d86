//go:build unix

package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/events/internal/apitest"
)

// skipIfIgnored skips a test of SIGHUP under nohup, because processes inherit that it is ignored.
func skipIfIgnored(t *testing.T, s os.Signal) {
	t.Helper()
	if signal.Ignored(s) {
		t.Skipf("%v is ignored, as under nohup", s)
	}
}

// beginCreate sends a create without its body to a server, which waits for it.
func beginCreate(t *testing.T, p *process) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(timeout))
	fmt.Fprintf(conn, "POST %s/events/create HTTP/1.1\r\nHost: x\r\nx-service-api-key: %s\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", base, p.line("api_key"), len(apitest.NewEvent))
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if !strings.Contains(line, "100 Continue") {
		t.Fatalf("create with Expect: got %q, %v, want 100 Continue", line, err)
	}
	return conn, in
}

// waitUntilClosed waits until nobody listens at an address.
func waitUntilClosed(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatalf("connection to %s: got one after %v, want none", addr, timeout)
}

// A signal ends every server with status 0. The request in flight gets its response, except from a double,
// which ends at once.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		server   string
		signal   os.Signal
		finishes bool
	}{
		{"eventsd", syscall.SIGTERM, true},
		{"eventsd", syscall.SIGINT, true},
		{"eventsd", syscall.SIGHUP, true},
		{"eventsd demo", syscall.SIGTERM, true},
		{"eventsd double", syscall.SIGTERM, false},
		{"eventsd double", syscall.SIGINT, false},
	} {
		t.Run(tt.server+" "+tt.signal.String(), func(t *testing.T) {
			t.Parallel()
			skipIfIgnored(t, tt.signal)
			p := start(t, tempDir(t), "exec "+tt.server)
			conn, in := beginCreate(t, p)
			p.Process.Signal(tt.signal)
			waitUntilClosed(t, p.addr())
			if tt.finishes {
				io.WriteString(conn, apitest.NewEvent)
			}
			response, _ := io.ReadAll(in)
			if got := strings.Contains(string(response), " 201 Created"); got != tt.finishes {
				t.Errorf("request in flight finished: got %v, want %v: %q", got, tt.finishes, response)
			}
			if status := p.wait(); status != 0 {
				t.Errorf("status: got %d, want 0: %s", status, &p.stderr)
			}
		})
	}
}

// A second signal doesn't wait for the request in flight.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := start(t, tempDir(t), "exec eventsd demo")
	beginCreate(t, p)
	p.Process.Signal(syscall.SIGTERM)
	waitUntilClosed(t, p.addr())
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		p.Process.Signal(syscall.SIGTERM) // again, because signals that are close together may become one
		select {
		case <-p.ended:
			if status := p.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
				t.Errorf("end: got %v, want the end by the signal", p.ProcessState)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("end after the second signal: got none, want one")
}

// A SIGHUP that was ignored at startup, as under nohup, ends neither a server nor the command beside a
// double.
func TestIgnoredHangup(t *testing.T) {
	t.Parallel()
	p := start(t, tempDir(t), `trap "" HUP; exec eventsd demo`)
	for range 20 { // the second signal would kill it
		p.Process.Signal(syscall.SIGHUP)
		status, body, err := call("GET", p.line("base_url")+"/users/me", p.line("api_key"), "")
		if status != 200 {
			t.Fatalf("GET /users/me after an ignored SIGHUP: got %d %s %v, want 200", status, body, err)
		}
	}
	const beside = `trap "" HUP; eventsd double -- sh -c 'for i in 1 2 3 4 5; do kill -HUP $PPID && ` +
		`http GET $EVENTS_BASE_URL/users/me $EVENTS_API_KEY >/dev/null; done; echo alive'`
	if stdout, stderr, _ := run(t, tempDir(t), beside); stdout != "alive\n" {
		t.Errorf("output of the command beside a double: got %q %s, want %q", stdout, stderr, "alive\n")
	}
}

// A double passes signals on to its command, serves until that ends, and has its status.
func TestDoublePassesSignals(t *testing.T) {
	const script = `trap 'http GET $EVENTS_BASE_URL/users/me $EVENTS_API_KEY && exit 7' TERM INT HUP
		echo; echo "ready: "; while :; do sleep 0.01; done`
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			skipIfIgnored(t, sig)
			p := start(t, tempDir(t), `exec eventsd double -- sh -c "$SCRIPT"`, "SCRIPT="+script)
			if status := p.stop(sig); status != 7 {
				t.Errorf("status: got %d, want 7: %s", status, &p.stderr)
			}
		})
	}
}

// What net/http logs is in the log, such as that there are too many connections.
func TestServerLog(t *testing.T) {
	t.Parallel()
	p := start(t, tempDir(t), "ulimit -n 16; exec eventsd demo")
	for range 16 {
		conn, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	want := regexp.MustCompile(`level=WARN msg="http: Accept error: .*: too many open files; retrying`)
	for deadline := time.Now().Add(timeout); !want.MatchString(p.stderr.String()); {
		if time.Now().After(deadline) {
			t.Fatalf("log: got %s, want %s", &p.stderr, want)
		}
		time.Sleep(time.Millisecond)
	}
}

// While the disk is full, creates are refused. The server heals by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	p := start(t, dir, "ulimit -f 40; exec eventsd") // 40 times 512 or 1,024 bytes in a file
	large := `{"description":"` + strings.Repeat("x", 8_000) + `",` + apitest.NewEvent[1:]
	creates := func(body string) (status int, response string) {
		t.Helper()
		status, response, err := p.create(body)
		if err != nil {
			t.Fatal(err)
		}
		return status, response
	}
	status, response := creates(large)
	for status == 201 {
		status, response = creates(large)
	}
	if status != 500 {
		t.Errorf("a create on a full disk: got %d %s, want 500", status, response)
	}
	root := strings.TrimSuffix(p.line("base_url"), base)
	if status, body, _ := call("GET", root+"/healthz", "", ""); status != 200 {
		t.Errorf("GET /healthz on a full disk: got %d %s, want 200, because it heals", status, body)
	}
	if out, _, _ := run(t, dir, "eventsd status"); !strings.Contains(out, "file too large") {
		t.Errorf("status on a full disk: got %s, want the cause", out)
	}
	if status, response := creates(apitest.NewEvent); status != 201 { // this one fits
		t.Errorf("a create with room again: got %d %s, want 201", status, response)
	}
	if out, _, _ := run(t, dir, "eventsd status"); !strings.HasSuffix(out, `"error":null}`+"\n") {
		t.Errorf("status with room again: got %s, want no error", out)
	}
}

// A directory that can't be written: a server doesn't start there.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can write everywhere")
	}
	dir := tempDir(t)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, dir, "eventsd")
	if status != 1 {
		t.Errorf("status: got %d, want 1", status)
	}
	if stdout != "" {
		t.Errorf("stdout: got %q, want nothing", stdout)
	}
	want := filepath.Join(dir, "events.json") + ".lock: permission denied: this user must be able to write"
	if !strings.Contains(stderr, want) {
		t.Errorf("stderr: got %q, want %q in it", stderr, want)
	}
}

// The server has the limits of package httpapi: it refuses more than 16 KiB of headers.
func TestHeaderLimit(t *testing.T) {
	p := start(t, tempDir(t), "exec eventsd demo")
	r, err := apitest.Fetch(&http.Client{Timeout: timeout}, "GET", p.line("base_url")+"/users/me", "",
		"X-Large: "+strings.Repeat("x", 24<<10))
	if err != nil {
		t.Fatal(err)
	}
	r.WantStatus(t, 431)
}
