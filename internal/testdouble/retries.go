package testdouble

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
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
	reported bool              // as an unsafe retry
}

// watch looks for unsafe retries of a create whose response is lost, or may get lost during a delay. An
// unsafe retry arrives after the loss and creates another event from the same body. The watch ends when the
// event reaches its client after all, or when the test clears the fault or the journal.
type watch struct {
	*create
	fault *InjectedFault

	lost time.Time // when the response was lost; zero as long as a delay holds it

	// suspects are creates from the same body that arrived during the delay. They are unsafe retries if the
	// client gave up before them, although the server hasn't noticed that yet. See old.
	suspects []*create
}

// noticeTime is how long the server may need to notice that a client gave up. The client's retry may arrive
// before that.
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

// old reports whether a create arrived so long ago that it can't be a retry of a client that still seems to
// wait: the server would have noticed by now that this client gave up.
func (c *create) old() bool { return time.Since(c.received) > noticeTime }

// repeatedBy reports whether another create has the same body, but not the same Idempotency-Key.
func (w *watch) repeatedBy(c *create) bool {
	return c.userID == w.userID && c.digest == w.digest && (c.key == "" || c.key != w.key)
}

// judge returns the problem of a create that arrived after the loss, unless another watch has reported it.
func (w *watch) judge(c *create) []Problem {
	if c.reported || c.received.Before(w.lost) {
		return nil
	}
	c.reported = true
	text := fmt.Sprintf("unsafe retry: request %d of %s (%s) created %s, but request %d (%s) had created "+
		"%s from the same body, and its response was lost (%v): send the same Idempotency-Key with every "+
		"attempt",
		c.seq, c.userID, describeKey(c.key), c.event, w.seq, describeKey(w.key), w.event, w.fault)
	return []Problem{{UnsafeRetry, httpapi.Redact(text), c.userID}}
}

// settle decides whether an event now reaches its client, after the delay. If so, it ends the watches of the
// event. Otherwise, the response is lost, and it judges the suspects.
func (d *Double) settle(x *exchange, r *http.Request) {
	if x.event == "" {
		return
	}
	gone := r.Context().Err() != nil
	delivered := !gone && (x.fault == nil || !x.fault.losesResponse())
	var problems []Problem
	d.mu.Lock()
	d.watches = slices.DeleteFunc(d.watches, func(w *watch) bool {
		if w.event != x.event {
			return false
		}
		if delivered {
			return true
		}
		if w.lost.IsZero() {
			w.lost = time.Now()
			if gone { // the client may have given up this long before the server noticed
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
