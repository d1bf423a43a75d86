package double

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Who waits for requests has a watcher, and each change of an entry of the journal wakes the
// watchers that it is for. Nothing is polled, but in one case.
//
// In a bubble of testing/synctest, time goes on only while every goroutine of the bubble waits
// for another one of it, and only a goroutine of the bubble may close a channel that was made
// there. So each watcher makes its own channel, and knows its bubble:
//
//   - A request that is served in the same bubble wakes it, at the very time of the bubble.
//   - A request from outside cannot. It is seen when the watcher looks again, after a little
//     time of the bubble. As that may pass in no real time at all, real time is given to those
//     outside before each look, by a goroutine outside for which the bubble waits.

// A watcher that does not share a bubble with its double waits before each look: first for a rest,
// in real time, then for a pause, in the time of the bubble. Both double with each look. The rests
// until ten seconds of the bubble have passed take a third of a real second together.
const (
	firstPause = time.Millisecond       // of the bubble
	firstRest  = 100 * time.Microsecond // of real time
	longRest   = 64 * time.Millisecond  // of real time: no rest is longer
	mostRounds = 14                     // that double the pause
)

// watcher waits for requests that a query asks for.
type watcher struct {
	query  Query
	bubble string        // in which it waits
	wake   chan struct{} // closed when one has come
}

// wake wakes the watchers that an entry is for. The caller holds the mutex.
func (j *journal) wake(e *entry) {
	here, isKnown := "", false
	for w := range j.watchers {
		isOf := w.query.Users == nil || slices.Contains(w.query.Users, e.User)
		if !isOf || !w.query.wants(e.Seq, e.Operation) {
			continue
		}
		if w.bubble != "" && !isKnown {
			here = Bubble()
			isKnown = true
		}
		if w.bubble == "" || w.bubble == here {
			close(w.wake)
			delete(j.watchers, w)
		}
	}
}

// wait waits until a request may have come that the query asks for, or ctx is done. The caller
// holds the mutex, which is released meanwhile. The round counts the calls.
func (d *Double) wait(ctx context.Context, q Query, round int) {
	w := &watcher{query: q, bubble: Bubble(), wake: make(chan struct{})}
	d.journal.watchers[w] = true
	d.mutex.Unlock()
	defer func() {
		d.mutex.Lock()
		delete(d.journal.watchers, w)
	}()
	var look <-chan time.Time
	if w.bubble != "" && w.bubble != d.bubble {
		round = min(round, mostRounds)
		d.rest(q, min(firstRest<<round, longRest))
		look = time.After(firstPause << round)
	}
	select {
	case <-w.wake:
	case <-ctx.Done():
	case <-look:
	}
}

// timekeeper gives real time to those outside of a bubble.
type timekeeper struct {
	asked chan rest
	done  chan struct{}
	ended chan struct{}
}

// rest asks for a real time, or until a request has come that the query asks for.
type rest struct {
	query Query
	time  time.Duration
}

// KeepTime lets those who wait for requests in a bubble of testing/synctest see requests from
// outside, too. It must be called outside of a bubble, before anyone waits, and stop at the end.
func (d *Double) KeepTime() (stop func()) {
	k := &timekeeper{make(chan rest), make(chan struct{}), make(chan struct{})}
	d.timekeeper = k
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-k.ended:
				return
			case asked := <-k.asked:
				ctx, cancel := context.WithTimeout(context.Background(), asked.time)
				d.mutex.Lock()
				d.wait(ctx, asked.query, 0)
				d.mutex.Unlock()
				cancel()
				k.done <- struct{}{} // who asked waits for it
			}
		}
	})
	return func() {
		close(k.ended)
		running.Wait()
	}
}

// rest lets the bubble of the caller stand still for a real time. It does nothing if there is
// no timekeeper, or no more.
func (d *Double) rest(q Query, t time.Duration) {
	k := d.timekeeper
	if k == nil {
		return
	}
	select {
	case <-k.ended:
	case k.asked <- rest{q, t}:
		<-k.done
	}
}

// Bubble identifies the bubble of testing/synctest in which the caller runs. It is "" outside.
// The head of a stack is where the runtime tells it:
//
//	goroutine 7 [running, synctest bubble 3]:
func Bubble() string {
	var stack [200]byte
	head, _, _ := bytes.Cut(stack[:runtime.Stack(stack[:], false)], []byte("\n"))
	_, id, _ := bytes.Cut(head, []byte(", synctest bubble "))
	return string(bytes.TrimRight(id, "]:"))
}
