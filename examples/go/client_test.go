package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

const create = "POST /events/create"

var start = time.Date(2030, time.March, 1, 18, 0, 0, 0, time.UTC)

func TestCreate(t *testing.T) {
	srv := eventstest.New(t)
	client := &Client{srv.URL, srv.Key, srv.Client()}
	event, err := client.Create(t.Context(), "Launch", start)
	if err != nil {
		t.Fatal(err)
	}
	if want := "evt_owner_000001"; event.ID != want { // the same on every run
		t.Errorf("ID = %s, want %s", event.ID, want)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name     string
		faults   []eventstest.Fault
		attempts int
		events   int // 0 if Create fails
	}{
		{"error", []eventstest.Fault{{Status: 503, Times: 1}}, 2, 1},
		{"proxy", []eventstest.Fault{{Status: 502, Body: "<html>Bad gateway</html>", Times: 2}}, 3, 1},
		{"lost response", []eventstest.Fault{{Lose: true, Times: 1}}, 2, 1},
		{"gateway gives up", []eventstest.Fault{{Lose: true, Status: 504, Times: 1}}, 2, 1},
		{"half a response", []eventstest.Fault{{Cut: true, Times: 1}}, 2, 1},
		{"dropped and lost", []eventstest.Fault{{Drop: true, Times: 1}, {Lose: true, Times: 1}}, 3, 1},
		{"always an error", []eventstest.Fault{{Status: 500}}, 3, 0},
		{"broken JSON", []eventstest.Fault{{Status: 201, Body: `{"id":`}}, 3, 0},
		{"refusal", []eventstest.Fault{{Status: 403}}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := eventstest.New(t)
			for _, fault := range tt.faults {
				srv.Fail(create, fault)
			}
			client := &Client{srv.URL, srv.Key, srv.Client()}
			_, err := client.Create(t.Context(), "Launch", start)
			if (err == nil) != (tt.events == 1) {
				t.Errorf("Create: %v, want %d events", err, tt.events)
			}
			if n := len(srv.Requests(create)); n != tt.attempts {
				t.Errorf("%d attempts, want %d", n, tt.attempts)
			}
			if n := countEvents(srv); n != tt.events {
				t.Errorf("%d events, want %d", n, tt.events)
			}
			checkSameKey(t, srv)
		})
	}
}

// TestTimeout runs in a bubble, where a delay takes no time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		srv.Fail(create, eventstest.Fault{Delay: time.Minute, Times: 1})
		http := srv.Client()
		http.Timeout = 10 * time.Second
		client := &Client{srv.URL, srv.Key, http}
		if _, err := client.Create(t.Context(), "Launch", start); err != nil {
			t.Errorf("Create: %v", err)
		}
		if n := countEvents(srv); n != 1 { // the first attempt is carried out, too
			t.Errorf("%d events, want 1", n)
		}
		checkSameKey(t, srv)
		attempts := srv.Requests(create)
		if wait := attempts[1].Received.Sub(attempts[0].Received); wait != http.Timeout {
			t.Errorf("the second attempt came after %v, want %v", wait, http.Timeout)
		}

		srv.Fail(create, eventstest.Fault{Delay: time.Minute})
		_, err := client.Create(t.Context(), "Launch", start)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Create: %v, want a timeout", err)
		}
	})
}

// checkSameKey checks that all attempts had the same Idempotency-Key.
func checkSameKey(t *testing.T, srv *eventstest.Server) {
	t.Helper()
	attempts := srv.Requests(create)
	first := attempts[0].Header.Get("Idempotency-Key")
	if first == "" {
		t.Error("the first attempt has no Idempotency-Key")
	}
	for _, r := range attempts {
		if key := r.Header.Get("Idempotency-Key"); key != first {
			t.Errorf("attempts have the Idempotency-Keys %s and %s", first, key)
		}
	}
}

// countEvents returns the number of events in the store, whatever the responses were.
func countEvents(srv *eventstest.Server) (n int) {
	for _, r := range srv.Store.Records() {
		if r.Event != nil {
			n++
		}
	}
	return n
}
