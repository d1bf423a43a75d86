package answer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestQuery: a route takes the parameters that it lists, each once, and all problems of a query
// are in one message, in the order of the query.
func TestQuery(t *testing.T) {
	t.Parallel()
	const limitRule = "limit must be a whole number from 1 to 9, given once"
	limit := &Param[int]{
		Name: "limit",
		Rule: "must be a whole number from 1 to 9, given once",
		Read: func(value string) (int, bool) {
			n, err := strconv.Atoi(value)
			return n, err == nil && n >= 1 && n <= 9
		},
		Default: 5,
	}
	user := &Param[string]{
		Name: "user",
		Rule: "must be an id, given once",
		Read: func(value string) (string, bool) { return value, value != "" },
		Check: func(value string) error {
			if value == "nobody" {
				return NotFound("user nobody is not known")
			}
			return nil
		},
	}
	const malformed = "the query string is malformed; write it as a=b&c=d, percent-encoded"
	unknown := func(name string) string {
		return fmt.Sprintf(`%q is not a query parameter of GET /x: it takes limit, user`, name)
	}
	for _, tt := range []struct {
		query  string
		status int
		want   string // what was read, or the message
	}{
		{"", 200, "5 "},
		{"&&", 200, "5 "},
		{"limit=2", 200, "2 "},
		{"limit=5&user=a+b%26", 200, "5 a b&"},
		{"us%65r=a", 200, "5 a"},
		{"limit=x", 400, limitRule},
		{"limit", 400, limitRule},
		{"limit=2&limit=3", 400, limitRule},
		{"limit=x&limit=y", 400, limitRule}, // said once
		{"user=nobody", 404, "user nobody is not known"},
		{"user=nobody&limit=0", 404, "user nobody is not known; " + limitRule},
		{"limit=0&user=nobody", 400, limitRule + "; user nobody is not known"},
		{"x=1", 400, unknown("x")},
		{"Limit=1", 400, unknown("Limit")},
		{"a;b=1", 400, malformed},
		{"a=%zz&%=1", 400, malformed},
		{"x=1&limit=0&a=%zz&y&user=", 400,
			unknown("x") + "; " + limitRule + "; " + malformed + "; " + unknown("y") + "; user must be an id, given once"},
		{"=1", 400, unknown("")},
	} {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			s := Service{
				Routes: []Route{{
					Operation: "GET /x",
					Params:    []Parameter{limit, user},
					Handle: func(w http.ResponseWriter, r Request) error {
						fmt.Fprintf(w, "%d %s", limit.In(r), user.In(r))
						return nil
					},
				}},
				Check:      func(*http.Request) (string, error) { return "", nil },
				WriteError: writeError,
			}
			r := httptest.NewRequest("GET", "/x", nil)
			r.URL.RawQuery = tt.query
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if got := messageOf(w); w.Code != tt.status || got != tt.want {
				t.Errorf("?%s = %d %s\nwant %d %s", tt.query, w.Code, got, tt.status, tt.want)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		route := Route{Operation: "GET /x"}
		r := Request{Request: httptest.NewRequest("GET", "/x", nil)}
		for i := range 1000 {
			r.URL.RawQuery += fmt.Sprintf("&%d", i)
		}
		err := route.readQuery(&r)
		if err == nil || len(err.Error()) > 2000 || !strings.HasSuffix(err.Error(), "; and 980 more problems") {
			t.Errorf("1,000 unknown parameters: %v", err)
		}
	})
}

func writeError(w http.ResponseWriter, _ *http.Request, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = NewError(500, err.Error())
	}
	e.Write(w)
}

// messageOf is the body of an answer or, of an error, its message.
func messageOf(w *httptest.ResponseRecorder) string {
	text := w.Body.String()
	_, message, isError := strings.Cut(text, `"message":"`)
	if !isError {
		return text
	}
	return strings.ReplaceAll(strings.TrimSuffix(message, `"}}`), `\"`, `"`)
}

// TestBody: what the body of a request may be, and what becomes of one that does not arrive.
func TestBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method string
		body         io.Reader
		length       int64
		status       int
		want         string
	}{
		{"whole", "PUT", strings.NewReader("abc"), 3, 200, "abc"},
		{"of unknown length", "PUT", strings.NewReader("abc"), -1, 200, "abc"},
		{"empty", "PUT", strings.NewReader(""), 0, 200, ""},
		{"as large as may be", "PUT", strings.NewReader("abcd"), 4, 200, "abcd"},
		{"too large", "PUT", strings.NewReader("abcde"), -1, 413, "the body must have at most 4 bytes"},
		{"said to be too large", "PUT", strings.NewReader(""), 5, 413, "the body must have at most 4 bytes"},
		{"too large for a handler in front", "PUT", broken{&http.MaxBytesError{Limit: 2 << 20}}, -1, 413,
			"the body must have at most 2 MiB (2,097,152 bytes)"},
		{"cut", "PUT", broken{io.ErrUnexpectedEOF}, 3, 408,
			"the body did not arrive whole and in time; send it again"},

		{"none", "DELETE", strings.NewReader(""), 0, 200, ""},
		{"none, in chunks", "DELETE", strings.NewReader(""), -1, 200, ""},
		{"where none is taken", "DELETE", strings.NewReader("x"), -1, 400, "the body must be empty"},
		{"said to be where none is taken", "DELETE", strings.NewReader(""), 1, 400,
			"the body must be empty"},
		{"of a GET", "GET", strings.NewReader("x"), 1, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			echo := func(w http.ResponseWriter, r Request) error {
				w.Write(r.Body)
				return nil
			}
			s := Service{
				Routes: []Route{
					{Operation: "PUT /x", MaxBody: 4, Handle: echo},
					{Operation: "DELETE /x", Handle: echo},
					{Operation: "GET /x", Handle: echo},
				},
				Check:      func(*http.Request) (string, error) { return "", nil },
				WriteError: writeError,
			}
			r := httptest.NewRequest(tt.method, "/x", tt.body)
			r.ContentLength = tt.length
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if got := messageOf(w); w.Code != tt.status || got != tt.want {
				t.Errorf("%d %s, want %d %s", w.Code, got, tt.status, tt.want)
			}
			if closes := w.Header().Get("Connection") == "close"; closes != (tt.status >= 400) {
				t.Errorf("the answer has the headers %v, want Connection: close only with an error", w.Header())
			}
		})
	}
}

// broken is a body that cannot be read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
