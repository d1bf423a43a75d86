package eventstest_test

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events/eventstest"
	"example.com/events/internal/apitest"
)

const (
	getMe  = "GET /users/me"
	list   = "GET /events"
	create = "POST /events/create"
)

const keyHeader = "x-service-api-key: "

// sendTimeout is the time that a client waits for a response. It is longer than every delay.
const sendTimeout = 2 * time.Minute

const launch = apitest.NewEvent

// result is a response, or the error of sending the request. A response that was cut has both.
type result struct {
	apitest.Response
	err error
}

// send sends a request for an operation with Server.Key, unless a header such as "x-service-api-key: KEY" has
// another key. A create gets a body.
func send(srv *eventstest.Server, operation string, headers ...string) result {
	return sendWith(srv.Client(), srv, operation, headers...)
}

func sendWith(c *http.Client, srv *eventstest.Server, operation string, headers ...string) result {
	c.Timeout = cmp.Or(c.Timeout, sendTimeout)
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, keyHeader) }) {
		headers = append(headers, keyHeader+srv.Key)
	}
	method, path, _ := strings.Cut(operation, " ")
	body := ""
	if operation == create {
		body = launch
	}
	r, err := apitest.Fetch(c, method, srv.URL+path, body, headers...)
	return result{r, err}
}

// countEvents returns the number of events in the store.
func countEvents(srv *eventstest.Server) (n int) {
	for r := range srv.Store.Records() {
		if r.Event != nil {
			n++
		}
	}
	return n
}

// fakeT is a test that may fail.
type fakeT struct {
	testing.TB
	cleanups []func()

	mu      sync.Mutex // guards the fields below while the test runs
	errors  []string
	fatal   string
	file    string // in which Fatalf reports fatal
	log     string
	skipped bool
	helpers []string // functions that have called Helper
}

func (t *fakeT) Helper() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.helpers = append(t.helpers, callers()[1].Function)
}

func (t *fakeT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *fakeT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func (t *fakeT) Fatalf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fatal = fmt.Sprintf(format, args...)
	for _, caller := range callers()[1:] {
		if !slices.Contains(t.helpers, caller.Function) {
			t.file = filepath.Base(caller.File)
			break
		}
	}
	runtime.Goexit()
}

// callers returns the functions on the stack, beginning with the one that calls it.
func callers() (frames []runtime.Frame) {
	counters := make([]uintptr, 50)
	found := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	for {
		frame, more := found.Next()
		frames = append(frames, frame)
		if !more {
			return frames
		}
	}
}

func (t *fakeT) Logf(format string, args ...any) { t.log += fmt.Sprintf(format, args...) }

func (t *fakeT) Skipped() bool { return t.skipped }

func (t *fakeT) Failed() bool { return t.fatal != "" || len(t.errors) > 0 }

// runTest runs f as a test of its own, with its cleanup.
func runTest(t testing.TB, f func(t *fakeT)) *fakeT {
	t.Helper()
	fake := &fakeT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for len(fake.cleanups) > 0 {
				last := len(fake.cleanups) - 1
				cleanup := fake.cleanups[last]
				fake.cleanups = fake.cleanups[:last]
				cleanup()
			}
		}()
		f(fake)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the test of a test: got no end after a minute, want one")
	}
	return fake
}
