package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// message returns the message of a response if it is an error, and its body otherwise.
func message(w *httptest.ResponseRecorder) string {
	_, message, ok := strings.Cut(w.Body.String(), `"message":"`)
	if !ok {
		return w.Body.String()
	}
	return strings.ReplaceAll(strings.TrimSuffix(message, `"}}`), `\"`, `"`)
}

func eventsMux() *Mux {
	echo := func(w http.ResponseWriter, r Request) error {
		WriteJSON(w, 200, r.Operation+" "+r.PathValue("id")+" "+r.Caller.UserID)
		return nil
	}
	m := NewMux("/v1", []Route{
		{Operation: "GET /events", Handle: echo},
		{Operation: "POST /events/create", Handle: echo},
		{Operation: "GET /events/{id}", Handle: echo},
		{Operation: "DELETE /events/{id}", Handle: echo},
		{Operation: "GET /events/{id}/guests", Handle: echo},
	})
	m.Authenticate = func(*http.Request) (Caller, error) { return Caller{UserID: "ada"}, nil }
	return m
}

// eventsRoutes is the end of the message of a 404 or 405.
const eventsRoutes = "; the routes are GET /events, POST /events/create, GET /events/{id}, " +
	"DELETE /events/{id}, GET /events/{id}/guests"

// do returns the response to a request such as "GET /v1/events", and the request.
func do(h http.Handler, request string) (*httptest.ResponseRecorder, *http.Request) {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	h.ServeHTTP(w, r)
	return w, r
}

func TestMux(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ request, body, pattern string }{
		{"GET /v1/events", "GET /events  ada", "GET /v1/events"},
		{"GET /v1/events/one", "GET /events/{id} one ada", "GET /v1/events/{id}"},
		{"HEAD /v1/events/one", "GET /events/{id} one ada", "GET /v1/events/{id}"},
		{"DELETE /v1/events/one", "DELETE /events/{id} one ada", "DELETE /v1/events/{id}"},
		{"GET /v1/events/one/guests", "GET /events/{id}/guests one ada", "GET /v1/events/{id}/guests"},
		{"POST /v1/events/create", "POST /events/create  ada", "POST /v1/events/create"},
		{"GET /v1/events/create", "GET /events/{id} create ada", "GET /v1/events/{id}"},
	} {
		t.Run(tt.request, func(t *testing.T) {
			t.Parallel()
			w, r := do(eventsMux(), tt.request)
			if w.Code != 200 {
				t.Errorf("status: got %d, want 200", w.Code)
			}
			if got := w.Body.String(); got != tt.body {
				t.Errorf("body: got %s, want %s", got, tt.body)
			}
			if r.Pattern != tt.pattern {
				t.Errorf("pattern: got %q, want %q", r.Pattern, tt.pattern)
			}
		})
	}
}

// TestMuxAllow tests requests with a method that the path doesn't have.
func TestMuxAllow(t *testing.T) {
	t.Parallel()
	const (
		list  = "GET, HEAD, OPTIONS"
		one   = "GET, HEAD, DELETE, OPTIONS"
		named = "POST, GET, HEAD, DELETE, OPTIONS"
	)
	for _, tt := range []struct {
		request string
		status  int
		allow   string
	}{
		{"PUT /v1/events/create", 405, named},
		{"POST /v1/events", 405, list},
		{"DELETE /v1/events", 405, list},
		{"BREW /v1/events", 405, list},
		{"POST /v1/events/one", 405, one},
		{"CONNECT /v1/events/one", 405, one},
		{"OPTIONS /v1/events/one", 204, one},
		{"OPTIONS /v1/events/create", 204, named},
	} {
		t.Run(tt.request, func(t *testing.T) {
			t.Parallel()
			w, r := do(eventsMux(), tt.request)
			if w.Code != tt.status {
				t.Errorf("status: got %d, want %d", w.Code, tt.status)
			}
			if got := w.Header().Get("Allow"); got != tt.allow {
				t.Errorf("Allow: got %q, want %q", got, tt.allow)
			}
			want := ""
			if tt.status == 405 {
				want = "this method is not allowed here; use " + tt.allow + eventsRoutes
			}
			if got := message(w); got != want {
				t.Errorf("message: got %s, want %s", got, want)
			}
			if r.Pattern != "" {
				t.Errorf("pattern: got %q, want none", r.Pattern)
			}
		})
	}
}

func TestMuxUnknownRoute(t *testing.T) {
	t.Parallel()
	for _, request := range []string{
		"GET /", "GET /events", "OPTIONS /v1", "OPTIONS *", "POST /v1/nothing",
		"GET /v1/events/", "GET /v1//events", "CONNECT /v1//events", "GET /v1/./events",
		"GET /v1/x/../events", "GET /v1/events/a%2fb", "GET /v1/events/%2F", "GET /v1/events/a%00",
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			w, r := do(eventsMux(), request)
			if w.Code != 404 {
				t.Errorf("status: got %d, want 404", w.Code)
			}
			want := "no such route below /v1/" + eventsRoutes
			if got := message(w); got != want {
				t.Errorf("message: got %s, want %s", got, want)
			}
			if r.Pattern != "" {
				t.Errorf("pattern: got %q, want none", r.Pattern)
			}
		})
	}
}

// TestMuxHidesRoutesWithoutKey tests that a sender who is refused doesn't learn which routes there are.
func TestMuxHidesRoutesWithoutKey(t *testing.T) {
	t.Parallel()
	m := eventsMux()
	m.Authenticate = func(*http.Request) (Caller, error) { return Caller{}, NewError(403, "refused") }
	for _, request := range []string{"GET /v1/events", "PUT /v1/events", "OPTIONS /v1/events", "GET /v1/x",
		"GET /v1//events"} {
		w, _ := do(m, request)
		if got := message(w); got != "refused" {
			t.Errorf("%s: got %s, want refused", request, got)
		}
	}
}

// TestMuxDefaults tests a Mux without a base path, fields and routes with a query.
func TestMuxDefaults(t *testing.T) {
	t.Parallel()
	m := NewMux("", []Route{{Operation: "GET /x", Handle: func(w http.ResponseWriter, r Request) error {
		return errors.New("broken")
	}}})
	for _, tt := range []struct {
		path, want string
		status     int
	}{
		{"/x", "something went wrong on the server; try again, and give the operator the " +
			"X-Request-Id if it happens again", 500},
		{"/x?a=1", `unknown query parameter "a": GET /x takes none`, 400},
		{"/y", "no such route below /; the routes are GET /x", 404},
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", tt.path, nil))
		if w.Code != tt.status {
			t.Errorf("GET %s: status: got %d, want %d", tt.path, w.Code, tt.status)
		}
		if got := message(w); got != tt.want {
			t.Errorf("GET %s: got %s, want %s", tt.path, got, tt.want)
		}
	}
}

func TestMuxConflict(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"GET /a/{x}", "GET /{x}/b"} {
		t.Run(second, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("NewMux: got no panic, want one")
				}
			}()
			NewMux("", []Route{{Operation: "GET /a/{y}"}, {Operation: second}})
		})
	}
}

// TestIntercept tests that Intercept sees requests with a known route only, and that it can change
// the request and the response.
func TestIntercept(t *testing.T) {
	t.Parallel()
	m := eventsMux()
	var operations []string
	m.Intercept = func(w http.ResponseWriter, r Request, next http.HandlerFunc) {
		operations = append(operations, r.Operation+" by "+r.Caller.UserID)
		r.SetPathValue("id", "two")
		w.WriteHeader(299)
		next(w, r.Request)
	}
	for _, request := range []string{"GET /v1/nothing", "PUT /v1/events", "GET /v1/events/one"} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if path != "/v1/events/one" {
			continue
		}
		if w.Code != 299 {
			t.Errorf("status: got %d, want the status of Intercept", w.Code)
		}
		if got, want := w.Body.String(), "GET /events/{id} two ada"; got != want {
			t.Errorf("body: got %s, want %s", got, want)
		}
	}
	if got, want := strings.Join(operations, ", "), "GET /events/{id} by ada"; got != want {
		t.Errorf("operations of Intercept: got %s, want %s", got, want)
	}
}

// TestMuxErrors tests the responses to the errors and panics of a handler, and what is logged.
func TestMuxErrors(t *testing.T) {
	t.Parallel()
	const hidden = "500 something went wrong on the server; try again, and give the operator the " +
		"X-Request-Id if it happens again"
	known := errors.New("known")
	for _, tt := range []struct {
		name   string
		handle func() error
		want   string // status and message
		log    string // a part of the log; empty if nothing is logged
	}{
		{"an Error", func() error { return NotFound("gone") }, "404 gone", ""},
		{"a wrapped Error", func() error { return fmt.Errorf("x: %w", NotFound("gone")) }, "404 gone", ""},
		{"an error that ToError knows", func() error { return known }, "503 try later", ""},
		{"another error", func() error { return errors.New("the cause") }, hidden, `error="the cause"`},
		{"a panic", func() error { panic("the cause") }, hidden, `error="panic: the cause\n`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			m := NewMux("", []Route{{
				Operation: "GET /x",
				Handle:    func(http.ResponseWriter, Request) error { return tt.handle() },
			}})
			m.Logger = slog.New(slog.NewTextHandler(&log, nil))
			m.ToError = func(err error) *Error {
				if err == known {
					return NewError(503, "try later")
				}
				return nil
			}
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
			if got := fmt.Sprint(w.Code, " ", message(w)); got != tt.want {
				t.Errorf("response: got %s, want %s", got, tt.want)
			}
			want := "^$"
			if tt.log != "" {
				want = " id=" + w.Header().Get("X-Request-Id") + ` route="GET /x" ` + regexp.QuoteMeta(tt.log)
			}
			if !regexp.MustCompile(want).MatchString(log.String()) {
				t.Errorf("log: got %s, want %s", &log, want)
			}
		})
	}
	t.Run("a panic has its stack", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		m := NewMux("", []Route{{
			Operation: "GET /x",
			Handle:    func(http.ResponseWriter, Request) error { panic("oh") },
		}})
		m.Logger = slog.New(slog.NewTextHandler(&log, nil))
		m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		if !strings.Contains(log.String(), "mux_test.go:") {
			t.Errorf("log: got %s, want a stack with mux_test.go", &log)
		}
	})
}

// A client can see that a response is incomplete, and the cause is logged.
func TestMuxAbortsStartedResponse(t *testing.T) {
	t.Parallel()
	const part = `{"data":[`
	for _, tt := range []struct {
		name  string
		start func(http.ResponseWriter)
		fail  func() error
		log   string // a regular expression
	}{
		{"an error in a stream", StartStream, func() error { return errors.New("the cause") }, "the cause"},
		{"a panic in a stream", StartStream, func() error { panic("the cause") }, "panic: the cause"},
		{"a panic with a length", func(w http.ResponseWriter) { writeHead(w, 200, 100) },
			func() error { panic("the cause") }, "panic: the cause"},
		{"ErrAbortHandler", StartStream, func() error { panic(http.ErrAbortHandler) }, "^$"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			handle := func(w http.ResponseWriter, r Request) error {
				tt.start(w)
				io.WriteString(w, part)
				http.NewResponseController(w).Flush()
				return tt.fail()
			}
			m := NewMux("", []Route{{Operation: "GET /x", Handle: handle}})
			m.Logger = slog.New(slog.NewTextHandler(&log, nil))
			ended := make(chan bool)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				m.ServeHTTP(w, r)
			}))
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL + "/x")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if string(body) != part {
				t.Errorf("body: got %s, want %s", body, part)
			}
			if err == nil {
				t.Error("reading the body: got its end, want an error")
			}
			<-ended
			if !regexp.MustCompile(tt.log).MatchString(log.String()) {
				t.Errorf("log: got %s, want %s", &log, tt.log)
			}
		})
	}
}
