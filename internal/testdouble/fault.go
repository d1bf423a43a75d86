package testdouble

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

// Fault changes what happens to requests for one operation. Package eventstest documents its fields, and
// serve.go applies it.
type Fault struct {
	Status       int           `json:"status"`
	Body         string        `json:"body"`
	Header       http.Header   `json:"header"`
	Patch        string        `json:"patch"`
	Delay        time.Duration `json:"delay"`
	DropRequest  bool          `json:"drop_request"`
	DropResponse bool          `json:"drop_response"`
	CutResponse  bool          `json:"cut_response"`
	Skip         int           `json:"skip"`
	Times        int           `json:"times"`
	UserID       string        `json:"user_id"`
	Path         string        `json:"path"`
}

// String returns the effects, such as "status 503, delay 200ms" or "drop_request".
func (f Fault) String() string {
	var texts []string
	for _, e := range f.effects() {
		if e.set {
			texts = append(texts, e.text)
		}
	}
	if len(f.Header) > 0 {
		texts = append(texts, "header")
	}
	if f.Delay != 0 {
		texts = append(texts, fmt.Sprint("delay ", f.Delay))
	}
	return strings.Join(texts, ", ")
}

// effect is something that a fault can do.
type effect struct {
	name string
	text string // name with the value, if that says more
	set  bool
}

// effects returns the effects, in the order in which texts name them. A fault has at most one of them, except
// for drop_response with status. A header or a delay can go with it or stand alone.
func (f *Fault) effects() []effect {
	return []effect{
		{"patch", "patch", f.Patch != ""},
		{"drop_request", "drop_request", f.DropRequest},
		{"drop_response", "drop_response", f.DropResponse},
		{"cut_response", "cut_response", f.CutResponse},
		{"status", fmt.Sprint("status ", f.Status), f.Status != 0},
	}
}

// losesResponse reports whether the API handles the request, but the client doesn't get its whole response.
func (f *Fault) losesResponse() bool { return f.DropResponse || f.CutResponse }

var (
	// validName and validValue match the parts of a header field (RFC 9110, section 5).
	validName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	validValue = regexp.MustCompile(`^[^\x00-\x08\x0a-\x1f\x7f]*$`)
	// framingName matches the header fields that frame a message.
	framingName = regexp.MustCompile("(?i)^(connection|content-length|trailer|transfer-encoding)$")
)

const patchRule = `must be a JSON object of at most 1,000 values, with each name once, such as {"title":null}`

// hasRepeats reports whether an object in v has two members with the same name.
func hasRepeats(v strict.Value) bool {
	names := map[string]bool{}
	for _, m := range v.Members {
		if v.Kind == strict.Object && names[m.Name] || hasRepeats(m.Value) {
			return true
		}
		names[m.Name] = true
	}
	return false
}

// problems returns all problems that don't depend on the API.
func (f *Fault) problems() (problems []string) {
	refuseIf := func(condition bool, problem string, args ...any) {
		if condition {
			problems = append(problems, fmt.Sprintf(problem, args...))
		}
	}
	var names, found []string // of effects
	for _, e := range f.effects() {
		names = append(names, e.name)
		if e.set {
			found = append(found, e.name)
		}
	}
	all := strings.Join(names, ", ")
	modified := len(f.Header) > 0 || f.Delay != 0
	refuseIf(len(found) == 0 && !modified, "the fault does nothing: set %s, header or delay", all)
	refuseIf(len(found) > 1 && !slices.Equal(found, []string{"drop_response", "status"}),
		"%s can't be combined: set only one of %s, or drop_response with status",
		strings.Join(found, " and "), all)
	refuseIf(modified && (f.DropRequest || f.DropResponse && f.Status == 0), // status replaces the response
		"header and delay need a response: set status, patch or cut_response, or drop_response with status")
	refuseIf(f.Status != 0 && (f.Status < 200 || f.Status > 599), "status must be 200 to 599")
	refuseIf(f.DropResponse && f.Status >= 200 && f.Status < 400,
		"status must be 400 to 599 with drop_response")
	refuseIf(f.Body != "" && f.Status == 0, "body needs status: also set status")
	bodiless := slices.Contains([]int{204, 205, 304}, f.Status) // RFC 9110, section 6.4.1
	refuseIf(f.Body != "" && bodiless, "body can't be sent with status %d: leave it out", f.Status)
	patch, err := strict.Parse([]byte(f.Patch))
	refuseIf(f.Patch != "" && (err != nil || patch.Kind != strict.Object || hasRepeats(patch)),
		"patch "+patchRule)
	canonical := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		value := strings.Join(f.Header[name], ", ")
		refuseIf(!validName.MatchString(name) || !validValue.MatchString(value),
			"header %.40q is malformed: leave it out", name+": "+value)
		refuseIf(framingName.MatchString(name), "header %.40q frames the message: leave it out", name)
		key := http.CanonicalHeaderKey(name)
		refuseIf(canonical[key], "header %.40q is given twice, in different case: leave one out", name)
		canonical[key] = true
	}
	refuseIf(f.Delay < 0 || f.Skip < 0 || f.Times < 0, "delay, skip and times must not be negative")
	return problems
}

// InjectedFault is a fault of a double.
type InjectedFault struct {
	Fault
	double    *Double
	id        string // such as flt_1
	operation string

	// These are guarded by the double's mutex.
	selected int                              // number of selected requests, including skipped ones
	delays   map[*exchange]context.CancelFunc // end the delays of requests
	removed  bool
}

// noFault does nothing.
var noFault = &InjectedFault{}

// AddFault adds a fault for an operation.
func (d *Double) AddFault(operation string, f Fault) (*InjectedFault, error) {
	active, err := d.newFault(operation, f)
	if err == nil {
		d.replaceFaults(noFaults, active)
	}
	return active, err
}

// describe returns the fault with the requests that it waits for.
func (f *InjectedFault) describe() string {
	text := f.String() + " for " + f.operation
	if f.UserID != "" {
		text += " of " + f.UserID
	}
	if f.Path != "" {
		text += " with path " + f.Path
	}
	if f.Skip > 0 {
		f.double.mu.Lock()
		text += fmt.Sprintf(", skip %d (requests so far: %d)", f.Skip, f.selected)
		f.double.mu.Unlock()
	}
	return text
}

// Hits returns the number of requests that the fault applied to.
func (f *InjectedFault) Hits() int {
	f.double.mu.Lock()
	defer f.double.mu.Unlock()
	return max(0, f.selected-f.Skip)
}

// Clear removes the fault, which ends its delays.
func (f *InjectedFault) Clear() {
	f.double.replaceFaults(func(other *InjectedFault) bool { return other == f })
}

// newFault creates a fault, or returns an error with all its problems.
func (d *Double) newFault(operation string, f Fault) (*InjectedFault, error) {
	problems := f.problems()
	unknown := d.checkOperation(operation)
	if unknown != nil {
		problems = append([]string{unknown.Error()}, problems...)
	}
	method, form, _ := strings.Cut(operation, " ")
	mux := d.api.Mux()
	matched := mux.Find(method, &url.URL{Path: mux.Base() + f.Path})
	if unknown == nil && f.Path != "" && matched != operation {
		problems = append(problems,
			fmt.Sprintf("path %.80q must have the form %s, without %s", f.Path, form, mux.Base()))
	}
	if f.UserID != "" {
		err := d.checkUser(f.UserID)
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if problems != nil {
		return nil, httpapi.BadRequest(strings.Join(problems, "; "))
	}
	f.Header = f.Header.Clone() // the caller may change it later
	delays := map[*exchange]context.CancelFunc{}
	return &InjectedFault{Fault: f, double: d, operation: operation, delays: delays}, nil
}

// replaceFaults removes matching faults and adds others, in one step. It returns the removed faults.
func (d *Double) replaceFaults(
	match func(*InjectedFault) bool, added ...*InjectedFault,
) (old []*InjectedFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = slices.DeleteFunc(d.faults, func(f *InjectedFault) bool {
		if !match(f) {
			return false
		}
		f.removed = true
		for _, cancel := range f.delays {
			cancel()
		}
		old = append(old, f)
		return true
	})
	d.open = slices.DeleteFunc(d.open, func(c *openCreate) bool { return c.fault.removed })
	for _, f := range added {
		d.faultIDs++
		f.id = fmt.Sprint("flt_", d.faultIDs)
		d.faults = append(d.faults, f)
	}
	return old
}

func allFaults(*InjectedFault) bool { return true }
func noFaults(*InjectedFault) bool  { return false }

// takeFault returns the fault that applies to a request, or one that does nothing. It counts the request.
// cut_response never selects a HEAD request, whose response has no body.
func (d *Double) takeFault(r httpapi.Request) *InjectedFault {
	requestPath := strings.TrimPrefix(r.URL.Path, d.api.Mux().Base())
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.faults {
		if f.operation != r.Operation ||
			f.UserID != "" && f.UserID != r.Caller.UserID ||
			f.Path != "" && f.Path != requestPath ||
			f.CutResponse && r.Method == "HEAD" ||
			f.Times > 0 && f.selected == f.Skip+f.Times {
			continue
		}
		f.selected++
		if f.selected > f.Skip {
			return f
		}
	}
	return noFault
}
