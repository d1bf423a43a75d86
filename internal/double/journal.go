package double

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

const (
	maxJournal  = 1000     // requests of one user, and of those without a user
	maxRecorded = 64 << 10 // bytes of a request's body
)

// Request is an entry of the journal, as package eventstest documents it.
type Request struct {
	Seq       int         `json:"seq"`
	Time      time.Time   `json:"time"`
	Received  time.Time   `json:"received"`
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
		e := d.record(Request{
			Received: time.Now().UTC(),
			Method:   r.Method,
			Path:     answer.Redact(r.URL.EscapedPath()),
			Query:    answer.Redact(r.URL.RawQuery),
			Header:   answer.RedactHeader(r.Header),
			User:     d.server.KeyOwner(r),
		})
		r = r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
		r.Body = io.NopCloser(io.TeeReader(r.Body, e))
		next.ServeHTTP(&answer.StatusWriter{ResponseWriter: w, Seen: func(status int) {
			e.finish(d.operation(r), status)
			if e.Operation == "" && r.Method != http.MethodOptions && d.Unknown != nil {
				d.Unknown(fmt.Sprintf("%s %s of %s: the API has no such route; below %s it has %s",
					e.Method, e.Path, cmp.Or(e.User, "nobody"), d.base, strings.Join(d.operations, ", ")))
			}
		}}, r)
	})
}

// record begins an entry of the journal.
func (d *Double) record(r Request) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	r.Seq = d.last
	r.Time = d.now
	e := &entry{Request: r, d: d}
	all := append(d.journal[r.User], e)
	d.journal[r.User] = all[max(0, len(all)-maxJournal):]
	return e
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

// Requests returns copies of the newest requests, the oldest first: only those of
// the operation, unless it is "", and only those of the users, if any are given.
func (d *Double) Requests(operation string, users []string) []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := []Request{}
	for user, all := range d.journal {
		if len(users) > 0 && !slices.Contains(users, user) {
			continue
		}
		for _, e := range all {
			if operation == "" || operation == e.Operation {
				found = append(found, e.copy())
			}
		}
	}
	slices.SortFunc(found, func(a, b Request) int { return a.Seq - b.Seq })
	return found
}

// ClearRequests empties the journal, or removes the requests of a user from it.
func (d *Double) ClearRequests(userID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.journal, func(user string, _ []*entry) bool { return userID == "" || user == userID })
}

// operation is the one that a request belongs to, or "". The mux of the server has set the
// pattern of the request by then, such as "GET /api/public/v1/events/{id}".
func (d *Double) operation(r *http.Request) string {
	method, path, isRoute := strings.Cut(r.Pattern, " "+d.base)
	if !isRoute {
		return ""
	}
	return method + " " + path
}

// KnownOperation returns an error that has all operations unless this is one of them.
func (d *Double) KnownOperation(operation string) error {
	if slices.Contains(d.operations, operation) {
		return nil
	}
	return answer.BadRequest(fmt.Sprintf("operation %.80q is not known: it must be one of %s",
		operation, strings.Join(d.operations, ", ")))
}
