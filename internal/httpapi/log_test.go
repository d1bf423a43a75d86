package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestLogRequests(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := eventsMux()
	m.Authenticate = func(*http.Request) (Caller, error) { return Caller{"usr_ada", "key_1"}, nil }
	h := LogRequests(m, slog.New(slog.NewTextHandler(&log, nil)))
	r := httptest.NewRequest("GET", "/v1/events/one", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	want := regexp.MustCompile(`^time=\S+ level=INFO msg=request method=GET path=/v1/events/one ` +
		`route="GET /v1/events/\{id\}" status=200 took_ms=[0-9.]+ bytes=28 remote=192\.0\.2\.1:1234 ` +
		`user=usr_ada key=key_1\n$`)
	if !want.MatchString(log.String()) {
		t.Errorf("log: got %s, want %s", &log, want)
	}
}

// A response that a handler aborts is logged, too.
func TestLogRequestsAborted(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	abort := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		panic(http.ErrAbortHandler)
	})
	h := LogRequests(abort, slog.New(slog.NewTextHandler(&log, nil)))
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("panic: got %v, want %v", got, http.ErrAbortHandler)
		}
		if want := " status=201 "; !strings.Contains(log.String(), want) {
			t.Errorf("log: got %q, want %s", &log, want)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
}

// TestLogRequestsFlush tests that a ResponseController reaches the wrapped writer.
func TestLogRequestsFlush(t *testing.T) {
	t.Parallel()
	flush := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
	})
	h := LogRequests(flush, slog.New(slog.DiscardHandler))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if !w.Flushed {
		t.Error("Flushed: got false, want true for the wrapped writer")
	}
}
