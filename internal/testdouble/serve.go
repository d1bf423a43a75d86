package testdouble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

// nonAPIPath matches paths that browsers and probes request by themselves. Such requests are no problem and
// don't enter the journal.
var nonAPIPath = regexp.MustCompile(
	`^/($|healthz$|openapi\.json$|favicon\.ico$|apple-touch-icon|\.well-known/)`)

// exchange is a request with its response.
type exchange struct {
	caller  httpapi.Caller
	refused error          // why the key is refused, if it is
	request Request        // journal entry
	fault   *InjectedFault // see takeFault

	response
	unsent  int  // bytes at the end of the body that aren't sent
	dropped bool // whether the connection is closed instead

	// These are set if the API responded with 201 and an event, whatever the client gets.
	event    string // ID
	replayed bool   // whether this repeats the response of an earlier create
	created  []byte // JSON of the event
}

// exchangeKey is the key of the exchange in a request context.
type exchangeKey struct{}

// Wrap makes d a double of an API, creates the first user and returns the handler.
//
// The handler serves one request per connection. Otherwise, clients would resend a dropped request by
// themselves, and its fault would apply twice.
func (d *Double) Wrap(api API) (http.Handler, error) {
	d.api = api
	api.SetNewID(d.newID)
	mux := api.Mux()
	mux.Intercept = d.intercept
	d.authenticate = mux.Authenticate
	mux.Authenticate = func(r *http.Request) (httpapi.Caller, error) { // once per request is enough
		x := r.Context().Value(exchangeKey{}).(*exchange)
		return x.caller, x.refused
	}
	return http.HandlerFunc(d.serve), api.AddUser(OwnerID, "Test Owner", "owner"+mailDomain)
}

func (d *Double) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	x := &exchange{
		fault:    noFault,
		response: response{header: http.Header{}},
		request: Request{
			Time:     d.Now(),
			Received: time.Now().UTC(),
			Method:   r.Method,
			Path:     r.URL.EscapedPath(),
			Query:    r.URL.RawQuery,
			Header:   r.Header.Clone(),
		},
	}
	x.caller, x.refused = d.authenticate(r)
	httpapi.SetCaller(w, x.caller)
	if x.refused == nil {
		x.request.UserID = x.caller.UserID
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	var body bytes.Buffer
	r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
	d.api.ServeHTTP(x, r)                         // calls intercept
	io.CopyN(io.Discard, r.Body, httpapi.MaxBody) // a client may send all of it before it reads the response
	x.request.Truncated = body.Len() > maxBody || len(x.body) > maxBody
	x.request.Body = string(body.Next(maxBody))
	d.record(x, r)
	d.wait(x, w, r)
	d.closeCreate(x, r)
	x.send(w)
}

// intercept serves a request with a valid key, path and method. Its fault decides whether the API handles it,
// and what x then sends to the client.
func (d *Double) intercept(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
	x := w.(*exchange)
	x.fault = d.takeFault(r)
	f := &x.fault.Fault
	handled := response{header: x.header.Clone()} // the API sets some headers before it calls intercept
	if !f.DropRequest && (f.Status == 0 || f.DropResponse) {
		next(&handled, r.WithContext(context.WithoutCancel(r.Context())))
	}
	if r.Operation == createOperation && handled.status == 201 {
		x.event = path.Base(handled.header.Get("Location"))
		x.replayed = handled.header.Get("Idempotency-Replayed") != ""
		x.created = handled.body
	}
	switch {
	case f.DropRequest:
		x.response = response{header: http.Header{}}
		x.dropped = true
		return
	case f.Status != 0:
		x.writeFault(f)
	case f.DropResponse:
		x.response = handled
		x.dropped = true
	case f.CutResponse:
		x.response = handled
		x.unsent = (len(x.body) + 1) / 2
	case f.Patch != "":
		x.response = handled
		x.body = merge(x.body, f.Patch)
		x.header.Set("Content-Length", strconv.Itoa(len(x.body)))
	default:
		x.response = handled
	}
	if x.fault == noFault {
		return
	}
	x.header.Set("X-Eventsd-Fault", f.String())
	exposed := x.header.Get("Access-Control-Expose-Headers")
	x.header.Set("Access-Control-Expose-Headers", exposed+", x-eventsd-fault") // to scripts
	for name, values := range f.Header {
		// Without values, net/http removes the header, even Date.
		x.header[http.CanonicalHeaderKey(name)] = values
	}
}

// requiredHeaders are the headers that openapi.json requires for a status.
var requiredHeaders = map[int]http.Header{
	401: {"Www-Authenticate": {`Bearer realm="events"`}},
	405: {"Allow": {"OPTIONS"}},
	415: {"Accept": {"application/json"}},
	429: {"Retry-After": {"1"}},
	503: {"Retry-After": {"1"}},
}

// mediaTypes maps the first character of a body to its media type. Other bodies are plain text.
var mediaTypes = map[byte]string{
	'<': "text/html; charset=utf-8",
	'{': "application/json",
	'[': "application/json",
}

// writeFault writes the response of a fault that has a status.
func (x *exchange) writeFault(f *Fault) {
	maps.Copy(x.header, requiredHeaders[f.Status])
	switch {
	case f.Body == "" && f.Status < 400:
		x.WriteHeader(f.Status)
	case f.Body != "":
		x.header.Set("Content-Type", cmp.Or(mediaTypes[f.Body[0]], "text/plain; charset=utf-8"))
		x.header.Set("Content-Length", strconv.Itoa(len(f.Body)))
		x.WriteHeader(f.Status)
		io.WriteString(x, f.Body)
	case f.DropResponse:
		httpapi.NewError(f.Status, "a test fault replaced the response; the request was handled").Write(x)
	default:
		httpapi.NewError(f.Status, "a test fault refused this request; it was not handled").Write(x)
	}
}

// record adds a request to the journal and reports its problems. A request whose pattern the API hasn't set
// has an unknown route.
func (d *Double) record(x *exchange, r *http.Request) {
	entry := x.request // a copy, so that the journal doesn't keep the whole response
	if nonAPIPath.MatchString(entry.Path) {
		return
	}
	method, path, known := strings.Cut(r.Pattern, " "+d.api.Mux().Base())
	if known {
		entry.Operation = method + " " + path
	}
	entry.Fault = x.fault.String()
	entry.Status = x.status
	entry.ResponseHeader = x.header.Clone()
	if entry.Method != "HEAD" {
		entry.Response = string(x.body[:min(len(x.body), maxBody)])
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addRequestLocked(&entry)
	d.checkCreateLocked(&entry, x)
	refused := x.status == 404 || x.status == 405
	foreign := r.Header.Get("Sec-Fetch-Mode") == "no-cors" // any page can send it, but reads no response
	if !known && refused && !foreign && entry.Method != "OPTIONS" {
		shown := entry
		shown.previous = time.Time{} // a problem has the same text on every run
		d.reportLocked(Problem{UnknownRoute, "request to an unknown route: " + shown.String(), entry.UserID})
	}
}

// wait waits for the fault's delay. It stops waiting if the fault is removed or the client is gone.
//
// The context belongs to the request's synctest bubble, if there is one. Then don't remove the fault outside
// of the bubble meanwhile, because that crashes the program.
func (d *Double) wait(x *exchange, w http.ResponseWriter, r *http.Request) {
	if x.fault.Delay == 0 {
		return
	}
	httpapi.DisableWriteTimeout(w)
	ctx, cancel := context.WithTimeout(r.Context(), x.fault.Delay)
	defer cancel()
	d.mu.Lock()
	if x.fault.removed {
		cancel()
	}
	x.fault.delays[x] = cancel
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	delete(x.fault.delays, x)
	d.mu.Unlock()
}

// send sends the response or closes the connection.
func (x *exchange) send(w http.ResponseWriter) {
	if x.dropped {
		panic(http.ErrAbortHandler) // closes the connection
	}
	maps.Copy(w.Header(), x.header)
	w.WriteHeader(x.status)
	w.Write(x.body[:len(x.body)-x.unsent]) // after less than Content-Length, net/http closes the connection
}

// response is an [http.ResponseWriter] in memory.
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

// merge merges a patch into a JSON text.
func merge(text []byte, patch string) []byte {
	return strict.Encode(mergeValue(parse(text), parse([]byte(patch))))
}

// mergeValue merges a patch into a value. An object is merged into an object or into each element of a list.
// Other patches replace the value.
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

// parse parses a JSON text without changing its numbers.
func parse(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.Decode(&v) // a text that isn't JSON is null
	return v
}
