package double

import (
	"bytes"
	"context"
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
	ID        string // such as flt_1
	Operation string
	Fault
	came int // requests that it was looked at for: After of them pass, then Times meet it
	hits int // those that met it and whose body was read
}

// String is what the fault does, as the header X-Eventsd-Fault and the journal have
// it: "status 503, delay 200ms", "drop", "lose" or "delay 1s".
func (f Fault) String() string {
	var does []string
	switch {
	case f.Status != 0:
		does = append(does, fmt.Sprint("status ", f.Status))
	case f.Drop:
		does = append(does, "drop")
	case f.Lose:
		does = append(does, "lose")
	}
	if f.Delay > 0 {
		does = append(does, "delay "+f.Delay.String())
	}
	return strings.Join(does, ", ")
}

// write answers a request with the fault's status.
func (f Fault) write(w http.ResponseWriter, message string) {
	h := w.Header()
	after := (f.RetryAfter + time.Second - 1) / time.Second // rounded up
	if f.RetryAfter == 0 && (f.Status == 429 || f.Status == 503) {
		after = 1
	}
	if after > 0 {
		h.Set("Retry-After", fmt.Sprint(int(after)))
	}
	if f.Body == "" {
		(&answer.Error{Status: f.Status, Message: message}).Write(w)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if strings.HasPrefix(f.Body, "<") {
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	h.Set("Content-Length", fmt.Sprint(len(f.Body)))
	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

// problem is all that is wrong with a rule, or "": sentences that begin with a
// member as the control API names it. The rule must be of the user, unless that is "".
func (d *Double) problem(f *Rule, userID string) string {
	var all []string
	refuse := func(wrong bool, problem string) {
		if wrong {
			all = append(all, problem)
		}
	}
	operation, user := d.KnownOperation(f.Operation), d.KnownUser(f.User)
	answers, breaks := f.Status != 0, f.Drop || f.Lose
	refuse(operation != nil, fmt.Sprint(operation))
	refuse(answers && (f.Status < 400 || f.Status > 599), "status must be from 400 to 599")
	refuse(!answers && (f.Body != "" || f.RetryAfter != 0), "body and retry_after need status")
	refuse(f.After < 0 || f.Times < 0 || f.Delay < 0, "after, times and delay must not be negative")
	refuse(answers && breaks || f.Drop && f.Lose || !answers && !breaks && f.Delay == 0,
		"status, drop and lose exclude each other, and one of them or delay is required")
	refuse(f.User != "" && user != nil, fmt.Sprint(user))
	refuse(userID != "" && f.User != userID, "user must be the one of ?user=, or left out")
	return strings.Join(all, "; ")
}

// Fail sets a fault, to be used after those that are set already.
func (d *Double) Fail(operation string, f Fault) (*Rule, error) {
	rule := &Rule{Operation: operation, Fault: f}
	if problem := d.problem(rule, ""); problem != "" {
		return nil, answer.BadRequest(problem)
	}
	d.replaceFaults(noFault, rule)
	return rule, nil
}

// faultOf matches the faults that are limited to a user or, for "", all faults.
func faultOf(userID string) func(*Rule) bool {
	return func(f *Rule) bool { return userID == "" || f.User == userID }
}

func noFault(*Rule) bool { return false }

// replaceFaults removes the faults that match, and adds rules at the end of the list.
// Each has an id of its own. Requests that the removed faults hold go on. It returns how
// many faults it removed.
func (d *Double) replaceFaults(match func(*Rule) bool, rules ...*Rule) (removed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range rules {
		d.counts["flt"]++
		f.ID = fmt.Sprint("flt_", d.counts["flt"])
	}
	removed = len(d.faults)
	d.faults = slices.DeleteFunc(d.faults, match)
	removed -= len(d.faults)
	d.faults = append(d.faults, rules...)
	for e := range d.met {
		if match(e.rule) {
			e.end()
		}
	}
	return removed
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

// meet finds the first fault for a request and records it, the operation and the
// user in the journal. It returns nil if there is no fault, and for a request that
// did not come through [Double.Handler].
func (d *Double) meet(ctx context.Context, operation, userID string) *entry {
	e, journaled := ctx.Value(entryKey{}).(*entry)
	if !journaled {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Operation = operation
	for _, f := range d.faults {
		if f.Operation != operation || f.User != "" && f.User != userID {
			continue
		}
		f.came++
		if f.came <= f.After || f.Times > 0 && f.came > f.After+f.Times {
			continue
		}
		e.Fault, e.rule = f.String(), f
		e.held, e.end = context.WithTimeout(ctx, f.Delay) // done at once if there is no delay
		d.met[e] = true
		return e
	}
	return nil
}

// maxRead is how many bytes of a body are read before a fault: as many as the API
// reads of one that it refuses.
const maxRead = 16 << 20

// Intercept answers a request as the first fault for it says, and leaves it to
// next if there is none.
func (d *Double) Intercept(op, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	e := d.meet(r.Context(), op, userID)
	if e == nil {
		next(w, r)
		return
	}
	// Once the body is read, the journal has it, and net/http notices when the client goes
	// away.
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRead))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	w.Header().Set("X-Eventsd-Fault", e.rule.String())
	switch reset := d.wait(e, w); {
	case reset:
		w.Header().Set("X-Eventsd-Fault", "reset")
		Fault{Status: http.StatusServiceUnavailable}.write(w, "a reset came before this was done")
	case r.Context().Err() != nil || e.rule.Drop: // the client went away, or is to get no answer
		panic(http.ErrAbortHandler)
	case e.rule.Lose:
		next(lost{w, e}, r)
		panic(http.ErrAbortHandler)
	case e.rule.Status != 0:
		e.rule.write(w, "a fault that a test has set; nothing was done")
	default:
		next(w, r)
	}
}

// wait counts the hit and holds the request until the fault's delay is over, the
// fault is cleared or the client goes away. It reports whether a reset came instead.
func (d *Double) wait(e *entry, w http.ResponseWriter) (reset bool) {
	d.mu.Lock()
	e.rule.hits++
	d.mu.Unlock()
	// Otherwise, net/http would take the end of the read timeout for the client's end.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	<-e.held.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	e.end()
	delete(d.met, e)
	return e.reset
}

// lost is a writer of an answer that is lost: only the journal gets its status.
type lost struct {
	http.ResponseWriter
	entry *entry
}

func (w lost) Write(p []byte) (int, error) { return len(p), nil }
func (w lost) WriteHeader(status int)      { w.entry.finish(w.entry.Operation, status) }
