package double

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// Fault is what goes wrong, as package eventstest documents it.
type Fault struct {
	Status     int
	Delay      time.Duration
	Drop, Lose bool
	Times      int
	User       string
}

// Rule is a fault that was set for an operation. Double.mu guards its counts.
type Rule struct {
	Operation string
	Fault
	used int // requests that it was taken for
	hits int // those of them that were read
}

// hold is a request that a fault met.
type hold struct {
	rule *Rule
	user string
	goOn bool
	done chan struct{} // closed when it is let go of
}

// answers are what the statuses of faults send.
var answers = func() map[int]*answer.Error {
	all := map[int]*answer.Error{}
	for _, e := range []*answer.Error{
		answer.BadRequest(""), answer.Unauthorized("events", ""), answer.NotFound(""), answer.Method("", "OPTIONS"), answer.TooLarge(""),
		{Status: 415, Code: "unsupported_media_type", Header: "Accept", Value: "application/json"},
		{Status: 422, Code: "idempotency_mismatch"},
		{Status: 429, Code: "rate_limited", Header: "Retry-After", Value: "1"},
		{Status: 500, Code: "server_error", Header: "X-Request-Id", Value: "fault"},
		{Status: 502, Code: "server_error"},
		{Status: 503, Code: "server_error", Header: "Retry-After", Value: "1"},
		{Status: 504, Code: "server_error"},
	} {
		e.Message = "a fault that a test has set; nothing was done"
		all[e.Status] = e
	}
	return all
}()

// problem is what is wrong with a rule, each part beginning with the member.
func (d *Double) problem(f *Rule) string {
	var problems []string
	refuse := func(wrong bool, problem string) {
		if wrong {
			problems = append(problems, problem)
		}
	}
	refuse(!d.Has(f.Operation), fmt.Sprintf("operation %.80q is not known: the nearest is %q", f.Operation, d.Nearest(f.Operation)))
	refuse(f.Status != 0 && answers[f.Status] == nil, "status must be one of 400, 401, 404, 405, 413, 415, 422, 429, 500, 502, 503, 504")
	refuse(f.Times < 0, "times must be a number of requests, or 0 for all until it is cleared")
	refuse(f.Delay < 0, "delay must not be negative")
	refuse(f.Status != 0 && (f.Drop || f.Lose) || f.Drop && f.Lose, "status, drop and lose exclude each other: give one of them")
	refuse(f.Status == 0 && f.Delay == 0 && !f.Drop && !f.Lose, "status, delay, drop or lose is required: without one nothing goes wrong")
	if err := d.Known(f.User); err != nil {
		refuse(true, err.Error())
	}
	return strings.Join(problems, "; ")
}

// Fail sets a fault, to be used after those that are set already.
func (d *Double) Fail(operation string, f Fault) (*Rule, error) {
	rule := &Rule{Operation: operation, Fault: f}
	if problem := d.problem(rule); problem != "" {
		return nil, answer.BadRequest(problem)
	}
	d.replace(func(*Rule) bool { return false }, rule)
	return rule, nil
}

// replace puts rules in the place of some. Requests that those hold go on.
func (d *Double) replace(which func(*Rule) bool, rules ...*Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(slices.DeleteFunc(d.faults, func(f *Rule) bool {
		if which(f) {
			d.release(func(h *hold) bool { return h.rule == f }, true)
		}
		return which(f)
	}), rules...)
}

// release lets go of requests that are held. They go on or, where a reset came,
// are answered 503. Its caller holds mu.
func (d *Double) release(which func(*hold) bool, goOn bool) {
	for h := range d.held {
		if which(h) {
			delete(d.held, h)
			h.goOn = goOn
			close(h.done)
		}
	}
}

// of are the faults that are limited to a user, or all.
func of(userID string) func(*Rule) bool {
	return func(f *Rule) bool { return userID == "" || f.User == userID }
}

// Clear takes a fault away. Requests that it holds go on.
func (d *Double) Clear(rule *Rule) { d.replace(func(f *Rule) bool { return f == rule }) }

// Hits is how many requests a fault met.
func (d *Double) Hits(rule *Rule) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return rule.hits
}

// Breaks reports whether a fault is set that closes connections.
func (d *Double) Breaks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.faults, func(f *Rule) bool { return f.Drop || f.Lose })
}

// take is a request with the first fault for it, or nil where there is none.
func (d *Double) take(e *Request, operation, userID string) *hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.User = userID
	for _, f := range d.faults {
		if f.Operation == operation && (f.User == "" || f.User == userID) && (f.Times == 0 || f.used < f.Times) && !d.closed {
			f.used++
			h := &hold{rule: f, user: userID, goOn: true, done: make(chan struct{})}
			d.held[h] = true
			return h
		}
	}
	return nil
}

// maxRead is how many bytes of a body are read before a fault: as many as the API
// reads of one that it refuses.
const maxRead = 16 << 20

// Intercept answers a request as the first fault for it says, and leaves it to
// next where there is none. It only knows those that came through the handler.
func (d *Double) Intercept(operation, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	e, called := r.Context().Value(noted{}).(*Request)
	if !called {
		next(w, r)
		return
	}
	h := d.take(e, operation, userID)
	if h == nil {
		next(w, r)
		return
	}
	f := h.rule
	// Now the journal has the body, and net/http looks whether the client goes.
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRead))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	d.mu.Lock()
	f.hits++
	d.mu.Unlock()
	goOn := d.wait(h, w, r)
	switch {
	case r.Context().Err() != nil || goOn && f.Drop:
		panic(http.ErrAbortHandler)
	case !goOn:
		w.Header().Set("X-Eventsd-Fault", "reset")
		answers[http.StatusServiceUnavailable].Write(w)
	case f.Lose:
		next(&statusNote{discard{w.Header()}, d, e}, r)
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		w.Header().Set("X-Eventsd-Fault", "delay")
		next(w, r)
	default:
		w.Header().Set("X-Eventsd-Fault", "status")
		answers[f.Status].Write(w)
	}
}

// wait holds a request, and reports whether it is to go on: no reset came.
func (d *Double) wait(h *hold, w http.ResponseWriter, r *http.Request) bool {
	if h.rule.Delay > 0 {
		// Else net/http takes the end of the time to read for the end of the client.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		timer := time.NewTimer(h.rule.Delay)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
		case <-h.done:
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.held, h)
	return h.goOn
}

// discard is where a lost answer goes.
type discard struct{ header http.Header }

func (w discard) Header() http.Header         { return w.header }
func (w discard) Write(p []byte) (int, error) { return len(p), nil }
func (w discard) WriteHeader(int)             {}
