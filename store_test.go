package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events"
	"example.com/events/internal/testdouble"
)

// dump is the store as text, a record a line.
func dump(t testing.TB, store *events.Store) string {
	t.Helper()
	return operate(t, events.New(store), "GET", "/records", "")
}

// operate sends a request to the operator's routes and returns the body of the response.
func operate(t testing.TB, handler http.Handler, method, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	handler.(testdouble.Server).Operator().ServeHTTP(w, r)
	return w.Body.String()
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	const times = `"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"`
	tests := []struct{ name, records, want string }{
		{"not JSON", `[{"user":`, "the records are not a JSON array: line 1, column 10"},
		{"not an array", `{"user":{}}`, "the records are not a JSON array: line 1, column 1"},
		{"not an object", `[5]`, "record 1: must be an object with exactly one field: user, key, event, guest or delete"},
		{"no member", `[{}]`, "record 1: must be an object with exactly one field"},
		{"two members", `[{"user":{"name":"x","email":"x@example.com"},"key":{}}]`, "record 1: must be an object with exactly one field"},
		{"unknown kind", `[{"host":{}}]`, "record 1: must be an object with"},
		{"kind not an object", `[{"user":[]}]`, "record 1: user: must be a JSON object, not an array"},
		{"the place", `[{"user":{"name":"x","email":"x@example.com"}},{"user":{"name":"","email":"y@example.com"}}]`, "record 2: user: name must have 1 to 255 characters, not 0"},
		{"all problems", `[{"user":{"email":"x","timezone":"CET","age":5}}]`, "record 1: user: name is required; email must be an address with one @ and no white space, such as ada@example.com; timezone must be a time zone name of the form Area/City from the IANA list in its exact case, such as Europe/Paris, or UTC; age is not known (the fields are id, name, email, avatar_url, timezone, created_at)"},
		{"id of another kind", `[{"user":{"id":"evt_1","name":"x","email":"x@example.com"}}]`, "record 1: user: id must be usr_ and 1 to 64 of A-Z a-z 0-9 _ -"},
		{"email taken", `[{"user":{"id":"usr_new","name":"x","email":"ADA@example.com"}}]`, "record 1: user: email is taken by usr_ada"},
		{"created_at changed", `[{"user":{"id":"usr_ada","created_at":"2020-01-01T00:00:00Z"}}]`, "user: created_at never changes: it is 2026-01-01T00:00:00Z"},
		{"name cleared", `[{"user":{"id":"usr_ada","name":null}}]`, "user: name is required and must not be null"},
		{"key of nobody", `[{"key":{"user_id":"usr_x","secret":"svc_live_new"}}]`, `record 1: key: user_id "usr_x" is not known`},
		{"key without a user", `[{"key":{"secret":"svc_live_new"}}]`, "key: user_id is required"},
		{"key without a secret", `[{"key":{"user_id":"usr_ada"}}]`, "key: secret is required, or its digest"},
		{"key without the prefix", `[{"key":{"user_id":"usr_ada","secret":"sk_live_x"}}]`, "key: secret must be svc_live_ and 1 to 246 of A-Z a-z 0-9 . _ ~ -"},
		{"key of another user", `[{"key":{"user_id":"usr_bob","secret":"svc_live_ada"}}]`, "key: user_id never changes: it is usr_ada"},
		{"digest of another user", `[{"key":{"user_id":"usr_bob","id":"key_x","digest":"` + digestOfAda + `"}}]`, "key: digest is taken by key_ada"},
		{"digest not of the secret", `[{"key":{"user_id":"usr_bob","secret":"svc_live_x","digest":"` + digestOfAda + `"}}]`, "key: digest doesn't match the secret"},
		{"revoked at another time", `[{"key":{"id":"key_old","revoked_at":"2026-02-02T00:00:00Z"}}]`, "key: revoked_at never changes: it is 2026-02-01T00:00:00Z"},
		{"event of nobody", `[{"event":{"host_id":"usr_x","title":"x",` + times + `}}]`, `record 1: event: host_id "usr_x" is not known`},
		{"event without anything", `[{"event":{}}]`, "record 1: event: host_id is required; title is required; start_at is required; end_at is required"},
		{"host changed", `[{"event":{"id":"evt_1","host_id":"usr_bob"}}]`, "event: host_id never changes: it is usr_ada"},
		{"slug changed", `[{"event":{"id":"evt_1","slug":"new"}}]`, "event: slug never changes: it is one"},
		{"slug taken", `[{"event":{"host_id":"usr_bob","slug":"one","title":"x",` + times + `}}]`, "event: slug is taken by evt_1"},
		{"end moved before start", `[{"event":{"id":"evt_1","end_at":"2027-03-01T10:00:00Z"}}]`, "event: end_at must be after start_at"},
		{"status unknown", `[{"event":{"id":"evt_1","status":"live"}}]`, "event: status must be draft or published"},
		{"guest of nothing", `[{"guest":{"event_id":"evt_x","name":"x"}}]`, `record 1: guest: event_id "evt_x" is not known`},
		{"guest without a name", `[{"guest":{"event_id":"evt_1"}}]`, "guest: name or email is required"},
		{"guest moved", `[{"guest":{"id":"gst_1","event_id":"evt_2"}}]`, "guest: event_id never changes: it is evt_1"},
		{"guest's email taken", `[{"guest":{"id":"gst_3","email":"Grace@example.com"}}]`, "guest: email is taken by gst_1"},
		{"guest status", `[{"guest":{"id":"gst_3","status":"here"}}]`, "guest: status must be invited, pending, approved, declined, waitlist or cancelled"},
		{"registered while invited", `[{"guest":{"id":"gst_2","registered_at":"2026-04-02T00:00:00Z"}}]`, "guest: registered_at must be null while the status is invited"},
		{"delete of a wrong id", `[{"delete":{"guest":"evt_1"}}]`, "record 1: delete: guest must be gst_ and 1 to 64 of A-Z a-z 0-9 _ -"},
		{"deleted before", `[{"delete":{"event":"evt_1"}},{"guest":{"event_id":"evt_1","name":"x"}}]`, `record 2: guest: event_id "evt_1" is not known`},
		{"made and deleted before", `[{"event":{"id":"evt_n","host_id":"usr_bob","title":"x",` + times + `}},{"delete":{"user":"usr_bob"}},{"guest":{"event_id":"evt_n","name":"x"}}]`, `record 3: guest: event_id "evt_n" is not known`},
	}
	s := newService(t, nil)
	before := dump(t, s.store)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := s.store.ApplyJSON([]byte(tt.records))
			if _, ok := errors.AsType[*events.RecordError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ApplyJSON(%s) = %v, want %s", tt.records, err, tt.want)
			}
			if got := dump(t, s.store); got != before {
				t.Errorf("ApplyJSON(%s) changed the store to %s", tt.records, got)
			}
		})
	}
}

const digestOfAda = "b1aaff9b6c5215975360b40d0350bbf0c1807c59b46979f03edbed2d747a118c"

func TestApplyMerges(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	get := func(ref string) events.Event {
		t.Helper()
		return decode[events.Event](t, s.do("GET", base+"/events/"+ref, ""))
	}
	apply := func(records string) {
		t.Helper()
		if err := s.store.ApplyJSON([]byte(records)); err != nil {
			t.Fatalf("ApplyJSON(%s): %v", records, err)
		}
	}
	before := get("evt_1")
	apply(`[{"event":{"id":"evt_1","status":"published","description":"New","timezone":"Asia/Tokyo"}}]`)
	after := get("evt_1")
	want := before
	want.Status, want.Description, want.Timezone, want.UpdatedAt = "published", new("New"), "Asia/Tokyo", after.UpdatedAt
	if show(after) != show(want) || !after.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("merged = %s, want %s", show(after), show(want))
	}
	if got := ids(decode[eventList](t, s.do("GET", base+"/events?status=published", ""))); got != "evt_3 evt_2 evt_1" {
		t.Errorf("published = %s", got)
	}
	if got := ids(decode[eventList](t, s.do("GET", base+"/events?status=draft", ""))); got != "" {
		t.Errorf("drafts = %s", got)
	}
	apply(`[{"event":{"id":"evt_1","description":null,"timezone":null,"status":"draft"}}]`)
	if e := get("one"); e.Description != nil || e.Timezone != "Europe/London" || e.Status != "draft" {
		t.Errorf("null = %+v, want the defaults", e)
	}

	// A second time changes nothing, and so do a seed and a dump.
	all := dump(t, s.store)
	for _, records := range []string{
		`[{"event":{"id":"evt_1","description":null,"status":"draft"}}]`, seed[:strings.Index(seed, `{"event"`)] + `{"delete":{"guest":"gst_none"}}]`, all,
		`[{"guest":{"event_id":"evt_1","email":"grace@example.com"}}]`,
		`[{"user":{"email":"ada@example.com"}}]`,
		`[{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}},{"key":{"id":"key_old","revoked_at":null}}]`,
	} {
		apply(records)
		if got := dump(t, s.store); got != all {
			t.Errorf("ApplyJSON(%s) changed the store from %s to %s", records, all, got)
		}
	}
	if a := s.as("svc_live_old").do("GET", base+"/users/me", ""); a.status != 401 {
		t.Errorf("the revoked key = %s, want 401", a)
	}

	// An updated_at that is given is taken, unless it is the one that was there.
	old := get("evt_1")
	apply(`[{"event":{"id":"evt_1","title":"Older","updated_at":"2026-03-01T01:00:00Z"}}]`)
	if e := get("evt_1"); e.Title != "Older" || !e.UpdatedAt.Equal(time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)) {
		t.Errorf("a record with updated_at = %+v", e)
	}
	apply(`[{"event":{"id":"evt_1","title":"Newer","updated_at":"2026-03-01T01:00:00Z"}}]`)
	if e := get("evt_1"); e.Title != "Newer" || !e.UpdatedAt.After(old.UpdatedAt) {
		t.Errorf("a record with the updated_at that was there = %+v", e)
	}

	// An email that a record frees is free for the next one.
	apply(`[{"user":{"id":"usr_ada","email":"new@example.com"}},{"user":{"id":"usr_eve","name":"Eve","email":"ada@example.com"}}]`)
	for id, email := range map[string]string{"usr_ada": "new@example.com", "usr_eve": "ada@example.com"} {
		if got := dump(t, s.store); !strings.Contains(got, `"email":"`+email+`"`) || !strings.Contains(got, `"id":"`+id+`"`) {
			t.Errorf("%s has not the email %s: %s", id, email, got)
		}
	}

	// Put whole, in Go.
	e := get("evt_1")
	if err := s.store.Apply(events.Record{Event: &events.Event{ID: "evt_1", HostID: "usr_ada", Title: "Whole", StartAt: e.StartAt, EndAt: e.EndAt, RequiresApproval: true}}); err != nil {
		t.Fatal(err)
	}
	if e := get("evt_1"); e.Title != "Whole" || e.Status != "published" || e.Slug != "one" || e.Description != nil || !e.RequiresApproval {
		t.Errorf("put whole = %+v, want the defaults for what is zero", e)
	}
	err := s.store.Apply(events.Record{Event: &events.Event{ID: "evt_1"}}, events.Record{})
	if err == nil || !strings.Contains(err.Error(), "record 1: event: title is required and must not be null; start_at is required") {
		t.Errorf("Apply(an empty event) = %v", err)
	}
	if err := s.store.Apply(events.Record{User: &events.User{Name: "\xff", Email: "x@example.com"}}); err == nil || !strings.Contains(err.Error(), "name must be valid UTF-8") {
		t.Errorf("Apply(bad UTF-8) = %v", err)
	}
}

func show(x any) string { b, _ := json.Marshal(x); return string(b) }

func TestGuestDefaults(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	if err := s.store.ApplyJSON([]byte(`[
		{"event":{"id":"evt_1","requires_approval":true}},
		{"guest":{"id":"gst_a","event_id":"evt_1","name":"A"}},
		{"guest":{"id":"gst_b","event_id":"evt_2","name":"B","created_at":"2026-05-01T00:00:00Z"}},
		{"guest":{"id":"gst_c","event_id":"evt_2","name":"C","status":"invited"}},
		{"guest":{"id":"gst_d","event_id":"evt_2","name":"D","status":"waitlist","registered_at":"2026-01-01T00:00:00Z"}}
	]`)); err != nil {
		t.Fatal(err)
	}
	guests := map[string]*events.Guest{}
	for _, r := range s.store.Records() {
		if r.Guest != nil {
			guests[r.Guest.ID] = r.Guest
		}
	}
	if g := guests["gst_a"]; g.Status != "pending" || !g.RegisteredAt.Equal(g.CreatedAt) {
		t.Errorf("with approval = %s", show(g))
	}
	if g := guests["gst_b"]; g.Status != "approved" || !g.RegisteredAt.Equal(g.CreatedAt) {
		t.Errorf("without approval = %s", show(g))
	}
	if g := guests["gst_c"]; g.RegisteredAt != nil {
		t.Errorf("invited = %s", show(g))
	}
	if g := guests["gst_d"]; g.RegisteredAt.Year() != 2026 {
		t.Errorf("registered earlier = %s", show(g))
	}
	if err := s.store.ApplyJSON([]byte(`[{"guest":{"id":"gst_d","status":"invited"}},{"guest":{"id":"gst_c","status":"approved"}}]`)); err != nil {
		t.Fatal(err)
	}
	a := s.do("GET", base+"/events/two/guests", "")
	if !strings.Contains(a.body, `"name":"D","status":"invited","registered_at":null`) || strings.Contains(a.body, `"name":"C","status":"approved","registered_at":null`) {
		t.Errorf("moved = %s", a)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ref  events.Ref
		left string // kinds and ids
	}{
		"guest":   {events.Ref{Guest: "gst_1"}, "usr_ada key_ada key_old evt_1 gst_2 gst_3 evt_2 evt_3 usr_bob key_bob evt_bob"},
		"event":   {events.Ref{Event: "evt_1"}, "usr_ada key_ada key_old evt_2 evt_3 usr_bob key_bob evt_bob"},
		"key":     {events.Ref{Key: "key_ada"}, "usr_ada key_old evt_1 gst_1 gst_2 gst_3 evt_2 evt_3 usr_bob key_bob evt_bob"},
		"user":    {events.Ref{User: "usr_ada"}, "usr_bob key_bob evt_bob"},
		"nothing": {events.Ref{User: "usr_none"}, "usr_ada key_ada key_old evt_1 gst_1 gst_2 gst_3 evt_2 evt_3 usr_bob key_bob evt_bob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, nil)
			if err := s.store.Apply(events.Record{Delete: &tt.ref}); err != nil {
				t.Fatal(err)
			}
			if got := recordIDs(s.store); got != tt.left {
				t.Errorf("left = %s, want %s", got, tt.left)
			}
			if name == "user" {
				if a := s.do("GET", base+"/users/me", ""); a.status != 401 {
					t.Errorf("the deleted user's key = %s, want 401", a)
				}
				// Its names are free again.
				if err := s.store.ApplyJSON([]byte(seed)); err != nil {
					t.Errorf("the seed again: %v", err)
				}
			}
		})
	}
}

func recordIDs(store *events.Store) string {
	var all []string
	for _, r := range store.Records() {
		switch {
		case r.User != nil:
			all = append(all, r.User.ID)
		case r.Key != nil:
			all = append(all, r.Key.ID)
		case r.Event != nil:
			all = append(all, r.Event.ID)
		case r.Guest != nil:
			all = append(all, r.Guest.ID)
		}
	}
	return strings.Join(all, " ")
}

// TestDumpIsSeed: a dump makes the same store again, keys included, and holds
// no secret.
func TestDumpIsSeed(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	secret, key, err := s.store.IssueKey("usr_bob")
	if err != nil {
		t.Fatal(err)
	}
	all := dump(t, s.store)
	if strings.Contains(all, "svc_live_") || key.Hint == nil || *key.Hint != secret[len(secret)-4:] {
		t.Errorf("the dump holds a secret, or the hint %v is not the end of %s: %s", key.Hint, secret, all)
	}
	byJSON, byGo := events.NewStore(nil), events.NewStore(nil)
	if err := byJSON.ApplyJSON([]byte(all)); err != nil {
		t.Fatal(err)
	}
	if err := byGo.Apply(s.store.Records()...); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*events.Store{"ApplyJSON": byJSON, "Apply": byGo} {
		if got := dump(t, store); got != all {
			t.Errorf("%s(dump) = %s, want %s", name, got, all)
		}
		c := &service{t, store, events.New(store), secret}
		if a := c.do("GET", base+"/users/me", ""); a.status != 200 {
			t.Errorf("%s: the issued key = %s, want 200", name, a)
		}
	}
}

func TestIssueAndRevoke(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	seen := map[string]bool{}
	for range 100 {
		secret, key, err := s.store.IssueKey("usr_ada")
		if err != nil || seen[secret] || !strings.HasPrefix(secret, "svc_live_") || len(secret) < len("svc_live_")+26 || key.UserID != "usr_ada" || key.Secret != "" {
			t.Fatalf("IssueKey = %q %+v %v", secret, key, err)
		}
		seen[secret] = true
		if a := s.as(secret).do("GET", base+"/users/me", ""); a.status != 200 {
			t.Fatalf("issued key = %s", a)
		}
		if err := s.store.RevokeKey(key.ID); err != nil {
			t.Fatal(err)
		}
		if a := s.as(secret).do("GET", base+"/users/me", ""); a.status != 401 {
			t.Fatalf("revoked key = %s", a)
		}
		before := dump(t, s.store)
		if err := s.store.RevokeKey(key.ID); err != nil || dump(t, s.store) != before {
			t.Fatalf("revoked twice: %v", err)
		}
	}
	for _, id := range []string{"key_none", "usr_ada", ""} {
		if err := s.store.RevokeKey(id); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("RevokeKey(%q) = %v, want ErrNotFound", id, err)
		}
	}
	for _, id := range []string{"usr_none", "evt_1", "email:ada@example.com", ""} {
		if _, _, err := s.store.IssueKey(id); err == nil {
			t.Errorf("IssueKey(%q) = nil, want an error", id)
		}
	}
}

// TestReopen: what a store on a file answered is there after it was opened
// again, by any way that wrote it.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/events.json"
	open := func() *service {
		t.Helper()
		store, err := events.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &service{t, store, events.New(store), "svc_live_ada"}
	}
	s := open()
	if err := s.store.ApplyJSON([]byte(seed)); err != nil {
		t.Fatal(err)
	}
	steps := []func(){
		func() { s.do("POST", base+"/events/create", newEvent) },
		func() { s.do("POST", base+"/events/create", newEvent, "Idempotency-Key: kept") },
		func() {
			s.do("POST", base+"/events/create", `{"title":"}},{\"event\":{ },\"idempotency\":{\" }},{\"\\ \u0000\u2028<&>","start_at":"2027-05-01T18:00:00Z","end_at":"2027-05-01T20:00:00Z"}`, `Idempotency-Key: },"idempotency":{"`)
		},
		func() { s.store.IssueKey("usr_bob") },
		func() {
			s.store.ApplyJSON([]byte(`[{"guest":{"event_id":"evt_1","email":"q\"uo\\te@example.com","name":"}},{"}},{"event":{"id":"evt_1","status":"published"}},{"user":{"id":"usr_bob","email":"robert@example.com"}}]`))
		},
		func() { s.store.ApplyJSON([]byte(`[{"delete":{"event":"evt_2"}},{"delete":{"key":"key_old"}}]`)) },
		func() { s.store.RevokeKey("key_bob") },
		func() {},
	}
	for i, step := range steps {
		step()
		want := dump(t, s.store)
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		s = open()
		if got := dump(t, s.store); got != want {
			t.Fatalf("after step %d: %s\nwant %s", i, got, want)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || !json.Valid(b) {
		t.Errorf("the file is not JSON: %v %s", err, b)
	}
	for _, gone := range []string{`"evt_2"`, "svc_live_", `"key_old"`} {
		if bytes.Contains(b, []byte(gone)) {
			t.Errorf("the file holds %s: %s", gone, b)
		}
	}
	a := s.do("POST", base+"/events/create", newEvent, "Idempotency-Key: kept")
	if a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the idempotency key after a restart = %s, want a replay", a)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v %v, want 0600", info.Mode(), err)
	}
	s.store.Close()
}

// TestIndependent: stores share nothing.
func TestIndependent(t *testing.T) {
	t.Parallel()
	a, b := newService(t, nil), newService(t, nil)
	a.do("POST", base+"/events/create", newEvent)
	if got := strings.Count(dump(t, b.store), "Launch"); got != 0 {
		t.Errorf("an event of one store stands in the other")
	}
}

// TestClockBack: what was made before the clock was set back can be changed.
func TestClockBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newService(t, &events.Config{Now: func() time.Time { return now }})
	e := decode[events.Event](t, s.do("POST", base+"/events/create", newEvent))
	now = now.Add(-time.Hour)
	if err := s.store.ApplyJSON([]byte(`[{"event":{"id":"` + e.ID + `","status":"draft"}}]`)); err != nil {
		t.Error(err)
	}
}

// TestCreatedAfterReopen: what is made after a start is newer than all there was,
// also where the clock was ahead then.
func TestCreatedAfterReopen(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/events.json"
	ahead := time.Now().UTC().Add(time.Hour)
	store, err := events.Open(path, &events.Config{Now: func() time.Time { return ahead }})
	if err == nil {
		err = errors.Join(store.ApplyJSON([]byte(seed)), store.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if store, err = events.Open(path, nil); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, key, err := store.IssueKey("usr_ada"); err != nil || !key.CreatedAt.After(ahead) {
		t.Errorf("IssueKey = created at %v, %v, want after %v", key.CreatedAt, err, ahead)
	}
}

// TestKeyRequests: what an operator's request for a key must say.
func TestKeyRequests(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for request, want := range map[string]string{
		`{}`: "user_id is required", `{"user_id":""}`: "user_id is required",
		`{"user_id":"usr_ada","name":"Ada"}`:              "user_id excludes name and email",
		`{"user_id":"usr_ada","email":"ada@example.com"}`: "user_id excludes name and email",
		`{"user_id":"usr_none"}`:                          "not found", `{"id":"key_1"}`: "id is not known", `[]`: "must be a JSON object", `{`: "line 1",
	} {
		got := operate(t, s.handler, "POST", "/keys", request)
		if !strings.Contains(got, want) {
			t.Errorf("POST /keys %s = %s, want %q", request, got, want)
		}
	}
	if _, _, err := s.store.IssueKey(""); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("IssueKey of nobody = %v, want ErrNotFound", err)
	}
}

// TestNamesChangeHands: within one change, a name can go on to another row.
func TestNamesChangeHands(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	if err := s.store.ApplyJSON([]byte(`[
		{"user":{"id":"usr_a","name":"A","email":"a@example.com"}},
		{"user":{"id":"usr_b","name":"B","email":"b@example.com"}},
		{"user":{"id":"usr_a","email":"c@example.com"}},
		{"user":{"id":"usr_b","email":"a@example.com"}},
		{"user":{"id":"usr_a","email":"b@example.com"}}]`)); err != nil {
		t.Error(err)
	}
	if d := dump(t, s.store); !strings.Contains(d, `"name":"A","email":"b@example.com"`) || !strings.Contains(d, `"name":"B","email":"a@example.com"`) {
		t.Errorf("the addresses did not change hands: %s", d)
	}
}

// TestFirstInstant: the first instant of the year 1 is a time like any other.
func TestFirstInstant(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	if err := s.store.ApplyJSON([]byte(`[{"key":{"id":"key_ada","revoked_at":"0001-01-01T00:00:00Z"}},
		{"guest":{"id":"gst_1","registered_at":"0001-01-01T00:00:00Z"}}]`)); err != nil {
		t.Fatal(err)
	}
	if a := s.do("GET", base+"/users/me", ""); a.status != 401 {
		t.Errorf("GET /users/me with a key that was revoked = %s, want 401", a)
	}
	before := dump(t, s.store)
	if err := s.store.ApplyJSON([]byte(before)); err != nil || dump(t, s.store) != before || !strings.Contains(before, `"registered_at":"0001-01-01T00:00:00Z"`) {
		t.Errorf("a dump applied again: %v, %s", err, dump(t, s.store))
	}
}

// TestHints: the end of a short secret would give away too much of it.
func TestHints(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{"svc_live_0123456789abcde": "null", "svc_live_0123456789abcdef": `"cdef"`} {
		s := newService(t, nil)
		if err := s.store.ApplyJSON([]byte(`[{"key":{"id":"key_1","user_id":"usr_bob","secret":"` + secret + `"}}]`)); err != nil {
			t.Fatal(err)
		}
		if got := dump(t, s.store); !strings.Contains(got, `"hint":`+want) && want != "null" || want == "null" && strings.Contains(got, `"hint":"`) {
			t.Errorf("the hint of %s in %s, want %s", secret, got, want)
		}
	}
}

// TestErrorsOfOpen: an embedder can tell them apart.
func TestErrorsOfOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := dir + "/events.json"
	store, err := events.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		t.Fatal(err)
	}
	if _, err := events.Open(path, nil); !errors.Is(err, events.ErrInUse) {
		t.Errorf("a second Open = %v, want ErrInUse", err)
	}
	store.Close()
	b, _ := os.ReadFile(path)
	os.WriteFile(path, bytes.Replace(b, []byte("Lovelace"), []byte("lovelace"), 1), 0o600)
	if _, err := events.Open(path, nil); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("Open of a damaged file = %v, want ErrDamaged", err)
	}
	os.WriteFile(path, []byte(seed), 0o600)
	if _, err := events.Open(path, nil); !errors.Is(err, events.ErrFormat) {
		t.Errorf("Open of a seed = %v, want ErrFormat", err)
	}
}

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

// TestClockAhead: what is made after a record from the future is later still, and nothing is
// changed before it was created.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	at := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Second)
	ahead := at.Format(time.RFC3339)
	dump := `[{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com","created_at":"` + ahead + `"}},` +
		`{"key":{"id":"key_ada","user_id":"usr_ada","secret":"svc_live_ada","created_at":"` + ahead + `"}},` +
		`{"event":{"id":"evt_1","host_id":"usr_ada","title":"Tea","created_at":"` + ahead + `",` +
		`"start_at":"2030-01-01T00:00:00Z","end_at":"2030-01-02T00:00:00Z"}}]`
	first, err := events.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.ApplyJSON([]byte(dump)), first.Close()); err != nil {
		t.Fatal(err)
	}
	store, err := events.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.ApplyJSON([]byte(`[{"event":{"id":"evt_1","title":"More tea"}},{"event":{"host_id":"usr_ada",` +
		`"title":"New","start_at":"2030-01-01T00:00:00Z","end_at":"2030-01-02T00:00:00Z"}}]`))
	if err := errors.Join(err, store.RevokeKey("key_ada")); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.Records() {
		switch {
		case r.Event != nil && r.Event.UpdatedAt.Before(r.Event.CreatedAt):
			t.Errorf("%s was changed at %v, before it was created", r.Event.ID, r.Event.UpdatedAt)
		case r.Event != nil && r.Event.Title == "New" && !r.Event.CreatedAt.After(at):
			t.Errorf("a new event was created at %v, want after %s", r.Event.CreatedAt, ahead)
		case r.Key != nil && (r.Key.RevokedAt == nil || r.Key.RevokedAt.Before(r.Key.CreatedAt)):
			t.Errorf("the key was revoked at %v, before it was created", r.Key.RevokedAt)
		}
	}
	// There is no later date-time than this one, and records are created all the same.
	err = store.ApplyJSON([]byte(`[{"user":{"name":"A","email":"a@example.com",` +
		`"created_at":"9999-12-31T23:59:59.999999Z"}},{"user":{"name":"B","email":"b@example.com"}}]`))
	if err != nil {
		t.Errorf("a record after one of the end of time: %v", err)
	}
}

// TestNamesOfRows: an event is found by its id and its slug, and by no other name that
// the store has for it.
func TestNamesOfRows(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	a := s.as("svc_live_ada").do("POST", base+"/events/create", newEvent, "Idempotency-Key: k1")
	if a.status != 201 {
		t.Fatal(a)
	}
	for _, name := range []string{"idempotency:usr_ada:k1", "email:ada@example.com", "usr_ada", ""} {
		for _, path := range []string{"/events/" + name, "/events/" + name + "/guests"} {
			if a := s.as("svc_live_ada").do("GET", base+path, ""); a.status != 404 {
				t.Errorf("GET %s = %s, want 404", path, a)
			}
		}
	}
	got := operate(t, events.New(nil), "GET", "/records", "")
	if got != "[\n\n]\n" {
		t.Errorf("the records of an empty store are %s", got)
	}
}

// TestGoldenDataFile: the rows of a file of each format are, once it is opened, as they are
// written today, because they are served as they stand. UPDATE=1 writes a file with the data
// of the demo, if there is none of today's format.
func TestGoldenDataFile(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/events-*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("there is no data file: %v", err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh.json")
	store, err := events.Open(fresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.ApplyJSON(readDemo(t)), store.Close()); err != nil {
		t.Fatal(err)
	}
	format := func(file string) string {
		text, err := os.ReadFile(file)
		found := regexp.MustCompile(`"format":"([^"]*)"`).FindSubmatch(text)
		if err != nil || found == nil {
			t.Fatalf("%s has no format: %v", file, err)
		}
		return string(found[1])
	}
	today := format(fresh)
	if !slices.ContainsFunc(names, func(name string) bool { return format(name) == today }) {
		name := "testdata/" + strings.ReplaceAll(today, "/", "-") + ".json"
		if os.Getenv("UPDATE") == "" {
			t.Errorf("there is no %s; UPDATE=1 go test -run TestGolden . writes it", name)
		} else {
			text, err := os.ReadFile(fresh)
			if err := errors.Join(err, os.WriteFile(name, text, 0o644)); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "events.json")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			store, err := events.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			again := events.NewStore(nil)
			if err := again.Apply(store.Records()...); err != nil {
				t.Fatal(err)
			}
			before, now := dump(t, store), dump(t, again)
			if before != now {
				t.Errorf("the rows of the file are\n%s\nand are written now as\n%s\n"+
					"add a format with what is new to formats in store.go (see CONTRIBUTING.md)", before, now)
			}
			for _, kind := range []string{"user", "key", "event", "guest"} {
				if !strings.Contains(before, `{"`+kind+`":`) {
					t.Errorf("the file has no %s", kind)
				}
			}
		})
	}
}

// BenchmarkOpen is the start with a file of 100,000 events.
func BenchmarkOpen(b *testing.B) {
	path := b.TempDir() + "/events.json"
	store, err := events.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	filled(b, store, 100_000)
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		store, err := events.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
}

// BenchmarkApply merges records into events that exist: a thousand at a time.
func BenchmarkApply(b *testing.B) {
	store := events.NewStore(nil)
	filled(b, store, 100_000)
	const n = 1000
	arrays := [2][]byte{}
	for i, status := range []string{"draft", "published"} {
		for k := range n {
			record := fmt.Sprintf(`{"event":{"id":"evt_%012d","status":%q}}`, k*97, status)
			arrays[i] = append(append(arrays[i], ','), record...)
		}
		arrays[i][0] = '['
		arrays[i] = append(arrays[i], ']')
	}
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		if err := store.ApplyJSON(arrays[round%2]); err != nil {
			b.Fatal(err)
		}
		round++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
}
