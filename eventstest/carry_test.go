package eventstest_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
)

const createEvent = "POST /events/create"

// retrying creates an event, and tries again if there is no answer in time or an error of the
// server. Each try has the key that newKey returns.
func retrying(t testing.TB, client *http.Client, url, apiKey string, newKey func(try int) string) {
	t.Helper()
	for try := range 4 {
		a := send(t, client, "POST", url+"/events/create", launch,
			"x-service-api-key: "+apiKey, "Idempotency-Key: "+newKey(try))
		if a.err == nil && a.status < 500 {
			return
		}
	}
}

// A client that gives up while a fault holds its answer back has its event, as on a real
// server: so one with a new idempotency key for each try makes two, and the tests of its author
// can see that.
func TestFalseGreenTimeout(t *testing.T) {
	t.Parallel()
	clients := map[string]struct {
		newKey func(try int) string
		events int
	}{
		"a key for all tries": {func(int) string { return "launch" }, 1},
		"a new key a try":     {func(try int) string { return fmt.Sprint("launch-", try) }, 2},
	}
	faults := map[string]eventstest.Fault{
		"delay":                  {Delay: time.Minute, Times: 1},
		"delay and lose":         {Delay: time.Minute, Lose: true, Times: 1},
		"delay and cut":          {Delay: time.Minute, Cut: true, Times: 1},
		"delay and patch":        {Delay: time.Minute, Patch: `{"title":null}`, Times: 1},
		"lose":                   {Lose: true, Times: 1},
		"a gateway's 504":        {Lose: true, Status: 504, Times: 1},
		"a gateway's late 504":   {Lose: true, Status: 504, Delay: time.Minute, Times: 1},
		"a page instead of a 20": {Lose: true, Status: 502, Body: "<html>", Times: 1},
	}
	for name, c := range clients {
		for what, fault := range faults {
			synctest.Test(t, func(t *testing.T) {
				srv := eventstest.New(t, eventstest.NoListener())
				f := srv.Fail(createEvent, fault)
				client := srv.Client()
				client.Timeout = 10 * time.Second
				retrying(t, client, srv.URL, srv.Key, c.newKey)
				if n := eventsOf(srv, srv.Owner.ID); n != c.events || f.Hits() != 1 {
					t.Errorf("%s with %s: %d events, %d hits, want %d and 1", name, what, n, f.Hits(), c.events)
				}
			})
		}
	}
}

// eventsOf is how many events a host has.
func eventsOf(srv *eventstest.Server, host string) (n int) {
	for _, r := range srv.Store.Records() {
		if r.Event != nil && r.Event.HostID == host {
			n++
		}
	}
	return n
}

// The answer that takes the place of a lost one has nothing of it, and the journal says what
// the client saw.
func TestLoseWithStatus(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	srv.Fail(createEvent, eventstest.Fault{Lose: true, Status: 504, Times: 1, Header: http.Header{"X-A": {"b"}}})
	a := call(t, srv, srv.Key, createEvent, launch)
	if a.status != 504 || !strings.Contains(a.body, `"code":"server_error"`) || strings.Contains(a.body, "nothing was done") ||
		a.header.Get("Location") != "" || a.header.Get("X-A") != "b" ||
		a.header.Get("X-Eventsd-Fault") != "lose, status 504, header" {
		t.Errorf("%+v, want a 504 without a Location", a)
	}
	if n := eventsOf(srv, "usr_owner"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	r := srv.Requests("")[0]
	if r.Status != 504 || r.Fault != "lose, status 504, header" || r.Error != "what was asked for was done, and a test wants this answer to it" {
		t.Errorf("the journal has %+v", r)
	}
}

// What is wrong with an answer is in the journal, whoever made it.
func TestJournalErrors(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener(), eventstest.AllowUnknownRoutes())
	srv.Fail("GET /openapi", eventstest.Fault{Status: 503, Times: 1})
	srv.Fail("GET /openapi", eventstest.Fault{Status: 502, Body: "<html>", Times: 1})
	srv.Fail("GET /openapi", eventstest.Fault{Status: 502, Body: `{"error":{"code":"x","message":"down"}}`, Times: 1})
	srv.Fail("GET /openapi", eventstest.Fault{Status: 200, Body: `{"error":{"code":"x","message":"down"}}`, Times: 1})
	srv.Fail("GET /events/{id}", eventstest.Fault{Patch: `{"error":{"message":"gone"}}`, Times: 1})
	srv.Fail("GET /events/{id}", eventstest.Fault{Lose: true, Times: 1})
	for request, want := range map[string][]string{
		"GET /users/me":       {""},
		"GET /events?limit=0": {"limit must be a whole number from 1 to 100"},
		"GET /event":          {"there is no such route below"},
		"HEAD /events?x=1":    {`"x" is not a query parameter`},
		"GET /openapi":        {"nothing was done", "", "down", ""},
		"GET /events/none":    {"gone", "you host no event", "you host no event"},
	} {
		srv.ClearRequests()
		for range want {
			call(t, srv, srv.Key, request, "")
		}
		for i, r := range srv.Requests("") {
			if !strings.HasPrefix(r.Error, want[i]) || (want[i] == "") != (r.Error == "") {
				t.Errorf("%s, request %d: the error is %q, want %q", request, i, r.Error, want[i])
			}
		}
	}
}

// A client that goes away in the middle of its body was never answered, and meets no fault.
func TestClientGoneMidBody(t *testing.T) {
	t.Parallel()
	for i, fault := range []eventstest.Fault{{}, {Status: 500}, {Delay: time.Hour}} {
		srv := eventstest.New(t)
		hits := func() int { return 0 }
		if i > 0 {
			hits = srv.Fail(createEvent, fault).Hits
		}
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(srv.URL, "http://"), events.BasePath))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s/events/create HTTP/1.1\r\nHost: x\r\nx-service-api-key: %s\r\nContent-Length: 100\r\n\r\n{",
			events.BasePath, srv.Key)
		until(t, "its body has begun", func() bool {
			r := srv.Requests(createEvent)
			return len(r) == 1 && r[0].Body == "{"
		})
		conn.Close()
		got := srv.Await(1, createEvent)
		if got[0].Status != 0 || got[0].Fault != "" || hits() != 0 {
			t.Errorf("%+v: a client that went away: %v, %d hits", fault, got[0], hits())
		}
	}
}
