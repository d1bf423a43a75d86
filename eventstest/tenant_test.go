package eventstest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

// named is a probe with a name of its own.
type named struct {
	*probe
	name string
}

func (n *named) Name() string { return n.name }

// Tenants share a server and never meet, though none of them names its user.
func TestTenant(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			srv := srv.Tenant(t)
			if srv.Owner.Name != t.Name() || srv.Owner.ID == "usr_owner" {
				t.Errorf("the owner is %+v", srv.Owner)
			}
			for range 2 {
				f := srv.Fail("POST /events/create", eventstest.Fault{Status: 503, Times: 1})
				for _, want := range []int{503, 201} {
					a := send(t, srv.Client(), "POST", srv.URL+"/events/create", launch)
					if a.status != want {
						t.Errorf("POST /events/create = %d, want %d", a.status, want)
					}
				}
				if n := len(srv.Await(2, "POST /events/create")); n != 2 || f.Hits() != 1 {
					t.Errorf("%d requests, %d hits, want 2 and 1", n, f.Hits())
				}
				if n := len(srv.AwaitAnswered(2, "")); n != 2 {
					t.Errorf("%d requests are answered, want 2", n)
				}
				srv.ClearRequests()
				if n := len(srv.Requests("")); n != 0 {
					t.Errorf("after ClearRequests: %d", n)
				}
				if a := send(t, srv.Client(), "GET", srv.URL+"/events", ""); !strings.Contains(a.body, "_000001") || strings.Count(a.body, `"id"`) != 1 {
					t.Errorf("GET /events = %s, want the first event of its host", a.body)
				}
				srv.Reset()
			}
		})
	}
}

// A tenant refuses what concerns others.
func TestTenantRefuses(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	for want, f := range map[string]func(s *eventstest.Server){
		"Fail: this is the tenant usr_a":                  func(s *eventstest.Server) { s.Fail("GET /events", eventstest.Fault{Drop: true, User: "usr_owner"}) },
		`Requests("", usr_owner): this is the tenant`:     func(s *eventstest.Server) { s.Requests("", "usr_owner") },
		"ResetUser: this is the tenant":                   func(s *eventstest.Server) { s.ResetUser("usr_owner") },
		"Advance: all tenants share the clock: give":      func(s *eventstest.Server) { s.Advance(1) },
		`use the server that Tenant was called on for "u`: func(s *eventstest.Server) { s.Await(1, "", s.Owner.ID, "usr_owner") },
	} {
		p := try(t, func(p *probe) { f(srv.Tenant(&named{p, "a"})) })
		if !strings.Contains(p.fatal, want) {
			t.Errorf("fatal %q, want %q", p.fatal, want)
		}
	}
}

// What a tenant leaves behind fails its own test, which logs its own requests.
func TestTenantReports(t *testing.T) {
	t.Parallel()
	server := try(t, func(server *probe) {
		srv := eventstest.New(server, eventstest.NoListener(), eventstest.Strict())
		strange := try(t, func(p *probe) {
			tenant := srv.Tenant(&named{p, "Grace"})
			call(t, srv, srv.Key, "GET /openapi", "") // of another user
			send(t, tenant.Client(), "GET", tenant.URL+"/event", "")
			tenant.Fail("GET /events", eventstest.Fault{Status: 500})
		})
		want := []string{
			"eventstest: request 2: GET /api/public/v1/event of usr_grace: 404: the API has no such route",
			"eventstest: fault flt_1 of GET /events for usr_grace (status 500): no request met it",
		}
		if len(strange.errors) != 2 || !strings.HasPrefix(strange.errors[0], want[0]) || strange.errors[1] != want[1] {
			t.Errorf("errors %q, want %q", strange.errors, want)
		}
		if log := strange.logged; strings.Count(log, "\n") != 1 || !strings.Contains(log, "2: GET /api/public/v1/event of usr_grace: 404: there is no") {
			t.Errorf("the log has %q, want the request of the tenant", log)
		}
		silent := try(t, func(p *probe) {
			srv.Tenant(&named{p, "Ada"})
			p.Errorf("something else")
		})
		if silent.logged != "eventstest: no request has come" {
			t.Errorf("the log has %q", silent.logged)
		}
	})
	if server.fatal != "" || server.errors != nil {
		t.Errorf("the server's test was told %q, %q, too", server.fatal, server.errors)
	}
}

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
	srv := eventstest.New(t, eventstest.NoListener())
	for range 1003 {
		call(t, srv, srv.Key, "GET /users/me", "")
	}
	for operation, want := range map[string]string{
		"GET /users/me": `Requests("GET /users/me"): 3 older requests are missing`,
		"":              `Requests(""): 3 older requests are missing`,
		"GET /events":   "",
	} {
		p := try(t, func(p *probe) { srv.For(p).Requests(operation) })
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

// A wait that fails in a bubble, on a server from outside, needs no ten real seconds: the log has its time.
func TestAwaitFailsInBubble(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	start := time.Now()
	const waits = 5
	for range waits {
		synctest.Test(t, func(t *testing.T) {
			p := try(t, func(p *probe) { srv.For(p).Await(1, "GET /users/me") })
			if !strings.Contains(p.fatal, "0 of 1 requests have come in 10s") {
				t.Errorf("fatal %q", p.fatal)
			}
		})
	}
	t.Logf("a failing wait in a bubble took %v", time.Since(start)/waits)
}

// Requests of two bubbles and of none are seen by whom they are for, and wake no other bubble:
// the runtime would end the program.
func TestAwaitInTwoBubbles(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			wait := func(t *testing.T) {
				srv := srv.For(t)
				key, owner := srv.NewKey(name)
				start := time.Now()
				go func() {
					for range 20 {
						time.Sleep(time.Millisecond)
						call(t, srv, key, "GET /users/me", "")
					}
				}()
				if got := srv.AwaitAnswered(20, "GET /users/me", owner.ID); len(got) != 20 {
					t.Errorf("%d requests", len(got))
				}
				if took := time.Since(start); i > 0 && took != 20*time.Millisecond {
					t.Errorf("the requests took %v of the bubble, want 20ms", took)
				}
			}
			if i == 0 {
				wait(t)
				return
			}
			synctest.Test(t, func(t *testing.T) { wait(t) })
		})
	}
}
