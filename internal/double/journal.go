package double

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

const (
	maxJournal  = 1000     // requests
	maxRecorded = 64 << 10 // bytes of a request's body
)

// Request is an entry of the journal, as package eventstest documents it.
type Request struct {
	Time      time.Time   `json:"time"`
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Query     string      `json:"query"`
	Header    http.Header `json:"header"`
	Operation string      `json:"operation"`
	Status    int         `json:"status"`
	User      string      `json:"user"`
	Body      string      `json:"body"`
	Fault     string      `json:"fault"`
}

// entry is a request while the server works on it. Double.mu guards it.
type entry struct {
	Request
	d     *Double
	rule  *Rule              // the fault that it met; nil without one, as are the next two
	held  context.Context    // done when the fault no longer holds the request
	end   context.CancelFunc // ends that early
	reset bool               // whether a reset did
}

// entryKey is the key of the *entry in the context of a request.
type entryKey struct{}

// Handler serves next, which must be the handler of the server, and records each
// request in the journal.
func (d *Double) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entry{d: d, Request: Request{Time: d.Now(), Method: r.Method,
			Path: answer.Redact(r.URL.EscapedPath()), Query: answer.Redact(r.URL.RawQuery),
			Header: answer.RedactHeader(r.Header)}}
		d.mu.Lock()
		if d.journal = append(d.journal, e); len(d.journal) > maxJournal {
			d.journal = d.journal[1:]
		}
		d.mu.Unlock()
		r = r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
		r.Body = io.NopCloser(io.TeeReader(r.Body, e))
		next.ServeHTTP(&answer.StatusWriter{ResponseWriter: w, Seen: func(status int) {
			e.finish(d.operation(r), status)
			if e.Operation == "" && r.Method != http.MethodOptions && d.Unknown != nil {
				d.Unknown(e.Method, e.Path, d.nearest(e.Method+" "+strings.TrimPrefix(e.Path, d.base)))
			}
		}}, r)
	})
}

// Write records a piece of the request's body as the server reads it.
func (e *entry) Write(p []byte) (int, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.Body += string(p[:min(len(p), maxRecorded-len(e.Body))])
	return len(p), nil
}

// finish records the operation and the status of the answer, before the client can
// see it.
func (e *entry) finish(operation string, status int) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.Operation, e.Status = operation, status
}

// Entry returns what the journal has of a request that [Double.Handler] serves, as
// far as it has come: for a line of a log.
func (d *Double) Entry(r *http.Request) Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return r.Context().Value(entryKey{}).(*entry).copy()
}

// copy returns the request for others to keep. The body is only redacted here, as a
// key in it may come in two pieces.
func (e *entry) copy() Request {
	c := e.Request
	c.Header, c.Body = e.Header.Clone(), answer.Redact(e.Body)
	return c
}

// Requests returns copies of the newest 1,000 requests, the oldest first: only those of
// the operation, unless it is "", and only those of the users, if any are given.
func (d *Double) Requests(operation string, users []string) []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := []Request{}
	for _, e := range d.journal {
		ofUser := len(users) == 0 || slices.Contains(users, e.User)
		if ofUser && (operation == "" || operation == e.Operation) {
			found = append(found, e.copy())
		}
	}
	return found
}

// ClearRequests empties the journal, or removes the requests of a user from it.
func (d *Double) ClearRequests(userID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.journal = slices.DeleteFunc(d.journal, func(e *entry) bool { return userID == "" || e.User == userID })
}

// operation is the one that a request belongs to, or "". The mux of the server has
// set the pattern of the request by then, such as "GET /api/public/v1/events/{id}".
func (d *Double) operation(r *http.Request) string {
	operation := strings.Replace(r.Pattern, " "+d.base, " ", 1)
	if !slices.Contains(d.operations, operation) {
		return ""
	}
	return operation
}

// KnownOperation returns an error that names the nearest operation unless there is
// this one.
func (d *Double) KnownOperation(operation string) error {
	if slices.Contains(d.operations, operation) {
		return nil
	}
	const unknown = "operation %.80q is not known: the nearest is %q"
	return answer.BadRequest(fmt.Sprintf(unknown, operation, d.nearest(operation)))
}

// nearest is the operation that was probably meant by "METHOD /path": the one that
// shares the most pieces of three letters with the request and has the fewest others. An
// operation is also likelier if it begins with the request, as POST /events/create does
// with POST /events, and if its path is as deep, as that of GET /events/{id} is for
// GET /event/evt_1. The weights are such that usual mistakes are understood.
func (d *Double) nearest(request string) (nearest string) {
	request = strings.TrimSuffix(request, "/")
	most := 0
	for _, operation := range d.operations {
		text := strings.ReplaceAll(operation, "{id}", "") + "." // the dot stands for the end
		likeness := -len(text)
		for i := range len(text) - 2 {
			if strings.Contains(request+".", text[i:i+3]) {
				likeness += 2
			}
		}
		if strings.HasPrefix(operation, request) {
			likeness += 10
		}
		if strings.Count(operation, "/") == strings.Count(request, "/") {
			likeness += 3
		}
		if nearest == "" || likeness > most {
			nearest, most = operation, likeness
		}
	}
	return nearest
}
