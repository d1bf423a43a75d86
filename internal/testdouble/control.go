package testdouble

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/schema"
)

// This file has the control API, with which tests in other languages do what package eventstest does in Go.

// ControlPath is the beginning of the path of every control route.
const ControlPath = "/_control"

const (
	maxControl = 1 << 20     // bytes of a body, except of records
	maxWait    = time.Minute // for requests
)

// Control returns the handler of the control API. It refuses requests of web pages other than the inspector.
func (d *Double) Control() http.Handler {
	mux := httpapi.NewMux(ControlPath, []httpapi.Route{
		reply("POST /keys", 201, d.postKey),
		{Operation: "GET /keys", Handle: d.serveOperator},
		{Operation: "GET /records", Handle: d.serveOperator},
		{Operation: "POST /records", Handle: d.serveOperator},
		reply("GET /faults", 200, d.getFaults),
		reply("PUT /faults", 200, d.putFaults),
		reply("POST /faults", 201, d.postFault),
		reply("DELETE /faults", 204, d.deleteFaults),
		reply("DELETE /faults/{id}", 204, d.deleteFault),
		{Operation: "GET /requests", Query: true, Handle: d.getRequests},
		reply("DELETE /requests", 204, d.deleteRequests),
		reply("GET /clock", 200, d.getClock),
		reply("PUT /clock", 200, d.putClock),
		reply("POST /reset", 204, d.postReset),
	})
	mux.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		return httpapi.Caller{}, authorize(r)
	}
	mux.Logger = d.config.Logger
	return mux
}

// reply returns a route whose handler gets the body of the request, and returns the value to respond
// with.
func reply(
	operation string, status int, handle func(r httpapi.Request, body []byte) (any, error),
) httpapi.Route {
	return httpapi.Route{Operation: operation, Handle: func(w http.ResponseWriter, r httpapi.Request) error {
		body, err := httpapi.ReadBody(w, r, maxControl)
		if err != nil {
			return err
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

// authorize returns an error if a web page other than the inspector may have sent a request.
//
// A browser sends the Origin of the page with every request that could change something or whose response a
// script could read, unless the page has the same host. A page may give its own host the address of the
// double (DNS rebinding), so only hosts that no web page can have are accepted.
func authorize(r *http.Request) error {
	origin := strings.Join(r.Header["Origin"], ", ")
	if r.Header["Origin"] != nil && origin != "http://"+r.Host && origin != "https://"+r.Host {
		return httpapi.NewError(403, "a web page other than the inspector must not use the control API")
	}
	if !isLocal(r.Host) {
		return httpapi.NewError(403, fmt.Sprintf("host %.80q could be a web page: use localhost, an IP "+
			"address, a name without a dot, or one that ends in .localhost or .internal", r.Host))
	}
	return nil
}

// isLocal reports whether a host, with or without a port, can't be the name of a web page.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	_, err = netip.ParseAddr(name)
	name = strings.ToLower(name)
	return err == nil || !strings.Contains(name, ".") ||
		strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".internal")
}

// serveOperator passes a request on to the operator's routes.
func (d *Double) serveOperator(w http.ResponseWriter, r httpapi.Request) error {
	http.StripPrefix(ControlPath, d.session.Load().operator).ServeHTTP(w, r.Request)
	return nil
}

type keyRequest struct {
	Name   string `json:"name"`
	UserID string `json:"user_id"`
}

var keySchema = schema.Of(keyRequest{}, nil)

func (d *Double) postKey(r httpapi.Request, body []byte) (any, error) {
	var in keyRequest
	problems := keySchema.Unmarshal(body, &in, schema.New).All()
	if problems != nil {
		return nil, httpapi.BadRequest(strings.Join(problems, "; "))
	}
	if in.Name != "" && in.UserID != "" {
		return nil, httpapi.BadRequest("name and user_id exclude each other: set name for a new user")
	}
	s := d.session.Load()
	var issued issuedKey
	var err error
	if in.UserID != "" {
		issued, err = s.issueKey(in.UserID)
	} else {
		issued, err = s.newKey(in.Name)
	}
	issued.BaseURL = "http://" + r.Host + s.basePath // also reachable through a mapped port
	return issued, err
}

func (d *Double) getFaults(httpapi.Request, []byte) (any, error) {
	s := d.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []json.RawMessage{}
	for _, f := range s.faults {
		list = append(list, f.encodeLocked())
	}
	return list, nil
}

// putFaults replaces all faults in one step, or none if one of them is wrong.
func (d *Double) putFaults(r httpapi.Request, body []byte) (any, error) {
	var texts []json.RawMessage
	if json.Unmarshal(body, &texts) != nil || texts == nil { // nil: null
		return nil, httpapi.BadRequest("faults must be a JSON array of objects; [] removes all")
	}
	s := d.session.Load()
	var faults []*ActiveFault
	for i, text := range texts {
		f, err := s.decodeFault(text)
		if err != nil {
			return nil, httpapi.BadRequest(fmt.Sprintf("fault %d: %v", i+1, err))
		}
		faults = append(faults, f)
	}
	s.setFaults(faults)
	return d.getFaults(r, nil)
}

func (d *Double) postFault(_ httpapi.Request, body []byte) (any, error) {
	s := d.session.Load()
	f, err := s.decodeFault(body)
	if err != nil {
		return nil, err
	}
	s.addFault(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.encodeLocked(), nil
}

func (d *Double) deleteFaults(httpapi.Request, []byte) (any, error) {
	d.ClearFaults()
	return nil, nil
}

func (d *Double) deleteFault(r httpapi.Request, _ []byte) (any, error) {
	id := r.PathValue("id")
	if !d.session.Load().removeFault(id) {
		return nil, httpapi.NotFound(fmt.Sprintf("there is no fault %.80q; GET /faults lists all", id))
	}
	return nil, nil
}

func (d *Double) getRequests(w http.ResponseWriter, r httpapi.Request) error {
	var q Query
	wait := time.Duration(-1)
	params := httpapi.ReadQuery(r)
	params.Func("operation", "must be an operation, such as GET /events, given once", func(v string) bool {
		q.Operation = v
		return true
	})
	params.Func("user", "must be the ID of a user, given once", func(v string) bool {
		q.Users = []string{v}
		return true
	})
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
	httpapi.WriteValue(w, 200, struct {
		Data     []Request `json:"data"`
		TimedOut bool      `json:"timed_out"`
	}{found, len(found) < count})
	return nil
}

func (d *Double) deleteRequests(httpapi.Request, []byte) (any, error) {
	d.ClearRequests()
	return nil, nil
}

func (d *Double) getClock(httpapi.Request, []byte) (any, error) {
	return clock{d.Now()}, nil
}

type clock struct {
	Now time.Time `json:"now"`
}

// clockRequest has a time to set or a step to take.
type clockRequest struct {
	Now     *time.Time     `json:"now"`
	Advance *time.Duration `json:"advance"`
}

var clockSchema = schema.Of(clockRequest{}, nil)

func (d *Double) putClock(_ httpapi.Request, body []byte) (any, error) {
	var in clockRequest
	problems := clockSchema.Unmarshal(body, &in, schema.New).All()
	if problems != nil {
		return nil, httpapi.BadRequest(strings.Join(problems, "; "))
	}
	if (in.Now == nil) == (in.Advance == nil) {
		return nil, httpapi.BadRequest(`set either now, a date-time, or advance, such as "1h"`)
	}
	s := d.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := in.Now
	if in.Advance != nil {
		next = new(s.now.Add(*in.Advance))
	}
	err := s.setClockLocked(*next)
	return clock{s.now}, err
}

func (d *Double) postReset(_ httpapi.Request, body []byte) (any, error) {
	if len(body) > 0 {
		return nil, httpapi.BadRequest("the body must be empty, because everything is reset")
	}
	return nil, d.reset()
}
