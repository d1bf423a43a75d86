package double

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// aside are the paths that browsers and probes ask for, which are not of the API.
var aside = []string{"/", "/healthz", "/openapi.json", "/favicon.ico"}

// entryKey is the key of the [entry] of a request in its context.
type entryKey struct{}

// Handler serves next, which must be the handler of the server, and records each
// request in the journal. It closes each connection after its answer: if one that was used
// before is closed without an answer, browsers and the clients of Go and Java send the
// request again by themselves, and a fault would count differently in each language.
func (d *Double) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if slices.Contains(aside, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		e := d.record(r)
		served := r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
		body := &recordingBody{ReadCloser: r.Body, double: d, entry: e}
		if r.Body != http.NoBody {
			served.Body = body
		}
		defer func() { r.Pattern = served.Pattern }() // who logs the request looks for it there
		next.ServeHTTP(&recordingWriter{w, d, e, served, body}, served)
	})
}

// record begins an entry of the journal.
func (d *Double) record(r *http.Request) *entry {
	e := &entry{Request: Request{
		Received: time.Now().UTC(),
		Method:   r.Method,
		Path:     answer.Redact(r.URL.EscapedPath()),
		Query:    answer.Redact(r.URL.RawQuery),
		Header:   answer.RedactHeader(r.Header),
		User:     d.server.RequestUser(r),
	}}
	d.mutex.Lock()
	e.Time = d.now
	d.journal.add(e)
	d.mutex.Unlock()
	return e
}

// note changes an entry. What is noted has come.
func (d *Double) note(e *entry, change func()) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	change()
	e.hasCome = true
}

// recordingBody is the body of a request, of which the journal keeps what the server reads.
type recordingBody struct {
	io.ReadCloser
	double *Double
	entry  *entry
	isCut  bool // the connection ended before the body did
}

// Read reads a piece of the body.
func (b *recordingBody) Read(piece []byte) (int, error) {
	n, err := b.ReadCloser.Read(piece)
	if n > 0 {
		b.double.mutex.Lock()
		b.entry.addBody(piece[:n])
		b.double.mutex.Unlock()
	}
	if err != nil {
		network, isNetwork := errors.AsType[net.Error](err)
		b.isCut = errors.Is(err, io.ErrUnexpectedEOF) || isNetwork && !network.Timeout()
	}
	return n, err
}

// recordingWriter is the writer of an answer. The journal has what is answered before the
// client sees it.
type recordingWriter struct {
	http.ResponseWriter
	double  *Double
	entry   *entry
	request *http.Request
	body    *recordingBody
}

// Unwrap returns the writer that w wraps, for [http.ResponseController].
func (w *recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recordingWriter) WriteHeader(status int) {
	d, e := w.double, w.entry
	// The mux of the server has set the pattern by then, if there is a route.
	method, path, isRoute := strings.Cut(w.request.Pattern, " "+d.base)
	d.note(e, func() {
		if isRoute {
			e.Operation = method + " " + path
		}
		if !w.body.isCut { // else nobody is left to be answered
			e.Status = status
		}
	})
	if !isRoute && w.request.Method != "OPTIONS" && !d.AnyRoute {
		d.reportUnknown(e)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordingWriter) Write(part []byte) (int, error) {
	e := w.entry
	problem := problemIn(e.Status, part) // an error is written at once
	if problem != "" {
		w.double.note(e, func() {
			e.Error = cmp.Or(e.Error, problem)
		})
	}
	return w.ResponseWriter.Write(part)
}

// problemIn is the message of an answer in the form of an error, or "".
func problemIn(status int, body []byte) string {
	if status < 400 {
		return ""
	}
	var e struct {
		Error struct{ Message string }
	}
	json.Unmarshal(body, &e)
	return e.Error.Message
}

// reportUnknown reports a request to a route that the API lacks.
func (d *Double) reportUnknown(e *entry) {
	d.mutex.Lock()
	request := e.Request
	d.mutex.Unlock()
	request.Error = "" // which says much of what follows
	problem := fmt.Sprintf("request %v: the API has no such route; below %s it has %s; %s lets it pass",
		request, d.base, strings.Join(d.server.Operations(), ", "), d.AnyRouteBy)
	if d.Unknown != nil {
		d.Unknown(problem)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.addProblem(problem)
}
