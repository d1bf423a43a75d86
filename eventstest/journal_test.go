package eventstest_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

// In a bubble of synctest, Await waits in the time of the bubble, and gives up after ten seconds of it.
func TestAwaitInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				call(t, srv, srv.Key, "GET /users/me", "")
			}
		}()
		start := time.Now()
		got := srv.Await(3, "GET /users/me")
		if len(got) != 3 {
			t.Errorf("%d requests, want 3", len(got))
		}
		if took := time.Since(start); took < 3*time.Second || took > 3010*time.Millisecond {
			t.Errorf("three requests, a second apart, came after %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := try(t, func(p *probe) {
			srv := eventstest.New(p, eventstest.NoListener())
			call(t, srv, srv.Key, "GET /users/me", "")
			srv.Await(2, "GET /users/me")
		})
		const want = `Await(2, "GET /users/me"): 1 of 2 requests have come in 10s:`
		if !strings.Contains(p.fatal, want) || !strings.HasSuffix(p.fatal, " of usr_owner: 200") {
			t.Errorf("fatal %q, want %q and the request", p.fatal, want)
		}
		if took := time.Since(start); took < 10*time.Second || took > 10010*time.Millisecond {
			t.Errorf("Await gave up after %v, want 10s", took)
		}
	})
}

// Await returns what has come, also while a fault holds it, and only of whom it is asked.
func TestAwait(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	grace, owner := srv.NewKey("Grace")
	call(t, srv, srv.Key, "GET /events", "")
	held := srv.Fail("POST /events/create", eventstest.Fault{Delay: time.Hour})
	var clients sync.WaitGroup
	body, w := io.Pipe()
	clients.Go(func() {
		r, _ := http.NewRequest("POST", srv.URL+"/events/create", body)
		r.Header.Set("x-service-api-key", grace)
		if resp, err := srv.Client().Do(r); err == nil {
			resp.Body.Close()
		}
	})
	clients.Go(func() {
		until(t, "it has begun", func() bool { return len(srv.Requests("POST /events/create")) == 1 })
		io.WriteString(w, launch[:9])
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, launch[9:])
		w.Close()
	})
	got := srv.Await(1, "POST /events/create", owner.ID)
	if len(got) != 1 || got[0].Body != launch || got[0].Status != 0 || got[0].Fault != "delay 1h0m0s" ||
		got[0].User != owner.ID {
		t.Errorf("Await of a request that is held: %+v", got)
	}
	held.Clear()
	clients.Wait()
	if got := srv.Await(2, ""); len(got) != 2 || got[0].Operation != "GET /events" || got[1].Status != 201 {
		t.Errorf("Await of all: %+v", got)
	}
	for want, f := range map[string]func(s *eventstest.Server){
		`Await(1, "GET /event"): operation "GET /event" is not known`: func(s *eventstest.Server) { s.Await(1, "GET /event") },
		`Await(1, "", usr_nobody): user "usr_nobody" is not known`:    func(s *eventstest.Server) { s.Await(1, "", "usr_nobody") },
	} {
		if p := try(t, func(p *probe) { f(eventstest.New(p, eventstest.NoListener())) }); !strings.Contains(p.fatal, want) {
			t.Errorf("fatal %q, want %q", p.fatal, want)
		}
	}
}

// The journal has nothing that browsers and probes ask for beside the API.
func TestNotInJournal(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	root := strings.TrimSuffix(srv.URL, "/api/public/v1")
	for _, path := range []string{"/", "/healthz", "/openapi.json", "/favicon.ico"} {
		send(t, srv.Client(), "GET", root+path, "")
	}
	if r := srv.Requests(""); len(r) != 0 {
		t.Errorf("the journal has %+v", r)
	}
}

// When a test fails, its end logs what was asked.
func TestFailureLogs(t *testing.T) {
	t.Parallel()
	run := func(fails bool) string {
		return try(t, func(p *probe) {
			srv := eventstest.New(p, eventstest.NoListener(), eventstest.AllowUnknownRoutes())
			for range 19 {
				call(t, srv, srv.Key, "GET /users/me", "")
			}
			srv.Fail("GET /events", eventstest.Fault{Status: 503, Delay: time.Nanosecond, Times: 1})
			call(t, srv, srv.Key, "GET /events?limit=3", "")
			call(t, srv, "svc_live_wrong", "GET /event", "")
			if fails {
				p.Errorf("something else")
			}
		}).logged
	}
	if log := run(false); log != "" {
		t.Errorf("a test that passes logs %q", log)
	}
	log := run(true)
	want := "\n  20: GET /api/public/v1/events?limit=3 of usr_owner: 503: nothing was done, as a test wants it" +
		" (status 503, delay 1ns)" +
		"\n  21: GET /api/public/v1/event of nobody: 401: invalid API key: no such key, or it was revoked; " +
		"send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>"
	if strings.Count(log, "\n") != 20 || !strings.HasSuffix(log, want) || !strings.Contains(log, "\n  2: GET ") {
		t.Errorf("a test that fails logs %q, want 20 requests with %q at the end", log, want)
	}
}
