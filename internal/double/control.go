package double

import (
	"context"
	"crypto/subtle"
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

// The parameters of queries.
var (
	userParam = &answer.Param[string]{
		Name: "user",
		Rule: "must be the id of a user, given once; leave it out for all",
		Read: func(id string) (string, bool) { return id, id != "" },
	}
	operationParam = &answer.Param[string]{
		Name: "operation",
		Rule: "must be an operation of the API, such as GET /events, given once; leave it out for all",
		Read: func(operation string) (string, bool) { return operation, operation != "" },
	}
	afterParam = &answer.Param[int]{
		Name: "after",
		Rule: "must be the seq of a request, a whole number, given once; leave it out for all",
		Read: func(value string) (int, bool) {
			n, err := strconv.Atoi(value)
			return n, err == nil && n >= 0
		},
	}
	countParam = &answer.Param[int]{
		Name: "count",
		Rule: fmt.Sprintf("must be a whole number from 0 to %d, given once", maxJournal),
		Read: func(value string) (int, bool) {
			n, err := strconv.Atoi(value)
			return n, err == nil && n >= 0 && n <= maxJournal
		},
		Default: -1,
	}
	waitParam = &answer.Param[time.Duration]{
		Name: "wait",
		Rule: "must be a duration up to 60s, such as 5s, given once",
		Read: func(value string) (time.Duration, bool) {
			d, err := time.ParseDuration(value)
			return d, err == nil && d >= 0 && d <= maxWait
		},
		Default: -1,
	}
)

// Control returns the handler of the control API, for requests that carry the
// token and come from no browser, or from the inspector. It answers a new key with the base
// URL of the host that the request was sent to. The function report logs what is
// done to the store, and writeError answers errors.
func (d *Double) Control(token string, report operator.Report, writeError answer.WriteError) http.Handler {
	user := *userParam
	user.Check = d.KnownUser
	operation := *operationParam
	operation.Check = d.KnownOperation
	filter := []answer.Parameter{
		&user, &operation, afterParam, countParam, waitParam,
	}
	reset := func(answer.Request) (any, error) { return nil, d.Reset() }
	deleteRequests := func(answer.Request) (any, error) {
		d.ClearRequests()
		return nil, nil
	}
	routes := operator.StoreRoutes(controlled{d.server, d}, report, d.base)
	for i := range routes {
		routes[i].Params = nil // GET /records returns all of them
	}
	routes = append(routes, []answer.Route{
		{Operation: "POST /reset", Handle: operator.Reply(204, reset)},
		{Operation: "GET /faults", Handle: operator.Reply(200, d.getFaults)},
		{Operation: "PUT /faults", MaxBody: maxControl, Handle: operator.Reply(200, d.putFaults)},
		{Operation: "POST /faults", MaxBody: maxControl, Handle: operator.Reply(201, d.postFault)},
		{Operation: "DELETE /faults", Handle: operator.Reply(204, d.deleteFaults)},
		{Operation: "DELETE /faults/{id}", Handle: operator.Reply(204, d.deleteFaults)},
		{Operation: "GET /requests", Params: filter, Handle: operator.Reply(200, d.getRequests)},
		{Operation: "DELETE /requests", Handle: operator.Reply(204, deleteRequests)},
		{Operation: "GET /clock", Handle: operator.Reply(200, d.getClock)},
		{Operation: "PUT /clock", MaxBody: maxControl, Handle: operator.Reply(200, d.putClock)},
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

// controlled is the store of the control API: that of the server, but for keys of users that are
// made by name alone.
type controlled struct {
	operator.Store
	double *Double
}

// IssueKeyJSON issues a key from {"user_id"} as the server does, or from {"name"} for a new user of
// that name.
func (s controlled) IssueKeyJSON(request []byte) (map[string]string, error) {
	var in struct {
		Name   string `json:"name"`
		UserID string `json:"user_id"`
	}
	_, err := fill(&in, request)
	if err != nil {
		return nil, err
	}
	if in.UserID == "" {
		in.UserID, err = s.double.NewUser(in.Name)
		if err != nil {
			return nil, err
		}
		in.Name = "" // the user has it
	}
	return s.Store.IssueKeyJSON(strict.Encode(map[string]string{"name": in.Name, "user_id": in.UserID}))
}

// fill reads a JSON object into a struct, as package form does.
func fill(in any, object []byte) (strict.Value, error) {
	v, problems := form.Read(in, object)
	if problems != nil {
		return v, answer.BadRequest(strings.Join(problems, "; "))
	}
	return v, nil
}

func (d *Double) getFaults(answer.Request) (any, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	list := []Injection{}
	for _, f := range d.faults.list {
		list = append(list, *f)
	}
	return list, nil
}

func (d *Double) putFaults(r answer.Request) (any, error) {
	err := d.SetFaults(r.Body)
	if err != nil {
		return nil, err
	}
	return d.getFaults(r)
}

func (d *Double) postFault(r answer.Request) (any, error) {
	f, err := d.parseFault(r.Body)
	if err != nil {
		return nil, err
	}
	d.addFaults(f)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return *f, nil
}

func (d *Double) deleteFaults(r answer.Request) (any, error) {
	id := r.PathValue("id")
	removed := d.Clear(id)
	if id != "" && removed == 0 {
		return nil, answer.NotFound(fmt.Sprintf("fault %.80q is not set: GET /faults lists what is", id))
	}
	return nil, nil
}

// getRequests answers with the requests of the journal or, with ?count= and ?wait=, with those
// that have come once there are so many, or when the time is over.
func (d *Double) getRequests(r answer.Request) (any, error) {
	q := Query{
		Operation: operationParam.In(r),
		After:     afterParam.In(r),
	}
	user := userParam.In(r)
	if user != "" {
		q.Users = []string{user}
	}
	count, wait := countParam.In(r), waitParam.In(r)
	if (count < 0) != (wait < 0) {
		return nil, answer.BadRequest("count and wait go together: ?count=3&wait=5s")
	}
	q.Count = max(count, 0)
	ctx, cancel := context.WithTimeout(r.Context(), max(wait, 0))
	defer cancel()
	return d.Requests(ctx, q), nil
}

func (d *Double) getClock(answer.Request) (any, error) {
	return map[string]any{"now": d.Now()}, nil
}

func (d *Double) putClock(r answer.Request) (any, error) {
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
