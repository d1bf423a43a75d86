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

// Each subtest has a server of its own.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		faults []eventstest.Fault
		tries  int
		fails  bool
	}{
		"an error, then an answer": {[]eventstest.Fault{{Status: 503, Times: 1}}, 2, false},
		"a proxy's page": {[]eventstest.Fault{{Status: 502, Body: "<html>Bad gateway</html>",
			Times: 2}}, 3, false},
		"a lost answer":           {[]eventstest.Fault{{Lose: true, Times: 1}}, 2, false},
		"a gateway that gives up": {[]eventstest.Fault{{Lose: true, Status: 504, Times: 1}}, 2, false},
		"half an answer":          {[]eventstest.Fault{{Cut: true, Times: 1}}, 2, false},
		"broken JSON":             {[]eventstest.Fault{{Status: 201, Body: `{"id":`}}, 3, true},
		"dropped and lost": {[]eventstest.Fault{{Drop: true, Times: 1}, {Lose: true, Times: 1}}, 3,
			false},
		"always an error": {[]eventstest.Fault{{Status: 500}}, 3, true},
		"a refusal":       {[]eventstest.Fault{{Status: 403}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := eventstest.New(t)
			for _, fault := range test.faults {
				srv.Fail(create, fault)
			}
			client := &Client{srv.URL, srv.Key, srv.Client()}
			if _, err := client.Create(t.Context(), "Launch", start); (err != nil) != test.fails {
				t.Errorf("Create: %v", err)
			}
			if n := len(srv.Requests(create)); n != test.tries {
				t.Errorf("%d tries, want %d", n, test.tries)
			}
			sameKey(t, srv)
			if n, want := countEvents(srv), map[bool]int{false: 1, true: 0}[test.fails]; n != want {
				t.Errorf("%d events, want %d", n, want)
			}
		})
	}
}

// sameKey fails the test unless all tries of a create had one Idempotency-Key, so that they make one
// event.
func sameKey(t *testing.T, srv *eventstest.Server) {
	t.Helper()
	tries := srv.Requests(create)
	for _, r := range tries {
		key := r.Header.Get("Idempotency-Key")
		if key == "" || key != tries[0].Header.Get("Idempotency-Key") {
			t.Errorf("each try had an Idempotency-Key of its own: %v", tries)
			return
		}
	}
}

// gaps are the times between the tries of a create, by the clock of the machine or the bubble.
func gaps(srv *eventstest.Server) (all []time.Duration) {
	tries := srv.Requests(create)
	for i := 1; i < len(tries); i++ {
		all = append(all, tries[i].Received.Sub(tries[i-1].Received))
	}
	return all
}

// countEvents is how many events the owner of the server's key has, whatever the answers to the creates
// were.
func countEvents(srv *eventstest.Server) (n int) {
	for _, r := range srv.Store.Records() {
		if r.Event != nil && r.Event.HostID == srv.Owner.ID {
			n++
		}
	}
	return n
}

// In a bubble of synctest an answer that does not come takes no time.
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
		// The first try is carried out, too, though its client gave up: its key makes them one.
		sameKey(t, srv)
		if n, waited := countEvents(srv), gaps(srv); n != 1 || len(waited) != 1 || waited[0] != 10*time.Second {
			t.Errorf("%d events, and tries after %v, want one event, and a try after 10s", n, waited)
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
