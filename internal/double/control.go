package double

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

// ControlPath begins the path of every control route.
const ControlPath = "/_control"

const (
	maxControl = 1 << 20 // bytes of a body with faults or the clock
	maxWait    = time.Minute
)

// Control returns the handler of the control API, for requests that carry the
// token and come from no browser, or from the inspector. It answers a new key with the base
// URL of the host that the request was sent to. The function report logs what is
// done to the store, and writeError answers errors.
func (d *Double) Control(token string, report operator.Report, writeError answer.WriteError) http.Handler {
	user := map[string]func(string) error{"user": d.KnownUser}
	anything := func(string) error { return nil } // getRequests checks it
	filter := map[string]func(string) error{
		"user":      d.KnownUser,
		"operation": d.KnownOperation,
		"count":     anything,
		"wait":      anything,
	}
	reset := func(r operator.Request) (any, error) {
		return nil, d.Reset(r.Query.Get("user"))
	}
	deleteRequests := func(r operator.Request) (any, error) {
		d.ClearRequests(r.Query.Get("user"))
		return nil, nil
	}
	routes := operator.StoreRoutes(d, report, d.base)
	routes = append(routes, operator.Routes{
		{Operation: "POST /reset", Do: reset, Query: user},
		{Operation: "GET /faults", Do: d.getFaults, Query: user},
		{Operation: "PUT /faults", Do: d.putFaults, Query: user, MaxBody: maxControl},
		{Operation: "POST /faults", Do: d.postFault, Status: 201, MaxBody: maxControl},
		{Operation: "DELETE /faults", Do: d.deleteFaults, Query: user},
		{Operation: "DELETE /faults/{id}", Do: d.deleteFaults},
		{Operation: "GET /requests", Do: d.getRequests, Query: filter},
		{Operation: "DELETE /requests", Do: deleteRequests, Query: user},
		{Operation: "GET /clock", Do: d.getClock},
		{Operation: "PUT /clock", Do: d.putClock, MaxBody: maxControl},
	}...)
	check := func(r *http.Request) error { return checkSender(r, token) }
	return operator.Handler(ControlPath, routes, check, writeError)
}

// checkSender returns an error unless a request may use the control API.
func checkSender(r *http.Request, token string) error {
	// From the inspector of this double, the Origin is the address that the request was sent to.
	isInspector := IsLocal(r.Host) && slices.Equal(r.Header["Origin"], []string{"http://" + r.Host})
	if r.Header["Origin"] != nil && !isInspector {
		return answer.NewError(403,
			"only the inspector may send a request with an Origin, at a local address")
	}
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	isToken := subtle.ConstantTimeCompare([]byte(sent), []byte(token)) == 1
	if isToken && strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	return answer.Unauthorized("control",
		"missing or invalid control token; send it as Authorization: Bearer and the token")
}

// IsLocal reports whether a host, with a port or without, is an IP address, localhost or
// another name without a dot. The owner of a domain can let its name point to this machine,
// and a browser then takes what is served here for a page of that domain (DNS rebinding).
func IsLocal(host string) bool {
	u := url.URL{Host: host}
	return net.ParseIP(u.Hostname()) != nil || !strings.Contains(host, ".")
}

// IssueKey issues a key as the server does, and takes {"name","fresh"}, too: it makes a user of
// that name.
func (d *Double) IssueKey(request []byte) (map[string]string, error) {
	var in struct {
		Name   string `json:"name"`
		Email  string `json:"email"`
		UserID string `json:"user_id"`
		Fresh  bool   `json:"fresh"`
	}
	_, err := fill(&in, request)
	switch {
	case err != nil:
		return nil, err
	case in.Email == "" && in.UserID == "":
		in.UserID, err = d.NewUser(in.Name, in.Fresh)
		if err != nil {
			return nil, err
		}
		in.Name = "" // the user has it
	case in.Fresh:
		return nil, answer.BadRequest("fresh goes with a name alone, not with email or user_id")
	}
	return d.Server.IssueKey(strict.Encode(map[string]string{
		"name":    in.Name,
		"email":   in.Email,
		"user_id": in.UserID,
	}))
}

// fill reads a JSON object into a struct, as package form does.
func fill(in any, object []byte) (strict.Value, error) {
	v, problems := form.Read(in, object)
	if problems != nil {
		return v, answer.BadRequest(strings.Join(problems, "; "))
	}
	return v, nil
}

// parseFault reads a fault, which must be of the user, unless that is "". Its id and hits
// are the server's: addFaults sets them.
func (d *Double) parseFault(object []byte, user string) (*Rule, error) {
	var in Rule
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
	in.Header = values.Header
	in.Patch = strings.TrimPrefix(string(values.Patch), "null")
	in.User = cmp.Or(in.User, user)
	return &in, d.check(&in, user)
}

// SetFaults replaces all faults, or those of a user, by a JSON array. Of an array with a
// mistake it sets none.
func (d *Double) SetFaults(array []byte, user string) error {
	var objects []json.RawMessage
	if json.Unmarshal(array, &objects) != nil {
		return answer.BadRequest("faults must be a JSON array of objects")
	}
	var rules []*Rule
	for i, object := range objects {
		rule, err := d.parseFault(object, user)
		if err != nil {
			return answer.BadRequest(fmt.Sprintf("fault %d: %v", i+1, err))
		}
		rules = append(rules, rule)
	}
	d.Clear("", user)
	d.addFaults(rules...)
	return nil
}

func (d *Double) getFaults(r operator.Request) (any, error) {
	d.Lock()
	defer d.Unlock()
	user := r.Query.Get("user")
	list := []Rule{}
	for _, f := range d.faults {
		if user == "" || f.User == user {
			list = append(list, *f)
		}
	}
	return list, nil
}

func (d *Double) putFaults(r operator.Request) (any, error) {
	err := d.SetFaults(r.Body, r.Query.Get("user"))
	if err != nil {
		return nil, err
	}
	return d.getFaults(r)
}

func (d *Double) postFault(r operator.Request) (any, error) {
	rule, err := d.parseFault(r.Body, "")
	if err != nil {
		return nil, err
	}
	d.addFaults(rule)
	d.Lock()
	defer d.Unlock()
	return *rule, nil
}

func (d *Double) deleteFaults(r operator.Request) (any, error) {
	removed := d.Clear(r.ID, r.Query.Get("user"))
	if r.ID != "" && removed == 0 {
		return nil, answer.NotFound(fmt.Sprintf("fault %.80q is not set: GET /faults lists what is", r.ID))
	}
	return nil, nil
}

// getRequests answers with the requests of the journal or, with ?count=, with those that
// have come once there are so many, or when the time to wait is over.
func (d *Double) getRequests(r operator.Request) (any, error) {
	count, badCount := strconv.Atoi(cmp.Or(r.Query.Get("count"), "0"))
	wait, badWait := time.ParseDuration(cmp.Or(r.Query.Get("wait"), "10s"))
	if badCount != nil || count < 0 || count > maxJournal ||
		badWait != nil || wait < 0 || wait > maxWait {
		return nil, answer.BadRequest(
			"count must be a whole number up to 1000, and wait a duration up to 60s, such as 5s")
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	found := d.Requests(ctx, count, r.Query.Get("operation"), r.Query["user"])
	return map[string]any{"data": found}, nil
}

func (d *Double) getClock(operator.Request) (any, error) {
	return map[string]any{"now": d.Now()}, nil
}

func (d *Double) putClock(r operator.Request) (any, error) {
	var in struct {
		Now     *time.Time    `json:"now"`
		Advance time.Duration `json:"advance"`
	}
	v, err := fill(&in, r.Body)
	if err != nil {
		return nil, err
	}
	if len(v.Members) != 1 || v.Members[0].Value.Kind == strict.Null {
		return nil, answer.BadRequest(
			`the body must have one member: now, a date-time, or advance, such as "1h"`)
	}
	err = d.SetClock(in.Now, in.Advance)
	if err != nil {
		return nil, err
	}
	return d.getClock(r)
}
