package eventstest_test

import (
	"strings"
	"testing"

	"example.com/events/eventstest"
)

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
