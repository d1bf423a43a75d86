// Package answer is what every handler of this program has in common: the API, the operator's
// handler and the control API. It finds the route of a request by a list (mux.go), reads its
// query and its body (request.go, body.go), writes the answer, and has the limits of every
// server (server.go). Every answer with a body has a Content-Length, but for that of [Stream].
// Errors have one form:
//
//	{"error":{"code":"not_found","message":"…"}}
//
// It does not know who may ask for what, nor what the answers mean: its callers hand it the
// check of a request and the handlers.
package answer

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"example.com/events/internal/strict"
)

// Error is an error that knows how it is answered. Its message is for the client:
// it begins in lower case and says what is wrong and what to do about it.
type Error struct {
	Status  int
	Message string
	Header  http.Header // more headers of the answer, their names in the canonical form
}

func (e *Error) Error() string { return e.Message }

// codes are the codes of errors by status. A status that is not among them has the
// code of 400 or 500, whichever its first digit says.
var codes = map[int]string{
	400: "bad_request",
	401: "unauthorized",
	403: "forbidden",
	404: "not_found",
	405: "method_not_allowed",
	408: "request_timeout",
	413: "payload_too_large",
	415: "unsupported_media_type",
	422: "idempotency_mismatch",
	429: "rate_limited",
	500: "server_error",
}

// Write answers with the error.
func (e *Error) Write(w http.ResponseWriter) {
	code := cmp.Or(codes[e.Status], codes[e.Status/100*100])
	body := map[string]map[string]string{"error": {"code": code, "message": e.Message}}
	maps.Copy(w.Header(), e.Header)
	Write(w, e.Status, string(strict.Encode(body)))
}

// NewError returns an error. The fields are the names of header fields, each with its value
// behind it.
func NewError(status int, message string, fields ...string) *Error {
	e := &Error{status, message, http.Header{}}
	for field := range slices.Chunk(fields, 2) {
		e.Header.Set(field[0], field[1])
	}
	return e
}

// BadRequest is a 400.
func BadRequest(message string) *Error { return NewError(400, message) }

// NotFound is a 404.
func NotFound(message string) *Error { return NewError(404, message) }

// Realm is what an API key opens, in the challenge of a 401.
const Realm = "events"

// Unauthorized is a 401 with its challenge.
func Unauthorized(realm, message string) *Error {
	return NewError(401, message, "WWW-Authenticate", Challenge(realm))
}

// Challenge is the header field WWW-Authenticate of a 401 (RFC 9110, section 11.6.1).
func Challenge(realm string) string { return `Bearer realm="` + realm + `"` }

// Method is a 405 on a path that allows other methods. The argument allow lists those
// in the form of the header Allow: "GET, HEAD".
func Method(path, allow string) *Error {
	return NewError(405, "this method is not allowed on "+path+"; use "+allow, "Allow", allow)
}

// The values of headers that many answers share. They are only ever read, so one
// slice serves all requests.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
)

// SetHeaders sets the headers that every answer has.
func SetHeaders(h http.Header) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// WriteHead begins an answer whose body will be a JSON text of size bytes. The caller
// writes the body.
func WriteHead(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
}

// Write answers with a whole JSON text. An error of the connection is dropped:
// the client has gone, so nobody is left to report it to.
func Write(w http.ResponseWriter, status int, body string) {
	WriteHead(w, status, len(body))
	io.WriteString(w, body)
}

// Stream answers with a JSON text that write writes piece by piece, because it may be more
// than the memory should hold. So this is the one answer without a Content-Length. If
// write fails, the connection is closed before the end of the answer, so that no client
// takes a part for the whole.
func Stream(w http.ResponseWriter, write func(io.Writer) error) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(200)
	complete := false
	defer func() {
		if !complete { // write has failed, or panics
			panic(http.ErrAbortHandler)
		}
	}()
	complete = write(w) == nil
}

// WriteError answers an error: an [*Error] as it says, any other one as a 500 whose
// cause goes to the log alone.
type WriteError func(w http.ResponseWriter, r *http.Request, err error)

// StatusWriter is a ResponseWriter that calls Seen with the status of the answer
// before the client can see it, and counts the bytes of the body.
// [http.ResponseController] reaches the writer that it wraps.
type StatusWriter struct {
	http.ResponseWriter
	Seen  func(status int)
	Bytes int64
}

func (w *StatusWriter) Write(part []byte) (int, error) {
	n, err := w.ResponseWriter.Write(part)
	w.Bytes += int64(n)
	return n, err
}

func (w *StatusWriter) WriteHeader(status int) {
	w.Seen(status)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer that w wraps, for [http.ResponseController].
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
