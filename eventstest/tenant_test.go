package eventstest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

// In a bubble, a server with a port would hang as soon as time is to pass.
func TestNewInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := try(t, func(p *probe) { eventstest.New(p) })
		if want := "New: a bubble of testing/synctest cannot have a port: add eventstest.NoListener()"; !strings.Contains(p.fatal, want) {
			t.Errorf("fatal %q, want %q", p.fatal, want)
		}
		if p := try(t, func(p *probe) { eventstest.New(p, eventstest.NoListener()) }); p.fatal != "" {
			t.Errorf("with NoListener: fatal %q", p.fatal)
		}
	})
}

func TestNewEventStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{"draft": "", "published": "", "Draft": `NewEventStatus("Draft"): it must be`,
		"": `NewEventStatus(""): it must be draft or published`} {
		p := try(t, func(p *probe) {
			srv := eventstest.New(p, eventstest.NoListener(), eventstest.NewEventStatus(status))
			a := call(t, srv, srv.Key, "POST /events/create", launch)
			b := call(t, srv, srv.Key, "GET /events?status="+status, "")
			if member(t, a.body, "status") != status || strings.Count(b.body, `"id"`) != 1 {
				t.Errorf("with %s an event is %s, and the list %s", status, a.body, b.body)
			}
		})
		if (p.fatal == "") != (want == "") || !strings.Contains(p.fatal, want) {
			t.Errorf("NewEventStatus(%q): fatal %q, want %q", status, p.fatal, want)
		}
	}
}

// A test that reads a journal with gaps is told so.
func TestRequestsDropped(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]string{
		"GET /users/me": `Requests("GET /users/me"): 3 older requests are missing`,
		"":              `Requests(""): 3 older requests are missing`,
		"GET /events":   "",
	} {
		p := try(t, func(p *probe) {
			srv := eventstest.New(p, eventstest.NoListener())
			for range 1003 {
				call(t, srv, srv.Key, "GET /users/me", "")
			}
			srv.Requests(operation)
		})
		if !strings.Contains(p.logged, want) || (want == "") != (p.logged == "") {
			t.Errorf("Requests(%q) logs %q, want %q", operation, p.logged, want)
		}
	}
}

// A user that is deleted takes its faults and its journal along, however that is done: whoever
// has the id next has none of it.
func TestDeletedUser(t *testing.T) {
	t.Parallel()
	const again = `{"user":{"id":"usr_grace","name":"Grace","email":"grace@double.example"}},` +
		`{"key":{"user_id":"usr_grace","secret":"svc_live_grace_0123456789"}}`
	for name, records := range map[string]string{
		"in one step":  `[{"delete":{"user":"usr_grace"}},` + again + `]`,
		"in two steps": `[{"delete":{"user":"usr_grace"}}]|[` + again + `]`,
	} {
		srv := eventstest.New(t, eventstest.NoListener())
		key, owner := srv.NewKey("Grace")
		call(t, srv, key, "POST /events/create", launch)
		f := srv.Fail("GET /users/me", eventstest.Fault{Status: 500, User: owner.ID})
		held := srv.Fail("GET /events", eventstest.Fault{Delay: time.Hour})
		got := make(chan answer)
		go func() { got <- call(t, srv, key, "GET /events", "") }()
		srv.Await(1, "GET /events")
		for step := range strings.SplitSeq(records, "|") {
			if err := srv.Store.ApplyJSON([]byte(step)); err != nil {
				t.Fatal(err)
			}
		}
		if a := <-got; a.status != 503 || a.header.Get("X-Eventsd-Fault") != "reset" {
			t.Errorf("%s: a request that was held = %+v", name, a)
		}
		held.Clear()
		if r := srv.Requests(""); len(r) != 0 {
			t.Errorf("%s: the journal has %v", name, r)
		}
		a := call(t, srv, "svc_live_grace_0123456789", "GET /users/me", "")
		if a.status != 200 || f.Hits() != 0 {
			t.Errorf("%s: GET /users/me = %d: a fault of the one before", name, a.status)
		}
		a = call(t, srv, "svc_live_grace_0123456789", "POST /events/create", launch)
		if !strings.Contains(a.body, `"evt_grace_000001"`) {
			t.Errorf("%s: the first event is %s", name, a.body)
		}
		// A change that is refused deletes nothing.
		if err := srv.Store.ApplyJSON([]byte(`[{"delete":{"user":"usr_grace"}},{"user":{}}]`)); err == nil {
			t.Error("a user without a name was taken")
		}
		if r := srv.Requests("", "usr_grace"); len(r) != 2 {
			t.Errorf("%s: after a refused delete the journal has %v", name, r)
		}
	}
}
