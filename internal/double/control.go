package double

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

// ControlPath begins the path of every control route.
const ControlPath = "/_control"

const maxControl = 1 << 20 // bytes of a body with faults or the clock

// Control returns the handler of the control API, for requests that carry the
// token and come from no browser, or from the inspector. It answers a new key with the base URL of the
// host that the request was sent to. WriteError answers errors.
func (d *Double) Control(token string, writeError answer.WriteError) http.Handler {
	user := map[string]func(string) error{"user": d.KnownUser}
	filter := map[string]func(string) error{"user": d.KnownUser, "operation": d.KnownOperation}
	routes := operator.StoreRoutes(d, func(host string) string { return "http://" + host + d.base })
	routes = append(routes, operator.Routes{
		{Method: "POST", Path: "/reset", Do: d.postReset, Query: user},
		{Method: "GET", Path: "/faults", Do: d.getFaults, Query: user},
		{Method: "PUT", Path: "/faults", Do: d.putFaults, Query: user, MaxBody: maxControl},
		{Method: "POST", Path: "/faults", Do: d.postFault, Status: http.StatusCreated, MaxBody: maxControl},
		{Method: "DELETE", Path: "/faults", Do: d.deleteFaults, Query: user},
		{Method: "DELETE", Path: "/faults/{id}", Do: d.deleteFaults},
		{Method: "GET", Path: "/requests", Do: d.getRequests, Query: filter},
		{Method: "DELETE", Path: "/requests", Do: d.deleteRequests, Query: user},
		{Method: "GET", Path: "/clock", Do: d.getClock},
		{Method: "PUT", Path: "/clock", Do: d.putClock, MaxBody: maxControl},
	}...)
	serve := operator.Handler(ControlPath, routes, writeError)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.Begin(w.Header())
		scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		same := subtle.ConstantTimeCompare([]byte(sent), []byte(token)) == 1
		switch {
		case r.Header["Origin"] != nil && !fromInspector(r):
			writeError(w, r, &answer.Error{Status: http.StatusForbidden,
				Message: "only the inspector may send a request with an Origin, at a local address"})
		case !strings.EqualFold(scheme, "Bearer") || !same:
			writeError(w, r, answer.Unauthorized("control",
				"missing or invalid control token; send it as Authorization: Bearer and the token"))
		default:
			serve.ServeHTTP(w, r)
		}
	})
}

// fromInspector reports whether a request that a browser sent comes from the inspector of
// this double: the Origin is then the address that the request was sent to.
func fromInspector(r *http.Request) bool {
	return IsLocal(r.Host) && slices.Equal(r.Header["Origin"], []string{"http://" + r.Host})
}

// IsLocal reports whether a host, with a port or without, is an IP address, localhost or
// another name without a dot. The owner of a domain can let its name point to this machine,
// and a browser then takes what is served here for a page of that domain (DNS rebinding).
func IsLocal(host string) bool {
	u := url.URL{Host: host}
	return net.ParseIP(u.Hostname()) != nil || !strings.Contains(host, ".")
}

// IssueKey is the store's, but takes a name alone, too, and makes a new user
// of that name each time, with an email that no user has.
func (d *Double) IssueKey(request []byte) ([]byte, error) {
	var name, email string
	members := form.Form{{Name: "name", Value: &name}, {Name: "email", Value: &email}}
	v, _ := strict.Parse(request)
	if members.Fill(v, form.New).All() != nil || email != "" {
		return d.Store.IssueKey(request) // it also refuses what is wrong
	}
	for email == "" || d.server.Profile(email) != "" {
		email = d.NewID("email", name) + mailDomain
	}
	return d.Store.IssueKey(strict.Encode(map[string]string{"name": name, "email": email}))
}

// form is a fault as the control API has it.
func (f *Rule) form() form.Form {
	return form.Form{
		{Name: "id", Value: &f.ID},
		{Name: "operation", Value: &f.Operation, Flags: form.Required},
		{Name: "status", Value: &f.Status},
		{Name: "body", Value: &f.Body},
		{Name: "retry_after", Value: &f.RetryAfter},
		{Name: "after", Value: &f.After},
		{Name: "times", Value: &f.Times},
		{Name: "delay", Value: &f.Delay},
		{Name: "drop", Value: &f.Drop},
		{Name: "lose", Value: &f.Lose},
		{Name: "user", Value: &f.User},
		{Name: "hits", Value: &f.hits},
	}
}

func (d *Double) postReset(r operator.Request) ([]byte, error) {
	return nil, d.Reset(r.Query.Get("user"))
}

func (d *Double) getFaults(r operator.Request) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	match := faultOf(r.Query.Get("user"))
	list := []json.RawMessage{}
	for _, f := range d.faults {
		if match(f) {
			list = append(list, f.form().Append(nil))
		}
	}
	return strict.Encode(list), nil
}

// putFaults replaces all faults, or with ?user= those of that user, by a list. Of a
// list with a mistake it sets none.
func (d *Double) putFaults(r operator.Request) ([]byte, error) {
	user := r.Query.Get("user")
	var rules []*Rule
	for v, err := range strict.Elements(r.Body) {
		if err != nil {
			return nil, answer.BadRequest("the body is not a JSON array of faults: " + err.Error())
		}
		f, problem := d.parseFault(v, user)
		if problem != "" {
			return nil, answer.BadRequest(fmt.Sprintf("fault %d: %s", len(rules)+1, problem))
		}
		rules = append(rules, f)
	}
	d.replaceFaults(faultOf(user), rules...)
	return d.getFaults(r)
}

// parseFault reads a fault, which must be of the user, unless that is "", or returns what
// is wrong with it. Its id and hits are the server's, and are not taken.
func (d *Double) parseFault(v strict.Value, user string) (f *Rule, problem string) {
	f = &Rule{}
	problems := f.form().Fill(v, form.New).All()
	if problems != nil {
		return nil, strings.Join(problems, "; ")
	}
	f.User = cmp.Or(f.User, user)
	f.hits = 0
	return f, d.problem(f, user)
}

func (d *Double) postFault(r operator.Request) ([]byte, error) {
	v, err := strict.Parse(r.Body)
	if err != nil {
		return nil, answer.BadRequest("the body is not a JSON object: " + err.Error())
	}
	f, problem := d.parseFault(v, "")
	if problem != "" {
		return nil, answer.BadRequest(problem)
	}
	d.replaceFaults(noFault, f)
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.form().Append(nil), nil
}

// deleteFaults removes the fault with the id of the path or, without one, all faults or
// those of a user.
func (d *Double) deleteFaults(r operator.Request) ([]byte, error) {
	ofUser := faultOf(r.Query.Get("user"))
	removed := d.replaceFaults(func(f *Rule) bool { return ofUser(f) && (r.ID == "" || r.ID == f.ID) })
	if r.ID != "" && removed == 0 {
		return nil, answer.NotFound(fmt.Sprintf("fault %.80q is not set: GET /faults lists what is", r.ID))
	}
	return nil, nil
}

func (d *Double) getRequests(r operator.Request) ([]byte, error) {
	found := d.Requests(r.Query.Get("operation"), r.Query["user"])
	return strict.Encode(map[string]any{"data": found}), nil
}

func (d *Double) deleteRequests(r operator.Request) ([]byte, error) {
	d.ClearRequests(r.Query.Get("user"))
	return nil, nil
}

func (d *Double) getClock(operator.Request) ([]byte, error) {
	return strict.Encode(map[string]any{"now": d.Now()}), nil
}

func (d *Double) putClock(r operator.Request) ([]byte, error) {
	var now *time.Time
	var advance time.Duration
	members := form.Form{{Name: "now", Value: &now}, {Name: "advance", Value: &advance}}
	v, err := strict.Parse(r.Body)
	problems := members.Fill(v, form.New).All()
	switch {
	case err != nil:
		err = answer.BadRequest("the body is not a JSON object: " + err.Error())
	case problems != nil:
		err = answer.BadRequest(strings.Join(problems, "; "))
	case len(v.Members) != 1 || v.Members[0].Value.Kind == strict.Null:
		err = answer.BadRequest(`the body must have one member: now, a date-time, or advance, such as "1h"`)
	default:
		err = d.setClock(now, advance)
	}
	return strict.Encode(map[string]any{"now": d.Now()}), err
}
