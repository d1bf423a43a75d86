package double

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/strict"
)

// Fault is what goes wrong, as package eventstest documents it.
type Fault struct {
	Status     int           `json:"status"`
	Body       string        `json:"body"`
	Header     http.Header   `json:"header" form:"json"`
	Patch      string        `json:"patch" form:"json"`
	RetryAfter time.Duration `json:"retry_after"`
	Delay      time.Duration `json:"delay"`
	Trickle    time.Duration `json:"trickle"`
	Drop       bool          `json:"drop"`
	Lose       bool          `json:"lose"`
	Cut        bool          `json:"cut"`
	After      int           `json:"after"`
	Times      int           `json:"times"`
	User       string        `json:"user"`
	Path       string        `json:"path"`
}

// FaultHeader is the header field of an answer that says what a fault did.
const FaultHeader = "X-Eventsd-Fault"

// Rule is a fault that was set for an operation. The double's mutex guards its counts.
type Rule struct {
	ID        string `json:"id"` // such as flt_1
	Operation string `json:"operation" form:"required"`
	Fault
	Hits int `json:"hits"` // requests that met it and whose body was read
	came int // those that it was looked at for: After of them pass, then Times meet it
}

// MarshalJSON returns the fault as the control API has it.
func (f Rule) MarshalJSON() ([]byte, error) {
	type rule Rule // without this method
	return strict.Encode(struct {
		rule
		Patch      json.RawMessage `json:"patch"`
		RetryAfter string          `json:"retry_after"`
		Delay      string          `json:"delay"`
		Trickle    string          `json:"trickle"`
	}{
		rule(f),
		json.RawMessage(cmp.Or(f.Patch, "null")),
		f.RetryAfter.String(),
		f.Delay.String(),
		f.Trickle.String(),
	}), nil
}

// String is what the fault does, as the [FaultHeader] and the journal have
// it: "status 503, delay 200ms", "drop", "patch, header" or "delay 1s".
func (f Fault) String() string {
	words, _ := f.does()
	return strings.Join(words, ", ")
}

// does returns what the fault does, and how many of these exclude each other.
func (f Fault) does() (words []string, outcomes int) {
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	add(f.Status != 0, fmt.Sprint("status ", f.Status))
	add(f.Patch != "", "patch")
	add(f.Drop, "drop")
	add(f.Lose, "lose")
	add(f.Cut, "cut")
	outcomes = len(words)
	add(len(f.Header) > 0, "header")
	add(f.Delay > 0, fmt.Sprint("delay ", f.Delay))
	add(f.Trickle > 0, fmt.Sprint("trickle ", f.Trickle))
	return words, outcomes
}

// check returns all that is wrong with a fault: sentences that begin with a member as the
// control API names it. The fault must be of the user, unless that is "".
func (d *Double) check(f *Rule, user string) error {
	var problems []string
	must := func(is bool, problem string) {
		if !is {
			problems = append(problems, problem)
		}
	}
	err := d.KnownOperation(f.Operation)
	must(err == nil, fmt.Sprint(err))
	least := 400
	if f.Body != "" {
		least = 200
	}
	hasBody := !slices.Contains([]int{204, 205, 304}, f.Status)
	must(f.Status == 0 || f.Status >= least && f.Status <= 599 && hasBody,
		"status must be from 400 to 599, or with a body from 200 to 599, but not 204, 205 or 304")
	must(f.Status != 0 || f.Body == "" && f.RetryAfter == 0, "body and retry_after need status")
	patch, err := strict.Parse([]byte(cmp.Or(f.Patch, "{}")))
	must(err == nil && patch.Kind == strict.Object, "patch must be a JSON object")
	for name, values := range f.Header {
		field := name + ": " + strings.Join(values, ", ")
		must(validField.MatchString(field) && !framing.MatchString(field),
			fmt.Sprintf("header %.40q is malformed, or frames the message, so it cannot be set", field))
	}
	must(f.After >= 0 && f.Times >= 0 && f.Delay >= 0 && f.Trickle >= 0,
		"after, times, delay and trickle must not be negative")
	words, outcomes := f.does()
	must(outcomes < 2, "status, patch, drop, lose and cut exclude each other")
	must(words != nil, "one of status, patch, drop, lose, cut, header, delay and trickle is required")
	must(!f.Drop && !f.Lose || f.Header == nil && f.Trickle == 0,
		"header and trickle need an answer, and drop and lose send none")
	_, pattern, _ := strings.Cut(f.Operation, " ")
	isPath, _ := path.Match(strings.ReplaceAll(pattern, "{id}", "?*"), f.Path)
	must(f.Path == "" || isPath, "path must be one of the operation, without "+d.base)
	if f.User != "" {
		err := d.KnownUser(f.User)
		must(err == nil, fmt.Sprint(err))
	}
	must(user == "" || f.User == user, "user must be the one of ?user=, or left out")
	if problems != nil {
		return answer.BadRequest(strings.Join(problems, "; "))
	}
	return nil
}

var (
	// validField is the form of a header field (RFC 9110, section 5).
	validField = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\\x00-\\x08\\x0a-\\x1f\\x7f]*$")
	// framing are the fields that frame a message, which must be true.
	framing = regexp.MustCompile("(?i)^(connection|content-length|trailer|transfer-encoding):")
)

// Fail sets a fault, to be used after those that are set already.
func (d *Double) Fail(operation string, f Fault) (*Rule, error) {
	f.Header = f.Header.Clone() // a test may go on using its own
	rule := &Rule{Operation: operation, Fault: f}
	err := d.check(rule, "")
	if err == nil {
		d.addFaults(rule)
	}
	return rule, err
}

// addFaults adds faults at the end of the list, each with an id of its own and no hits.
func (d *Double) addFaults(rules ...*Rule) {
	d.Lock()
	defer d.Unlock()
	for _, f := range rules {
		d.set++
		f.ID = fmt.Sprint("flt_", d.set)
		f.Hits = 0
	}
	d.faults = append(d.faults, rules...)
}

// Clear removes the fault with an id or, for "", all faults: those that are limited to a
// user or, for "", those of everyone. It returns how many there were. Requests that they hold
// wait no longer, but the rest of the fault is done to them all the same.
func (d *Double) Clear(id, userID string) (removed int) {
	d.Lock()
	defer d.Unlock()
	return d.clear(id, userID)
}

// clear is Clear for who holds the mutex.
func (d *Double) clear(id, userID string) (removed int) {
	match := func(f *Rule) bool {
		return (id == "" || id == f.ID) && (userID == "" || userID == f.User)
	}
	for e := range d.met {
		if match(e.rule) {
			e.goOn()
		}
	}
	before := len(d.faults)
	d.faults = slices.DeleteFunc(d.faults, match)
	return before - len(d.faults)
}

// Hits is how many requests a fault met. A request counts once its body was read,
// so that the journal has the body of each that is counted.
func (d *Double) Hits(rule *Rule) int {
	d.Lock()
	defer d.Unlock()
	return rule.Hits
}

// meet finds the first fault for a request of an operation and records it in the entry of
// the request, which it returns. It returns nil if there is no fault, and for a request that
// did not come through [Double.Handler].
func (d *Double) meet(operation string, r *http.Request) *entry {
	e, found := r.Body.(*entry)
	if !found {
		return nil
	}
	d.Lock()
	defer d.Unlock()
	e.Operation = operation
	for _, f := range d.faults {
		isHere := f.Operation == operation && (f.Path == "" || d.base+f.Path == r.URL.Path)
		isOf := f.User == "" || f.User == e.User
		if !isHere || !isOf {
			continue
		}
		f.came++
		turn := f.came - f.After // the first is 1
		if turn > 0 && (f.Times == 0 || turn <= f.Times) {
			e.rule = f
			e.held, e.goOn = context.WithCancel(r.Context())
			d.met[e] = true
			return e
		}
	}
	return nil
}

// leave ends what [Double.meet] began, once the request is answered.
func (d *Double) leave(e *entry) {
	e.goOn()
	d.Lock()
	defer d.Unlock()
	delete(d.met, e)
	d.holding -= e.size
}

// refuse makes the answer to a request that a fault holds a 503.
func (e *entry) refuse(why string) {
	e.refused = true
	e.Fault = why
	e.goOn()
}

// intercept is the [answer.Intercept] of the double: it answers a request as the first fault
// for it says, and leaves it to next if there is none.
func (d *Double) intercept(
	operation, _ string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc,
) {
	e := d.meet(operation, r)
	if e == nil {
		next(w, r)
		return
	}
	defer d.leave(e)
	f := e.rule.Fault
	d.readBody(e, r)
	e.hold(w, f.Delay)
	d.Lock()
	does := e.Fault
	if e.refused {
		f = Fault{Status: 503}
	}
	d.Unlock()
	h := w.Header()
	h.Set(FaultHeader, does)
	if f.Drop || r.Context().Err() != nil { // or the client went away
		panic(http.ErrAbortHandler)
	}
	a := &recorder{ResponseWriter: w}
	if f.Status != 0 {
		f.answer(a, does)
	} else {
		next(a, r)
	}
	if f.Lose {
		e.update(func() { e.Status = a.status })
		panic(http.ErrAbortHandler)
	}
	if f.Patch != "" {
		a.body = merge(a.body, []byte(f.Patch))
	}
	names := append(slices.Sorted(maps.Keys(f.Header)), FaultHeader)
	const expose = "Access-Control-Expose-Headers"
	h.Set(expose, h.Get(expose)+", "+strings.Join(names, ", "))
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	for name, values := range f.Header {
		// Without values, the field is not sent, and net/http makes none of its own.
		h[http.CanonicalHeaderKey(name)] = values
	}
	w.WriteHeader(a.status)
	if r.Method != "HEAD" {
		e.send(w, f, a.body)
	}
}

// maxHolding is how many bytes of bodies all requests that meet a fault may keep at once.
const maxHolding = 128 << 20

// readBody reads the body of a request, so that the journal has it, and net/http notices
// when the client goes away, and keeps it for the server. Then it counts the hit.
func (d *Double) readBody(e *entry, r *http.Request) {
	d.Lock()
	kept := d.limits.Body + 1                           // the API refuses longer ones, whatever they have
	e.size = min(uint64(r.ContentLength), uint64(kept)) // -1, unknown, is the largest
	d.holding += e.size
	hasRoom := d.holding <= maxHolding
	d.Unlock()
	var body []byte
	if hasRoom {
		body, _ = io.ReadAll(io.LimitReader(r.Body, kept)) // the server meets the error, too
	}
	io.CopyN(io.Discard, r.Body, d.limits.Drain)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	e.update(func() {
		if e.refused { // by a reset
			return
		}
		e.rule.Hits++
		e.Fault = e.rule.Fault.String()
		if !hasRoom {
			e.refuse("busy")
		}
	})
}

// hold waits until the time is over, the fault is removed or the client goes away. Meanwhile
// the server's timeouts do not count, and then that of the answer begins anew.
func (e *entry) hold(w http.ResponseWriter, wait time.Duration) {
	if wait == 0 {
		return
	}
	answer.NoTimeouts(w)
	select {
	case <-e.held.Done():
	case <-time.After(wait):
	}
	answer.RestartWriteTimeout(e.held, w)
}

// send sends the body of an answer as the fault says.
func (e *entry) send(w http.ResponseWriter, f Fault, body []byte) {
	if f.Cut {
		body = body[:len(body)/2]
	}
	control := http.NewResponseController(w)
	for i := range 10 {
		if f.Trickle > 0 {
			control.Flush() // what comes before the pause
			e.hold(w, f.Trickle/10)
		}
		w.Write(body[len(body)*i/10 : len(body)*(i+1)/10])
	}
	if f.Cut {
		control.Flush()
		panic(http.ErrAbortHandler)
	}
}

// recorder keeps an answer for what a fault does to it. The header is that of the writer.
type recorder struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// required are the fields that openapi.json requires of the header of some answers.
var required = map[int][2]string{
	401: {"WWW-Authenticate", answer.Challenge(answer.Realm)},
	405: {"Allow", "OPTIONS"},
	415: {"Accept", "application/json"},
	429: {"Retry-After", "1"},
	500: {"X-Request-Id", "fault"},
	503: {"Retry-After", "1"},
}

// answer answers with the status of the fault.
func (f Fault) answer(w http.ResponseWriter, does string) {
	h := w.Header()
	field, isRequired := required[f.Status]
	if isRequired {
		h.Set(field[0], field[1])
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", fmt.Sprint(math.Ceil(f.RetryAfter.Seconds())))
	} else if f.RetryAfter < 0 {
		h.Del("Retry-After")
	}
	if f.Body == "" {
		answer.NewError(f.Status, "nothing was done, as a test wants it: "+does).Write(w)
		return
	}
	contentType := "text/plain; charset=utf-8"
	switch f.Body[0] {
	case '<':
		contentType = "text/html; charset=utf-8"
	case '{', '[':
		contentType = "application/json"
	}
	h.Set("Content-Type", contentType)
	w.WriteHeader(f.Status)
	io.WriteString(w, f.Body)
}

// merge puts the members of patch in place of those of text, at any depth. An object is
// merged into each element of an array; everything else replaces what it meets. Both are
// JSON, so what cannot be read as an object or array is none, and stays nil here.
func merge(text, patch []byte) []byte {
	var members, changes map[string]json.RawMessage
	var elements []json.RawMessage
	json.Unmarshal(text, &members)
	json.Unmarshal(text, &elements)
	json.Unmarshal(patch, &changes)
	switch {
	case changes != nil && members != nil:
		for name, change := range changes {
			members[name] = merge(members[name], change)
		}
		return strict.Encode(members)
	case changes != nil && elements != nil:
		for i, element := range elements {
			elements[i] = merge(element, patch)
		}
		return strict.Encode(elements)
	}
	return patch
}
