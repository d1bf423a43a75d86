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
	body      []byte     // of the request, until it is carried out
	bodyErr   error      // how that ended: io.EOF if it is whole, or as long as may be wanted
	injection *Injection // which the request met; nil until its body was read
	size      int64      // bytes that it keeps: of its body, then of its answer
	refusal   string     // why it is answered 503, or ""

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
	d.readBody(h)
	if !d.meet(h) {
		next(w, h.withBody(r))
		return
	}
	base := w.Header().Clone()
	done := d.carryOut(h, base, next)
	f := d.noteDone(h, done)
	h.wait(w, f.Delay)
	refusal := d.noteRefusal(h)
	switch {
	case refusal != "":
		h.send(w, Fault{}, refusal, refused(base, done.status != 0))
	case !f.isAnswered() || r.Context().Err() != nil: // or the client went away
		d.noteLost(h, done)
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		h.send(w, f, f.String(), f.answer(base))
	case f.Patch != "":
		done.body = merge(done.body, []byte(f.Patch))
		h.send(w, f, f.String(), done)
	default:
		h.send(w, f, f.String(), done)
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
	d.faults.bytes -= h.size
}

// keep lets a hold keep so many bytes more: of the body before the request is carried out, of
// the answer meanwhile. It refuses the request if all of them keep too many.
func (d *Double) keep(h *hold, size int64) (isAllowed bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	h.size += size
	d.faults.bytes += size
	isAllowed = d.faults.bytes <= d.limits.Held
	if !isAllowed {
		h.refusal = "busy"
	}
	return isAllowed
}

// readBody reads the body of a request to its end, from where net/http notices when the client
// goes away, but no further than the server would. It keeps as much as the server may want to
// see: a longer body is refused whatever it has, so that the rest is dropped, up to the limit
// Drain. What is longer still counts as read.
func (d *Double) readBody(h *hold) {
	from := h.call.request.Body
	most := d.limits.Body + 1
	size := most
	if length := h.call.request.ContentLength; length >= 0 {
		size = min(length, most)
	}
	if d.keep(h, size) {
		h.body, h.bodyErr = io.ReadAll(io.LimitReader(from, most))
	}
	if h.bodyErr == nil {
		_, h.bodyErr = io.CopyN(io.Discard, from, d.limits.Drain)
	}
	if h.bodyErr == nil { // there is more, which nobody wants
		h.bodyErr = io.EOF
	}
}

// ended is a reader that has nothing left to read.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }

// withBody returns the request with the body that was read, which ends as it did.
func (h *hold) withBody(r *http.Request) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(h.body), ended{h.bodyErr}))
	return r
}

// meet finds the first fault for a request whose body was read, and counts the request. It
// reports whether the double answers it: by that fault, or because it is refused. A request
// whose body did not arrive meets none.
func (d *Double) meet(h *hold) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if h.refusal != "" {
		h.entry.Fault = h.refusal
		return true
	}
	if h.bodyErr != io.EOF {
		return false
	}
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
func (d *Double) carryOut(h *hold, header http.Header, next http.HandlerFunc) *recorder {
	done := &recorder{header: header.Clone(), keep: func(size int64) bool { return d.keep(h, size) }}
	if h.injection != nil && h.injection.isCarriedOut() {
		r := h.call.request
		next(done, h.withBody(r.WithContext(context.WithoutCancel(r.Context()))))
	}
	return done
}

// noteDone notes that a request has met its fault and that what is to be done is done. It returns
// the fault: none if the request was refused before.
func (d *Double) noteDone(h *hold, done *recorder) (f Fault) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	h.body = nil
	d.faults.bytes -= h.size - int64(len(done.body))
	h.size = int64(len(done.body))
	if h.injection != nil {
		f = h.injection.Fault
		h.injection.Hits++
		h.entry.Fault = f.String()
	}
	h.entry.hasCome = true
	d.journal.wake(h.entry)
	return f
}

// noteRefusal notes why a request is answered 503, and returns it: "" if it is not refused.
func (d *Double) noteRefusal(h *hold) string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if h.refusal != "" {
		h.entry.Fault = h.refusal
	}
	return h.refusal
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
func (h *hold) send(w http.ResponseWriter, f Fault, does string, a *recorder) {
	a.header.Set(FaultHeader, does)
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
	keep   func(size int64) bool // whether so many more bytes may be kept; nil: they may
	isFull bool                  // they may not
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(part []byte) (int, error) {
	if a.keep != nil && !a.isFull {
		a.isFull = !a.keep(int64(len(part)))
	}
	if !a.isFull {
		a.body = append(a.body, part...)
	}
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

// refused is the answer to a request that is refused, after it was carried out or before.
func refused(header http.Header, isCarriedOut bool) *recorder {
	message := "faults hold back as many bytes as they may, so nothing was done: send it again later"
	if isCarriedOut {
		message = "faults hold back as many bytes as they may; what this asked for may have been done: " +
			"look before you send it again"
	}
	a := &recorder{header: header.Clone()}
	answer.NewError(503, message, "Retry-After", "1").Write(a)
	return a
}
