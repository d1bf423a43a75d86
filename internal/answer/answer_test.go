package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	const message = "say \"é\" <b> & 'c' \\\r\n\tand \u2028 \x00\U0001f600"
	const written = `say \"é\" <b> & 'c' \\\r\n\tand \u2028 \u0000😀`
	for _, tt := range []struct {
		name        string
		err         *Error
		status      int
		code, text  string
		header, has string
	}{
		{"BadRequest", BadRequest(message), 400, "bad_request", written, "", ""},
		{"NotFound", NotFound(message), 404, "not_found", written, "", ""},
		{"Unauthorized", Unauthorized("api", message), 401, "unauthorized", written,
			"Www-Authenticate", `Bearer realm="api"`},
		{"Method", Method("/a?<b>", "GET, HEAD"), 405, "method_not_allowed",
			"this method is not allowed on /a?<b>; use GET, HEAD", "Allow", "GET, HEAD"},
		{"NewError", NewError(413, message, "connection", "close"), 413, "payload_too_large", written,
			"Connection", "close"},
		{"a status with a code", &Error{Status: 429}, 429, "rate_limited", "", "", ""},
		{"another status of the client", &Error{Status: 409}, 409, "bad_request", "", "", ""},
		{"another status of the server", &Error{Status: 503, Header: http.Header{"Retry-After": {"1"}}},
			503, "server_error", "", "Retry-After", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			tt.err.Write(w)
			body := `{"error":{"code":"` + tt.code + `","message":"` + tt.text + `"}}`
			if w.Code != tt.status || w.Body.String() != body {
				t.Errorf("Write of %+v\n got %d %s\nwant %d %s", tt.err, w.Code, w.Body, tt.status, body)
			}
			want := jsonHeader(len(body))
			if tt.header != "" {
				want[tt.header] = []string{tt.has}
			}
			if !reflect.DeepEqual(w.Header(), want) {
				t.Errorf("Write of %+v has the headers %q, want %q", tt.err, w.Header(), want)
			}
			var read struct{ Error struct{ Message string } }
			err := json.Unmarshal(w.Body.Bytes(), &read)
			if err != nil || read.Error.Message != tt.err.Message || tt.err.Error() != tt.err.Message {
				t.Errorf("Write of %+v is read as %q, %v", tt.err, read.Error.Message, err)
			}
		})
	}
}

// jsonHeader is the headers of a JSON text of so many bytes.
func jsonHeader(size int) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(size)}}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	const text = `{"a":"é<&>"}` // 13 bytes
	for _, tt := range []struct {
		call   string
		write  func(http.ResponseWriter)
		status int
		body   string
		size   int
	}{
		{"Write", func(w http.ResponseWriter) { Write(w, 201, text) }, 201, text, 13},
		{"Write of nothing", func(w http.ResponseWriter) { Write(w, 200, "") }, 200, "", 0},
		{"Start", func(w http.ResponseWriter) { WriteHead(w, 200, 13) }, 200, "", 13},
	} {
		t.Run(tt.call, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "text/plain") // as a wrapper may have it
			SetHeaders(w.Header())
			tt.write(w)
			want := jsonHeader(tt.size)
			want["Cache-Control"], want["X-Content-Type-Options"] = []string{"no-store"}, []string{"nosniff"}
			if w.Code != tt.status || w.Body.String() != tt.body || !reflect.DeepEqual(w.Header(), want) {
				t.Errorf("%s\n got %d %q %q\nwant %d %q %q",
					tt.call, w.Code, w.Body, w.Header(), tt.status, tt.body, want)
			}
		})
	}
}

// handlerOf is a handler of the route GET /x, which puts the error of an answer into err.
func handlerOf(handle Handle, err *error) http.Handler {
	s := Service{
		Routes:     []Route{{Operation: "GET /x", Handle: handle}},
		Check:      func(*http.Request) (string, error) { return "", nil },
		WriteError: func(_ http.ResponseWriter, _ *http.Request, e error) { *err = e },
	}
	return s.Handler()
}

// TestRecover: a panic becomes an error with its cause and stack; the panic that
// aborts a handler goes on, and no panic is no error.
func TestRecover(t *testing.T) {
	t.Parallel()
	recovered := func(panics func()) (goesOn any, err error) {
		defer func() { goesOn = recover() }()
		h := handlerOf(func(http.ResponseWriter, Request) error { panics(); return nil }, &err)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		return nil, err
	}
	goesOn, err := recovered(func() { panic("the cause") })
	if goesOn != nil || err == nil || !strings.HasPrefix(err.Error(), "panic: the cause\n") ||
		!strings.Contains(err.Error(), "answer_test.go:") {
		t.Errorf("a panic becomes %v, %v goes on; want an error with the cause and the stack", err, goesOn)
	}
	goesOn, err = recovered(func() { panic(http.ErrAbortHandler) })
	if err != nil || goesOn != http.ErrAbortHandler {
		t.Errorf("http.ErrAbortHandler is passed on as %v, and %v goes on; want it to go on", err, goesOn)
	}
	if goesOn, err := recovered(func() {}); err != nil || goesOn != nil {
		t.Errorf("no panic is passed on as %v, and %v goes on", err, goesOn)
	}
}

// TestPanicAfterBegin: an answer whose handler panics has no valid end, and its cause is
// logged.
func TestPanicAfterBegin(t *testing.T) {
	t.Parallel()
	const part = `{"data":[`
	for _, tt := range []struct {
		name  string
		begin func(w http.ResponseWriter)
	}{
		{"with a length", func(w http.ResponseWriter) { WriteHead(w, 200, 100) }},
		{"in parts", func(w http.ResponseWriter) { Stream(w, func(io.Writer) error { return nil }) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var failed error
			h := handlerOf(func(w http.ResponseWriter, _ Request) error {
				tt.begin(w)
				io.WriteString(w, part)
				http.NewResponseController(w).Flush()
				panic("the cause")
			}, &failed)
			ended := make(chan bool)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				h.ServeHTTP(w, r)
			}))
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL + "/x")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if string(body) != part || err == nil {
				t.Errorf("the answer is %s with the error %v, want %s and an error", body, err, part)
			}
			<-ended
			if failed == nil || !strings.HasPrefix(failed.Error(), "panic: the cause\n") {
				t.Errorf("WriteError got %v, want the cause", failed)
			}
		})
	}
}

// TestStatusWriter: the status is seen before it is written, and a
// ResponseController reaches the writer below.
func TestStatusWriter(t *testing.T) {
	t.Parallel()
	below := httptest.NewRecorder()
	var calls []string
	w := &StatusWriter{ResponseWriter: below, Seen: func(status int) {
		calls = append(calls, fmt.Sprintf("%d before %v", status, below.Code))
	}}
	Write(w, 404, `{}`)
	got := strings.Join(calls, ", ")
	if got != "404 before 200" || below.Code != 404 || below.Body.String() != "{}" {
		t.Errorf("Write of a 404 is seen as %q and arrives as %d %s", got, below.Code, below.Body)
	}
	if err := http.NewResponseController(w).Flush(); err != nil || !below.Flushed {
		t.Errorf("Flush = %v, want it to reach the writer below", err)
	}
}

// TestStream: an answer that breaks off is not ended.
func TestStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name string
		end  func() error // of write, after the pieces
		ok   bool
	}{
		{"a long one", func() error { return nil }, true},
		{"an error", func() error { return errors.New("the disk is full") }, false},
		{"a panic", func() error { panic("oh") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stream := func(w http.ResponseWriter, _ Request) error {
				Stream(w, func(w io.Writer) error {
					for _, piece := range []string{"[", long, "]"} {
						if _, err := io.WriteString(w, piece); err != nil {
							return err
						}
					}
					return tt.end()
				})
				return nil
			}
			var failed error
			srv := httptest.NewServer(handlerOf(stream, &failed))
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL + "/x")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if tt.ok && string(body) != "["+long+"]" || tt.ok != (err == nil) {
				t.Errorf("%d bytes and the error %v, want an error: %v", len(body), err, !tt.ok)
			}
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s with the headers %v", resp.Status, resp.Header)
			}
		})
	}
}
