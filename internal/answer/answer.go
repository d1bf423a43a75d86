// Package answer writes the answers of every handler in this program: of the
// API, of the operator's handler and of the control API. An answer has its
// length and goes out whole. Errors have one form:
//
//	{"error":{"code":"not_found","message":"…"}}
package answer

import (
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"

	"example.com/events/internal/strict"
)

// Error is an error that knows how it is answered. Its message is for the client:
// it begins in lower case and says what is wrong and what to do about it.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Header  string `json:"-"` // the name of one more header of the answer, or ""
	Value   string `json:"-"` // and its value
}

func (e *Error) Error() string { return e.Message }

// BadRequest is a 400.
func BadRequest(message string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "bad_request", Message: message}
}

// NotFound is a 404.
func NotFound(message string) *Error {
	return &Error{Status: http.StatusNotFound, Code: "not_found", Message: message}
}

// Unauthorized is a 401 with its challenge (RFC 9110, section 11.6.1).
func Unauthorized(realm, message string) *Error {
	challenge := `Bearer realm="` + realm + `"`
	return &Error{http.StatusUnauthorized, "unauthorized", message, "WWW-Authenticate", challenge}
}

// Method is a 405 on a path that allows other methods, which allow lists in the
// form of the header Allow: "GET, HEAD".
func Method(path, allow string) *Error {
	message := "this method is not allowed on " + path + "; use " + allow
	return &Error{http.StatusMethodNotAllowed, "method_not_allowed", message, "Allow", allow}
}

// TooLarge is a 413. It closes the connection, as the rest of the body is not
// wanted.
func TooLarge(message string) *Error {
	return &Error{http.StatusRequestEntityTooLarge, "payload_too_large", message, "Connection", "close"}
}

// Write answers with the error.
func (e *Error) Write(w http.ResponseWriter) {
	if e.Header != "" {
		w.Header().Set(e.Header, e.Value)
	}
	Write(w, e.Status, strict.Encode(map[string]*Error{"error": e}))
}

// The values of headers that many answers share. They are only ever read, so one
// slice serves all requests.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
)

// Begin sets the headers that every answer has.
func Begin(h http.Header) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// Start begins an answer whose body will be a JSON text of size bytes. The caller
// writes the body.
func Start(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
}

// Write answers with a whole JSON text. An error of the connection is dropped:
// the client has gone, so nobody is left to report it to.
func Write[B string | []byte](w http.ResponseWriter, status int, body B) {
	Start(w, status, len(body))
	switch body := any(body).(type) {
	case string:
		io.WriteString(w, body)
	case []byte:
		w.Write(body)
	}
}

// Fail answers an error: an [*Error] as it says, any other one as a 500 whose
// cause goes to the log alone.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// Recover is deferred by a handler. It passes a panic to fail as an error with
// the stack. A panic with [http.ErrAbortHandler] goes on: by it net/http closes
// the connection without an answer.
func Recover(w http.ResponseWriter, r *http.Request, fail Fail) {
	p := recover()
	if p == http.ErrAbortHandler {
		panic(p)
	}
	if p != nil {
		fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// StatusWriter is a ResponseWriter that calls Seen with the status of the answer
// before the client can see it. [http.ResponseController] reaches the writer that
// it wraps.
type StatusWriter struct {
	http.ResponseWriter
	Seen func(status int)
}

func (w *StatusWriter) WriteHeader(status int) {
	w.Seen(status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer that w wraps, for [http.ResponseController].
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
