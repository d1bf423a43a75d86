package testdouble

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
)

// Journal limits.
const (
	maxRequests = 1000
	maxBody     = 64 << 10 // bytes of a request body or response body
)

// Request is a request in the journal. Package eventstest documents its fields.
type Request struct {
	Seq            int         `json:"seq"`
	Time           time.Time   `json:"time"`
	Received       time.Time   `json:"received"`
	Method         string      `json:"method"`
	Path           string      `json:"path"`
	Query          string      `json:"query"`
	Header         http.Header `json:"header"`
	Body           string      `json:"body"`
	Operation      string      `json:"operation"`
	UserID         string      `json:"user_id"`
	Fault          string      `json:"fault"`
	Status         int         `json:"status"`
	ResponseHeader http.Header `json:"response_header"`
	Response       string      `json:"response"`
	Truncated      bool        `json:"truncated"`

	previous time.Time // Received of the previous request in the journal; zero if this is the first
}

// String returns the request in one line: what was sent, how long after the previous request, the status, the
// error message and the fault. API keys are shortened.
func (r Request) String() string {
	text := fmt.Sprint(r.Seq, ": ")
	if !r.previous.IsZero() {
		text += fmt.Sprintf("+%.1fs ", max(0, r.Received.Sub(r.previous).Seconds()))
	}
	target := strings.TrimSuffix(r.Path+"?"+r.Query, "?")
	decoded, _ := url.PathUnescape(target) // "" if it is malformed
	if httpapi.Redact(decoded) != decoded {
		target = decoded // so that no encoding hides a key
	}
	text += r.Method + " " + target
	if r.UserID != "" {
		text += " of " + r.UserID
	}
	if r.Operation == createOperation {
		text += ", " + describeKey(r.idempotencyKey())
	}
	text += fmt.Sprint(": ", r.Status)
	if wait := r.ResponseHeader["Retry-After"]; wait != nil {
		text += ", Retry-After " + strings.Join(wait, ", ")
	}
	var e struct{ Error struct{ Message string } }
	if r.Status >= 400 {
		json.Unmarshal([]byte(r.Response), &e) // a response in another form has no message
	}
	if e.Error.Message != "" {
		text += ": " + strings.Join(strings.Fields(e.Error.Message), " ") // a fault's may have line breaks
	}
	if r.Fault != "" {
		text += " (" + r.Fault + ")"
	}
	return httpapi.Redact(text)
}

// addRequestLocked adds a request to the journal. From then on, it must not change.
func (d *Double) addRequestLocked(r *Request) {
	d.seq++
	r.Seq = d.seq
	if len(d.requests) > 0 {
		r.previous = d.requests[len(d.requests)-1].Received
	}
	d.requests = appendNewest(d.requests, r, maxRequests)
}

// ClearRequests empties the journal. Creates that were open before can be repeated.
func (d *Double) ClearRequests() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = nil
	d.open = nil
}

// Query selects requests of the journal.
type Query struct {
	Operation string   // all operations if empty
	Users     []string // user IDs; all users if nil
	After     int      // only requests with a greater Seq
}

func (q *Query) matches(r *Request) bool {
	return r.Seq > q.After &&
		(q.Operation == "" || q.Operation == r.Operation) &&
		(q.Users == nil || slices.Contains(q.Users, r.UserID))
}

// pollInterval is how often [Double.Requests] looks for changes. It can't wait on a channel, because a
// synctest bubble can't share one with goroutines outside.
const pollInterval = time.Millisecond

// Requests waits until a query selects n requests or ctx is done, and returns the selected requests, oldest
// first. It returns an error if the operation or a user is unknown.
func (d *Double) Requests(ctx context.Context, n int, q Query) ([]Request, error) {
	err := d.checkQuery(q)
	if err != nil {
		return nil, err
	}
	found := d.find(q)
	for len(found) < n && ctx.Err() == nil {
		time.Sleep(pollInterval)
		found = d.find(q)
	}
	requests := make([]Request, len(found))
	for i, r := range found {
		requests[i] = *r
		requests[i].Header = r.Header.Clone() // the caller may change them
		requests[i].ResponseHeader = r.ResponseHeader.Clone()
	}
	return requests, nil
}

func (d *Double) checkQuery(q Query) (err error) {
	if q.Operation != "" {
		err = d.checkOperation(q.Operation)
	}
	for _, id := range q.Users {
		err = cmp.Or(err, d.checkUser(id))
	}
	return err
}

// find returns the selected requests.
func (d *Double) find(q Query) (found []*Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.requests {
		if q.matches(r) {
			found = append(found, r)
		}
	}
	return found
}
