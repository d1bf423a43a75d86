package double

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/strict"
)

// Fault is what goes wrong, as package eventstest documents it. The tags name what the control API
// has in the same form: the rest is in [injectionJSON].
type Fault struct {
	Status int           `json:"status"`
	Body   string        `json:"body"`
	Header http.Header   `json:"header" form:"json"`
	Patch  string        `json:"-" form:"-"`
	Delay  time.Duration `json:"delay"`
	Drop   bool          `json:"drop"`
	Lose   bool          `json:"lose"`
	Cut    bool          `json:"cut"`
	After  int           `json:"after"`
	Times  int           `json:"times"`
	User   string        `json:"user"`
	Path   string        `json:"path"`
}

// member is what a member of a fault is for. The messages about faults and the texts that say
// what a fault does are made of [members], and tests compare the documents and the inspector
// with them.
type member struct {
	name string // in the control API
	role role
	// given reports whether the fault has it.
	given func(f *Fault) bool
	// does is what it does, in the journal; nil if it only adds to another member.
	does func(f *Fault) string
	// amount is what must not be negative, or nil.
	amount func(f *Fault) int64
}

// role is what a member of a fault says.
type role int

const (
	outcome role = iota // what becomes of the request and of its answer: one of these, or none
	manner              // what else happens to the answer: it is enough by itself
	content             // what an answer with a status holds
	count               // how many requests meet it
	match               // which requests meet it
)

// members are all members of a fault, in the order of what they do.
var members = []member{
	{name: "lose", role: outcome,
		given: func(f *Fault) bool { return f.Lose },
		does:  func(f *Fault) string { return "lose" }},
	{name: "status", role: outcome,
		given: func(f *Fault) bool { return f.Status != 0 },
		does:  func(f *Fault) string { return fmt.Sprint("status ", f.Status) }},
	{name: "patch", role: outcome,
		given: func(f *Fault) bool { return f.Patch != "" },
		does:  func(f *Fault) string { return "patch" }},
	{name: "drop", role: outcome,
		given: func(f *Fault) bool { return f.Drop },
		does:  func(f *Fault) string { return "drop" }},
	{name: "cut", role: outcome,
		given: func(f *Fault) bool { return f.Cut },
		does:  func(f *Fault) string { return "cut" }},
	{name: "header", role: manner,
		given: func(f *Fault) bool { return len(f.Header) > 0 },
		does:  func(f *Fault) string { return "header" }},
	{name: "delay", role: manner,
		given:  func(f *Fault) bool { return f.Delay > 0 },
		does:   func(f *Fault) string { return fmt.Sprint("delay ", f.Delay) },
		amount: func(f *Fault) int64 { return int64(f.Delay) }},
	{name: "body", role: content,
		given: func(f *Fault) bool { return f.Body != "" }},
	{name: "after", role: count,
		given:  func(f *Fault) bool { return f.After != 0 },
		amount: func(f *Fault) int64 { return int64(f.After) }},
	{name: "times", role: count,
		given:  func(f *Fault) bool { return f.Times != 0 },
		amount: func(f *Fault) int64 { return int64(f.Times) }},
	{name: "user", role: match,
		given: func(f *Fault) bool { return f.User != "" }},
	{name: "path", role: match,
		given: func(f *Fault) bool { return f.Path != "" }},
}

// namesOf are the names of the members for which is is true.
func namesOf(is func(member) bool) (names []string) {
	for _, m := range members {
		if is(m) {
			names = append(names, m.name)
		}
	}
	return names
}

// listed writes names as a sentence does: "drop, lose and cut".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func hasRole(roles ...role) func(member) bool {
	return func(m member) bool { return slices.Contains(roles, m.role) }
}

// given are the members of these roles that the fault has.
func (f *Fault) given(roles ...role) []string {
	isOf := hasRole(roles...)
	return namesOf(func(m member) bool { return isOf(m) && m.given(f) })
}

// String is what the fault does, as the [FaultHeader] and the journal have
// it: "status 503, delay 200ms", "drop", "patch, header" or "delay 1s".
func (f Fault) String() string {
	var does []string
	for _, m := range members {
		if m.does != nil && m.given(&f) {
			does = append(does, m.does(&f))
		}
	}
	return strings.Join(does, ", ")
}

// isCarriedOut reports whether a request that meets the fault is carried out.
func (f *Fault) isCarriedOut() bool { return !f.Drop && (f.Status == 0 || f.Lose) }

// isAnswered reports whether a request that meets the fault is answered, be it in part.
func (f *Fault) isAnswered() bool { return !f.Drop && (f.Status != 0 || !f.Lose) }

var (
	// validField is the form of a header field (RFC 9110, section 5).
	validField = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\\x00-\\x08\\x0a-\\x1f\\x7f]*$")
	// framing are the fields that frame a message, which must be true.
	framing = regexp.MustCompile("(?i)^(connection|content-length|trailer|transfer-encoding):")
)

// problems are what is wrong with the fault by itself: sentences that begin with a member as
// the control API names it.
func (f *Fault) problems() (problems []string) {
	must := func(is bool, problem string, names ...any) {
		if !is {
			problems = append(problems, fmt.Sprintf(problem, names...))
		}
	}
	outcomes := f.given(outcome)
	least := 400
	if f.Body != "" {
		least = 200
	}
	isBodiless := slices.Contains([]int{204, 205, 304}, f.Status) // by RFC 9110
	must(f.Status == 0 || f.Status >= least && f.Status <= 599 && !isBodiless,
		"status must be from 400 to 599, or with a body from 200 to 599, but not 204, 205 or 304")
	must(f.Status != 0 || len(f.given(content)) == 0, "body needs status")
	must(f.Patch == "" || isObject(f.Patch), "patch must be a JSON object")
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		field := name + ": " + strings.Join(f.Header[name], ", ")
		must(validField.MatchString(field) && !framing.MatchString(field),
			"header %.40q is malformed, or frames the message, so it cannot be set", field)
	}
	negative := func(m member) bool { return m.amount != nil && m.amount(f) < 0 }
	must(len(namesOf(negative)) == 0, "%s must not be negative", listed(namesOf(negative)))
	must(len(outcomes) < 2 || slices.Equal(outcomes, []string{"lose", "status"}),
		"%s exclude each other, but for lose with status", listed(namesOf(hasRole(outcome))))
	must(len(f.given(outcome, manner)) > 0,
		"one of %s is required", listed(namesOf(hasRole(outcome, manner))))
	must(f.isAnswered() || len(f.Header) == 0,
		"header needs an answer, which drop, and lose without status, do not send")
	return problems
}

func isObject(text string) bool {
	v, err := strict.Parse([]byte(text))
	return err == nil && v.Kind == strict.Object
}

// Injection is a fault that was set for an operation. The double's mutex guards its counts.
type Injection struct {
	ID        string // such as flt_1
	Operation string
	Fault
	Hits    int // requests that met it, counted once what they do in the store is done
	matches int // requests that fit it: the first After of them pass, the next Times meet it
}

// isFor reports whether the fault is one for a request and is not used up.
func (f *Injection) isFor(c *call) bool {
	isHere := f.Operation == c.operation && (f.Path == "" || f.Path == c.path)
	isOf := f.User == "" || f.User == c.user
	isLeft := f.Times == 0 || f.matches-f.After < f.Times
	return isHere && isOf && isLeft
}

// check returns all that is wrong with a fault.
func (d *Double) check(f *Injection) error {
	var problems []string
	err := d.KnownOperation(f.Operation)
	if err != nil {
		problems = append(problems, err.Error())
	}
	problems = append(problems, f.problems()...)
	_, pattern, _ := strings.Cut(f.Operation, " ")
	isPath, _ := path.Match(strings.ReplaceAll(pattern, "{id}", "?*"), f.Path)
	if f.Path != "" && !isPath && err == nil {
		problems = append(problems, fmt.Sprintf("path %.80q must be of the form %s, without %s",
			f.Path, pattern, d.base))
	}
	if f.User != "" {
		err := d.KnownUser(f.User)
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if problems != nil {
		return answer.BadRequest(strings.Join(problems, "; "))
	}
	return nil
}

// faults are those that are set, in their order, and the requests that meet them. The
// double's mutex guards them.
type faults struct {
	list  []*Injection
	count int // how many were set so far
	holds map[*hold]bool
}

// add adds faults at the end of the list, each with an id of its own and no hits.
func (fs *faults) add(list []*Injection) {
	for _, f := range list {
		fs.count++
		f.ID = fmt.Sprint("flt_", fs.count)
	}
	fs.list = append(fs.list, list...)
}

// remove removes faults, and returns how many there were. Requests that they hold wait no
// longer, but the rest of the fault is done to them all the same.
func (fs *faults) remove(match func(*Injection) bool) (removed int) {
	for h := range fs.holds {
		if h.injection != nil && match(h.injection) {
			h.release()
		}
	}
	before := len(fs.list)
	fs.list = slices.DeleteFunc(fs.list, match)
	return before - len(fs.list)
}

// Fail sets a fault, to be used after those that are set already.
func (d *Double) Fail(operation string, f Fault) (*Injection, error) {
	f.Header = f.Header.Clone() // a test may go on using its own
	injection := &Injection{Operation: operation, Fault: f}
	err := d.check(injection)
	if err == nil {
		d.addFaults(injection)
	}
	return injection, err
}

// addFaults adds faults at the end of the list.
func (d *Double) addFaults(list ...*Injection) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.faults.add(list)
}

// replaceFaults puts faults in place of all others. Each request sees either the old list or the new
// one, never a part of both.
func (d *Double) replaceFaults(list []*Injection) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.faults.remove(func(*Injection) bool { return true })
	d.faults.add(list)
}

// Clear removes the fault with this id or, if it is "", all faults. It returns how many it removed.
// Requests that they hold wait no longer, but the rest of the fault is done to them all the same.
func (d *Double) Clear(id string) (removed int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.faults.remove(func(f *Injection) bool { return id == "" || id == f.ID })
}

// Hits is how many requests a fault met. A request counts once its body was read and what the
// fault leaves of it is carried out, so that the journal has the body of each that is counted,
// and the store what it did.
func (d *Double) Hits(f *Injection) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return f.Hits
}

// injectionJSON is an injection in the control API. The rules of its members that concern more
// than a type are in [Fault.problems].
type injectionJSON struct {
	ID        string `json:"id"`
	Operation string `json:"operation" form:"required"`
	Fault
	Patch json.RawMessage `json:"patch" form:"json"`
	Hits  int             `json:"hits"`
}

// MarshalJSON returns the fault as the control API has it.
func (f Injection) MarshalJSON() ([]byte, error) {
	out := injectionJSON{
		ID:        f.ID,
		Operation: f.Operation,
		Fault:     f.Fault,
		Patch:     json.RawMessage(cmp.Or(f.Patch, "null")),
		Hits:      f.Hits,
	}
	return strict.Encode(struct {
		injectionJSON
		Delay string `json:"delay"`
	}{
		out,
		f.Delay.String(),
	}), nil
}

// parseFault reads a fault. Its id and hits are the double's, so what the text says of them is
// dropped.
func (d *Double) parseFault(object []byte) (*Injection, error) {
	var in injectionJSON
	_, err := fill(&in, object)
	if err != nil {
		return nil, err
	}
	var values struct { // which the form does not read
		Header http.Header
		Patch  json.RawMessage
	}
	if json.Unmarshal(object, &values) != nil {
		return nil, answer.BadRequest(`header must have a list of strings for each name: {"X-A":["b"]}`)
	}
	f := &Injection{Operation: in.Operation, Fault: in.Fault}
	f.Header = values.Header
	f.Patch = strings.TrimPrefix(string(values.Patch), "null")
	return f, d.check(f)
}

// SetFaults replaces all faults by a JSON array. If one of them is wrong, it changes nothing; the error
// says what is wrong with each of the first [maxProblems] such faults.
func (d *Double) SetFaults(array []byte) error {
	var objects []json.RawMessage
	if json.Unmarshal(array, &objects) != nil || objects == nil { // nil: it was null
		return answer.BadRequest("faults must be a JSON array of objects; [] removes all")
	}
	var list []*Injection
	var problems []string
	for i, object := range objects {
		f, err := d.parseFault(object)
		if err != nil && len(problems) < maxProblems {
			problems = append(problems, fmt.Sprintf("fault %d: %v", i+1, err))
		}
		list = append(list, f)
	}
	if problems != nil {
		return answer.BadRequest(strings.Join(problems, "; "))
	}
	d.replaceFaults(list)
	return nil
}
