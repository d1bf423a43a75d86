package events

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/events/internal/recordfile"
)

// opened is a store on a file until the end of the test.
func opened(t *testing.T, path string, cfg *Config) *Store {
	t.Helper()
	s, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestFullQueue: who has gone waits no longer for a place, and changes nothing.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir()+"/events.json", nil)
	for range maxQueue {
		s.slots <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.change(gone, func(*tx) error {
		t.Error("the change was made")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("change = %v, want context.Canceled", err)
	}
	<-s.slots // one goes on
	if err := s.Apply(Record{User: &User{Name: "Ada", Email: "ada@example.com"}}); err != nil || len(s.Records()) != 1 {
		t.Errorf("Apply with one place = %v, and there are %v", err, s.Records())
	}
}

// TestRefusedOnNothing: what refused a change may never have been, if the commit
// that it was to share is not written.
func TestRefusedOnNothing(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/events.json"
	s := opened(t, path, nil)
	if err := s.Apply(Record{User: &User{ID: "usr_ada", Name: "Ada", Email: "ada@example.com"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil { // no more is written
		t.Fatal(err)
	}
	put := func(id, email string) *change {
		return &change{stage: func(tx *tx) error {
			if refused := tx.apply(recordValue(Record{User: &User{ID: id, Name: "Grace", Email: email}})); refused != nil {
				return refused
			}
			return nil
		}}
	}
	changes := []*change{put("usr_a", "ada@example.com"), put("usr_grace", "grace@example.com"), put("usr_b", "grace@example.com")}
	if rest := s.commit(changes); len(rest) != 0 {
		t.Fatalf("%d changes are left", len(rest))
	}
	if _, refused := errors.AsType[*RecordError](changes[0].err); !refused {
		t.Errorf("a change refused by what is there = %v", changes[0].err)
	}
	for _, c := range changes[1:] {
		if !errors.Is(c.err, ErrNotWritten) {
			t.Errorf("a change of the commit, or one refused by it = %v, want ErrNotWritten", c.err)
		}
	}
}

// TestCommitsSplit: changes that do not fit into one commit share as many as they
// need, in order, each whole; what is larger than one goes alone.
func TestCommitsSplit(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/events.json"
	s := opened(t, path, nil)
	if err := s.Apply(Record{User: &User{ID: "usr_ada", Name: "Ada", Email: "ada@example.com"}}); err != nil {
		t.Fatal(err)
	}
	at, long := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), strings.Repeat("x", 50_000)
	put := func(n int) *change {
		return &change{stage: func(t *tx) error {
			for range n {
				if err := t.apply(recordValue(Record{Event: &Event{HostID: "usr_ada", Title: "A", StartAt: at, EndAt: at.Add(1), Description: &long}})); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	const fits = recordfile.MaxCommit / 50_000 * 2 / 3 // of which two do not fit
	waiting := []*change{put(1), put(fits), put(fits), put(2 * fits), put(1), put(1)}
	events := 0
	for _, want := range []struct{ taken, events int }{{2, 1 + fits}, {1, fits}, {1, 2 * fits}, {2, 2}} {
		left := len(waiting)
		waiting = s.commit(waiting)
		events += want.events
		if taken, n := left-len(waiting), len(s.Records())-1; taken != want.taken || n != events {
			t.Fatalf("a commit took %d changes and there are %d events, want %d and %d", taken, n, want.taken, events)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = opened(t, path, nil)
	if n := len(s.Records()) - 1; n != events {
		t.Errorf("%d events are on disk, %d were shown", n, events)
	}
}

// TestGoneBeforeItsTurn: a create whose client has gone while it waited is not
// answered, nor told as a failure.
func TestGoneBeforeItsTurn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := opened(t, t.TempDir()+"/events.json", &Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.ApplyJSON([]byte(`[{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com"}},{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}}]`)); err != nil {
		t.Fatal(err)
	}
	for range maxQueue {
		s.slots <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, "POST", BasePath+"/events/create", strings.NewReader(`{"title":"A","start_at":"2030-01-01T00:00:00Z","end_at":"2030-01-02T00:00:00Z"}`))
	r.Header.Set("x-service-api-key", "svc_live_ada")
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || log.Len() > 0 {
			t.Errorf("the handler ended with %v and logged %s", p, &log)
		}
	}()
	New(s).ServeHTTP(httptest.NewRecorder(), r)
}
