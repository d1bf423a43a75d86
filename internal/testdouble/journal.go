package testdouble

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// This file has the journal, which keeps the newest requests with their responses, so that a test can check
// what its client sent.

// The limits of the journal.
const (
	maxRequests = 1000
	maxBody     = 64 << 10 // bytes of a request body or response body
)

// Request is a request in the journal. Package eventstest documents its fields. It is complete when
// it is added, and never changes.
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
	User           string      `json:"user"`
	Fault          string      `json:"fault"`
	Status         int         `json:"status"`
	ResponseHeader http.Header `json:"response_header"`
	Response       string      `json:"response"`
}

// String returns the request in one line, with its response and its fault.
func (r Request) String() string {
	text := fmt.Sprintf("%d: %s %s", r.Seq, r.Method, strings.TrimSuffix(r.Path+"?"+r.Query, "?"))
	if r.User != "" {
		text += " of " + r.User
	}
	text += fmt.Sprint(": ", r.Status)
	var e struct{ Error struct{ Message string } }
	json.Unmarshal([]byte(r.Response), &e) // a response in another form has no message
	if e.Error.Message != "" {
		text += ": " + e.Error.Message
	}
	if r.Fault != "" {
		text += " (" + r.Fault + ")"
	}
	return text
}

// addRequest adds a request to the journal. The request must not change afterwards.
func (d *Double) addRequest(r *Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	d.changes++
	r.Seq = d.seq
	if len(d.requests) == maxRequests {
		d.requests = slices.Delete(d.requests, 0, 1)
	}
	d.requests = append(d.requests, r)
}

// ClearRequests empties the journal.
func (d *Double) ClearRequests() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.requests = nil
}

// Query selects requests of the journal.
type Query struct {
	Operation string   // empty: all operations
	Users     []string // IDs; nil: all users
	After     int      // least Seq, exclusive
}

func (q *Query) matches(r *Request) bool {
	return r.Seq > q.After &&
		(q.Operation == "" || q.Operation == r.Operation) &&
		(q.Users == nil || slices.Contains(q.Users, r.User))
}

// pollInterval is the time between two looks of [Double.Requests] at the number of changes. No channel wakes
// it, because a bubble of [testing/synctest] can't share one with goroutines outside.
const pollInterval = time.Millisecond

// Requests returns the requests that the query selects, oldest first, as soon as there are n of them, or
// when ctx is done. It returns an error if the query has an unknown operation or user.
func (d *Double) Requests(ctx context.Context, n int, q Query) ([]Request, error) {
	err := d.checkQuery(q)
	if err != nil {
		return nil, err
	}
	found, changes := d.find(q, -1)
	for len(found) < n && ctx.Err() == nil {
		time.Sleep(pollInterval)
		newer, now := d.find(q, changes)
		if now != changes {
			found, changes = newer, now
		}
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

// find returns the requests that the query selects, and the number of changes of the journal. It doesn't look
// at the journal if that number is still the same as known.
func (d *Double) find(q Query, known int) (found []*Request, changes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.requests {
		if d.changes != known && q.matches(r) {
			found = append(found, r)
		}
	}
	return found, d.changes
}
