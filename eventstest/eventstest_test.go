package eventstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]eventstest.Option{"listener": nil,
		"no listener": {eventstest.NoListener()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := eventstest.New(t, opts...)
			if !strings.HasSuffix(srv.URL, events.BasePath) || srv.Owner.ID != "usr_owner" ||
				srv.Owner.Name != "Test Owner" {
				t.Errorf("New: URL %q, Owner %+v", srv.URL, srv.Owner)
			}
			got := send(t, srv.Client(), "GET", srv.URL+"/users/me", "")
			var me events.User
			if err := json.Unmarshal([]byte(got.body), &me); err != nil || me != srv.Owner {
				t.Errorf("GET /users/me = %d %s, want %+v", got.status, got.body, srv.Owner)
			}
			if got := send(t, srv.Client(), "GET", srv.URL+"/users/me", "",
				"x-service-api-key: svc_live_other"); got.status != 401 {
				t.Errorf("with another key: %d, want 401: Client must only add a key where there is none",
					got.status)
			}
			r := httptest.NewRequest("GET", srv.URL+"/users/me", nil)
			r.RequestURI, r.Header = "",
				http.Header{"X-Service-API-Key": {srv.Key}} // some clients keep the case of a name
			if resp, err := srv.Client().Do(r); err != nil || resp.StatusCode != 200 {
				t.Errorf("with the key in another case: %v, %v", resp, err)
			}
			if got := send(t, srv.Client(), "HEAD", srv.URL+"/users/me", ""); got.status != 200 ||
				got.body != "" {
				t.Errorf("HEAD /users/me = %d %q, want 200 and no body", got.status, got.body)
			}
			if now := srv.Now(); !now.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("Now() = %v", now)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	srv := eventstest.New(t, eventstest.NoListener(), eventstest.At(at),
		eventstest.Seed(events.Record{Event: &events.Event{ID: "evt_1", HostID: "usr_owner", Title: "One",
			StartAt: at, EndAt: at.Add(time.Hour)}}),
		eventstest.SeedJSON([]byte(`[{"event":{"id":"evt_1","status":"draft"}},{"user":{"id":"usr_owner","timezone":"Europe/Paris"}},
			{"user":{"id":"usr_grace","name":"Grace Hopper","email":"grace@double.example"}}]`)))
	if !srv.Now().Equal(at) || srv.Owner.Timezone == nil || *srv.Owner.Timezone != "Europe/Paris" {
		t.Errorf("Now %v, Owner %+v", srv.Now(), srv.Owner)
	}
	if got := call(t, srv, srv.Key, "GET /events?status=draft", ""); !strings.Contains(got.body,
		`"id":"evt_1"`) || !strings.Contains(got.body, `"created_at":"2031-05-06T07:08:09Z"`) {
		t.Errorf("GET /events = %d %s", got.status, got.body)
	}
	// A key made by name is never one of the seed's users.
	if _, grace := srv.NewKey("Grace"); grace.ID != "usr_grace_2" || grace.Email != "grace_2@double.example" {
		t.Errorf("NewKey(Grace) beside usr_grace: %+v", grace)
	}
	for name, opt := range map[string]eventstest.Option{
		"record 1: event: host_id": eventstest.SeedJSON([]byte(`[{"event":{"host_id":"usr_x","title":"x","start_at":"2030-01-01T00:00:00Z","end_at":"2030-01-02T00:00:00Z"}}]`)),
		"record 1: user: name":     eventstest.Seed(events.Record{User: &events.User{}}),
		"not a JSON array":         eventstest.SeedJSON([]byte(`{}`)),
	} {
		if p := try(t, func(p *probe) { eventstest.New(p, opt) }); !strings.Contains(p.fatal, name) {
			t.Errorf("fatal %q, want %q", p.fatal, name)
		}
	}
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

// A script of an owner has the same answers, whatever others do meanwhile.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	script := func(t testing.TB, srv *eventstest.Server, name string) (transcript string) {
		key, owner := srv.NewKey(name)
		transcript = fmt.Sprintln(key, owner)
		for i := range 5 {
			a := call(t, srv, key, "POST /events/create", launch)
			transcript += a.body + a.header.Get("Location") + "\n"
			if i == 2 {
				second, _, err := srv.Store.IssueKey(owner.ID)
				transcript += fmt.Sprintln(second, err)
			}
		}
		return transcript + call(t, srv, key, "GET /events?limit=2", "").body
	}
	alone := script(t, eventstest.New(t, eventstest.NoListener()), "Tester 7")
	if want := "evt_tester_7_3ga2_000005"; !strings.Contains(alone, want) {
		t.Fatalf("no %s in %s", want, alone)
	}
	srv := eventstest.New(t)
	var group sync.WaitGroup
	transcripts := make([]string, 16)
	for i := range transcripts {
		group.Go(func() { transcripts[i] = script(t, srv, fmt.Sprint("Tester ", i)) })
	}
	group.Wait()
	if transcripts[7] != alone {
		t.Errorf("with others:\n%s\nalone:\n%s", transcripts[7], alone)
	}
}

func TestNewKey(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	for _, tt := range []struct{ name, id, event string }{
		{"Grace", "usr_grace", "evt_grace_000001"},
		{"Grace", "usr_grace_2", "evt_grace_2_000001"},
		{"grace", "usr_grace_3", "evt_grace_3_000001"},
		{"Grace Hopper", "usr_grace_hopper_ylbw", "evt_grace_hopper_ylbw_000001"},
		{"日本", "usr_vu3g", "evt_vu3g_000001"},
	} {
		key, owner := srv.NewKey(tt.name)
		if owner.ID != tt.id || owner.Name != tt.name {
			t.Errorf("NewKey(%q) is of %+v, want the id %s", tt.name, owner, tt.id)
		}
		a := call(t, srv, key, "POST /events/create", launch)
		if got := a.header.Get("Location"); !strings.HasSuffix(got, "/"+tt.event) {
			t.Errorf("the first event of %s is %s, want %s", owner.ID, got, tt.event)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 256)} {
		p := try(t, func(p *probe) { eventstest.New(p, eventstest.NoListener()).NewKey(name) })
		if !strings.Contains(p.fatal, "name") {
			t.Errorf("NewKey(%q): fatal %q", name, p.fatal)
		}
	}
}

// dump is the store of a server as an array of records.
func dump(t *testing.T, srv *eventstest.Server) string {
	t.Helper()
	records, err := json.Marshal(srv.Store.Records())
	if err != nil {
		t.Fatal(err)
	}
	return string(records)
}

// TestStrangers: a key made by name is of a new user, and works, whatever was put
// into the store before.
func TestStrangers(t *testing.T) {
	t.Parallel()
	other := eventstest.New(t, eventstest.NoListener())
	other.NewKey("Grace")
	if err := other.Store.RevokeKey("key_grace_000001"); err != nil {
		t.Fatal(err)
	}
	if err := other.Store.RevokeKey("key_owner_000001"); err != nil {
		t.Fatal(err)
	}
	dump := dump(t, other)
	srv := eventstest.New(t, eventstest.NoListener(), eventstest.SeedJSON([]byte(dump)))
	if srv.Key == other.Key || srv.Owner.ID != "usr_owner" {
		t.Errorf("the key on the dump of another double is %q of %s", srv.Key, srv.Owner.ID)
	}
	if _, _, err := srv.Store.IssueKey("usr_grace"); err != nil {
		t.Error(err)
	}
	for _, email := range []string{"Hedy@Double.Example",
		"kurt@double.example"} { // the names that follow have these
		if err := srv.Store.Apply(events.Record{User: &events.User{ID: "usr_" + email[:4], Name: "Stranger",
			Email: email}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Grace", "Hedy", "Kurt"} {
		key, owner := srv.NewKey(name)
		if a := call(t, srv, key, "GET /users/me", ""); owner.Name != name || a.status != 200 {
			t.Errorf("NewKey(%q) is of %+v, and GET /users/me with it = %d", name, owner, a.status)
		}
	}
}

// TestRequestsOf: of some users, and of nobody.
func TestRequestsOf(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	grace, graceOwner := srv.NewKey("Grace")
	kurt, kurtOwner := srv.NewKey("Kurt")
	for _, key := range []string{srv.Key, grace, kurt} {
		call(t, srv, key, "GET /events", "")
	}
	if r := srv.Requests("", graceOwner.ID, kurtOwner.ID); len(r) != 2 || r[0].User != graceOwner.ID ||
		r[1].User != kurtOwner.ID {
		t.Errorf("Requests of two users = %+v", r)
	}
	for _, id := range []string{"usr_nobody", "owner", "owner@double.example", ""} {
		p := try(t, func(p *probe) { eventstest.New(p, eventstest.NoListener()).Requests("", id) })
		if p.fatal == "" {
			t.Errorf("Requests of the user %q is not refused", id)
		}
	}
}

// TestRequestsOfOwner: whoever has a key of the store is known by it, whatever is wrong with
// the request.
func TestRequestsOfOwner(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener(), eventstest.AllowUnknownRoutes())
	grace, owner := srv.NewKey("Grace")
	call(t, srv, grace, "GET /event", "")
	call(t, srv, grace, "DELETE /events", "")
	call(t, srv, grace, "OPTIONS /events", "")
	if err := srv.Store.RevokeKey("key_grace_000001"); err != nil {
		t.Fatal(err)
	}
	call(t, srv, grace, "GET /events", "")
	var got []string
	for _, r := range srv.Requests("", owner.ID) {
		got = append(got, fmt.Sprint(r.Seq, " ", r.Method, " ", r.Operation, " ", r.Status))
	}
	want := []string{"1 GET  404", "2 DELETE  405", "3 OPTIONS  204", "4 GET GET /events 401"}
	if !slices.Equal(got, want) {
		t.Errorf("requests of %s: %q, want %q", owner.ID, got, want)
	}
}

// A status fault has the API's own error body and the headers that a real answer of that status
// must have, and nothing is done.
func TestStatusFaults(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	for _, tt := range []struct {
		status       int
		code, header string
	}{
		{400, "bad_request", ""},
		{401, "unauthorized", `WWW-Authenticate: Bearer realm="events"`},
		{403, "forbidden", ""},
		{404, "not_found", ""},
		{405, "method_not_allowed", "Allow: OPTIONS"},
		{413, "payload_too_large", ""},
		{415, "unsupported_media_type", "Accept: application/json"},
		{418, "bad_request", ""},
		{422, "idempotency_mismatch", ""},
		{429, "rate_limited", "Retry-After: 1"},
		{500, "server_error", "X-Request-Id: fault"},
		{502, "server_error", ""},
		{503, "server_error", "Retry-After: 1"},
		{599, "server_error", ""},
	} {
		f := srv.Fail("POST /events/create", eventstest.Fault{Status: tt.status, Times: 1})
		a := call(t, srv, srv.Key, "POST /events/create", launch)
		if a.status != tt.status || f.Hits() != 1 {
			t.Errorf("status %d: %d, %d hits", tt.status, a.status, f.Hits())
		}
		if !strings.HasPrefix(a.body, `{"error":{"code":"`+tt.code+`","message":"`) {
			t.Errorf("status %d: the body is %s, want an error with the code %s", tt.status, a.body, tt.code)
		}
		if got, want := a.header.Get("X-Eventsd-Fault"), fmt.Sprint("status ", tt.status); got != want {
			t.Errorf("status %d: X-Eventsd-Fault is %q, want %q", tt.status, got, want)
		}
		name, value, _ := strings.Cut(tt.header, ": ")
		for _, field := range []string{"WWW-Authenticate", "Allow", "Accept", "Retry-After", "X-Request-Id"} {
			want := ""
			if field == name {
				want = value
			}
			if got := a.header.Get(field); got != want {
				t.Errorf("status %d: %s is %q, want %q", tt.status, field, got, want)
			}
		}
	}
	if a := call(t, srv, srv.Key, "GET /events", ""); strings.Contains(a.body, "evt_") {
		t.Errorf("a status fault did the work: %s", a.body)
	}
}

// After lets requests pass, on to the next fault: they are no hits, and the journal
// names the fault that each request met.
func TestFaultAfter(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	grace, graceOwner := srv.NewKey("Grace")
	const list = "GET /events"
	second := srv.Fail(list, eventstest.Fault{Status: 500, After: 1, Times: 2})
	hers := srv.Fail(list, eventstest.Fault{Status: 429, After: 2, User: graceOwner.ID})
	lost := srv.Fail(list, eventstest.Fault{Lose: true, After: 3, Times: 1, Delay: time.Nanosecond})
	var got []string
	for _, key := range []string{srv.Key, srv.Key, grace, srv.Key, grace, grace, grace, srv.Key, srv.Key,
		srv.Key, srv.Key} {
		call(t, srv, key, list, "")
	}
	for _, r := range srv.Requests(list) {
		got = append(got, fmt.Sprintf("%s %d %s", strings.TrimPrefix(r.User, "usr_"), r.Status, r.Fault))
	}
	want := []string{
		"owner 200 ", // the first fault lets one pass, of whomever; so does the last
		"owner 500 status 500",
		"grace 500 status 500",
		"owner 200 ",
		"grace 200 ", // her first that reaches the second fault; for the last it is the third
		"grace 200 lose, delay 1ns",
		"grace 429 status 429",
		"owner 200 ", "owner 200 ", "owner 200 ", "owner 200 ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	if second.Hits() != 2 || hers.Hits() != 1 || lost.Hits() != 1 {
		t.Errorf("hits %d, %d, %d, want 2, 1, 1", second.Hits(), hers.Hits(), lost.Hits())
	}
}

// Each request meets the first fault that is left for its operation and owner.
func TestFaultOrder(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	grace, graceOwner := srv.NewKey("Grace")
	const list = "GET /events"
	first := srv.Fail(list, eventstest.Fault{Status: 503, Times: 2})
	hers := srv.Fail(list, eventstest.Fault{Status: 429, User: graceOwner.ID})
	last := srv.Fail(list, eventstest.Fault{Status: 500})
	for i, step := range []struct {
		key, operation string
		want           int
	}{
		{"svc_live_wrong", list, 401}, // uses none up
		{srv.Key, "OPTIONS /events", 204},
		{srv.Key, "GET /users/me", 200},
		{srv.Key, list, 503},
		{grace, list, 503},
		{grace, "HEAD /events", 429},
		{srv.Key, list, 500},
		{grace, list + "?limit=0", 429},
		{srv.Key, list, 500},
	} {
		if a := call(t, srv, step.key, step.operation, ""); a.status != step.want {
			t.Fatalf("step %d: %s = %d, want %d", i, step.operation, a.status, step.want)
		}
	}
	if first.Hits() != 2 || hers.Hits() != 2 || last.Hits() != 2 {
		t.Errorf("hits: %d %d %d, want 2 each", first.Hits(), hers.Hits(), last.Hits())
	}
	last.Clear()
	last.Clear()
	if a := call(t, srv, srv.Key, list, ""); a.status != 200 || last.Hits() != 2 {
		t.Errorf("after Clear: %d, %d hits", a.status, last.Hits())
	}
}

func TestDropAndLose(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]eventstest.Option{"listener": nil,
		"no listener": {eventstest.NoListener()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := eventstest.New(t, opts...)
			const create = "POST /events/create"
			srv.Fail(create, eventstest.Fault{Drop: true, Times: 1})
			srv.Fail(create, eventstest.Fault{Lose: true, Times: 1})
			srv.Fail("GET /events", eventstest.Fault{Drop: true, Times: 1})
			for i := range 2 {
				if a := call(t, srv, srv.Key, create, launch, "Idempotency-Key: one"); !errors.Is(a.err,
					io.EOF) {
					t.Errorf("call %d: %d %v, want no answer", i, a.status, a.err)
				}
			}
			if a := call(t, srv, srv.Key, "GET /events", ""); a.err == nil {
				t.Errorf("GET /events = %d, want no answer", a.status)
			}
			a := call(t, srv, srv.Key, create, launch, "Idempotency-Key: one")
			if a.status != 201 || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("again: %d %v, want the event that the lost answer was about", a.status, a.header)
			}
			if a := call(t, srv, srv.Key, "GET /events", ""); strings.Count(a.body, `"id"`) != 1 {
				t.Errorf("GET /events = %s, want one event", a.body)
			}
			var statuses []int
			for _, r := range srv.Requests(create) {
				statuses = append(statuses, r.Status)
				if r.Body != launch || r.Header.Get("Idempotency-Key") != "one" {
					t.Errorf("journal: %+v", r)
				}
			}
			if want := []int{0, 201, 201}; !slices.Equal(statuses, want) {
				t.Errorf("statuses %v, want %v", statuses, want)
			}
		})
	}
}

// A request is held until its time is over, its client gone, or its fault
// cleared.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		srv.Fail("POST /events/create", eventstest.Fault{Delay: 30 * time.Second, Times: 2})
		start := time.Now()
		client := srv.Client()
		client.Timeout = 5 * time.Second
		if _, err := client.Post(srv.URL+"/events/create", "application/json",
			strings.NewReader(launch)); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != 5*time.Second {
			t.Errorf("a client with 5s: %v after %v", err, time.Since(start))
		}
		a := call(t, srv, srv.Key, "POST /events/create", launch)
		if a.status != 201 || time.Since(start) != 35*time.Second || a.header.Get("X-Eventsd-Fault") == "" {
			t.Errorf("a client with time: %d after %v, %v", a.status, time.Since(start), a.header)
		}
		if a := call(t, srv, srv.Key, "GET /events", ""); strings.Count(a.body, `"id"`) != 2 {
			t.Errorf("GET /events = %s, want two events: one of the client that went", a.body)
		}
		held := srv.Fail("GET /users/me", eventstest.Fault{Delay: time.Hour, Status: 503})
		got := make(chan answer)
		go func() { got <- call(t, srv, srv.Key, "GET /users/me", "") }()
		synctest.Wait()
		if held.Hits() != 1 {
			t.Errorf("Hits() = %d while it is held, want 1", held.Hits())
		}
		held.Clear()
		if a := <-got; a.status != 503 || time.Since(start) != 35*time.Second {
			t.Errorf("cleared: %d after %v, want 503 at once", a.status, time.Since(start))
		}
	})
}

// A server from outside a bubble can be used in it, and ends outside.
func TestDelayInBubble(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			srv.Fail("GET /events", eventstest.Fault{Delay: time.Hour})
			start := time.Now()
			if a := call(t, srv, srv.Key, "GET /events", ""); a.status != 200 ||
				time.Since(start) != time.Hour {
				t.Errorf("GET /events = %d after %v", a.status, time.Since(start))
			}
		})
	}
}

// The client that goes away ends the delay, over a connection too.
func TestDelayEndsWithClient(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	f := srv.Fail("POST /events/create", eventstest.Fault{Delay: time.Hour, Times: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", srv.URL+"/events/create", strings.NewReader(launch))
		if _, err := srv.Client().Do(r); !errors.Is(err, context.Canceled) {
			t.Errorf("Do: %v", err)
		}
	})
	until(t, "the request is held", func() bool { return f.Hits() == 1 })
	cancel()
	group.Wait()
	if r := srv.Requests("POST /events/create"); len(r) != 1 || r[0].Body != launch {
		t.Errorf("journal: %+v", r)
	}
}

// operations are those of the API.
var operations = events.New(nil).(interface{ Operations() []string }).Operations()

// known are the operations as messages list them.
var known = strings.Join(operations, ", ")

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		request string // its path is under the base path unless it begins with "^"
		unknown bool
	}{
		{"GET /events", false},
		{"HEAD /%65vents?x=1", false},
		{"GET /events/evt_1/guests", false},
		{"OPTIONS /event", false},
		{"GET ^/healthz", false},
		{"GET /event", true},
		{"GET /events/", true},
		{"GET /events/a%2fb", true},
		{"GET //events", true},
		{"PUT /events/evt_1", true},
		{"GET ^/v1/openapi", true},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		path, outside := strings.CutPrefix(path, "^")
		if !outside {
			path = events.BasePath + path
		}
		run := func(opts ...eventstest.Option) []string {
			return try(t, func(p *probe) {
				srv := eventstest.New(p, append(opts, eventstest.NoListener())...)
				send(t, srv.Client(), method, strings.TrimSuffix(srv.URL, events.BasePath)+path, "")
			}).errors
		}
		errors := run()
		if (len(errors) == 1) != tt.unknown {
			t.Errorf("%s: errors %q, want one: %v", tt.request, errors, tt.unknown)
		}
		want := fmt.Sprintf("request 1: %s %s of usr_owner: 4", method, path)
		if tt.unknown && !strings.Contains(errors[0], want) {
			t.Errorf("%s: %q, want %q", tt.request, errors[0], want)
		}
		if errors := run(eventstest.AllowUnknownRoutes()); len(errors) != 0 {
			t.Errorf("%s, with AllowUnknownRoutes: errors %q", tt.request, errors)
		}
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t)
	key, grace := srv.NewKey("Grace")
	big := strings.Repeat("x", 70_000)
	srv.Advance(time.Minute)
	call(t, srv, key, "GET /events?limit=3", "", "Accept: text/plain")
	send(t, http.DefaultClient, "POST", srv.URL+"/events/create", launch, "Authorization: Bearer "+srv.Key)
	call(t, srv, srv.Key, "POST /events/create", big)
	call(t, srv, "svc_live_wrong_key", "GET /events/a%2Db", "", "Authorization: svc_live_alone_in_there")
	call(t, srv, srv.Key, "GET /events/evt_owner_000001", "")
	got := srv.Requests("")
	want := []eventstest.Request{
		{Method: "GET", Path: "/events", Query: "limit=3", Operation: "GET /events", Status: 200,
			User: grace.ID},
		{Method: "POST", Path: "/events/create", Operation: "POST /events/create", Status: 201,
			User: "usr_owner", Body: launch},
		{Method: "POST", Path: "/events/create", Operation: "POST /events/create", Status: 400,
			User: "usr_owner", Body: big[:64<<10],
			Error: got[2].Error},
		{Method: "GET", Path: "/events/a%2Db", Operation: "GET /events/{id}", Status: 401,
			Error: "invalid API key: no such key, or it was revoked; " +
				"send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>"},
		{Method: "GET", Path: "/events/evt_owner_000001", Operation: "GET /events/{id}", Status: 200,
			User: "usr_owner"},
	}
	if !strings.HasPrefix(got[2].Error, "the body is not a JSON object: line 1") {
		t.Errorf("the error of a request is %q", got[2].Error)
	}
	for i, w := range want {
		w.Seq, w.Time, w.Path = i+1, srv.Now(), events.BasePath+w.Path
		if i < len(got) {
			w.Header, w.Received = got[i].Header, got[i].Received
			if age := time.Since(w.Received); age < 0 || age > time.Minute {
				t.Errorf("request %d was received at %v, by the machine's clock", i, w.Received)
			}
		}
		if i >= len(got) || fmt.Sprint(got[i]) != fmt.Sprint(w) {
			t.Errorf("request %d: %.300s, want %.300s", i, fmt.Sprint(got[i]), fmt.Sprint(w))
		}
	}
	if h := got[0].Header; h.Get("X-Service-Api-Key") != "…"+key[len(key)-4:] ||
		h.Get("Accept") != "text/plain" {
		t.Errorf("headers: %v", h)
	}
	if h := got[1].Header.Get("Authorization"); h != "Bearer …"+srv.Key[len(srv.Key)-4:] {
		t.Errorf("Authorization: %q", h)
	}
	if h := got[3].Header; h.Get("Authorization") != "…here" || h.Get("X-Service-Api-Key") != "…_key" {
		t.Errorf("headers: %v", h)
	}
	if strings.Contains(fmt.Sprint(got), srv.Key) || strings.Contains(fmt.Sprint(got), key) {
		t.Error("a key is in the journal")
	}
	got[0].Header.Set("Accept", "changed")
	if h := srv.Requests("GET /events")[0].Header; h.Get("Accept") != "text/plain" {
		t.Error("Requests must return a copy")
	}
	if n := len(srv.Requests("POST /events/create")); n != 2 {
		t.Errorf("Requests of one operation: %d", n)
	}
	if n := len(srv.Requests("GET /events", grace.ID)); n != 1 {
		t.Errorf("Requests of one user: %d", n)
	}
	if p := try(t, func(p *probe) {
		eventstest.New(p,
			eventstest.NoListener()).Requests("GET /event")
	}); !strings.Contains(p.fatal, known) {
		t.Errorf("Requests of an unknown operation: fatal %q", p.fatal)
	}
	srv.ClearRequests()
	if n := len(srv.Requests("")); n != 0 {
		t.Errorf("after ClearRequests: %d", n)
	}
	for i := range 1001 {
		call(t, srv, srv.Key, "GET /events?limit="+fmt.Sprint(1+i%2), "")
	}
	if r := srv.Requests("", "usr_owner"); len(r) != 1000 || r[0].Query != "limit=2" || r[999].Query != "limit=1" ||
		r[0].Seq != 7 {
		t.Errorf("the journal has %d requests, from %v", len(r), r[0])
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	create := func() answer {
		return call(t, srv, srv.Key, "POST /events/create", launch,
			"Idempotency-Key: k")
	}
	first := create()
	srv.Advance(23 * time.Hour)
	if again := create(); again.body != first.body {
		t.Errorf("after 23h: %s", again.body)
	}
	srv.Advance(time.Hour + 1)
	if later := create(); later.status != 201 || !strings.Contains(later.body,
		`"created_at":"2030-01-02T00:00:00.000000001Z"`) {
		t.Errorf("after 24h: %s, want a new event", later.body)
	}
	for _, by := range []time.Duration{-1, 1<<63 - 1} {
		p := try(t, func(p *probe) {
			eventstest.New(p, eventstest.NoListener(), eventstest.At(time.Date(9990, 1, 1, 0, 0, 0, 0,
				time.UTC))).Advance(by)
		})
		if !strings.Contains(p.fatal, "goes forward only") {
			t.Errorf("Advance(%v): fatal %q", by, p.fatal)
		}
	}
}

// The end of a test waits for no request or connection: not for requests that are
// held or half sent, nor for connections that are new or idle.
func TestCleanup(t *testing.T) {
	t.Parallel()
	var clients sync.WaitGroup
	var end time.Time
	p := try(t, func(p *probe) {
		srv := eventstest.New(p)
		for _, fault := range []eventstest.Fault{{Delay: time.Hour}, {Delay: time.Hour, Lose: true},
			{Delay: time.Hour, Drop: true}} {
			fault.Times = 1
			srv.Fail("GET /events", fault)
			clients.Go(func() { call(t, srv, srv.Key, "GET /events", "") })
		}
		until(t, "the requests are held", func() bool {
			return len(srv.Requests("GET /events",
				"usr_owner")) == 3
		})
		idle := &http.Client{Transport: &http.Transport{}}
		send(t, idle, "GET", srv.URL+"/users/me", "", "x-service-api-key: "+srv.Key) // leaves an idle connection
		host := strings.TrimSuffix(strings.TrimPrefix(srv.URL, "http://"), events.BasePath)
		for _, begun := range []string{"", "GET ", "POST " + events.BasePath +
			"/events/create HTTP/1.1\r\nHost: x\r\n" +
			"X-Service-Api-Key: " + srv.Key + "\r\nContent-Length: 10\r\n\r\n{"} {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { conn.Close() })
			io.WriteString(conn, begun)
		}
		until(t, "the body is waited for",
			func() bool { return len(srv.Requests("POST /events/create")) == 1 })
		end = time.Now()
	})
	if took := time.Since(end); took >= 5*time.Second { // as net/http would wait for a new connection
		t.Errorf("the end took %v", took)
	}
	clients.Wait()
	if p.fatal != "" || len(p.errors) > 0 {
		t.Errorf("fatal %q, errors %q", p.fatal, p.errors)
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	srv := eventstest.New(t, eventstest.NoListener())
	own := httptest.NewServer(srv.Handler())
	defer own.Close()
	srv.Fail("GET /events", eventstest.Fault{Status: 503, Times: 1})
	for _, want := range []int{503, 200} {
		if a := send(t, own.Client(), "GET", own.URL+events.BasePath+"/events", "",
			"Authorization: bearer "+srv.Key); a.status != want {
			t.Errorf("GET /events = %d, want %d", a.status, want)
		}
	}
	if n := len(srv.Requests("GET /events")); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// The client without a listener sends what a real one would.
func TestDirectClient(t *testing.T) {
	t.Parallel()
	with, without := eventstest.New(t), eventstest.New(t, eventstest.NoListener())
	run := func(srv *eventstest.Server) (all []string) {
		for _, body := range []io.Reader{nil, strings.NewReader(launch),
			io.NopCloser(strings.NewReader(launch)), io.MultiReader(strings.NewReader(launch),
				errorReader{})} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/events/create", body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.Client().Do(r)
			if err != nil {
				all = append(all, "no answer")
				continue
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			all = append(all, resp.Status, string(got), resp.Header.Get("Content-Length"))
		}
		return all
	}
	if a, b := run(with), run(without); !slices.Equal(a[:9], b[:9]) {
		t.Errorf("with a listener: %q\nwithout: %q", a, b)
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// What is served never holds what is for tests.
func TestNotLinked(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"example.com/events", "example.com/events/cmd/eventsd"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-deps", pkg).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", pkg, err)
		}
		deps := strings.Fields(string(out))
		for _, bad := range []string{"testing", "net/http/httptest", "example.com/events/eventstest"} {
			if slices.Contains(deps, bad) {
				t.Errorf("%s links %s", pkg, bad)
			}
		}
		if !slices.Contains(deps, "net/http") {
			t.Errorf("go list -deps %s: %s", pkg, out)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for name, opts := range map[string][]eventstest.Option{"listener": nil,
		"no-listener": {eventstest.NoListener()}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				try(b, func(p *probe) { eventstest.New(p, opts...) })
			}
		})
	}
}

func BenchmarkNewKey(b *testing.B) {
	srv := eventstest.New(b, eventstest.NoListener())
	for b.Loop() {
		srv.NewKey("Grace")
	}
}
