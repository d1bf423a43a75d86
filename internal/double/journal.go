package double

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

const (
	maxJournal  = 1000     // requests of one user, and of those without a user
	maxRecorded = 64 << 10 // bytes of a request's body
	maxBodies   = 64 << 20 // bytes of all bodies
	maxUnknown  = 100      // requests to unknown routes that [Double.Problems] has
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

// String is the request in one line: what was asked by whom, its answer and its fault.
func (r Request) String() string {
	text := fmt.Sprintf("%d: %s %s of %s: %d (%s)",
		r.Seq,
		r.Method,
		strings.TrimSuffix(r.Path+"?"+r.Query, "?"),
		cmp.Or(r.User, "nobody"),
		r.Status,
		r.Fault)
	return strings.TrimSuffix(text, " ()")
}

// entry is a request in the journal, and what a fault does to it until it is answered. The
// double's mutex guards what changes in it. While the request is served, its entry stands in the
// place of its body: so the entry records what the server reads, and [Double.intercept] finds
// the entry.
type entry struct {
	Request
	io.ReadCloser // the body of the request
	d             *Double
	body          *string // what was read of it

	rule    *Rule              // the fault that the request met
	held    context.Context    // done when the fault no longer holds the request
	goOn    context.CancelFunc // ends it
	size    uint64             // bytes that the body may take meanwhile
	refused bool               // whether it is answered 503, for the reason in Fault
}

// aside are the paths that browsers and probes ask for beside the API.
var aside = []string{"/", "/healthz", "/openapi.json", "/favicon.ico"}

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
		r.Body = e
		defer func() {
			r.Body = e.ReadCloser // net/http looks at it again
			e.ReadCloser = nil    // the journal keeps the entry
		}()
		seen := func(status int) { // before the client sees it
			// The mux of the server has set the pattern by then, if there is a route.
			method, path, isRoute := strings.Cut(r.Pattern, " "+d.base)
			e.update(func() {
				e.Status = status
				if isRoute {
					e.Operation = method + " " + path
				}
			})
			if !isRoute && r.Method != "OPTIONS" && !d.AnyRoute {
				d.reportUnknown(e.Request)
			}
		}
		next.ServeHTTP(&answer.StatusWriter{ResponseWriter: w, Seen: seen}, r)
	})
}

// record begins an entry of the journal.
func (d *Double) record(r *http.Request) *entry {
	e := &entry{ReadCloser: r.Body, d: d, body: new(string), Request: Request{
		Received: time.Now().UTC(),
		Method:   r.Method,
		Path:     answer.Redact(r.URL.EscapedPath()),
		Query:    answer.Redact(r.URL.RawQuery),
		Header:   answer.RedactHeader(r.Header),
		User:     d.KeyOwner(r),
	}}
	d.Lock()
	defer d.Unlock()
	d.last++
	e.Seq = d.last
	e.Time = d.now
	own := append(d.journal[e.User], e)
	d.journal[e.User] = own[max(0, len(own)-maxJournal):]
	return e
}

// dropped is in the journal in place of a body that it had no more room for.
const dropped = "(dropped: the journal keeps the newest 64 MiB of bodies)"

// Read reads a piece of the request's body for the server, and records it.
func (e *entry) Read(piece []byte) (int, error) {
	n, err := e.ReadCloser.Read(piece)
	d := e.d
	d.Lock()
	defer d.Unlock()
	if n == 0 || *e.body == dropped { // while it still arrives
		return n, err
	}
	if *e.body == "" {
		d.bodies = append(d.bodies, e.body)
	}
	recorded := piece[:min(n, maxRecorded-len(*e.body))]
	*e.body += string(recorded)
	d.size += len(recorded)
	for d.size > maxBodies {
		oldest := d.bodies[0]
		d.bodies = d.bodies[1:]
		d.size -= len(*oldest)
		*oldest = dropped
	}
	return n, err
}

// update changes the entry, and tells who waits for requests.
func (e *entry) update(change func()) {
	e.d.Lock()
	change()
	e.d.Unlock()
	select {
	case e.d.come <- true:
	default: // one value is enough
	}
}

// Requests returns copies of the newest requests, the oldest first: only those of
// the operation, unless it is "", and only those of the users, if any are given. None is of
// a user that was deleted. If n is not 0, it waits until so many have come, or ctx is done,
// and returns those that have come: their bodies were read, but a fault may still hold them.
func (d *Double) Requests(ctx context.Context, n int, operation string, users []string) []Request {
	for {
		found := []Request{}
		d.Lock()
		for user, entries := range d.journal {
			if users != nil && !slices.Contains(users, user) {
				continue
			}
			for _, e := range entries {
				hasCome := e.Status != 0 || e.Fault != ""
				isAskedFor := operation == "" || operation == e.Operation
				if isAskedFor && (hasCome || n == 0) {
					r := e.Request
					r.Body = *e.body
					found = append(found, r)
				}
			}
		}
		d.Unlock()
		found = slices.DeleteFunc(found, func(r Request) bool {
			return r.User != "" && d.Profile(r.User) == ""
		})
		if len(found) < n && ctx.Err() == nil {
			d.pause()
			continue
		}
		slices.SortFunc(found, func(a, b Request) int { return a.Seq - b.Seq })
		for i := range found { // without the mutex, as it takes long for many large bodies
			r := &found[i]
			r.Header = r.Header.Clone()
			r.Body = answer.Redact(r.Body) // only here, as a key may come in two pieces
		}
		return found
	}
}

// pause waits until a request has come, but only for a moment, as another one who waits may
// have been told of it, and the time to wait may be over.
//
// In a bubble of testing/synctest, time goes on only while each goroutine of the bubble waits
// for another one of it. If the double was made outside, its channel is no such thing. So
// then, requests from outside the bubble are given time by giving way to other goroutines,
// and those from inside by sleeping. This case shows by the clock: that of a bubble begins
// in the year 2000.
func (d *Double) pause() {
	if time.Now().Before(d.made) {
		for range 1000 {
			runtime.Gosched()
		}
		time.Sleep(time.Millisecond)
		return
	}
	select {
	case <-d.come:
	case <-time.After(10 * time.Millisecond):
	}
}

// ClearRequests empties the journal, or removes the requests of a user from it.
func (d *Double) ClearRequests(userID string) {
	d.Lock()
	defer d.Unlock()
	d.clearRequests(userID)
}

// clearRequests is ClearRequests for who holds the mutex.
func (d *Double) clearRequests(userID string) {
	delete(d.journal, userID)
	if userID == "" {
		clear(d.journal)
	}
}

// reportUnknown reports a request to a route that the API lacks.
func (d *Double) reportUnknown(r Request) {
	problem := fmt.Sprintf("request %v: the API has no such route; below %s it has %s; "+
		"AllowUnknownRoutes or -allow-unknown-routes lets it pass",
		r, d.base, strings.Join(d.Operations(), ", "))
	if d.Unknown != nil {
		d.Unknown(problem)
	}
	d.Lock()
	defer d.Unlock()
	if len(d.unknown) < maxUnknown {
		d.unknown = append(d.unknown, problem)
	}
}

// KnownOperation returns an error that has all operations unless this is one of them.
func (d *Double) KnownOperation(operation string) error {
	if slices.Contains(d.Operations(), operation) {
		return nil
	}
	return answer.BadRequest(fmt.Sprintf("operation %.80q is not known: it must be one of %s",
		operation, strings.Join(d.Operations(), ", ")))
}
