package testdouble

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

// This file serves a request in the steps that the package comment lists.

// maxUnread is the number of bytes of a body that are read although the server didn't read them. It is
// the size of the largest body that the API accepts, because a client may first send all of it.
const maxUnread = 1 << 20

// extraPaths are paths that browsers and probes request. They aren't part of the API, so these
// requests are neither in the journal nor a problem. The command "eventsd double" has pages for all but
// the last.
var extraPaths = []string{"/", "/healthz", "/openapi.json", "/favicon.ico"}

// exchange is a request and its response.
type exchange struct {
	response
	session *session
	request Request      // journal entry
	fault   *ActiveFault // fault that applies, or nil
}

// ServeHTTP serves the API. Each connection serves one request. Otherwise clients resend a request by
// themselves if a connection that was used before is closed, and a fault applies to both.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if slices.Contains(extraPaths, r.URL.Path) {
		d.session.Load().server.ServeHTTP(w, r)
		return
	}
	x := newExchange(d.session.Load(), r)
	var body bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	x.session.server.ServeHTTP(x, r) // calls intercept
	io.CopyN(io.Discard, r.Body, maxUnread)
	x.request.Body = string(body.Next(maxBody))
	d.record(x, r.Pattern)
	x.wait(w, r)
	x.send(w)
}

func newExchange(s *session, r *http.Request) *exchange {
	return &exchange{
		response: response{header: http.Header{}},
		session:  s,
		request: Request{
			Time:     s.time(),
			Received: time.Now().UTC(),
			Method:   r.Method,
			Path:     r.URL.EscapedPath(),
			Query:    r.URL.RawQuery,
			Header:   r.Header.Clone(),
		},
	}
}

// intercept carries out a request whose key, route and method are right, and writes its response, as
// the first matching fault says.
func intercept(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
	x := w.(*exchange)
	x.request.User = r.Caller.UserID
	x.fault = x.session.takeFault(r)
	carryOut := func(w http.ResponseWriter) {
		next(w, r.WithContext(context.WithoutCancel(r.Context())))
	}
	if x.fault == nil {
		carryOut(x)
		return
	}
	f := &x.fault.Fault
	if f.DropResponse && f.Status != 0 {
		carryOut(&response{header: http.Header{}})
	}
	switch {
	case f.DropRequest:
	case f.Status != 0:
		x.write(f)
	default:
		carryOut(x)
	}
	if f.Patch != "" {
		x.body = merge(x.body, f.Patch)
		x.header.Set("Content-Length", strconv.Itoa(len(x.body)))
	}
	x.header.Set("X-Eventsd-Fault", f.String())
	for name, values := range f.Header {
		// If values is empty, net/http leaves the header out, even Date.
		x.header[http.CanonicalHeaderKey(name)] = values
	}
}

// requiredHeaders are the headers that openapi.json requires for a status.
var requiredHeaders = map[int][2]string{
	401: {"WWW-Authenticate", `Bearer realm="events"`},
	405: {"Allow", "OPTIONS"},
	415: {"Accept", "application/json"},
	429: {"Retry-After", "1"},
	503: {"Retry-After", "1"},
}

// write writes the response of a fault with a status.
func (x *exchange) write(f *Fault) {
	required, ok := requiredHeaders[f.Status]
	if ok {
		x.header.Set(required[0], required[1])
	}
	if f.Body == "" {
		message := "a test fault refused this request; it was not carried out"
		if f.DropResponse {
			message = "a test fault replaced the response; the request was carried out"
		}
		httpapi.NewError(f.Status, message).Write(x)
		return
	}
	contentType := "text/plain; charset=utf-8"
	switch f.Body[0] {
	case '<':
		contentType = "text/html; charset=utf-8"
	case '{', '[':
		contentType = "application/json"
	}
	x.header.Set("Content-Type", contentType)
	x.header.Set("Content-Length", strconv.Itoa(len(f.Body)))
	x.status = f.Status
	x.body = []byte(f.Body)
}

// record adds a request, whose route has a pattern, to the journal. An unknown route is a problem.
func (d *Double) record(x *exchange, pattern string) {
	method, path, known := strings.Cut(pattern, " "+d.config.BasePath)
	if known {
		x.request.Operation = method + " " + path
	}
	x.request.Status = x.status
	x.request.ResponseHeader = http.Header{}
	if x.status != 0 {
		x.request.ResponseHeader = x.header.Clone()
	}
	if x.request.Method != "HEAD" {
		x.request.Response = string(x.body[:min(len(x.body), maxBody)])
	}
	if x.fault != nil {
		x.request.Fault = x.fault.String()
	}
	x.session.addRequest(&x.request)
	refused := x.status == 404 || x.status == 405
	if known || !refused || x.request.Method == "OPTIONS" || d.config.AllowUnknownRoutes {
		return
	}
	text := x.request.String()
	d.config.Logger.Warn("request to an unknown route", "request", text)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, "request "+text)
	}
}

// wait waits until the delay of the fault is over, the fault is removed or the client is gone.
func (x *exchange) wait(w http.ResponseWriter, r *http.Request) {
	if x.fault == nil || x.fault.Delay == 0 {
		return
	}
	httpapi.DisableWriteTimeout(w)
	ctx, cancel := context.WithTimeout(r.Context(), x.fault.Delay)
	defer cancel()
	stop := context.AfterFunc(x.fault.active, cancel)
	defer stop()
	<-ctx.Done()
}

// send sends the response, unless a fault says not to.
func (x *exchange) send(w http.ResponseWriter) {
	if x.fault != nil && !x.fault.responds() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	body := x.body
	if x.fault != nil && x.fault.CutResponse {
		body = body[:len(body)/2] // shorter than Content-Length, so net/http closes the connection
	}
	maps.Copy(w.Header(), x.header)
	w.WriteHeader(x.status)
	w.Write(body)
}

// response is a [http.ResponseWriter] that keeps a response in memory.
type response struct {
	header http.Header
	status int
	body   []byte
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) { w.status = status }

func (w *response) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

// errorMessage returns the message in the API's form of errors, or "" if the body has another form.
func errorMessage(body string) string {
	var e struct {
		Error struct{ Message string }
	}
	json.Unmarshal([]byte(body), &e)
	return e.Error.Message
}

// merge returns a JSON text with the fields of a patch, which is a JSON object.
func merge(text []byte, patch string) []byte {
	return strict.Encode(mergeValue(decode(text), decode([]byte(patch))))
}

// mergeValue merges a patch into a value. An object is merged into an object, and into each element
// of a list. Any other patch replaces the value.
func mergeValue(v, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	switch v := v.(type) {
	case map[string]any:
		for name, field := range fields {
			v[name] = mergeValue(v[name], field)
		}
		return v
	case []any:
		for i := range v {
			v[i] = mergeValue(v[i], patch)
		}
		return v
	}
	return patch
}

// decode decodes a JSON text, and keeps numbers as they are written.
func decode(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.Decode(&v) // a text that isn't JSON is null
	return v
}
