package testdouble

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// createOperation is the operation that creates events.
const createOperation = "POST /events/create"

// create is a request that created an event.
type create struct {
	seq      int
	received time.Time
	userID   string
	digest   [sha256.Size]byte // of the request body
	key      string            // Idempotency-Key, or ""
	event    string            // ID
	unsafe   bool              // reported as an unsafe retry
}

// watch waits for unsafe retries of a create whose response a fault has lost or may lose: creates that arrive
// after the loss and make another event from the same body. It ends when the event reaches its client after
// all, or when the test clears the fault or the journal.
type watch struct {
	*create
	fault *InjectedFault

	// lost is when the response was lost. It is zero while a delay holds the response. Meanwhile, suspects
	// are the newest creates that would be retries if the client has just given up.
	lost     time.Time
	suspects []*create
}

// noticeTime is how long the server may need to notice that a client gave up. Its retry may arrive earlier.
const noticeTime = 20 * time.Millisecond

const maxWatches = 1000

// watchCreate looks for the create that a new one repeats, and watches the new one if its fault may lose the
// response. It returns the problem of an unsafe retry. The caller must hold the double's lock.
func (d *Double) watchCreate(r *Request, x *exchange) (problems []Problem) {
	if x.event == "" || x.replayed {
		return nil
	}
	c := &create{r.Seq, r.Received, r.UserID, x.digest, r.idempotencyKey(), x.event, false}
	for _, w := range d.watches {
		switch {
		case !w.repeatedBy(c):
		case w.lost.IsZero():
			w.suspects = append(slices.DeleteFunc(w.suspects, (*create).old), c)
		default:
			problems = append(problems, w.judge(c)...)
		}
	}
	f := x.fault
	if f == nil || f.removed || !f.losesResponse() && f.Delay == 0 {
		return problems
	}
	w := &watch{create: c, fault: f}
	if f.Delay == 0 {
		w.lost = time.Now()
	}
	if len(d.watches) == maxWatches {
		d.watches = slices.Delete(d.watches, 0, 1)
	}
	d.watches = append(d.watches, w)
	return problems
}

// old reports whether the server would have noticed by now that a client gave up before this create.
func (c *create) old() bool { return time.Since(c.received) > noticeTime }

// repeatedBy reports whether another create has the same body, but not the same Idempotency-Key.
func (w *watch) repeatedBy(c *create) bool {
	return c.userID == w.userID && c.digest == w.digest && (c.key == "" || c.key != w.key)
}

// judge returns the problem of a create that arrived after the loss, unless another watch has reported it.
func (w *watch) judge(c *create) []Problem {
	if c.unsafe || c.received.Before(w.lost) {
		return nil
	}
	c.unsafe = true
	text := fmt.Sprintf("unsafe retry: request %d of %s (%s) created %s, but request %d (%s) had created "+
		"%s from the same body, and its response was lost (%v): send the same Idempotency-Key with every "+
		"attempt",
		c.seq, c.userID, describeKey(c.key), c.event, w.seq, describeKey(w.key), w.event, w.fault)
	return []Problem{{UnsafeRetry, Redact(text), c.userID}}
}

// settle ends the watches of an event that now reaches its client. If the response is lost after a delay, it
// judges the suspects.
func (d *Double) settle(x *exchange, r *http.Request) {
	if x.event == "" {
		return
	}
	gone := r.Context().Err() != nil
	delivered := !gone && (x.fault == nil || !x.fault.losesResponse())
	var problems []Problem
	d.mu.Lock()
	d.watches = slices.DeleteFunc(d.watches, func(w *watch) bool {
		if w.event != x.event || delivered {
			return w.event == x.event
		}
		if w.lost.IsZero() {
			w.lost = time.Now()
			if gone {
				w.lost = w.lost.Add(-noticeTime)
			}
			for _, c := range w.suspects {
				problems = append(problems, w.judge(c)...)
			}
			w.suspects = nil
		}
		return false
	})
	d.mu.Unlock()
	d.report(problems...)
}

// awaitNotice waits if there are suspects, because the client that they repeat may just have given up.
func (d *Double) awaitNotice() {
	d.mu.Lock()
	found := slices.ContainsFunc(d.watches, func(w *watch) bool {
		return len(w.suspects) > 0 && !w.suspects[len(w.suspects)-1].old()
	})
	d.mu.Unlock()
	if found {
		time.Sleep(noticeTime)
	}
}

// idempotencyKey returns the Idempotency-Key header, or "".
func (r *Request) idempotencyKey() string { return strings.Join(r.Header["Idempotency-Key"], ", ") }

// describeKey returns the Idempotency-Key of a create, or that there is none.
func describeKey(key string) string {
	if key == "" {
		return "no Idempotency-Key"
	}
	return "Idempotency-Key " + key
}
