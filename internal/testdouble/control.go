package testdouble

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// ControlPath is the path prefix of the control API.
const ControlPath = "/_control"

const maxWait = time.Minute // for GET /requests

// Control returns the control API, with which tests in other languages do what package eventstest does in Go.
// It refuses requests from web pages other than the inspector. The function reset replaces the double with a
// new one.
func (d *Double) Control(reset func() error) *httpapi.Mux {
	operator := http.StripPrefix(ControlPath, d.api.Operator())
	operate := func(w http.ResponseWriter, r httpapi.Request) error {
		operator.ServeHTTP(w, r.Request)
		return nil
	}
	mux := httpapi.NewMux(ControlPath, []httpapi.Route{
		bodyRoute("POST /keys", 201, d.postKey),
		{Operation: "GET /keys", Handle: operate},
		{Operation: "GET /records", Handle: operate},
		{Operation: "POST /records", Handle: operate},
		bodyRoute("GET /faults", 200, d.getFaults),
		bodyRoute("PUT /faults", 200, d.putFaults),
		bodyRoute("POST /faults", 201, d.postFault),
		bodyRoute("DELETE /faults", 204, func(httpapi.Request, []byte) (any, error) {
			d.replaceFaults(allFaults)
			return nil, nil
		}),
		bodyRoute("DELETE /faults/{id}", 204, d.deleteFault),
		{Operation: "GET /requests", Query: true, Handle: d.getRequests},
		bodyRoute("DELETE /requests", 204, func(httpapi.Request, []byte) (any, error) {
			d.ClearRequests()
			return nil, nil
		}),
		{Operation: "GET /problems", Query: true, Handle: d.getProblems},
		bodyRoute("GET /clock", 200, d.getClock),
		bodyRoute("PUT /clock", 200, d.putClock),
		bodyRoute("POST /clock/advance", 200, d.postAdvance),
		bodyRoute("POST /reset", 204, func(httpapi.Request, []byte) (any, error) {
			return nil, reset()
		}),
	})
	mux.Authenticate = authorize
	mux.ToError = d.api.Mux().ToError
	return mux
}

// bodyRoute returns a route whose handler gets the request body and returns the response value. With status
// 204, there is neither.
func bodyRoute(
	operation string, status int, handle func(r httpapi.Request, body []byte) (any, error),
) httpapi.Route {
	return httpapi.Route{Operation: operation, Handle: func(w http.ResponseWriter, r httpapi.Request) error {
		body, err := httpapi.ReadBody(w, r, httpapi.MaxBody)
		if err != nil {
			return err
		}
		if status == 204 && len(body) > 0 {
			return httpapi.BadRequest(operation + " takes no body: leave it out")
		}
		value, err := handle(r, body)
		if err != nil {
			return err
		}
		if status == 204 {
			w.WriteHeader(204)
		} else {
			httpapi.WriteValue(w, status, value)
		}
		return nil
	}}
}

var localHost = regexp.MustCompile(
	`(?i)^(\[[0-9a-f:.%]+\]|\d+\.\d+\.\d+\.\d+|[^.]*|.+\.localhost|.+\.internal)(:\d*)?$`)

// IsLocal reports whether a host is safe from DNS rebinding, with which a page gives its own host the address
// of the double. Safe are IP addresses, names without a dot, and names that end in .localhost or .internal,
// all with or without a port.
func IsLocal(host string) bool { return localHost.MatchString(host) }

// authorize refuses requests with which another web page than the inspector could change something or read
// the response: a browser sends the page's Origin with them, unless the page has the same host.
//
// A foreign page can still send GET requests without Origin, such as for images, but they change nothing, and
// the page can't read the response. They are also refused if the double's host is a loopback address, because
// browsers then add Sec-Fetch-Site.
func authorize(r *http.Request) (caller httpapi.Caller, err error) {
	site := r.Header.Get("Sec-Fetch-Site")
	foreign := site == "cross-site" || site == "same-site"
	for i, origin := range r.Header["Origin"] {
		foreign = foreign || i > 0 || origin != "http://"+r.Host && origin != "https://"+r.Host
	}
	if foreign {
		err = httpapi.NewError(403, "a web page can't use the control API: call it from the test process")
	}
	if !IsLocal(r.Host) {
		err = httpapi.NewError(403, fmt.Sprintf("host %.80q could belong to a web page: use localhost, "+
			"an IP address, a name without a dot, or one that ends in .localhost or .internal", r.Host))
	}
	return caller, err
}

type keyRequest struct {
	Name   string `json:"name"`
	UserID string `json:"user_id"`
}

var keySchema = schema.For(keyRequest{}, nil)

func (d *Double) postKey(r httpapi.Request, body []byte) (any, error) {
	var in keyRequest
	err := toError(keySchema.Unmarshal(body, &in, schema.Create))
	if err != nil {
		return nil, err
	}
	var key Key
	switch {
	case in.UserID == "":
		key, err = d.NewKey(in.Name)
	case in.Name == "":
		key, err = d.api.IssueKey(in.UserID)
	default:
		err = httpapi.BadRequest("name and user_id can't be combined: set name for a new user")
	}
	key.BaseURL = "http://" + r.Host + d.api.Mux().Base() // also reachable through a mapped port
	return key, err
}

func (d *Double) getFaults(httpapi.Request, []byte) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return map[string]any{"data": append([]*InjectedFault{}, d.faults...)}, nil
}

// putFaults replaces all faults, or none if one of them is wrong.
func (d *Double) putFaults(r httpapi.Request, body []byte) (any, error) {
	var faults []*InjectedFault
	for v, err := range strict.ParseArray(body) {
		if err != nil {
			return nil, httpapi.BadRequest("the body is no array of faults; [] removes all: " + err.Error())
		}
		var in faultJSON
		f, err := d.decodeFault(&in, faultSchema.Decode(&in, v, schema.Create))
		if err != nil {
			return nil, httpapi.BadRequest(fmt.Sprintf("fault %d: %v", len(faults)+1, err))
		}
		faults = append(faults, f)
	}
	d.replaceFaults(allFaults, faults...)
	return d.getFaults(r, nil)
}

func (d *Double) postFault(_ httpapi.Request, body []byte) (any, error) {
	var in faultJSON
	f, err := d.decodeFault(&in, faultSchema.Unmarshal(body, &in, schema.Create))
	if err == nil {
		d.replaceFaults(noFaults, f)
	}
	return f, err
}

func (d *Double) deleteFault(r httpapi.Request, _ []byte) (any, error) {
	id := r.PathValue("id")
	if d.replaceFaults(func(f *InjectedFault) bool { return f.id == id }) == nil {
		return nil, httpapi.NotFound(fmt.Sprintf("there is no fault %.80q; GET /faults lists all", id))
	}
	return nil, nil
}

const userIDRule = "must be the ID of a user, given once"

func (d *Double) getRequests(w http.ResponseWriter, r httpapi.Request) error {
	var q Query
	wait := time.Duration(-1)
	params := httpapi.ReadQuery(r)
	q.Operation = params.String("operation", "must be an operation, such as GET /events, given once")
	userID := params.String("user_id", userIDRule)
	if userID != "" {
		q.Users = []string{userID}
	}
	q.After = params.Int("after", 0, 0, 1<<31-1)
	count := params.Int("count", -1, 0, maxRequests)
	params.Func("wait", "must be a duration of at most 60s, such as 5s, given once", func(v string) bool {
		var err error
		wait, err = time.ParseDuration(v)
		return err == nil && wait >= 0 && wait <= maxWait
	})
	err := params.Err()
	if err != nil {
		return err
	}
	if (count < 0) != (wait < 0) {
		return httpapi.BadRequest("count and wait go together: ?count=3&wait=5s")
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	httpapi.DisableWriteTimeout(w)
	found, err := d.Requests(ctx, count, q)
	if err != nil {
		return err
	}
	httpapi.StartStream(w)
	io.WriteString(w, `{"data":[`)
	var text bytes.Buffer // of one request at a time, because all together may be large
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, request := range found {
		text.Reset()
		if i > 0 {
			text.WriteByte(',')
		}
		encoder.Encode(request)
		w.Write(text.Bytes()[:text.Len()-1]) // without the line break
	}
	fmt.Fprintf(w, `],"timed_out":%v}`, len(found) < count)
	return nil
}

func (d *Double) getProblems(w http.ResponseWriter, r httpapi.Request) error {
	params := httpapi.ReadQuery(r)
	userID := params.String("user_id", userIDRule)
	err := params.Err()
	if err != nil {
		return err
	}
	problems, err := d.Problems(userID)
	if err != nil {
		return err
	}
	httpapi.WriteValue(w, 200, map[string]any{"data": problems})
	return nil
}

// clock is the body of PUT /clock and of the responses.
type clock struct {
	Now time.Time `json:"now" schema:"required"`
}

var clockSchema = schema.For(clock{}, nil)

func (d *Double) getClock(httpapi.Request, []byte) (any, error) { return clock{d.Now()}, nil }

func (d *Double) putClock(r httpapi.Request, body []byte) (any, error) {
	var in clock
	err := toError(clockSchema.Unmarshal(body, &in, schema.Create))
	if err != nil {
		return nil, err
	}
	err = d.moveClock(func(time.Time) time.Time { return in.Now })
	if err != nil {
		return nil, httpapi.BadRequest("now is out of range: " + err.Error())
	}
	return d.getClock(r, nil)
}

type step struct {
	By duration `json:"by" schema:"required"`
}

var stepSchema = schema.For(step{}, nil)

func (d *Double) postAdvance(r httpapi.Request, body []byte) (any, error) {
	var in step
	err := toError(stepSchema.Unmarshal(body, &in, schema.Create))
	if err != nil {
		return nil, err
	}
	err = d.Advance(time.Duration(in.By))
	if err != nil {
		return nil, httpapi.BadRequest("by is out of range: " + err.Error())
	}
	return d.getClock(r, nil)
}
