package eventstest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
)

// A fault can shape a whole answer: its status, header and body.
func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	const get, list, create, me = "GET /events/{id}", "GET /events", "POST /events/create", "GET /users/me"
	const event, events2 = "GET /events/evt_owner_000001", "GET /events?limit=2"
	const real = `"title":"Launch"`
	for _, tt := range []struct {
		name, operation, request string
		fault                    eventstest.Fault
		status                   int
		body                     string // of the answer: a part of it, or all of it after "="
		header                   string // of the answer: "Name: value", or "Name" for none
		does                     string
	}{
		{"a success that the API has not", get, event, eventstest.Fault{Status: 202, Body: `{"id":7}`},
			202, `={"id":7}`, "Content-Type: application/json", "status 202"},
		{"a list of something else", list, list, eventstest.Fault{Status: 200, Body: "[1]"},
			200, "=[1]", "Content-Type: application/json", "status 200"},
		{"broken JSON", me, me, eventstest.Fault{Status: 200, Body: `{"id":`},
			200, `={"id":`, "Content-Length: 6", "status 200"},
		{"a redirect", me, me, eventstest.Fault{Status: 307, Body: "there",
			Header: http.Header{"location": {"/x"}}}, 307, "=there", "Location: /x", "status 307, header"},
		{"the create is not done", create, create, eventstest.Fault{Status: 201, Body: "{}"},
			201, "={}", "Location", "status 201"},
		{"rate limits", me, me, eventstest.Fault{Header: http.Header{"X-RateLimit-Remaining": {"0"},
			"X-RateLimit-Reset": {"60"}}}, 200, "usr_owner", "X-Ratelimit-Remaining: 0", "header"},
		{"a type of its own", me, me, eventstest.Fault{Header: http.Header{"content-type": {"application/problem+json"}}},
			200, "usr_owner", "Content-Type: application/problem+json", "header"},
		{"no type", me, me, eventstest.Fault{Header: http.Header{"Content-Type": {}}},
			200, "usr_owner", "Content-Type", "header"},
		{"no type of a page", me, me, eventstest.Fault{Status: 502, Body: "<html>", Header: http.Header{"Content-Type": nil}},
			502, "=<html>", "Content-Type", "status 502, header"},
		{"no Retry-After", me, me, eventstest.Fault{Status: 503, Header: http.Header{"Retry-After": nil}},
			503, "server_error", "Retry-After", "status 503, header"},
		{"a date", me, me, eventstest.Fault{Status: 503, Header: http.Header{"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}}},
			503, "server_error", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", "status 503, header"},
		{"an extra member", get, event, eventstest.Fault{Patch: `{"capacity":12345678901234567890}`},
			200, `"capacity":12345678901234567890`, "Content-Type: application/json", "patch"},
		{"null", get, event, eventstest.Fault{Patch: `{"title":null}`}, 200, `"title":null`, "", "patch"},
		{"another type", get, event, eventstest.Fault{Patch: `{"requires_approval":"<no> & yes"}`},
			200, `"requires_approval":"<no> & yes"`, "", "patch"},
		{"each element", list, events2, eventstest.Fault{Patch: `{"data":{"title":7}}`},
			200, `"title":7,`, "", "patch"},
		{"an array", list, events2, eventstest.Fault{Patch: `{"data":[],"has_more":true}`},
			200, `={"data":[],"has_more":true,"next_cursor":null}`, "Content-Length: 46", "patch"},
		{"an object where null is", list, events2, eventstest.Fault{Patch: `{"next_cursor":{"a":[{"b":null}]}}`},
			200, `"next_cursor":{"a":[{"b":null}]}`, "", "patch"},
		{"an error of the API", get, "GET /events/evt_none", eventstest.Fault{Patch: `{"error":{"code":"gone"}}`},
			404, `"code":"gone","message":"you host`, "", "patch"},
		{"the created event", create, create, eventstest.Fault{Patch: `{"status":"pending"}`,
			Header: http.Header{"location": nil}}, 201, `"status":"pending"`, "Location", "patch, header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, opts := range map[string][]eventstest.Option{"listener": nil,
				"no listener": {eventstest.NoListener()}} {
				srv := eventstest.New(t, opts...)
				for range 2 {
					call(t, srv, srv.Key, create, launch)
				}
				tt.fault.Times = 1
				srv.Fail(tt.operation, tt.fault)
				client := srv.Client()
				client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				method, path, _ := strings.Cut(tt.request, " ")
				a := send(t, client, method, srv.URL+path, bodyOf(tt.request))
				whole, isWhole := strings.CutPrefix(tt.body, "=")
				if a.status != tt.status || isWhole && a.body != whole || !strings.Contains(a.body, whole) ||
					a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
					t.Errorf("%s: %d %s %v, want %d %s", name, a.status, a.body, a.header, tt.status, tt.body)
				}
				field, value, has := strings.Cut(tt.header, ": ")
				if got := a.header.Values(field); field != "" && has != slices.Equal(got, []string{value}) ||
					!has && len(got) > 0 {
					t.Errorf("%s: %s is %q, want %q", name, field, got, tt.header)
				}
				exposed := a.header.Get("Access-Control-Expose-Headers")
				for name := range tt.fault.Header {
					if !strings.Contains(exposed, name) {
						t.Errorf("%s: a page may not read %s: %s", name, name, exposed)
					}
				}
				if got := a.header.Get("X-Eventsd-Fault"); got != tt.does || !strings.Contains(exposed, "X-Eventsd-Fault") ||
					!strings.HasPrefix(exposed, "location, ") {
					t.Errorf("%s: X-Eventsd-Fault %q, want %q; exposed: %s", name, got, tt.does, exposed)
				}
				last := srv.Requests("")[2]
				if last.Fault != tt.does || last.Status != tt.status {
					t.Errorf("%s: the journal has %+v", name, last)
				}
				want := map[bool]int{true: 3, false: 2}[tt.operation == create && tt.fault.Patch != ""]
				if a := call(t, srv, srv.Key, list, ""); strings.Count(a.body, real) != want {
					t.Errorf("%s: then there are %s, want %d events", name, a.body, want)
				}
			}
		})
	}
}

// Half an answer, over a socket: the header says how long the whole would be.
func TestCut(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	whole := call(t, srv, srv.Key, "GET /users/me", "")
	srv.Fail("POST /events/create", eventstest.Fault{Cut: true, Times: 1})
	cut := srv.Fail("GET /users/me", eventstest.Fault{Cut: true, Header: http.Header{"X-A": {"b"}}})
	a := call(t, srv, srv.Key, "GET /users/me", "")
	half := whole.body[:len(whole.body)/2]
	if a.status != 200 || a.body != half || a.err != io.ErrUnexpectedEOF || a.header.Get("X-A") != "b" ||
		a.header.Get("Content-Length") != fmt.Sprint(len(whole.body)) ||
		a.header.Get("X-Eventsd-Fault") != "cut, header" {
		t.Errorf("%+v, want the half of %q", a, whole.body)
	}
	if a := call(t, srv, srv.Key, "HEAD /users/me", ""); a.status != 200 || a.err != nil ||
		a.header.Get("Content-Length") != fmt.Sprint(len(whole.body)) || a.header.Get("X-Eventsd-Fault") == "" {
		t.Errorf("HEAD: %+v", a)
	}
	if a := call(t, srv, srv.Key, "POST /events/create", launch); a.status != 201 || a.err != io.ErrUnexpectedEOF {
		t.Errorf("a create: %+v", a)
	}
	if a := call(t, srv, srv.Key, "GET /events", ""); strings.Count(a.body, `"id"`) != 1 || cut.Hits() != 2 {
		t.Errorf("the create was not done, or not met: %s", a.body)
	}
}

// A fault for a path leaves the others of the operation alone.
func TestFaultPath(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	call(t, srv, srv.Key, "POST /events/create", launch)
	f := srv.Fail("GET /events/{id}", eventstest.Fault{Status: 500, Path: "/events/evt_owner_000001"})
	for path, want := range map[string]int{"evt_owner_000001": 500, "%65vt_owner_000001?x=1": 500,
		"evt_owner_000002": 404, "launch": 404} {
		if a := call(t, srv, srv.Key, "GET /events/"+path, ""); a.status != want {
			t.Errorf("GET /events/%s = %d, want %d", path, a.status, want)
		}
	}
	if f.Hits() != 2 {
		t.Errorf("%d hits, want 2", f.Hits())
	}
	for _, tt := range []struct{ operation, path string }{
		{"GET /events/{id}", "/events/"},
		{"GET /events/{id}", "/events"},
		{"GET /events/{id}", "events/evt_1"},
		{"GET /events/{id}", "/events/evt_1/guests"},
		{"GET /events/{id}", events.BasePath + "/events/evt_1"},
		{"GET /events", "/event"},
	} {
		p := try(t, func(p *probe) {
			eventstest.New(p, eventstest.NoListener()).Fail(tt.operation, eventstest.Fault{Status: 500, Path: tt.path})
		})
		_, form, _ := strings.Cut(tt.operation, " ")
		want := fmt.Sprintf("path %q must be of the form %s, without %s", tt.path, form, events.BasePath)
		if !strings.Contains(p.fatal, want) {
			t.Errorf("%s with the path %s: fatal %q", tt.operation, tt.path, p.fatal)
		}
	}
	srv.Fail("GET /events", eventstest.Fault{Status: 500, Path: "/events"})
	srv.Fail("GET /events/{id}/guests", eventstest.Fault{Status: 500, Path: "/events/a-slug/guests"})
}

// A fault counts one request where a client has dropped one, whichever client that is: a
// connection serves one request, so none is sent again behind the client's back.
func TestConnectionsClose(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	client := &http.Client{Transport: &http.Transport{}}
	key := "x-service-api-key: " + srv.Key
	for _, path := range []string{"/users/me", "/events/none", "/events?x=1"} {
		resp := send(t, client, "GET", srv.URL+path, "", key)
		if resp.err != nil {
			t.Fatal(resp.err)
		}
	}
	for _, fault := range []eventstest.Fault{{Drop: true, Times: 1}, {Lose: true, Times: 1}} {
		srv.Fail("POST /events/create", fault)
		srv.Fail("GET /events", fault)
		for _, request := range []string{"POST /events/create", "GET /events"} {
			method, path, _ := strings.Cut(request, " ")
			if a := send(t, client, method, srv.URL+path, bodyOf(request), key, "Idempotency-Key: k"); a.err == nil {
				t.Errorf("%+v: %s = %d, sent again without being told", fault, request, a.status)
			}
		}
	}
	if n := len(srv.Requests("POST /events/create")); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}
