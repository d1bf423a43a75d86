package double

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

// ControlPath begins the path of every control route.
const ControlPath = "/_control"

const maxControl = 1 << 20 // bytes of a body of faults or the clock

// action does what a control request asks for. A nil answer is a 204.
type action func(userID string, body []byte) (answer any, err error)

type control struct {
	d        *Double
	token    [sha256.Size]byte
	operator http.Handler
	fail     func(http.ResponseWriter, *http.Request, error)
	routes   map[string]map[string]action // by path and method; nil is the operator's
}

// Control returns the handler of the control API, for requests that carry the
// token and come from no browser. New keys are answered with the base URL, and
// fail answers errors of the store.
func (d *Double) Control(token, baseURL string, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	get := func(f func(userID string) any) action {
		return func(userID string, _ []byte) (any, error) { return f(userID), nil }
	}
	do := func(f func(userID string) error) action {
		return func(userID string, _ []byte) (any, error) { return nil, f(userID) }
	}
	return &control{d, sha256.Sum256([]byte(token)), http.StripPrefix(ControlPath, operator.Handler(d, baseURL, fail)), fail, map[string]map[string]action{
		"/keys":      {"GET": nil, "POST": nil},
		"/keys/{id}": {"DELETE": nil},
		"/records":   {"GET": nil, "POST": nil},
		"/reset":     {"POST": do(d.Reset)},
		"/faults":    {"GET": get(d.listFaults), "PUT": d.putFaults, "DELETE": do(func(user string) error { d.replace(of(user)); return nil })},
		"/requests":  {"GET": get(d.listRequests), "DELETE": do(func(user string) error { d.ClearRequests(user); return nil })},
		"/clock":     {"GET": get(d.clock), "PUT": d.putClock},
	}}
}

// ServeHTTP is part of [http.Handler].
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	path := strings.TrimPrefix(r.URL.Path, ControlPath)
	if id, found := strings.CutPrefix(path, "/keys/"); found && strings.Trim(id, ".") != "" && !strings.Contains(id, "/") {
		path = "/keys/{id}"
	}
	methods := c.routes[path]
	do, allowed := methods[r.Method]
	allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	var err error
	switch {
	case r.Header["Origin"] != nil:
		err = &problem{http.StatusForbidden, "forbidden", "a request with an Origin comes from a browser, which the control API does not serve"}
	case !c.authorized(r.Header["Authorization"]):
		h.Set("WWW-Authenticate", `Bearer realm="control"`)
		err = &problem{http.StatusUnauthorized, "unauthorized", "missing or invalid control token; send it as Authorization: Bearer and the token"}
	case methods == nil:
		err = &problem{http.StatusNotFound, "not_found", "there is no such control route; there are /keys, /keys/{id}, /records, /reset, /faults, /requests and /clock"}
	case !allowed:
		h.Set("Allow", allow)
		err = &problem{http.StatusMethodNotAllowed, "method_not_allowed", "this method is not allowed on " + ControlPath + path + "; use " + allow}
	default:
		err = c.act(w, r, do, do != nil && path != "/clock")
	}
	if p, ok := errors.AsType[*problem](err); ok {
		writeError(w, p)
	} else if err != nil {
		c.fail(w, r, err)
	}
}

func (c *control) authorized(values []string) bool {
	scheme, token, _ := strings.Cut(strings.Join(values, ","), " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], c.token[:]) == 1
}

// act reads a request, which may name a user where it is scoped, and answers it.
func (c *control) act(w http.ResponseWriter, r *http.Request, do action, scoped bool) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	user := query["user"]
	if err != nil || len(query) > len(user) || len(user) > 1 || user != nil && (!scoped || user[0] == "") {
		return badRequest("the query must be empty or, on /reset, /faults and /requests, ?user=ID")
	}
	if do == nil {
		c.operator.ServeHTTP(w, r)
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	if err != nil {
		return &problem{http.StatusRequestEntityTooLarge, "payload_too_large", "the body must arrive whole and have at most 1 MiB"}
	}
	if len(body) > 0 && r.Method != "PUT" {
		return badRequest("the body must be empty; a user is named as ?user=ID")
	}
	userID := strings.Join(user, "")
	if err := c.d.known(userID); err != nil {
		return err
	}
	answer, err := do(userID, body)
	switch {
	case err != nil:
		return err
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
	return nil
}

// listedFault is a fault as the control API writes it.
type listedFault struct {
	Operation string `json:"operation"`
	Status    int    `json:"status"`
	Times     int    `json:"times"`
	Delay     string `json:"delay"`
	Drop      bool   `json:"drop"`
	Lose      bool   `json:"lose"`
	User      string `json:"user"`
	Hits      int    `json:"hits"`
}

// faultForm is a fault as the control API reads it; hits is not for clients.
var faultForm = form.Form[Rule]{
	form.Text("operation", func(f *Rule) *string { return &f.Operation }, nil).Required(),
	form.Int("status", func(f *Rule) *int { return &f.Status }),
	form.Int("times", func(f *Rule) *int { return &f.Times }),
	form.Duration("delay", func(f *Rule) *time.Duration { return &f.Delay }),
	form.Bool("drop", func(f *Rule) *bool { return &f.Drop }),
	form.Bool("lose", func(f *Rule) *bool { return &f.Lose }),
	form.Text("user", func(f *Rule) *string { return &f.User }, nil),
	form.Int("hits", func(f *Rule) *int { return &f.hits }),
}

func (d *Double) listFaults(userID string) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []listedFault{}
	for _, f := range d.faults {
		if of(userID)(f) {
			list = append(list, listedFault{f.Operation, f.Status, f.Times, f.Delay.String(), f.Drop, f.Lose, f.User, f.hits})
		}
	}
	return list
}

func (d *Double) putFaults(userID string, body []byte) (any, error) {
	var rules []*Rule
	var problems []string
	for v, err := range strict.Elements(body) {
		if err != nil {
			return nil, badRequest("the body is not a JSON array of faults: " + err.Error())
		}
		f := &Rule{}
		problem := strings.Join(faultForm.Fill(f, v, true, len(faultForm)-1).All(), "; ")
		if f.User = cmp.Or(f.User, userID); userID != "" && f.User != userID {
			problem = cmp.Or(problem, "user must be the one of ?user=, or left out")
		}
		if problem = cmp.Or(problem, d.problem(f)); problem != "" {
			problems = append(problems, fmt.Sprintf("fault %d: %s", len(rules)+1, problem))
		}
		rules = append(rules, f)
	}
	if problems != nil {
		return nil, badRequest(strings.Join(problems, "; "))
	}
	d.replace(of(userID), rules...)
	return d.listFaults(userID), nil
}

func (d *Double) listRequests(userID string) any {
	return map[string]any{"data": d.Requests("", userID)}
}

func (d *Double) clock(string) any { return map[string]any{"now": d.Now()} }

// clockChange is the body of a change of the clock.
type clockChange struct {
	now     time.Time
	advance time.Duration
}

var clockForm = form.Form[clockChange]{
	form.Instant("now", func(c *clockChange) *time.Time { return &c.now }),
	form.Duration("advance", func(c *clockChange) *time.Duration { return &c.advance }),
}

func (d *Double) putClock(_ string, body []byte) (any, error) {
	v, err := strict.Parse(body)
	if err != nil {
		return nil, badRequest("the body is not a JSON object: " + err.Error())
	}
	var c clockChange
	if problems := clockForm.Fill(&c, v, true, len(clockForm)).All(); problems != nil {
		return nil, badRequest(strings.Join(problems, "; "))
	}
	if c.now.IsZero() == (c.advance == 0) {
		return nil, badRequest(`the body must have one member: now, a date-time, or advance, a duration such as "1h"`)
	}
	err = d.setClock(func(now time.Time) time.Time {
		if c.now.IsZero() {
			return now.Add(c.advance)
		}
		return c.now
	})
	return d.clock(""), err
}
