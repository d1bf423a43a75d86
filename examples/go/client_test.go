package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

const (
	create = "POST /events/create"
	list   = "GET /events"
)

var start = time.Date(2030, time.March, 1, 18, 0, 0, 0, time.UTC)

// run runs a test with a server of its own in a bubble, where waiting takes no time.
func run(t *testing.T, test func(t *testing.T, srv *eventstest.Server, client *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		test(t, srv, &Client{srv.URL, srv.Key, srv.Client()})
	})
}

func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		for _, want := range []string{"evt_owner_000001", "evt_owner_000002"} { // the same on every run
			event, err := client.Create(t.Context(), "Launch", start)
			if err != nil {
				t.Fatal(err)
			}
			if event.ID != want {
				t.Errorf("ID: got %s, want %s", event.ID, want)
			}
		}
	})
}

// TestEvents reads two pages, the second one in two attempts.
func TestEvents(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		const n = 101
		for range n {
			if _, err := client.Create(t.Context(), "Launch", start); err != nil {
				t.Fatal(err)
			}
		}
		srv.Fail(list, eventstest.Fault{Status: 500, Skip: 1, Times: 1})
		events, err := client.Events(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) != n {
			t.Fatalf("events: got %d, want %d", len(events), n)
		}
		for i, event := range events {
			if want := fmt.Sprintf("evt_owner_%06d", n-i); event.ID != want {
				t.Errorf("event %d: got %s, want %s", i, event.ID, want)
			}
		}
		checkAttempts(t, srv, list, 0, time.Second) // two pages
	})
}

// TestRetry checks that each temporary failure is retried and that there is one event in the end.
func TestRetry(t *testing.T) {
	for _, fault := range []eventstest.Fault{
		{Status: 408}, {Status: 429}, {Status: 500}, {Status: 503}, {Status: 504},
		{Status: 502, Body: "<html>Bad gateway</html>"},
		{DropRequest: true},               // no event
		{DropResponse: true},              // an event, but no response
		{CutResponse: true},               // half a response
		{DropResponse: true, Status: 504}, // an event, but a gateway gives up
	} {
		t.Run(fault.String(), func(t *testing.T) {
			run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
				fault.Times = 1
				srv.Fail(create, fault)
				if _, err := client.Create(t.Context(), "Launch", start); err != nil {
					t.Error(err)
				}
				checkAttempts(t, srv, create, time.Second)
				checkEvents(t, srv, 1)
			})
		})
	}
}

// TestFinal checks that other errors aren't retried.
func TestFinal(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
				srv.Fail(create, eventstest.Fault{Status: status})
				if _, err := client.Create(t.Context(), "Launch", start); err == nil {
					t.Error("Create: got no error, want one")
				}
				checkAttempts(t, srv, create)
			})
		})
	}
}

// TestGiveUp checks the waits of a client that fails in the end.
func TestGiveUp(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		srv.Fail(create, eventstest.Fault{Status: 500, Times: 9})
		if _, err := client.Create(t.Context(), "Launch", start); err == nil {
			t.Error("Create: got no error, want one")
		}
		checkAttempts(t, srv, create, 1*time.Second, 2*time.Second, 4*time.Second, 8*time.Second)
		attempts := srv.Requests(create)
		if attempts[4].Received.Sub(attempts[0].Received) == 15*time.Second {
			t.Error("the waits have no random part")
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for name, value := range map[string]func() string{
		"seconds": func() string { return "20" },
		"date":    func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
				header := http.Header{"Retry-After": {value()}}
				srv.Fail(create, eventstest.Fault{Status: 429, Header: header, Times: 1})
				if _, err := client.Create(t.Context(), "Launch", start); err != nil {
					t.Error(err)
				}
				checkAttempts(t, srv, create, 20*time.Second)
			})
		})
	}
}

// TestTimeout checks that a late response is retried and that the context ends the retries.
func TestTimeout(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		client.HTTP.Timeout = 10 * time.Second
		srv.Fail(create, eventstest.Fault{Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, err := client.Create(ctx, "Launch", start)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Create: got %v, want %v", err, context.DeadlineExceeded)
		}
		checkAttempts(t, srv, create, 11*time.Second)
		checkEvents(t, srv, 1) // the server handled the request
	})
}

func TestUnknownValue(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		srv.Fail(create, eventstest.Fault{Patch: `{"status":"archived","capacity":null}`})
		event, err := client.Create(t.Context(), "Launch", start)
		if err != nil {
			t.Fatal(err)
		}
		if event.Status != "archived" {
			t.Errorf("Status: got %q, want archived", event.Status)
		}
	})
}

// TestWebPage checks that a web page may send what the client sends. A browser first asks about headers that
// it doesn't send itself.
func TestWebPage(t *testing.T) {
	run(t, func(t *testing.T, srv *eventstest.Server, client *Client) {
		if _, err := client.Create(t.Context(), "Launch", start); err != nil {
			t.Fatal(err)
		}
		header := srv.Requests(create)[0].Header
		for _, name := range []string{"Accept-Encoding", "Content-Length", "User-Agent"} {
			header.Del(name)
		}
		preflight, err := http.NewRequestWithContext(t.Context(), "OPTIONS", srv.URL+"/events/create", nil)
		if err != nil {
			t.Fatal(err)
		}
		added := strings.ToLower(strings.Join(slices.Sorted(maps.Keys(header)), ","))
		preflight.Header.Set("Origin", "http://localhost:5173")
		preflight.Header.Set("Access-Control-Request-Method", "POST")
		preflight.Header.Set("Access-Control-Request-Headers", added)
		resp, err := client.HTTP.Do(preflight)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != 204 || got != "*" {
			t.Errorf("preflight: got status %d and origin %q, want 204 and *", resp.StatusCode, got)
		}
		allowed := strings.Split(resp.Header.Get("Access-Control-Allow-Headers"), ", ")
		for name := range strings.SplitSeq(added, ",") {
			if !slices.Contains(allowed, name) {
				t.Errorf("allowed headers: got %q, want also %s", allowed, name)
			}
		}
	})
}

// checkAttempts checks the number of requests for an operation and the waits between them, give or take a
// quarter. All attempts to create an event must have the same Idempotency-Key.
func checkAttempts(t *testing.T, srv *eventstest.Server, operation string, waits ...time.Duration) {
	t.Helper()
	attempts := srv.Requests(operation)
	if len(attempts) != len(waits)+1 {
		t.Fatalf("%s: got %d requests, want %d", operation, len(attempts), len(waits)+1)
	}
	for i, want := range waits {
		got := attempts[i+1].Received.Sub(attempts[i].Received)
		if got < want*3/4 || got > want*5/4 {
			t.Errorf("%s: got a wait of %v after attempt %d, want %v", operation, got, i+1, want)
		}
	}
	for i, attempt := range attempts {
		first, got := attempts[0].Header.Get("Idempotency-Key"), attempt.Header.Get("Idempotency-Key")
		if operation == create && (got == "" || got != first) {
			t.Errorf("attempt %d: got Idempotency-Key %q, want that of the first, %q", i+1, got, first)
		}
	}
}

// checkEvents checks the number of events in the store, whatever the responses were.
func checkEvents(t *testing.T, srv *eventstest.Server, want int) {
	t.Helper()
	got := 0
	for record := range srv.Store.Records() {
		if record.Event != nil {
			got++
		}
	}
	if got != want {
		t.Errorf("events: got %d, want %d", got, want)
	}
}
