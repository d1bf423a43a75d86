package double

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// What is done to a request that a fault may be for, in this order:
//
//  1. Its body is read, so that the journal has it.
//  2. The first fault for it is found and counted.
//  3. It is carried out, unless the fault says that nothing is done: at once, and whether or
//     not its client waits, as a real server does. The answer is kept.
//  4. It is held for as long as the delay of the fault says.
//  5. It is answered as the fault says.
//
// Example: a create meets a delay of a minute, and its client gives up after ten seconds. The
// event is there then, and a second try with another idempotency key makes another one.

// FaultHeader is the header field of an answer that says what a fault did.
const FaultHeader = "X-Eventsd-Fault"

// call is what the double knows of a request before its body was read.
type call struct {
	operation string
	path      string // below the base path
	user      string // the id of the key's owner
	request   *http.Request
}

// hold is a request that a fault may be for, until it is answered. The double's mutex guards
// what changes in it.
type hold struct {
	double    *Double
	call      *call
	entry     *entry
	injection *Injection // which the request met; nil until its body was read

	done    context.Context // done when the fault no longer holds the request
	release context.CancelFunc
}

// intercept answers a request as the first fault for it says, and leaves it to next if there
// is none. It is what [Server.Intercept] sets.
func (d *Double) intercept(
	operation, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc,
) {
	e, isOurs := r.Context().Value(entryKey{}).(*entry)
	if !isOurs { // it did not come through Handler
		next(w, r)
		return
	}
	h := d.hold(&call{operation, strings.TrimPrefix(r.URL.Path, d.base), userID, r}, e)
	if h == nil {
		next(w, r)
		return
	}
	defer d.leave(h)
	if !readBody(r) || !d.meet(h) {
		next(w, r)
		return
	}
	base := w.Header().Clone()
	done := carryOut(h, base, next)
	f := d.noteDone(h)
	h.wait(w, f.Delay)
	switch {
	case !f.isAnswered() || r.Context().Err() != nil: // or the client went away
		d.noteLost(h, done)
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		h.send(w, f, f.answer(base))
	case f.Patch != "":
		done.body = merge(done.body, []byte(f.Patch))
		h.send(w, f, done)
	default:
		h.send(w, f, done)
	}
}

// hold returns a hold of a request that a fault may be for, or nil.
func (d *Double) hold(c *call, e *entry) *hold {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	e.Operation = c.operation
	if !slices.ContainsFunc(d.faults.list, func(f *Injection) bool { return f.isFor(c) }) {
		return nil
	}
	h := &hold{double: d, call: c, entry: e}
	h.done, h.release = context.WithCancel(c.request.Context())
	d.faults.holds[h] = true
	return h
}

// leave ends a hold.
func (d *Double) leave(h *hold) {
	h.release()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.faults.holds, h)
}

const maxRead = 1<<20 + 1 // bytes of a body; the API accepts one less

// readBody reads the body of a request, from where net/http notices when the client goes away, and puts
// what it read in front of the rest. It reports whether the body arrived.
func readBody(r *http.Request) bool {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRead))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = broken{err}
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), rest))
	return err == nil
}

// broken is a body that fails again as it did before.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// meet finds the first fault for a request whose body was read, and counts the request. It
// reports whether there is one.
func (d *Double) meet(h *hold) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, f := range d.faults.list {
		if !f.isFor(h.call) {
			continue
		}
		f.matches++
		if f.matches > f.After {
			h.injection = f
			return true
		}
	}
	return false
}

// carryOut does what a request asks for, whether or not its client waits, and returns the
// answer: one without a status if the fault says that nothing is done. The header is the one
// that each answer begins with.
func carryOut(h *hold, header http.Header, next http.HandlerFunc) *recorder {
	done := &recorder{header: header.Clone()}
	if h.injection.isCarriedOut() {
		r := h.call.request
		next(done, r.WithContext(context.WithoutCancel(r.Context())))
	}
	return done
}

// noteDone notes that a request has met its fault and that what is to be done is done. It returns
// the fault.
func (d *Double) noteDone(h *hold) Fault {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	f := h.injection.Fault
	h.injection.Hits++
	h.entry.Fault = f.String()
	h.entry.hasCome = true
	return f
}

// noteLost notes what was done by a request whose answer is lost.
func (d *Double) noteLost(h *hold, done *recorder) {
	d.note(h.entry, func() {
		h.entry.Status = done.status
		h.entry.Error = done.problem()
	})
}

// wait waits until the time is over, the fault is removed or the client goes away. Meanwhile
// the server's timeouts do not count, and then that of the answer begins anew.
func (h *hold) wait(w http.ResponseWriter, t time.Duration) {
	if t <= 0 {
		return
	}
	answer.NoTimeouts(w)
	select {
	case <-h.done.Done():
	case <-time.After(t):
	}
	answer.RestartWriteTimeout(h.done, w)
}

// send sends an answer as the fault says, with what it does.
func (h *hold) send(w http.ResponseWriter, f Fault, a *recorder) {
	a.header.Set(FaultHeader, f.String())
	names := append(slices.Sorted(maps.Keys(f.Header)), FaultHeader)
	const expose = "Access-Control-Expose-Headers"
	a.header.Set(expose, a.header.Get(expose)+", "+strings.Join(names, ", "))
	a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
	for name, values := range f.Header {
		// Without values, the field is not sent, and net/http makes none of its own.
		a.header[http.CanonicalHeaderKey(name)] = values
	}
	clear(w.Header())
	maps.Copy(w.Header(), a.header)
	problem := a.problem()
	h.double.note(h.entry, func() { h.entry.Error = problem })
	w.WriteHeader(a.status)
	if h.call.request.Method != "HEAD" {
		sendBody(w, f, a.body)
	}
}

// sendBody sends the body of an answer as the fault says.
func sendBody(w http.ResponseWriter, f Fault, body []byte) {
	if f.Cut {
		body = body[:len(body)/2]
	}
	w.Write(body)
	if f.Cut {
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// recorder is a [http.ResponseWriter] that keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(part []byte) (int, error) {
	a.body = append(a.body, part...)
	return len(part), nil
}

// problem is the message of an answer in the form of an error, or "".
func (a *recorder) problem() string { return problemIn(a.status, a.body) }

// required are the fields that openapi.json requires of the header of some answers.
var required = map[int][2]string{
	401: {"WWW-Authenticate", answer.Challenge(answer.Realm)},
	405: {"Allow", "OPTIONS"},
	415: {"Accept", "application/json"},
	429: {"Retry-After", "1"},
	500: {"X-Request-Id", "fault"},
	503: {"Retry-After", "1"},
}

// answer is the answer with the status of the fault. The header is the one that each answer
// begins with.
func (f *Fault) answer(header http.Header) *recorder {
	a := &recorder{header: header.Clone()}
	field, isRequired := required[f.Status]
	if isRequired {
		a.header.Set(field[0], field[1])
	}
	if f.Body == "" {
		message := "nothing was done, as a test wants it"
		if f.Lose {
			message = "what was asked for was done, and a test wants this answer to it"
		}
		answer.NewError(f.Status, message).Write(a)
		return a
	}
	a.status = f.Status
	a.body = []byte(f.Body)
	contentType := "text/plain; charset=utf-8"
	switch f.Body[0] {
	case '<':
		contentType = "text/html; charset=utf-8"
	case '{', '[':
		contentType = "application/json"
	}
	a.header.Set("Content-Type", contentType)
	return a
}
