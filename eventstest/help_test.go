package eventstest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
)

const launch = `{"title":"Launch","start_at":"2030-03-01T18:00:00Z","end_at":"2030-03-01T20:00:00Z"}`

// answer is what came back: a status of 0 is none.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// bodyOf is the body of a request: of those that these tests list, only creates have one.
func bodyOf(request string) string {
	if strings.HasPrefix(request, createEvent) {
		return launch
	}
	return ""
}

// send sends a request with "Name: value" headers.
func send(t testing.TB, c *http.Client, method, url, body string, headers ...string) answer {
	t.Helper()
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, sent)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(got), err}
}

// call sends a request to an operation of the server, as the holder of a key.
func call(t testing.TB, srv *eventstest.Server, key, operation, body string, headers ...string) answer {
	t.Helper()
	method, path, _ := strings.Cut(operation, " ")
	return send(t, srv.Client(), method, srv.URL+path, body, append(headers, "x-service-api-key: "+key)...)
}

// until waits for what other goroutines do.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for !is() {
		if t.Context().Err() != nil {
			t.Fatal("it never came true that " + what)
		}
		runtime.Gosched()
	}
}

// probe is a test that may fail: it keeps what it is told.
type probe struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	fatal    string
	logged   string
	cleanups []func()
}

func (p *probe) Helper()          {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *probe) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

func (p *probe) Failed() bool                    { return p.fatal != "" || len(p.errors) > 0 }
func (p *probe) Logf(format string, args ...any) { p.logged += fmt.Sprintf(format, args...) }

func (p *probe) Fatalf(format string, args ...any) {
	p.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// try runs f as a test of its own, to its end.
func try(t testing.TB, f func(t *probe)) *probe {
	p := &probe{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for len(p.cleanups) > 0 {
				last := p.cleanups[len(p.cleanups)-1]
				p.cleanups = p.cleanups[:len(p.cleanups)-1]
				last()
			}
		}()
		f(p)
	}()
	<-done
	return p
}

// process is eventsd as it runs, told by its ready lines.
type process struct {
	lines  map[string]string
	order  []string
	stderr *strings.Builder // to be read after stop
	stop   func() (code int)
}

// eventsd runs the command until the end of the test, and returns once it is
// ready.
func eventsd(t testing.TB, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	out, stdout := io.Pipe()
	p := &process{lines: map[string]string{}, stderr: &strings.Builder{}}
	var code int
	var running sync.WaitGroup
	running.Go(func() {
		code = events.Run(ctx, args, nil, strings.NewReader(""), stdout, p.stderr)
		stdout.Close()
	})
	p.stop = func() int { cancel(); running.Wait(); return code }
	t.Cleanup(func() { p.stop() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		p.lines[name] = value
		p.order = append(p.order, name)
		if name == "ready" {
			return p
		}
	}
	t.Fatalf("eventsd %s: not ready: exit status %d: %s", strings.Join(args, " "), p.stop(), p.stderr)
	return nil
}

// control sends a request to the control API of a process.
func (p *process) control(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	return send(t, http.DefaultClient, method, p.lines["control_url"]+path, body,
		append(headers, "Authorization: Bearer "+p.lines["control_token"])...)
}
