package testdouble

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// This file has the faults: which are refused, which one a request takes, and their form in JSON. What a
// fault does to a request is in serve.go.

// Fault says what goes wrong with a request whose key, route and method are right. Package eventstest
// documents its fields. In JSON, Patch is an object and Delay a string such as "200ms".
type Fault struct {
	Status       int           `json:"status"`
	Body         string        `json:"body"`
	Header       http.Header   `json:"header" schema:"json"`
	Patch        string        `json:"patch" schema:"json"`
	Delay        time.Duration `json:"delay"`
	DropRequest  bool          `json:"drop_request"`
	DropResponse bool          `json:"drop_response"`
	CutResponse  bool          `json:"cut_response"`
	Skip         int           `json:"skip"`
	Times        int           `json:"times"`
	User         string        `json:"user"`
	Path         string        `json:"path"`
}

// String returns the effects of the fault: "status 503, delay 200ms", "drop_request" or "patch, header".
func (f Fault) String() string {
	effects := f.outcomes()
	if f.Status != 0 {
		effects[slices.Index(effects, "status")] = fmt.Sprint("status ", f.Status)
	}
	if len(f.Header) > 0 {
		effects = append(effects, "header")
	}
	if f.Delay > 0 {
		effects = append(effects, fmt.Sprint("delay ", f.Delay))
	}
	return strings.Join(effects, ", ")
}

// outcomes returns the names of the fields that decide about the request and its response.
func (f *Fault) outcomes() (names []string) {
	for _, outcome := range []struct {
		name string
		set  bool
	}{
		{"drop_response", f.DropResponse},
		{"status", f.Status != 0},
		{"patch", f.Patch != ""},
		{"drop_request", f.DropRequest},
		{"cut_response", f.CutResponse},
	} {
		if outcome.set {
			names = append(names, outcome.name)
		}
	}
	return names
}

// responds reports whether a request that matches the fault gets a response, or a part of one.
func (f *Fault) responds() bool { return !f.DropRequest && (!f.DropResponse || f.Status != 0) }

var (
	// validField matches a header field (RFC 9110, section 5).
	validField = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\\x00-\\x08\\x0a-\\x1f\\x7f]*$")
	// framingField matches the header fields that frame a message.
	framingField = regexp.MustCompile("(?i)^(connection|content-length|trailer|transfer-encoding):")
)

const outcomeNames = "status, patch, drop_request, drop_response and cut_response"

// problems returns all problems of the fault that don't depend on the API.
func (f *Fault) problems() (problems []string) {
	refuseIf := func(condition bool, problem string, args ...any) {
		if condition {
			problems = append(problems, fmt.Sprintf(problem, args...))
		}
	}
	outcomes := f.outcomes()
	modified := len(f.Header) > 0 || f.Delay != 0
	refuseIf(len(outcomes) == 0 && !modified,
		"the fault does nothing: set one of "+outcomeNames+", or header or delay")
	refuseIf(len(outcomes) > 1 && !slices.Equal(outcomes, []string{"drop_response", "status"}),
		"%s exclude each other: set one of "+outcomeNames+", or drop_response with status",
		strings.Join(outcomes, " and "))
	refuseIf(!f.responds() && modified,
		"header and delay need a response: set status, patch or cut_response, or drop_response with status")
	minStatus := 400
	if f.Body != "" {
		minStatus = 200
	}
	bodiless := slices.Contains([]int{204, 205, 304}, f.Status) // RFC 9110, section 6.4.1
	refuseIf(f.Status != 0 && (f.Status < minStatus || f.Status > 599 || bodiless),
		"status must be 400 to 599, or with body 200 to 599, but not 204, 205 or 304")
	refuseIf(f.Body != "" && f.Status == 0, "body needs status: also set status")
	refuseIf(f.Patch != "" && !isObject(f.Patch),
		`patch must be a JSON object of at most 1,000 values, such as {"title":null}`)
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		field := name + ": " + strings.Join(f.Header[name], ", ")
		refuseIf(!validField.MatchString(field) || framingField.MatchString(field),
			"header %.40q is malformed or frames the message: leave it out", field)
	}
	refuseIf(f.Delay < 0 || f.Skip < 0 || f.Times < 0, "delay, skip and times must not be negative")
	return problems
}

func isObject(text string) bool {
	v, err := strict.Parse([]byte(text))
	return err == nil && v.Kind == strict.Object
}

// ActiveFault is a fault that was added to a double.
type ActiveFault struct {
	Fault
	session   *session
	id        string // such as flt_1
	operation string
	active    context.Context // done when the fault is removed
	remove    context.CancelFunc

	matches int // number of requests that matched, including skipped ones; the session's mutex guards it
}

// AddFault adds a fault for an operation after all others.
func (d *Double) AddFault(operation string, f Fault) (*ActiveFault, error) {
	s := d.session.Load()
	active, err := s.newFault(operation, f)
	if err != nil {
		return nil, err
	}
	s.addFault(active)
	return active, nil
}

// ClearFaults removes all faults. Requests that are delayed get their responses.
func (d *Double) ClearFaults() { d.session.Load().setFaults(nil) }

// Hits returns the number of requests that the fault was applied to.
func (f *ActiveFault) Hits() int {
	f.session.mu.Lock()
	defer f.session.mu.Unlock()
	return f.hitsLocked()
}

func (f *ActiveFault) hitsLocked() int { return max(0, f.matches-f.Skip) }

// Clear removes the fault. Requests that it delays get their responses.
func (f *ActiveFault) Clear() { f.session.removeFault(f.id) }

// newFault returns a fault, or an error with all its problems.
func (s *session) newFault(operation string, f Fault) (*ActiveFault, error) {
	problems := f.problems()
	unknown := s.checkOperation(operation)
	if unknown != nil {
		problems = append([]string{unknown.Error()}, problems...)
	}
	_, pattern, _ := strings.Cut(operation, " ")
	pathOK, _ := path.Match(strings.ReplaceAll(pattern, "{id}", "?*"), f.Path)
	if unknown == nil && f.Path != "" && !pathOK {
		problems = append(problems, fmt.Sprintf("path %.80q must have the form %s, without %s",
			f.Path, pattern, s.basePath))
	}
	if f.User != "" {
		err := s.checkUser(f.User)
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if problems != nil {
		return nil, httpapi.BadRequest(strings.Join(problems, "; "))
	}
	f.Header = f.Header.Clone() // the caller may change it later
	active, remove := context.WithCancel(context.Background())
	active.Done() // creates its channel here, not in the synctest bubble of a request
	return &ActiveFault{Fault: f, session: s, operation: operation, active: active, remove: remove}, nil
}

// addFault adds a fault after all others.
func (s *session) addFault(f *ActiveFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addFaultLocked(f)
}

func (s *session) addFaultLocked(f *ActiveFault) {
	s.faultIDs++
	f.id = fmt.Sprint("flt_", s.faultIDs)
	s.faults = append(s.faults, f)
}

// setFaults replaces all faults.
func (s *session) setFaults(faults []*ActiveFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		f.remove()
	}
	s.faults = nil
	for _, f := range faults {
		s.addFaultLocked(f)
	}
}

// removeFault removes the fault with an ID, and reports whether there is one.
func (s *session) removeFault(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *ActiveFault) bool { return f.id == id })
	if i < 0 {
		return false
	}
	s.faults[i].remove()
	s.faults = slices.Delete(s.faults, i, i+1)
	return true
}

// takeFault returns the first fault that applies to a request, or nil. It counts the request. The response
// to a HEAD has no body to cut.
func (s *session) takeFault(r httpapi.Request) *ActiveFault {
	requestPath := strings.TrimPrefix(r.URL.Path, s.basePath)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.operation != r.Operation ||
			f.User != "" && f.User != r.Caller.UserID ||
			f.Path != "" && f.Path != requestPath ||
			f.CutResponse && r.Method == "HEAD" ||
			f.Times > 0 && f.matches == f.Skip+f.Times {
			continue
		}
		f.matches++
		if f.matches > f.Skip {
			return f
		}
	}
	return nil
}

// faultJSON is a fault in the control API.
type faultJSON struct {
	ID        string `json:"id"`
	Operation string `json:"operation" schema:"required"`
	Fault
	Hits int `json:"hits"`
}

var faultSchema = schema.Of(faultJSON{}, nil)

// encodeLocked returns the fault for the control API.
func (f *ActiveFault) encodeLocked() json.RawMessage {
	return strict.Encode(struct {
		faultJSON
		Patch json.RawMessage `json:"patch"`
		Delay string          `json:"delay"`
	}{
		faultJSON: faultJSON{ID: f.id, Operation: f.operation, Fault: f.Fault, Hits: f.hitsLocked()},
		Patch:     json.RawMessage(cmp.Or(f.Patch, "null")),
		Delay:     f.Delay.String(),
	})
}

// decodeFault decodes a fault of the control API. It ignores id and hits, so clients can send faults
// that the control API has returned.
func (s *session) decodeFault(text []byte) (*ActiveFault, error) {
	var in faultJSON
	problems := faultSchema.Unmarshal(text, &in, schema.New).All()
	if problems != nil {
		return nil, httpapi.BadRequest(strings.Join(problems, "; "))
	}
	var rest struct { // the fields that the schema leaves out
		Header http.Header
		Patch  json.RawMessage
	}
	err := json.Unmarshal(text, &rest)
	if err != nil {
		return nil, httpapi.BadRequest(`header must have a list of strings for each name: {"X-A":["b"]}`)
	}
	in.Header = rest.Header
	in.Patch = strings.TrimPrefix(string(rest.Patch), "null")
	return s.newFault(in.Operation, in.Fault)
}
