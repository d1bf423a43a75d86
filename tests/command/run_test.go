//go:build unix

package command

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/events"
)

// runServer runs a server in this process, and returns its lines on stdout and a function that stops it and
// returns the exit status.
func runServer(t *testing.T, environ []string, args ...string) (lines map[string]string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, w := io.Pipe()
	var stderr buffer
	status := make(chan int, 1)
	go func() {
		status <- events.Run(ctx, args, environ, strings.NewReader(""), w, &stderr)
		w.Close()
	}()
	lines = map[string]string{}
	for scanner := bufio.NewScanner(stdout); lines["ready"] == "" && scanner.Scan(); {
		name, value, _ := strings.Cut(scanner.Text(), ": ")
		lines[name] = value
	}
	if lines["ready"] == "" {
		cancel()
		t.Fatalf("eventsd %q: got status %d %s, want a line ready:", args, <-status, &stderr)
	}
	return lines, func() int {
		cancel()
		return <-status
	}
}

// Servers in one process are independent, and leave no goroutine behind.
func TestRun(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGWINCH) // starts a goroutine of package signal for good
	before := runtime.NumGoroutine()
	dir := tempDir(t)
	environ := []string{"EVENTSD_ADDR=127.0.0.1:0", "EVENTSD_DATA=" + filepath.Join(dir, "a.json")}
	a, stopA := runServer(t, environ)
	b, stopB := runServer(t, nil, "-addr", "127.0.0.1:0", "-data", filepath.Join(dir, "b.json"))
	double, stopDouble := runServer(t, nil, "double")
	for _, lines := range []map[string]string{a, b, double} {
		status, body, err := call("GET", lines["base_url"]+"/users/me", lines["api_key"], "")
		if status != 200 {
			t.Errorf("GET /users/me of %v: got %d %s %v, want 200", lines, status, body, err)
		}
	}
	if status, _, _ := call("GET", b["base_url"]+"/users/me", a["api_key"], ""); status != 401 {
		t.Errorf("GET /users/me with the key of another server: got %d, want 401", status)
	}
	var stdout, stderr buffer
	if status := events.Run(t.Context(), []string{"dump"}, environ, nil, &stdout, &stderr); status != 0 {
		t.Errorf("dump: got %d %s, want 0", status, &stderr)
	}
	for _, stop := range []func() int{stopA, stopB, stopDouble} {
		if status := stop(); status != 0 {
			t.Errorf("status of a server: got %d, want 0", status)
		}
	}
	if status := events.Run(t.Context(), []string{"dump"}, environ, nil, &stdout, &stderr); status != 0 {
		t.Errorf("dump without a server: got %d %s, want 0", status, &stderr)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for deadline := time.Now().Add(timeout); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 64<<10)
			t.Fatalf("goroutines: got %d, want %d:\n%s",
				runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// A command that can't print fails.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	environ := []string{"EVENTSD_ADDR=127.0.0.1:0", "EVENTSD_DATA=" + data}
	_, stop := runServer(t, environ)
	stop()
	for _, args := range [][]string{{"dump"}, {"key", "list"}, {"check"}, {"version"}, {"help"}, {"serve"}} {
		_, stdout := io.Pipe()
		stdout.Close()
		var stderr buffer
		status := events.Run(t.Context(), args, environ, strings.NewReader(""), stdout, &stderr)
		if status != 1 {
			t.Errorf("eventsd %q with stdout closed: got %d %s, want 1", args, status, &stderr)
		}
	}
	if _, err := os.Stat(data + ".sock"); err == nil {
		t.Error("socket of a server that couldn't print: got one, want none")
	}
}

// Outside the base path there are a few pages, without a key.
func TestPages(t *testing.T) {
	p := start(t, tempDir(t), "exec eventsd demo")
	double := start(t, tempDir(t), "exec eventsd double")
	for _, tt := range []struct {
		server      *process
		path        string
		status      int
		contentType string
		origin      string // Access-Control-Allow-Origin
		body        string // contained in the response
	}{
		{p, "/", 200, "text/html; charset=utf-8", "", `<input id="key" value="svc_live_demo"`},
		{p, "/healthz", 200, "application/json", "*", `{"status":"ok"}`},
		{p, "/openapi.json", 200, "application/json", "*", `"openapi": "3.1.`},
		{p, "/_control/", 404, "application/json", "*", `"not_found"`},
		{p, "/keys", 404, "application/json", "*", `"not_found"`},
		{p, "/healthz/", 404, "application/json", "*", `"not_found"`},
		{double, "/", 200, "text/html; charset=utf-8", "", double.line("api_key")},
		{double, "/_control/", 200, "text/html; charset=utf-8", "", "Inspector"},
		{double, "/healthz", 200, "application/json", "*", `{"status":"ok"}`},
		{double, "/openapi.json", 200, "application/json", "*", `"openapi": "3.1.`},
	} {
		t.Run(tt.server.Args[2]+tt.path, func(t *testing.T) {
			response, err := http.Get("http://" + tt.server.addr() + tt.path)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != tt.status {
				t.Errorf("status: got %d, want %d", response.StatusCode, tt.status)
			}
			if got := response.Header.Get("Content-Type"); got != tt.contentType {
				t.Errorf("Content-Type: %s, want %s", got, tt.contentType)
			}
			if got := response.Header.Get("Access-Control-Allow-Origin"); got != tt.origin {
				t.Errorf("Access-Control-Allow-Origin: %s, want %s", got, tt.origin)
			}
			if got := response.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %s, want no-store", got)
			}
			if !strings.Contains(string(body), tt.body) {
				t.Errorf("body: got %.300s, want %s in it", body, tt.body)
			}
		})
	}
	response, err := http.Post("http://"+p.addr()+"/healthz", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 405 {
		t.Errorf("POST /healthz: got %d, want 405", response.StatusCode)
	}
	if got := response.Header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("POST /healthz: Allow: %s, want GET, HEAD", got)
	}
}
