package double

import (
	"context"
	"fmt"
	"io"
	"math"
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
	d *Double
}

// entryKey is the key of the *entry in the context of a request.
type entryKey struct{}

// Handler serves next and records each request in the journal.
func (d *Double) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entry{d: d, Request: Request{Time: d.Now(), Method: r.Method, Operation: d.operation(r),
			Path: answer.Redact(r.URL.EscapedPath()), Query: answer.Redact(r.URL.RawQuery),
			Header: answer.RedactHeader(r.Header)}}
		d.mu.Lock()
		if d.journal = append(d.journal, e); len(d.journal) > maxJournal {
			d.journal = d.journal[1:]
		}
		d.mu.Unlock()
		if e.Operation == "" && r.Method != http.MethodOptions && d.Unknown != nil {
			d.Unknown(e.Method, e.Path, d.nearest(e.Method+" "+strings.TrimPrefix(e.Path, d.base)))
		}
		r = r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
		if r.ContentLength != 0 {
			r.Body = io.NopCloser(io.TeeReader(r.Body, e))
		}
		next.ServeHTTP(&answer.StatusWriter{ResponseWriter: w, Seen: e.setStatus}, r)
	})
}

// Write records a piece of the request's body as the server reads it.
func (e *entry) Write(p []byte) (int, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.Body += string(p[:min(len(p), maxRecorded-len(e.Body))])
	return len(p), nil
}

// setStatus records the status of the answer before the client can see it.
func (e *entry) setStatus(status int) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.Status = status
}

// Entry returns what the journal has of a request that [Double.Handler] serves, as
// far as it has come: for a line of a log.
func (d *Double) Entry(r *http.Request) (found Request) {
	if e, ok := r.Context().Value(entryKey{}).(*entry); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		found = e.copy()
	}
	return found
}

// copy returns the request for others to keep. The body is only redacted here, as a
// key in it may come in two pieces.
func (e *entry) copy() Request {
	c := e.Request
	c.Header, c.Body = e.Header.Clone(), answer.Redact(e.Body)
	return c
}

// Requests returns a copy of those of the newest 1,000 requests that are of an
// operation, or of all where it is "", and of some users, or of all without any:
// the oldest first.
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

// route is the handler of an operation in [Double.routes], where it is only ever
// looked up: the API has a handler of its own.
type route struct {
	http.Handler
	operation string
}

// operation is the one that a request belongs to, or "". A path that the API does
// not take as it is belongs to none: one that a ServeMux would redirect, and one
// with a slash or NUL hidden in a percent-escape.
func (d *Double) operation(r *http.Request) string {
	h, _ := d.routes.Handler(r)
	found, _ := h.(route)
	method, _, _ := strings.Cut(found.operation, " ")
	path := strings.ToUpper(r.URL.EscapedPath())
	if r.Method != method && (r.Method != "HEAD" || method != "GET") ||
		strings.Contains(path, "%2F") || strings.Contains(path, "%00") {
		return ""
	}
	return found.operation
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

// nearest is the operation that was probably meant by "METHOD /path": the one with
// that very path, but for POST /events the one below it that has the method; else
// the one that the request takes the fewest edits to become.
func (d *Double) nearest(request string) (nearest string) {
	method, path, _ := strings.Cut(request, " ")
	least := math.MaxInt
	for _, operation := range d.operations {
		_, pattern, _ := strings.Cut(operation, " ")
		n := edits(method+" "+withParameters(path, pattern), operation)
		switch {
		case operation == request, path != "" && strings.HasPrefix(operation, request+"/"):
			return operation
		case path == pattern:
			n = 0
		}
		if n < least {
			nearest, least = operation, n
		}
	}
	return nearest
}

// withParameters is a path with the parameters of a pattern in their places:
// /event/{id} of /event/evt_1 and /events/{id}.
func withParameters(path, pattern string) string {
	have, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	for i := range min(len(have), len(want)) {
		if strings.HasPrefix(want[i], "{") && have[i] != "" {
			have[i] = want[i]
		}
	}
	return strings.Join(have, "/")
}

// edits is the Levenshtein distance of a and b: how many bytes must be put in, left
// out or changed. Of each prefix of a, row has the distances to the prefixes of b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // the distance of the prefixes that are one shorter
		row[0] = i + 1
		for j := range len(b) {
			n := before
			if a[i] != b[j] {
				n = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], n
		}
	}
	return row[len(b)]
}
