// Package answer is how every answer goes out, of the API, the operator's
// handler and the control API alike: whole, with its length, and an error in
// one form.
//
//	{"error":{"code":"not_found","message":"…"}}
package answer

import (
	"io"
	"net/http"
	"strconv"

	"example.com/events/internal/strict"
)

// Error is an error with its answer. The message says what is wrong and what
// to do, beginning in lower case.
type Error struct {
	Status        int
	Code, Message string
	Header, Value string // one more header, or ""
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
	return &Error{http.StatusUnauthorized, "unauthorized", message, "WWW-Authenticate", `Bearer realm="` + realm + `"`}
}

// Method is a 405 on a path that allows other methods.
func Method(path, allow string) *Error {
	return &Error{http.StatusMethodNotAllowed, "method_not_allowed", "this method is not allowed on " + path + "; use " + allow, "Allow", allow}
}

// TooLarge is a 413 that ends the connection.
func TooLarge(message string) *Error {
	return &Error{http.StatusRequestEntityTooLarge, "payload_too_large", message, "Connection", "close"}
}

// Write answers with the error.
func (e *Error) Write(w http.ResponseWriter) {
	if e.Header != "" {
		w.Header().Set(e.Header, e.Value)
	}
	type inner struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	Write(w, e.Status, strict.Encode(map[string]inner{"error": {e.Code, e.Message}}))
}

// Shared values of headers: they are only ever read.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
)

// Begin puts the headers that every answer has.
func Begin(h http.Header) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// Start begins an answer whose body is a JSON text of that many bytes.
func Start(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
}

// Write answers with a whole JSON text. Where that fails the client has gone, and
// there is nobody to tell.
func Write[B string | []byte](w http.ResponseWriter, status int, body B) {
	Start(w, status, len(body))
	switch body := any(body).(type) {
	case string:
		io.WriteString(w, body)
	case []byte:
		w.Write(body)
	}
}
