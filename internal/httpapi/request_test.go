package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestQuery(t *testing.T) {
	t.Parallel()
	const (
		limitRule  = "limit must be given once, as a whole number from 1 to 9"
		statusRule = "status must be draft or published, given once"
		userRule   = "user must be the ID of a user, given once"
		malformed  = "the query string is malformed; write it as a=b&c=d, percent-encoded"
	)
	unknown := func(name string) string {
		return fmt.Sprintf(`unknown query parameter %q: GET /x takes limit, status, user`, name)
	}
	for _, tt := range []struct{ query, values, problems string }{
		{"", `5 "" ""`, ""},
		{"&&", `5 "" ""`, ""},
		{"limit=2", `2 "" ""`, ""},
		{"limit=01&status=draft&user=usr_a+b%26", `1 "draft" "usr_a b&"`, ""},
		{"us%65r=usr_a", `5 "" "usr_a"`, ""},

		{"limit=0", "", limitRule},
		{"limit=10", "", limitRule},
		{"limit=x", "", limitRule},
		{"limit=%2B1", "", limitRule},
		{"limit=1.0", "", limitRule},
		{"limit=0x1", "", limitRule},
		{"limit=99999999999999999999", "", limitRule},
		{"limit=", "", limitRule},
		{"limit", "", limitRule},
		{"limit=2&limit=2", "", limitRule},
		{"status=", "", statusRule},
		{"status=Draft", "", statusRule},
		{"status=draft&status=draft", "", statusRule},
		{"user=ada", "", userRule},
		{"user=", "", userRule},
		{"user=usr_a&user=usr_b", "", userRule},

		{"x=1", "", unknown("x")},
		{"Limit=1", "", unknown("Limit")},
		{"=1", "", unknown("")},
		{"a;b=1", "", malformed},
		{"a=%zz&%=1", "", malformed},
		{"y&user=&x=1&limit=0&a=%zz", "",
			malformed + "; " + limitRule + "; " + userRule + "; " +
				`unknown query parameters "x", "y": GET /x takes limit, status, user`},
	} {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/x", nil)
			r.URL.RawQuery = tt.query
			q := ReadQuery(Request{Request: r, Operation: "GET /x"})
			limit := q.Int("limit", 5, 1, 9)
			status := q.OneOf("status", "draft", "published")
			user := ""
			q.Func("user", "must be the ID of a user, given once", func(value string) bool {
				user = value
				return strings.HasPrefix(value, "usr_")
			})
			values, problems := fmt.Sprintf("%d %q %q", limit, status, user), ""
			if err := q.Err(); err != nil {
				values, problems = "", err.Error()
			}
			if problems != tt.problems {
				t.Errorf("Err(): got %s\nwant %s", problems, tt.problems)
			}
			if values != tt.values {
				t.Errorf("values: got %s, want %s", values, tt.values)
			}
		})
	}
}

// failingBody is a body that can't be read.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }

func TestReadBody(t *testing.T) {
	t.Parallel()
	largest := strings.Repeat("x", 1<<19)
	const notWhole = "the request body was incomplete or too slow; send it again"
	for _, tt := range []struct {
		name   string
		body   io.Reader
		status int // 200 if there is no error
		want   string
	}{
		{"whole", strings.NewReader("abc"), 200, "abc"},
		{"empty", strings.NewReader(""), 200, ""},
		{"the maximum", strings.NewReader(largest), 200, largest},
		{"too large", strings.NewReader(largest + "x"), 413, "the body must have at most 0.5 MiB"},
		{"too large for another handler", failingBody{&http.MaxBytesError{Limit: 2 << 20}}, 413,
			"the body must have at most 2 MiB"},
		{"cut", failingBody{io.ErrUnexpectedEOF}, 408, notWhole},
		{"too slow", failingBody{os.ErrDeadlineExceeded}, 408, notWhole},
		{"reset", failingBody{&net.OpError{Op: "read", Err: syscall.ECONNRESET}}, 408, notWhole},
		{"malformed chunks", failingBody{errors.New("malformed chunked encoding")}, 400,
			"the chunks of the request body are malformed; send it with a Content-Length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/x", tt.body)
			body, err := ReadBody(w, Request{Request: r}, 1<<19)
			if err == nil {
				WriteJSON(w, 200, string(body))
			} else {
				err.(*Error).Write(w)
			}
			if w.Code != tt.status {
				t.Errorf("status: got %d, want %d", w.Code, tt.status)
			}
			if got := message(w); got != tt.want {
				t.Errorf("ReadBody: got %.80s, want %.80s", got, tt.want)
			}
			closes := w.Header().Get("Connection") == "close" // the rest of the body may follow
			if want := tt.status == 408; closes != want {
				t.Errorf("closes the connection: got %v, want %v", closes, want)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		name     string // of the header
		values   []string
		required string // the header of the 415 and its value, or ""
	}{
		{"Content-Type", nil, ""},
		{"Content-Type", []string{""}, ""},
		{"Content-Type", []string{"application/json"}, ""},
		{"Content-Type", []string{"Application/JSON"}, ""},
		{"Content-Type", []string{"application/json; charset=utf-8"}, ""},
		{"Content-Type", []string{`application/json;charset="UTF-8"`}, ""},
		{"Content-Type", []string{"application/json;"}, ""},
		{"Content-Type", []string{form}, "Accept: application/json"},
		{"Content-Type", []string{"application/json; charset=latin1"}, "Accept: application/json"},
		{"Content-Type", []string{"application/json; version=1"}, "Accept: application/json"},
		{"Content-Type", []string{"application/jsonp"}, "Accept: application/json"},
		{"Content-Type", []string{"application/json", "application/json"}, "Accept: application/json"},
		{"Content-Type", []string{"application/json, text/plain"}, "Accept: application/json"},
		{"Content-Encoding", []string{"identity"}, ""},
		{"Content-Encoding", []string{"Identity"}, ""},
		{"Content-Encoding", []string{"gzip"}, "Accept-Encoding: identity"},
		{"Content-Encoding", []string{"identity", "gzip"}, "Accept-Encoding: identity"},
	} {
		err := checkContentHeaders(http.Header{tt.name: tt.values})
		if tt.required == "" {
			if err != nil {
				t.Errorf("%s %q: got %v, want nil", tt.name, tt.values, err)
			}
			continue
		}
		e, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s %q: got %v, want an Error", tt.name, tt.values, err)
			continue
		}
		if e.Status != 415 {
			t.Errorf("%s %q: status: got %d, want 415", tt.name, tt.values, e.Status)
		}
		name, value, _ := strings.Cut(tt.required, ": ")
		if got := e.Header.Get(name); got != value {
			t.Errorf("%s %q: %s: got %q, want %q", tt.name, tt.values, name, got, value)
		}
	}
}
