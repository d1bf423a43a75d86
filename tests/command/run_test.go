//go:build unix

package command

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
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
func TestRunConcurrently(t *testing.T) {
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

// A server that doesn't start leaves no file, lock or port open.
func TestFailedStartClosesAll(t *testing.T) {
	dir := tempDir(t)
	environ := []string{"EVENTSD_ADDR=127.0.0.1:0", "EVENTSD_DATA=" + filepath.Join(dir, "events.json")}
	const taken = `[{"user":{"id":"usr_x","name":"X","email":"x@example.com"}},
		{"key":{"user_id":"usr_x","secret":"svc_live_x"}}]`
	for _, tt := range []struct{ args, stdin string }{
		{"serve -data " + dir, ""},
		{"serve -data " + dir + "/none/events.json", ""},
		{"serve -seed -", "no records"},
		{"serve -seed none.json", ""},
		{"serve", ""},
		{"demo", ""},
		{"double -seed -", "no records"},
		{"double -seed none.json", ""},
		{"double -seed - -api-key svc_live_x", taken},
		{"double", ""},
		{"double -- no-such-command", ""},
	} {
		_, stdout := io.Pipe()
		stdout.Close() // so that those fail, too, that could start
		before := apitest.OpenFiles("socket:", dir)
		var stderr buffer
		status := events.Run(t.Context(), strings.Fields(tt.args), environ,
			strings.NewReader(tt.stdin), stdout, &stderr)
		if status == 0 {
			t.Errorf("eventsd %s: got 0 %s, want a failure", tt.args, &stderr)
		}
		opened := slices.DeleteFunc(apitest.OpenFiles("socket:", dir), func(name string) bool {
			return slices.Contains(before, name)
		})
		if len(opened) > 0 {
			t.Errorf("eventsd %s: open files and sockets: got %q, want none", tt.args, opened)
		}
	}
	store, err := events.Open(filepath.Join(dir, "events.json"), nil)
	if err != nil {
		t.Fatalf("Open after failed starts: got %v, want nil", err)
	}
	store.Close()
}

// A command that can't print fails.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	environ := []string{"EVENTSD_ADDR=127.0.0.1:0", "EVENTSD_DATA=" + data}
	_, stop := runServer(t, environ)
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for _, args := range [][]string{
		{"dump"}, {"key", "list"}, {"check"}, {"version"}, {"help"}, {"serve"}, {"double"},
	} {
		_, stdout := io.Pipe()
		stdout.Close()
		var stderr buffer
		status := events.Run(ctx, args, environ, strings.NewReader(""), stdout, &stderr)
		if status != 1 {
			t.Errorf("eventsd %q with stdout closed: got %d %s, want 1", args, status, &stderr)
		}
	}
	if _, err := os.Stat(data + ".sock"); err == nil {
		t.Error("socket of a server that couldn't print: got one, want none")
	}
}

// Wrong arguments are status 2. One line says why, and repeats nothing that may be a secret.
func TestUsage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a server ends at once
	environ := []string{"EVENTSD_DATA=" + filepath.Join(tempDir(t), "events.json")}
	for _, tt := range []struct{ args, want string }{ // want is the beginning of the line
		{"server", `unknown subcommand "server"; see eventsd help`},
		{"key", "expected key issue, key list or key revoke; see eventsd help"},
		{"key isue -user usr_1", "expected key issue, key list or key revoke; see eventsd help"},
		{"help me", `unknown subcommand "me"; see eventsd help`},
		{"-memory -addr nowhere",
			"-addr: listen tcp: address nowhere: missing port in address: expected HOST:PORT"},
		{"-memory -addr 127.0.0.1:99999",
			"-addr: listen tcp: address 99999: invalid port: expected HOST:PORT"},
		{"demo -addr nowhere", "-addr: listen tcp: address nowhere: missing port in address"},
		{"double npm test", `put the command after "--": eventsd double -- npm test`},
		{"double --", `put the command after "--": eventsd double -- npm test`},
		{"double -time tomorrow", `invalid value "tomorrow" for flag -time: `},
		{"double -allow unsafe_retry,retry", `invalid value "unsafe_retry,retry" for flag -allow: problem ` +
			`kind "retry" is not known: it must be one of unknown_route, unsafe_retry, unused_fault`},
		{"double -until-eof -- true", "-until-eof can't be combined with a command or -seed -"},
		{"double -until-eof -seed -", "-until-eof can't be combined with a command or -seed -"},
		{"key issue -name Ada", "expected a user: -email EMAIL with -name NAME for a new user, or -user ID"},
		{"key revoke", "expected one key ID after the flags; eventsd key list shows the IDs"},
		{"apply a.json b.json", "expected one FILE, or - for stdin: eventsd apply FILE"},
		{"-memory -api-key hunter2",
			"-api-key must be svc_live_ followed by 1 to 246 letters, digits"},
		{"double -api-key=", "-api-key is empty: give it a value, or leave it out"},
		{"-api-key= hunter2", "serve takes no arguments after its flags; see eventsd help serve"},
		{"-apikey=hunter2", "flag provided but not defined: -apikey; see eventsd help serve"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr buffer
			args := strings.Fields(tt.args)
			status := events.Run(ctx, args, environ, strings.NewReader(""), &stdout, &stderr)
			if status != 2 {
				t.Errorf("status: got %d, want 2", status)
			}
			if got := stdout.String(); got != "" {
				t.Errorf("stdout: got %q, want nothing", got)
			}
			got := stderr.String()
			if !strings.HasPrefix(got, "eventsd: "+tt.want) {
				t.Errorf("stderr: got %q, want %q", got, tt.want)
			}
			if strings.Count(got, "\n") != 1 {
				t.Errorf("stderr: got %q, want one line", got)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("stderr: got %q, want no secret in it", got)
			}
		})
	}
}

// Each subcommand of the help has its own help, and refuses what isn't in it.
func TestHelp(t *testing.T) {
	t.Parallel()
	help := func(name string) string {
		var stdout, stderr buffer
		args := append([]string{"help"}, strings.Fields(name)...)
		if status := events.Run(t.Context(), args, nil, nil, &stdout, &stderr); status != 0 {
			t.Errorf("eventsd help %s: got %d %s, want 0", name, status, &stderr)
		}
		return stdout.String()
	}
	line := regexp.MustCompile(`(?m)^  (\w+( \w+)?)  `)
	for _, match := range line.FindAllStringSubmatch(help(""), -1) {
		name := match[1]
		if name == "help" {
			continue
		}
		want := "Usage: eventsd " + name
		got := help(name)
		if !strings.HasPrefix(got, want) {
			t.Errorf("eventsd help %s: got %q, want %q", name, got, want)
		}
		var stdout, stderr buffer
		args := append(strings.Fields(name), "-unknown")
		if status := events.Run(t.Context(), args, nil, nil, &stdout, &stderr); status != 2 {
			t.Errorf("eventsd %s: got %d, want 2", args, status)
		}
		if name != "version" && !strings.Contains(got, "\nExample: ") {
			t.Errorf("eventsd help %s: got %q, want an example", name, got)
		}
	}
}

// Outside the base path there are a few pages, without a key.
func TestPages(t *testing.T) {
	demo := start(t, tempDir(t), "exec eventsd demo")
	double := start(t, tempDir(t), "exec eventsd double")
	client := &http.Client{Timeout: timeout}
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	json := http.Header{"Content-Type": {"application/json"}, "Access-Control-Allow-Origin": {"*"}}
	for _, tt := range []struct {
		server *process
		path   string
		status int // 200 if it isn't given
		header http.Header
		body   string // contained in the response
	}{
		{server: demo, path: "/", header: html, body: `<input id="key" value="svc_live_demo"`},
		{server: demo, path: "/healthz", header: json, body: `{"status":"ok"}`},
		{server: demo, path: "/openapi.json", header: json, body: `"openapi": "3.1.`},
		{server: demo, path: "/_control/", status: 404, header: json, body: `"not_found"`},
		{server: demo, path: "/keys", status: 404, header: json, body: `"not_found"`},
		{server: demo, path: "/healthz/", status: 404, header: json, body: `"not_found"`},
		{server: double, path: "/", header: html, body: double.line("api_key")},
		{server: double, path: "/_control", header: html, body: "Inspector"},
		{server: double, path: "/_control/", header: html, body: "Inspector"},
		{server: double, path: "/_control/keys", header: http.Header{"Content-Type": {"application/json"}},
			body: `{"data":[`},
		{server: double, path: "/healthz", header: json, body: `{"status":"ok"}`},
		{server: double, path: "/openapi.json", header: json, body: `"openapi": "3.1.`},
	} {
		t.Run(tt.server.Args[2]+tt.path, func(t *testing.T) {
			r, err := apitest.Fetch(client, "GET", "http://"+tt.server.addr()+tt.path, "")
			if err != nil {
				t.Fatal(err)
			}
			r.WantStatus(t, cmp.Or(tt.status, 200))
			r.WantHeader(t, "Cache-Control", "no-store")
			for _, name := range []string{"Content-Type", "Access-Control-Allow-Origin"} {
				r.WantHeader(t, name, tt.header.Get(name))
			}
			if !strings.Contains(r.Body, tt.body) {
				t.Errorf("%s, want %s in it", r, tt.body)
			}
		})
	}
	rebound, err := http.NewRequest("GET", "http://"+double.addr()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "events.example" // the page at this host could read the double's key
	resp, err := client.Do(rebound)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if want := `<input id="key" value=""`; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("GET / of another host: got %d %s (%v), want %s in it", resp.StatusCode, page, err, want)
	}
	if strings.Contains(string(page), double.line("api_key")) {
		t.Errorf("GET / of another host: got %s, want no API key in it", page)
	}
	r, err := apitest.Fetch(client, "POST", "http://"+demo.addr()+"/healthz", "")
	if err != nil {
		t.Fatal(err)
	}
	r.WantStatus(t, 405)
	r.WantHeader(t, "Allow", "GET, HEAD")
	r.WantHeader(t, "Cache-Control", "no-store")
}
