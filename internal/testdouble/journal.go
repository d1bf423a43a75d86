package testdouble

import (
	"context"
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
	message := errorMessage(r.Response)
	if r.Status >= 400 && message != "" {
		text += ": " + message
	}
	if r.Fault != "" {
		text += " (" + r.Fault + ")"
	}
	return text
}

// addRequest adds a request to the journal.
func (s *session) addRequest(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	r.Seq = s.seq
	if len(s.requests) == maxRequests {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	s.requests = append(s.requests, *r)
}

// ClearRequests empties the journal.
func (d *Double) ClearRequests() {
	s := d.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Query selects requests of the journal.
type Query struct {
	Operation string   // empty: all operations
	Users     []string // IDs; nil: all users
	After     int      // least Seq, exclusive
}

// pollInterval is the time between two reads of the journal by [Double.Requests].
const pollInterval = time.Millisecond

// Requests returns the requests that the query selects, oldest first, as soon as there are n of them, or
// when ctx is done. It returns an error if the query has an unknown operation or user.
func (d *Double) Requests(ctx context.Context, n int, q Query) ([]Request, error) {
	err := d.session.Load().checkQuery(q)
	if err != nil {
		return nil, err
	}
	for {
		found := d.session.Load().find(q) // also after a reset
		if len(found) >= n || ctx.Err() != nil {
			for i := range found {
				found[i].Header = found[i].Header.Clone() // the caller may change them
				found[i].ResponseHeader = found[i].ResponseHeader.Clone()
			}
			return found, nil
		}
		time.Sleep(pollInterval)
	}
}

func (s *session) checkQuery(q Query) error {
	if q.Operation != "" {
		err := s.checkOperation(q.Operation)
		if err != nil {
			return err
		}
	}
	for _, id := range q.Users {
		err := s.checkUser(id)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) find(q Query) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Request{}
	for _, r := range s.requests {
		if r.Seq > q.After &&
			(q.Operation == "" || q.Operation == r.Operation) &&
			(q.Users == nil || slices.Contains(q.Users, r.User)) {
			found = append(found, r)
		}
	}
	return found
}
