package eventstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
	"example.com/events/internal/testdouble"
)

// TestFaults tests the effect of each fault on a client, on the store and on the journal.
func TestFaults(t *testing.T) {
	const (
		get          = "GET /events/{id}"
		createdEvent = `{"id":"evt_owner_000002","host_id":"usr_owner",…`
	)
	for _, tt := range []struct {
		operation string
		request   string // if empty, the same as operation
		fault     eventstest.Fault
		journal   string // Fault, in the journal and in X-Eventsd-Fault

		status  int
		body    string   // all of it, or its beginning before "…"
		headers []string // "Name: value", or "Name: " if it must not be there
		err     error    // of reading the body; a response without a status has none
		created bool     // whether the request created an event
	}{
		{operation: create, fault: eventstest.Fault{Status: 500}, journal: "status 500",
			status: 500, body: `{"error":{"code":"server_error","message":"a test fault refused this …`,
			headers: []string{"Content-Type: application/json"}},
		{operation: list, fault: eventstest.Fault{Status: 401}, journal: "status 401",
			status: 401, body: `{"error":{"code":"unauthorized",…`,
			headers: []string{`WWW-Authenticate: Bearer realm="events"`}},
		{operation: list, fault: eventstest.Fault{Status: 405}, journal: "status 405",
			status: 405, body: `{"error":{"code":"method_not_allowed",…`,
			headers: []string{"Allow: OPTIONS"}},
		{operation: create, fault: eventstest.Fault{Status: 415}, journal: "status 415",
			status: 415, body: `{"error":{"code":"unsupported_media_type",…`,
			headers: []string{"Accept: application/json"}},
		{operation: list, fault: eventstest.Fault{Status: 429}, journal: "status 429",
			status: 429, body: `{"error":{"code":"rate_limited",…`, headers: []string{"Retry-After: 1"}},
		{operation: list,
			fault:   eventstest.Fault{Status: 503, Header: http.Header{"Retry-After": nil, "X-A": {"b"}}},
			journal: "status 503, header",
			status:  503, body: `{"error":{"code":"server_error",…`,
			headers: []string{"Retry-After: ", "X-A: b"}},
		{operation: list, fault: eventstest.Fault{Status: 502, Body: "<html>"}, journal: "status 502",
			status: 502, body: "<html>", headers: []string{"Content-Type: text/html; charset=utf-8"}},
		{operation: create, fault: eventstest.Fault{Status: 201, Body: `{"id":`}, journal: "status 201",
			status: 201, body: `{"id":`, headers: []string{"Content-Type: application/json", "Location: "}},
		{operation: list, fault: eventstest.Fault{Status: 200}, journal: "status 200",
			status: 200, headers: []string{"Content-Type: ", "Content-Length: 0"}},
		{operation: create, fault: eventstest.Fault{Status: 204}, journal: "status 204",
			status: 204, headers: []string{"Content-Type: ", "Content-Length: "}},
		{operation: list,
			fault:   eventstest.Fault{Status: 307, Body: "moved", Header: http.Header{"Location": {"/x"}}},
			journal: "status 307, header",
			status:  307, body: "moved",
			headers: []string{"Content-Type: text/plain; charset=utf-8", "Location: /x"}},
		{operation: getMe, fault: eventstest.Fault{Header: http.Header{"content-type": {"a/b"}, "Date": nil}},
			journal: "header",
			status:  200, body: `{"id":"usr_owner",…`, headers: []string{"Content-Type: a/b", "Date: "}},
		{operation: getMe, fault: eventstest.Fault{Patch: `{"avatar_url":[1],"name":null}`}, journal: "patch",
			status: 200, body: `{"avatar_url":[1],…`},
		{operation: list, fault: eventstest.Fault{Patch: `{"data":[],"has_more":true}`}, journal: "patch",
			status: 200, body: `{"data":[],"has_more":true,"next_cursor":null}`,
			headers: []string{"Content-Length: 46"}},
		{operation: create, fault: eventstest.Fault{Patch: `{"id":7}`}, journal: "patch",
			status: 201, body: `{…`, headers: []string{"Location: /api/public/v1/events/evt_owner_000002"},
			created: true},
		{operation: get, request: "GET /events/evt_x",
			fault: eventstest.Fault{Patch: `{"error":{"message":"gone"}}`}, journal: "patch",
			status: 404, body: `{"error":{"code":"not_found","message":"gone"}}`},
		{operation: create, fault: eventstest.Fault{DropRequest: true}, journal: "drop_request"},
		{operation: create, fault: eventstest.Fault{DropResponse: true}, journal: "drop_response",
			created: true},
		{operation: create, fault: eventstest.Fault{DropResponse: true, Status: 504},
			journal: "drop_response, status 504",
			status:  504, body: `{"error":{"code":"server_error","message":"a test fault replaced the …`,
			headers: []string{"Location: "}, created: true},
		{operation: create, fault: eventstest.Fault{CutResponse: true}, journal: "cut_response",
			status: 201, body: createdEvent, err: io.ErrUnexpectedEOF, created: true},
		{operation: create, fault: eventstest.Fault{Delay: time.Millisecond}, journal: "delay 1ms",
			status: 201, body: createdEvent, created: true},
	} {
		for kind, opts := range modes {
			t.Run(tt.journal+" of "+tt.operation+", "+kind, func(t *testing.T) {
				t.Parallel()
				srv := eventstest.New(t, opts...)
				send(srv, create)
				f := srv.Fail(tt.operation, tt.fault)
				client := srv.Client()
				client.CheckRedirect = func(*http.Request, []*http.Request) error {
					return http.ErrUseLastResponse
				}
				request := tt.request
				if request == "" {
					request = tt.operation
				}
				got := sendWith(client, srv, request)
				if got.Status != tt.status {
					t.Fatalf("status: got %d (%v), want %d", got.Status, got.err, tt.status)
				}
				if tt.status != 0 {
					checkResponse(t, got, tt.body, tt.headers, tt.err, tt.journal)
				}
				if created := countEvents(srv) == 2; created != tt.created {
					t.Errorf("created: got %v, want %v", created, tt.created)
				}
				if n := f.Hits(); n != 1 {
					t.Errorf("Hits(): got %d, want 1", n)
				}
				requests := srv.Requests(tt.operation)
				if got := requests[len(requests)-1].Fault; got != tt.journal {
					t.Errorf("Fault: got %q, want %q", got, tt.journal)
				}
			})
		}
	}
}

// checkResponse checks a response that a fault made or changed.
func checkResponse(t *testing.T, got result, body string, headers []string, err error, fault string) {
	t.Helper()
	gotBody := got.Body
	if start, cut := strings.CutSuffix(body, "…"); cut {
		gotBody = gotBody[:min(len(gotBody), len(start))] + "…"
	}
	if gotBody != body {
		t.Errorf("body: got %s, want %s", got.Body, body)
	}
	if !errors.Is(got.err, err) {
		t.Errorf("error: got %v, want %v", got.err, err)
	}
	for _, header := range append(headers, "X-Eventsd-Fault: "+fault) {
		name, want, _ := strings.Cut(header, ": ")
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: got %q, want %q", name, value, want)
		}
	}
	const exposed = "Access-Control-Expose-Headers"
	if value := got.Header.Get(exposed); !strings.HasSuffix(value, ", x-request-id, x-eventsd-fault") {
		t.Errorf("%s: got %q, want x-eventsd-fault at its end", exposed, value)
	}
}

// TestCutLength tests that half a response has the length of the whole in its header.
func TestCutLength(t *testing.T) {
	srv := eventstest.New(t)
	whole := send(srv, getMe)
	srv.Fail(getMe, eventstest.Fault{CutResponse: true})
	half := send(srv, getMe)
	if half.Body != whole.Body[:len(whole.Body)/2] {
		t.Errorf("body: got %s, want half of %s", half.Body, whole.Body)
	}
	if n := half.Header.Get("Content-Length"); n != fmt.Sprint(len(whole.Body)) {
		t.Errorf("Content-Length: got %s, want %d", n, len(whole.Body))
	}
}

// TestFaultOrder tests that a request matches the first fault that isn't used up, and that Skip
// passes requests on to the next fault.
func TestFaultOrder(t *testing.T) {
	srv := eventstest.New(t)
	grace, owner := srv.NewKey("Grace")
	send(srv, create)
	faults := []*eventstest.InjectedFault{
		srv.Fail(list, eventstest.Fault{Status: 500, Skip: 1, Times: 2}),
		srv.Fail(getMe, eventstest.Fault{CutResponse: true}),
		srv.Fail(list, eventstest.Fault{Status: 429, UserID: owner.ID}),
		srv.Fail(list, eventstest.Fault{Status: 502, Body: "x"}),
		srv.Fail("GET /events/{id}", eventstest.Fault{Status: 503, Path: "/events/evt_owner_000001"}),
	}
	for i, step := range []struct {
		key, request string
		want         int
	}{
		{srv.Key, list, 502}, // skipped by the first fault
		{"svc_live_wrong", list, 401},
		{srv.Key, "OPTIONS /events", 204},
		{srv.Key, "HEAD /users/me", 200}, // has no body to cut
		{grace, list, 500},
		{srv.Key, "HEAD /events", 500},
		{srv.Key, list, 502},
		{grace, list + "?limit=0", 429},
		{srv.Key, "GET /events/evt_owner_000001", 503},
		{srv.Key, "GET /events/%65vt_owner_000001", 503},
		{srv.Key, "GET /events/evt_2", 404},
	} {
		got := send(srv, step.request, "x-service-api-key: "+step.key)
		if got.Status != step.want {
			t.Errorf("step %d, %s: status: got %d, want %d", i, step.request, got.Status, step.want)
		}
	}
	var hits []int
	for _, f := range faults {
		hits = append(hits, f.Hits())
	}
	if want := []int{2, 0, 1, 2, 2}; !slices.Equal(hits, want) {
		t.Errorf("hits: got %d, want %d", hits, want)
	}
	faults[1].Clear()
	faults[3].Clear()
	if got := send(srv, list); got.Status != 200 {
		t.Errorf("after Clear: status: got %d, want 200", got.Status)
	}
}

// TestDelay tests that a request is handled before its delay, and that the delay ends when its time is over,
// its client is gone or its fault is cleared.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener(), eventstest.Allow(eventstest.UnsafeRetry))
		delayed := srv.Fail(create, eventstest.Fault{Delay: time.Minute})
		start := time.Now()
		client := srv.Client()
		client.Timeout = 5 * time.Second
		got := sendWith(client, srv, create)
		if !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("error: got %v, want a timeout", got.err)
		}
		if n := countEvents(srv); n != 1 {
			t.Errorf("events after a timeout: got %d, want 1", n)
		}
		if got := send(srv, create); got.Status != 201 {
			t.Errorf("status: got %d, want 201", got.Status)
		}
		if took := time.Since(start); took != time.Minute+5*time.Second {
			t.Errorf("time of two responses: got %v, want 1m5s", took)
		}
		done := make(chan result)
		go func() { done <- send(srv, create) }()
		synctest.Wait()
		if n := delayed.Hits(); n != 3 {
			t.Errorf("Hits(): got %d during a delay, want 3", n)
		}
		delayed.Clear()
		if got := <-done; got.Status != 201 {
			t.Errorf("after Clear: status: got %d, want 201", got.Status)
		}
		if took := time.Since(start); took != time.Minute+5*time.Second {
			t.Errorf("time of the response after Clear: got %v, want 1m5s", took)
		}
	})
}

// The caller may change the header of a fault afterwards.
func TestFaultKeepsHeader(t *testing.T) {
	srv := eventstest.New(t, eventstest.NoListener())
	header := http.Header{"X-A": {"1"}}
	srv.Fail(getMe, eventstest.Fault{Header: header})
	header.Set("X-A", "2")
	if got := send(srv, getMe).Header.Get("X-A"); got != "1" {
		t.Errorf("X-A: got %q, want 1", got)
	}
}

// TestDroppedOnce tests that no client resends a dropped request by itself: each connection serves
// one request.
func TestDroppedOnce(t *testing.T) {
	srv := eventstest.New(t)
	client := &http.Client{Transport: &http.Transport{}}
	key := "x-service-api-key: " + srv.Key
	for range 3 {
		if got := sendWith(client, srv, getMe, key); got.Status != 200 {
			t.Fatalf("status: got %d (%v), want 200", got.Status, got.err)
		}
	}
	for _, fault := range []eventstest.Fault{{DropRequest: true, Times: 1}, {DropResponse: true, Times: 1}} {
		for _, operation := range []string{create, list} {
			srv.Fail(operation, fault)
			got := sendWith(client, srv, operation, key, "Idempotency-Key: k")
			if got.err == nil {
				t.Errorf("%s with %v: status: got %d, want an error", operation, fault, got.Status)
			}
		}
	}
	if n := len(srv.Requests(create)); n != 2 {
		t.Errorf("creates that arrived: got %d, want 2", n)
	}
}

// Each field of a fault is documented for other languages, and has a type for TypeScript.
func TestFaultFields(t *testing.T) {
	for pattern, form := range map[string]string{
		"../docs/double*.md":            "`%s`",
		"../examples/node/double.d.cts": "\n  %s?: ",
	} {
		files, _ := filepath.Glob(pattern)
		var text []byte
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, data...)
		}
		for field := range reflect.TypeFor[testdouble.Fault]().Fields() {
			want := fmt.Sprintf(form, field.Tag.Get("json"))
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: got no %q, want it", pattern, want)
			}
		}
	}
}
