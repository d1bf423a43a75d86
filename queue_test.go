package events

import (
	"context"
	"errors"
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
