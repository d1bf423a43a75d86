package double

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// Fault is what goes wrong, as package eventstest documents it.
type Fault struct {
	Status       int
	Body         string
	RetryAfter   time.Duration
	Delay        time.Duration
	Drop, Lose   bool
	After, Times int
	User         string
}

// Rule is a fault that was set for an operation. Double.mu guards its counts.
type Rule struct {
	Operation string
	Fault
	came int // requests that it was looked at for: After of them pass, then Times meet it
	hits int // those that met it and whose body was read
}

// meeting is a request that met a fault, until it goes on.
type meeting struct {
	*entry
	rule *Rule
	held context.Context         // done when the fault no longer holds the request
	end  context.CancelCauseFunc // ends that, for a reset or any other reason
}

// errReset is why a fault no longer holds a request: there was a reset. Without it,
// the fault was cleared or the client went away.
var errReset = errors.New("the double was reset")

// codes are the codes of the API's errors by status, but for the two that
// [Fault.write] falls back to.
var codes = map[int]string{401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
	413: "payload_too_large", 415: "unsupported_media_type", 422: "idempotency_mismatch", 429: "rate_limited"}

// String is what the fault does, as the header X-Eventsd-Fault and the journal have
// it: "status 503, delay 200ms", "drop", "lose" or "delay 1s".
func (f Fault) String() string {
	delay := "delay " + f.Delay.String()
	does := "drop"
	switch {
	case f.Status != 0:
		does = fmt.Sprint("status ", f.Status)
	case f.Lose:
		does = "lose"
	case !f.Drop:
		return delay
	}
	if f.Delay > 0 {
		does += ", " + delay
	}
	return does
}

// write answers a request with the fault's status.
func (f Fault) write(w http.ResponseWriter, message string) {
	h := w.Header()
	after := math.Ceil(f.RetryAfter.Seconds())
	if f.RetryAfter == 0 && (f.Status == 429 || f.Status == 503) {
		after = 1
	}
	if after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(after)))
	}
	if f.Body == "" {
		code := "bad_request"
		if f.Status >= 500 {
			code = "server_error"
		}
		e := &answer.Error{Status: f.Status, Code: cmp.Or(codes[f.Status], code), Message: message}
		e.Write(w)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if strings.HasPrefix(f.Body, "<") {
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	h.Set("Content-Length", strconv.Itoa(len(f.Body)))
	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

// problems are all that is wrong with a rule, each beginning with the member as
// the control API names it.
func (d *Double) problems(f *Rule) (all []string) {
	refuse := func(wrong bool, problem string) {
		if wrong {
			all = append(all, problem)
		}
	}
	operation, user := d.KnownOperation(f.Operation), d.KnownUser(f.User)
	refuse(operation != nil, fmt.Sprint(operation))
	refuse(f.Status != 0 && (f.Status < 400 || f.Status > 599), "status must be from 400 to 599")
	refuse((f.Body != "" || f.RetryAfter != 0) && f.Status == 0,
		"body and retry_after need status: give the status that they are sent with")
	refuse(f.After < 0, "after must not be negative: it is how many requests pass first")
	refuse(f.Times < 0, "times must not be negative: it is how many requests fail then, 0 for all")
	refuse(f.Delay < 0, "delay must not be negative: leave it out for none")
	refuse(f.Status != 0 && (f.Drop || f.Lose) || f.Drop && f.Lose,
		"status, drop and lose exclude each other: give one of them")
	refuse(f.Status == 0 && f.Delay == 0 && !f.Drop && !f.Lose,
		"status, delay, drop or lose is required: without one nothing goes wrong")
	refuse(user != nil, fmt.Sprint(user))
	return all
}

// Fail sets a fault, to be used after those that are set already.
func (d *Double) Fail(operation string, f Fault) (*Rule, error) {
	rule := &Rule{Operation: operation, Fault: f}
	if problems := d.problems(rule); problems != nil {
		return nil, answer.BadRequest(strings.Join(problems, "; "))
	}
	d.replaceFaults(func(*Rule) bool { return false }, rule)
	return rule, nil
}

// faultOf matches the faults that are limited to a user, or all faults where it is "".
func faultOf(userID string) func(*Rule) bool {
	return func(f *Rule) bool { return userID == "" || f.User == userID }
}

// replaceFaults puts rules in the place of those that match, and behind the others.
// Requests that the removed ones hold go on.
func (d *Double) replaceFaults(match func(*Rule) bool, rules ...*Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(slices.DeleteFunc(d.faults, match), rules...)
	for m := range d.met {
		if match(m.rule) {
			m.end(nil)
		}
	}
}

// Clear removes a fault. Requests that it holds go on.
func (d *Double) Clear(rule *Rule) { d.replaceFaults(func(f *Rule) bool { return f == rule }) }

// Hits is how many requests a fault met. A request counts once its body was read,
// so that the journal has the body of each that is counted.
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

// meet finds the first fault for a request and records it, and the user, in the
// journal. It returns nil where there is none, and for a request that did not come
// through [Double.Handler].
func (d *Double) meet(ctx context.Context, operation, userID string) *meeting {
	e, journaled := ctx.Value(entryKey{}).(*entry)
	if !journaled {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e.User = userID
	for _, f := range d.faults {
		if f.Operation != operation || f.User != "" && f.User != userID {
			continue
		}
		f.came++
		if f.came <= f.After || f.Times > 0 && f.came > f.After+f.Times {
			continue
		}
		e.Fault = f.String()
		held, end := context.WithCancelCause(ctx)
		m := &meeting{e, f, held, end}
		d.met[m] = true
		return m
	}
	return nil
}

// maxRead is how many bytes of a body are read before a fault: as many as the API
// reads of one that it refuses.
const maxRead = 16 << 20

// Intercept answers a request as the first fault for it says, and leaves it to
// next where there is none.
func (d *Double) Intercept(op, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	m := d.meet(r.Context(), op, userID)
	if m == nil {
		next(w, r)
		return
	}
	// Now the journal has the body, and net/http notices when the client goes away.
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRead))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	w.Header().Set("X-Eventsd-Fault", m.rule.String())
	switch reset := d.wait(m, w); {
	case reset:
		w.Header().Set("X-Eventsd-Fault", "reset")
		unavailable := Fault{Status: http.StatusServiceUnavailable}
		unavailable.write(w, "a reset came while a fault held this request; nothing was done")
	case r.Context().Err() != nil || m.rule.Drop: // the client went away, or is meant to get no answer
		panic(http.ErrAbortHandler)
	case m.rule.Lose:
		next(&answer.StatusWriter{ResponseWriter: discard{w.Header()}, Seen: m.setStatus}, r)
		panic(http.ErrAbortHandler)
	case m.rule.Status != 0:
		m.rule.write(w, "a fault that a test has set; nothing was done")
	default:
		next(w, r)
	}
}

// wait counts the hit and holds the request until the fault's delay is over, the
// fault is cleared or the client goes away. It reports whether a reset came instead.
func (d *Double) wait(m *meeting, w http.ResponseWriter) (reset bool) {
	defer m.end(nil)
	d.mu.Lock()
	m.rule.hits++
	d.mu.Unlock()
	if m.rule.Delay > 0 {
		// Without this, net/http takes the end of the time to read for the client's end.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		timed, stop := context.WithTimeout(m.held, m.rule.Delay)
		<-timed.Done()
		stop()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.met, m)
	return context.Cause(m.held) == errReset
}

// discard is a writer that a lost answer is written to.
type discard struct{ header http.Header }

func (w discard) Header() http.Header         { return w.header }
func (w discard) Write(p []byte) (int, error) { return len(p), nil }
func (w discard) WriteHeader(int)             {}
