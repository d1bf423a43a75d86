package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestErrorWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		err    *Error
		code   string
		header string // an additional header and its value
	}{
		{"BadRequest", BadRequest("x"), "bad_request", ""},
		{"NotFound", NotFound("x"), "not_found", ""},
		{"NewError", NewError(415, "x", "accept", "a/b"), "unsupported_media_type", "Accept: a/b"},
		{"a status with a code", &Error{Status: 429, Message: "x"}, "rate_limited", ""},
		{"another status of a client", &Error{Status: 409, Message: "x"}, "bad_request", ""},
		{"another status of a server", &Error{Status: 503, Message: "x"}, "server_error", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			tt.err.Write(w)
			if w.Code != tt.err.Status {
				t.Errorf("status: got %d, want %d", w.Code, tt.err.Status)
			}
			want := `{"error":{"code":"` + tt.code + `","message":"x"}}`
			if got := w.Body.String(); got != want {
				t.Errorf("body: got %s, want %s", got, want)
			}
			name, value, _ := strings.Cut(tt.header, ": ")
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: got %q, want %q", name, got, value)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	const text = `{"a":"é<&>"}` // 13 bytes
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name   string
		write  func(http.ResponseWriter)
		status int
		body   string
	}{
		{"WriteJSON", func(w http.ResponseWriter) { WriteJSON(w, 201, text) }, 201, text},
		{"WriteJSON of nothing", func(w http.ResponseWriter) { WriteJSON(w, 200, "") }, 200, ""},
		{"WriteValue", func(w http.ResponseWriter) {
			WriteValue(w, 201, map[string]string{"a": "é<&>"})
		}, 201, text},
		{"WriteList", func(w http.ResponseWriter) {
			WriteList(w, "[", []string{long, "1"}, "]")
		}, 200, "[" + long + ",1]"},
		{"WriteList of nothing", func(w http.ResponseWriter) {
			WriteList(w, "[", nil, "]")
		}, 200, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			tt.write(w)
			if w.Code != tt.status {
				t.Errorf("status: got %d, want %d", w.Code, tt.status)
			}
			if got := w.Body.String(); got != tt.body {
				t.Errorf("body: got %.80s, want %.80s", got, tt.body)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type: got %q, want application/json", got)
			}
			if got, want := w.Header().Get("Content-Length"), strconv.Itoa(len(tt.body)); got != want {
				t.Errorf("Content-Length: got %q, want %q", got, want)
			}
		})
	}
}
