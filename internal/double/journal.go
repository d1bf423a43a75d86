package double

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// The limits of the journal.
const (
	maxJournal = 1000     // requests
	maxBody    = 64 << 10 // bytes of a request's body
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
	Error     string      `json:"error"`
}

// String is the request in one line: what was asked by whom, its answer and its fault.
func (r Request) String() string {
	text := fmt.Sprintf("%d: %s %s of %s: %d",
		r.Seq,
		r.Method,
		strings.TrimSuffix(r.Path+"?"+r.Query, "?"),
		cmp.Or(r.User, "nobody"),
		r.Status)
	if r.Error != "" {
		text += ": " + r.Error
	}
	if r.Fault != "" {
		text += " (" + r.Fault + ")"
	}
	return text
}

// entry is a line of the journal. The double's mutex guards what changes in it.
type entry struct {
	Request
	body    []byte // what was read of it, before it is redacted
	hasCome bool   // it is answered, or its body was read and a fault holds it
}

// journal has the newest requests. The double's mutex guards it.
type journal struct {
	newest  int      // the Seq of the newest request
	entries []*entry // in the order of their Seq
}

// add adds the newest request.
func (j *journal) add(e *entry) {
	j.newest++
	e.Seq = j.newest
	if len(j.entries) == maxJournal {
		j.entries = slices.Delete(j.entries, 0, 1)
	}
	j.entries = append(j.entries, e)
}

// addBody records a piece of the body of a request.
func (e *entry) addBody(piece []byte) {
	e.body = append(e.body, piece[:min(len(piece), maxBody-len(e.body))]...)
}

// ClearRequests empties the journal.
func (d *Double) ClearRequests() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.journal.entries = nil
}

// Query says which requests are asked for.
type Query struct {
	Operation string   // "": any
	Users     []string // nil: of all; the user "" is those without a known key
	After     int      // only those with a larger Seq

	// Count is how many to wait for. 0 does not wait, and asks for those, too, that have not
	// come yet: whose body is still to be read.
	Count int
}

// wants reports whether the query asks for a request.
func (q Query) wants(e *entry) bool {
	return e.Seq > q.After &&
		(q.Operation == "" || q.Operation == e.Operation) &&
		(q.Users == nil || slices.Contains(q.Users, e.User)) &&
		(q.Count == 0 || e.hasCome)
}

// Found are the requests that a [Query] asks for.
type Found struct {
	Requests []Request `json:"data"`      // the oldest first
	TimedOut bool      `json:"timed_out"` // there are fewer than were waited for
}

// find returns the entries that a query asks for.
func (j *journal) find(q Query) (entries []*entry) {
	for _, e := range j.entries {
		if q.wants(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// Requests returns copies of the newest requests that q asks for. If q has a count, it waits
// until so many have come, or ctx is done.
func (d *Double) Requests(ctx context.Context, q Query) Found {
	found := Found{Requests: []Request{}}
	d.mutex.Lock()
	entries := d.journal.find(q)
	for len(entries) < q.Count && ctx.Err() == nil {
		d.mutex.Unlock()
		time.Sleep(time.Millisecond)
		d.mutex.Lock()
		entries = d.journal.find(q)
	}
	for _, e := range entries {
		r := e.Request
		r.Body = string(e.body)
		found.Requests = append(found.Requests, r)
	}
	d.mutex.Unlock()
	found.TimedOut = len(entries) < q.Count
	for i := range found.Requests { // without the mutex, as it takes long for many large bodies
		r := &found.Requests[i]
		r.Header = r.Header.Clone()
		r.Body = answer.Redact(r.Body) // only here, as a key may come in two pieces
		r.Error = answer.Redact(r.Error)
	}
	return found
}
