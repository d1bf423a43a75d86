package events

import (
	"context"
	"errors"
	"os"
	"testing"
)

// TestFullQueue: who has gone waits no longer for a place, and changes nothing.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir()+"/events.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range maxQueue {
		s.slots <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.change(gone, func(*tx) error {
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
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
