package consumer

import (
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
	if event.ID != "evt_owner_000001" { // ids repeat: they can be written down
		t.Errorf("event %+v", event)
	}
}

// Tests in parallel share a server: each has a key, and with it a service of
// its own.
func TestFaults(t *testing.T) {
	srv := eventstest.New(t)
	for name, test := range map[string]struct {
		faults []eventstest.Fault
		tries  int
		fails  bool
	}{
		"an error, then an answer": {[]eventstest.Fault{{Status: 503, Times: 1}}, 2, false},
		"a proxy's page": {[]eventstest.Fault{{Status: 502, Body: "<html>Bad gateway</html>",
			Times: 2}}, 3, false},
		"a lost answer":  {[]eventstest.Fault{{Lose: true, Times: 1}}, 2, false},
		"half an answer": {[]eventstest.Fault{{Cut: true, Times: 1}}, 2, false},
		"broken JSON":    {[]eventstest.Fault{{Status: 201, Body: `{"id":`}}, 3, true},
		"dropped and lost": {[]eventstest.Fault{{Drop: true, Times: 1}, {Lose: true, Times: 1}}, 3,
			false},
		"always an error": {[]eventstest.Fault{{Status: 500}}, 3, true},
		"a refusal":       {[]eventstest.Fault{{Status: 403}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := srv.For(t) // a mistake in this test fails this test
			key, owner := srv.NewKey(t.Name())
			for _, fault := range test.faults {
				fault.User = owner.ID
				srv.Fail(create, fault)
			}
			client := &Client{srv.URL, key, srv.Client()}
			if _, err := client.Create(t.Context(), "Launch", start); (err != nil) != test.fails {
				t.Errorf("Create: %v", err)
			}
			requests := srv.Requests(create, owner.ID)
			if len(requests) != test.tries {
				t.Fatalf("%d requests, want %d", len(requests), test.tries)
			}
			for _, r := range requests {
				if r.Header.Get("Idempotency-Key") != requests[0].Header.Get("Idempotency-Key") {
					t.Error("each try had an Idempotency-Key of its own")
				}
			}
			events := 0
			for _, r := range srv.Store.Records() {
				if r.Event != nil && r.Event.HostID == owner.ID {
					events++
				}
			}
			if want := map[bool]int{false: 1, true: 0}[test.fails]; events != want {
				t.Errorf("%d events, want %d", events, want)
			}
		})
	}
}

// In a bubble of synctest a service that hangs takes no time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		srv.Fail(create, eventstest.Fault{Delay: time.Minute, Times: 1})
		http := srv.Client()
		http.Timeout = 10 * time.Second
		client := &Client{srv.URL, srv.Key, http}
		if _, err := client.Create(t.Context(), "Launch", start); err != nil {
			t.Errorf("the second try: %v", err)
		}
		srv.Fail(create, eventstest.Fault{Delay: time.Minute})
		_, err := client.Create(t.Context(), "Launch", start)
		if timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); !ok || !timeout.Timeout() {
			t.Errorf("Create: %v, want a timeout", err)
		}
	})
}
