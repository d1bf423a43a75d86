package events_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/events"
)

// FuzzRecords: no array of records panics or half applies; what is taken, taken
// again changes nothing, and its dump makes the same store.
func FuzzRecords(f *testing.F) {
	f.Add(seed)
	for _, records := range []string{
		"[]", "[{}]", `[{"delete":{"user":"usr_ada"}}]`, `[{"event":{"id":"evt_1","status":"published","title":null}}]`,
		`[{"key":{"id":"key_ada","revoked_at":"2027-01-01T00:00:00Z"}},{"guest":{"id":"gst_1","status":"invited"}}]`,
		`[{"user":{"id":"usr_x","name":"x","email":"x@example.com"}},{"event":{"id":"evt_x","host_id":"usr_x","title":"x","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","slug":"x"}},{"delete":{"user":"usr_x"}},{"user":{"name":"y","email":"x@example.com"}}]`,
	} {
		f.Add(records)
	}
	f.Fuzz(func(t *testing.T, records string) {
		s := newService(t, nil)
		before := dump(t, s.store)
		if err := s.store.ApplyJSON([]byte(records)); err != nil {
			if got := dump(t, s.store); got != before {
				t.Fatalf("refused with %v, but changed the store to %s", err, got)
			}
			if !utf8.ValidString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error is not one line: %q", err)
			}
			return
		}
		all := dump(t, s.store)
		copied := events.NewStore(nil)
		if err := copied.ApplyJSON([]byte(all)); err != nil {
			t.Fatalf("the dump %s is refused: %v", all, err)
		}
		if got := dump(t, copied); got != all {
			t.Fatalf("the dump makes %s, want %s", got, all)
		}
	})
}
