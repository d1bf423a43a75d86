// Package httpapi has everything that the API, the operator's routes and the control API share: a [Mux],
// reading queries and bodies, servers with limits, and responses. Every response with a body is JSON and has
// a Content-Length, except after [StartStream]. Errors look like this:
//
//	{"error":{"code":"not_found","message":"…"}}
package httpapi

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"example.com/events/internal/strict"
)

// Error is an error with its response. Clients see the message. It is in lower case and names the problem and
// the fix.
type Error struct {
	Status  int // 400 to 599
	Message string
	Header  http.Header // additional headers, with canonical names
}

func (e *Error) Error() string { return e.Message }

// codes maps statuses to error codes. Other statuses have the code of 400 or 500.
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

// Write sends the response.
func (e *Error) Write(w http.ResponseWriter) {
	maps.Copy(w.Header(), e.Header)
	code := cmp.Or(codes[e.Status], codes[e.Status/100*100])
	WriteValue(w, e.Status, map[string]any{
		"error": map[string]string{"code": code, "message": e.Message},
	})
}

// NewError creates an Error. The header arguments are names, each followed by a value.
func NewError(status int, message string, header ...string) *Error {
	e := &Error{Status: status, Message: message, Header: http.Header{}}
	for field := range slices.Chunk(header, 2) {
		e.Header.Set(field[0], field[1])
	}
	return e
}

// BadRequest creates an Error for a query or body that a client must change.
func BadRequest(message string) *Error { return NewError(400, message) }

// NotFound creates an Error for a path or an ID that leads nowhere.
func NotFound(message string) *Error { return NewError(404, message) }

// All responses share these header values. Don't modify them.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
)

// SetSecurityHeaders sets the headers that protect a response. Call it before a [Mux] that browsers reach.
func SetSecurityHeaders(h http.Header) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// WriteJSON sends a JSON text. Like all functions that write, it ignores connection errors, because no client
// is left to tell.
func WriteJSON(w http.ResponseWriter, status int, body string) {
	writeHead(w, status, len(body))
	io.WriteString(w, body)
}

// WriteValue sends x as JSON.
func WriteValue(w http.ResponseWriter, status int, x any) {
	body := strict.Encode(x)
	writeHead(w, status, len(body))
	w.Write(body)
}

// WriteList sends a list: begin, then JSON texts separated by commas, then end. It doesn't join them in
// memory.
func WriteList(w http.ResponseWriter, begin string, texts []string, end string) {
	size := len(begin) + max(0, len(texts)-1) + len(end)
	for _, text := range texts {
		size += len(text)
	}
	writeHead(w, 200, size)
	out := listWriters.Get().(*bufio.Writer)
	defer listWriters.Put(out)
	out.Reset(w)
	out.WriteString(begin)
	for i, text := range texts {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(text)
	}
	out.WriteString(end)
	out.Flush()
}

const joinSize = 128 << 10 // bytes per write of WriteList

var listWriters = sync.Pool{
	New: func() any { return bufio.NewWriterSize(nil, joinSize) },
}

func writeHead(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
}

// StartStream starts a response with a JSON text of unknown length, which the caller writes. If the caller
// can't finish, it must panic with [http.ErrAbortHandler], so that clients don't take a part for the whole.
func StartStream(w http.ResponseWriter) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(200)
}

// responseStarted reports whether a function above has started the response.
func responseStarted(w http.ResponseWriter) bool { return w.Header()["Content-Type"] != nil }
