package double

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

// ControlPath begins the path of every control route.
const ControlPath = "/_control"

const maxControl = 1 << 20 // bytes of a body of faults or the clock

// Control returns the handler of the control API, for requests that carry the
// token and come from no browser. New keys are answered with the base URL, and
// fail answers errors.
func (d *Double) Control(token, baseURL string, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	routes := operator.StoreRoutes(d, baseURL)
	routes["/reset"] = map[string]operator.Route{
		"POST": {User: d.Known, Do: func(r operator.Request) ([]byte, error) { return nil, d.Reset(r.User) }},
	}
	routes["/faults"] = map[string]operator.Route{
		"GET":    {Status: http.StatusOK, User: d.Known, Do: func(r operator.Request) ([]byte, error) { return d.listFaults(r.User), nil }},
		"PUT":    {Status: http.StatusOK, User: d.Known, MaxBody: maxControl, Do: d.putFaults},
		"DELETE": {User: d.Known, Do: func(r operator.Request) ([]byte, error) { d.replace(of(r.User)); return nil, nil }},
	}
	routes["/requests"] = map[string]operator.Route{
		"GET": {Status: http.StatusOK, User: d.Known, Do: func(r operator.Request) ([]byte, error) {
			return strict.Encode(map[string]any{"data": d.Requests("", r.User)}), nil
		}},
		"DELETE": {User: d.Known, Do: func(r operator.Request) ([]byte, error) { d.ClearRequests(r.User); return nil, nil }},
	}
	routes["/clock"] = map[string]operator.Route{
		"GET": {Status: http.StatusOK, Do: func(operator.Request) ([]byte, error) { return d.clock(), nil }},
		"PUT": {Status: http.StatusOK, MaxBody: maxControl, Do: d.putClock},
	}
	serve := operator.Handler(ControlPath, routes, fail)
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.Begin(w.Header())
		scheme, token, _ := strings.Cut(strings.Join(r.Header["Authorization"], ","), " ")
		got := sha256.Sum256([]byte(token))
		switch {
		case r.Header["Origin"] != nil:
			fail(w, r, &answer.Error{Status: http.StatusForbidden, Code: "forbidden",
				Message: "a request with an Origin comes from a browser, which the control API does not serve"})
		case !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) == 0:
			fail(w, r, answer.Unauthorized("control", "missing or invalid control token; send it as Authorization: Bearer and the token"))
		default:
			serve.ServeHTTP(w, r)
		}
	})
}

// form is a fault as the control API has it.
func (f *Rule) form() form.Form {
	return form.Form{
		{Name: "operation", Value: &f.Operation, Flags: form.Required},
		{Name: "status", Value: &f.Status},
		{Name: "times", Value: &f.Times},
		{Name: "delay", Value: &f.Delay},
		{Name: "drop", Value: &f.Drop},
		{Name: "lose", Value: &f.Lose},
		{Name: "user", Value: &f.User},
		{Name: "hits", Value: &f.hits, Flags: form.Server},
	}
}

func (d *Double) listFaults(userID string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []json.RawMessage{}
	for _, f := range d.faults {
		if of(userID)(f) {
			list = append(list, f.form().Append(nil))
		}
	}
	return strict.Encode(list)
}

func (d *Double) putFaults(r operator.Request) ([]byte, error) {
	var rules []*Rule
	var problems []string
	for v, err := range strict.Elements(r.Body) {
		if err != nil {
			return nil, answer.BadRequest("the body is not a JSON array of faults: " + err.Error())
		}
		f := &Rule{}
		problem := strings.Join(f.form().Fill(v, form.Client).All(), "; ")
		if f.User = cmp.Or(f.User, r.User); r.User != "" && f.User != r.User {
			problem = cmp.Or(problem, "user must be the one of ?user=, or left out")
		}
		if problem = cmp.Or(problem, d.problem(f)); problem != "" {
			problems = append(problems, fmt.Sprintf("fault %d: %s", len(rules)+1, problem))
		}
		rules = append(rules, f)
	}
	if problems != nil {
		return nil, answer.BadRequest(strings.Join(problems, "; "))
	}
	d.replace(of(r.User), rules...)
	return d.listFaults(r.User), nil
}

func (d *Double) clock() []byte { return strict.Encode(map[string]any{"now": d.Now()}) }

// clockChange is the body of a change of the clock.
type clockChange struct {
	now     time.Time
	advance time.Duration
}

func (c *clockChange) form() form.Form {
	return form.Form{
		{Name: "now", Value: &c.now},
		{Name: "advance", Value: &c.advance},
	}
}

func (d *Double) putClock(r operator.Request) ([]byte, error) {
	v, err := strict.Parse(r.Body)
	if err != nil {
		return nil, answer.BadRequest("the body is not a JSON object: " + err.Error())
	}
	var c clockChange
	if problems := c.form().Fill(v, form.New).All(); problems != nil {
		return nil, answer.BadRequest(strings.Join(problems, "; "))
	}
	if len(v.Members) != 1 || v.Members[0].Value.Kind == strict.Null {
		return nil, answer.BadRequest(`the body must have one member: now, a date-time, or advance, a duration such as "1h"`)
	}
	err = d.setClock(func(now time.Time) time.Time {
		if v.Members[0].Name == "now" {
			return c.now
		}
		return now.Add(c.advance)
	})
	return d.clock(), err
}
