package events_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
	"example.com/events/internal/commitlog"
	"example.com/events/internal/testdouble"
)

// inStores runs a test of the store. A double has a store in memory.
func inStores(t *testing.T, test func(t *testing.T, mode apitest.Mode)) {
	apitest.Run(t, test, apitest.Memory, apitest.Reopened)
}

const digestOfAda = "b1aaff9b6c5215975360b40d0350bbf0c1807c59b46979f03edbed2d747a118c" // of svc_live_ada

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, records, want string }{
		{"not JSON", `[{"user":`, "records: line 1, column 10"},
		{"not an array", `{"user":{}}`, "records: line 1, column 1: expected a JSON array: begin it with ["},
		{"not an object", `[5]`,
			"record 1: must be an object with exactly one field: user, key, event, guest or delete"},
		{"no field", `[{}]`, "record 1: must be an object with exactly one field"},
		{"two fields", `[{"user":{"name":"x","email":"x@example.com"},"key":{}}]`,
			"record 1: must be an object with exactly one field"},
		{"unknown kind", `[{"host":{}}]`, "record 1: must be an object with exactly one field"},
		{"user not an object", `[{"user":[]}]`, "record 1: user: must be a JSON object, not an array"},
		{"position",
			`[{"user":{"name":"x","email":"x@example.com"}},{"user":{"name":"","email":"y@example.com"}}]`,
			"record 2: user: name must have 1 to 255 characters, not 0"},
		{"all problems", `[{"user":{"email":"x","timezone":"CET","age":5}}]`,
			"record 1: user: name is required; email must be an address with one @ and no white space, " +
				"such as ada@example.com; timezone must be an IANA time zone name such as Europe/Paris, " +
				"with the exact capitalization, or UTC; age is not known " +
				"(the fields are id, name, email, avatar_url, timezone, created_at)"},
		{"ID of another kind", `[{"user":{"id":"evt_1","name":"x","email":"x@example.com"}}]`,
			"record 1: user: id must be usr_ followed by 1 to 64 letters, digits, \"_\" or \"-\""},
		{"email taken", `[{"user":{"id":"usr_new","name":"x","email":"ADA@example.com"}}]`,
			"record 1: user: email is taken by usr_ada"},
		{"created_at changed", `[{"user":{"id":"usr_ada","created_at":"2020-01-01T00:00:00Z"}}]`,
			"user: created_at can't be changed: it is 2026-01-01T00:00:00Z"},
		{"name reset", `[{"user":{"id":"usr_ada","name":null}}]`,
			"user: name is required and must not be null"},
		{"key of nobody", `[{"key":{"user_id":"usr_x","secret":"svc_live_new"}}]`,
			`key: user_id "usr_x" is not known`},
		{"key without a user", `[{"key":{"secret":"svc_live_new"}}]`, "key: user_id is required"},
		{"key without a secret", `[{"key":{"user_id":"usr_ada"}}]`, "key: secret or digest is required"},
		{"secret without the prefix", `[{"key":{"user_id":"usr_ada","secret":"sk_live_x"}}]`,
			"key: secret must be svc_live_ followed by 1 to 246 letters, digits"},
		{"secret too long",
			`[{"key":{"user_id":"usr_ada","secret":"svc_live_` + strings.Repeat("x", 247) + `"}}]`,
			"key: secret must be svc_live_ followed by 1 to 246 letters, digits"},
		{"key of another user", `[{"key":{"user_id":"usr_bob","secret":"svc_live_ada"}}]`,
			"key: user_id can't be changed: it is usr_ada"},
		{"digest taken", `[{"key":{"user_id":"usr_bob","id":"key_x","digest":"` + digestOfAda + `"}}]`,
			"key: digest is taken by key_ada"},
		{"digest of another secret",
			`[{"key":{"user_id":"usr_bob","secret":"svc_live_x","digest":"` + digestOfAda + `"}}]`,
			"key: digest doesn't match the secret"},
		{"secret changed", `[{"key":{"id":"key_ada","secret":"svc_live_x"}}]`,
			"key: secret can't be changed: add another key"},
		{"revoked_at changed", `[{"key":{"id":"key_old","revoked_at":"2026-02-02T00:00:00Z"}}]`,
			"key: revoked_at can't be changed: it is 2026-02-01T00:00:00Z"},
		{"event of nobody", `[{"event":{"host_id":"usr_x","title":"x",` + onMayDay + `}}]`,
			`event: host_id "usr_x" is not known`},
		{"empty event", `[{"event":{}}]`,
			"event: host_id is required; title is required; start_at is required; end_at is required"},
		{"host changed", `[{"event":{"id":"evt_1","host_id":"usr_bob"}}]`,
			"event: host_id can't be changed: it is usr_ada"},
		{"slug changed", `[{"event":{"id":"evt_1","slug":"new"}}]`,
			"event: slug can't be changed: it is one"},
		{"slug taken", `[{"event":{"host_id":"usr_bob","slug":"one","title":"x",` + onMayDay + `}}]`,
			"event: slug is taken by evt_1"},
		{"end moved before start", `[{"event":{"id":"evt_1","end_at":"2027-03-01T10:00:00Z"}}]`,
			"event: end_at must be after start_at"},
		{"unknown status", `[{"event":{"id":"evt_1","status":"live"}}]`,
			"event: status must be draft or published"},
		{"guest of nothing", `[{"guest":{"event_id":"evt_x","name":"x"}}]`,
			`guest: event_id "evt_x" is not known`},
		{"guest without a name", `[{"guest":{"event_id":"evt_1"}}]`, "guest: name or email is required"},
		{"event of a guest changed", `[{"guest":{"id":"gst_1","event_id":"evt_2"}}]`,
			"guest: event_id can't be changed: it is evt_1"},
		{"email of a guest taken", `[{"guest":{"id":"gst_3","email":"Grace@example.com"}}]`,
			"guest: email is taken by gst_1"},
		{"unknown status of a guest", `[{"guest":{"id":"gst_3","status":"here"}}]`,
			"guest: status must be invited, pending, approved, declined, waitlist or cancelled"},
		{"registered while invited", `[{"guest":{"id":"gst_2","registered_at":"2026-04-02T00:00:00Z"}}]`,
			"guest: registered_at must be null while the status is invited"},
		{"delete by an ID of another kind", `[{"delete":{"guest":"evt_1"}}]`,
			"delete: guest must be gst_ followed by 1 to 64 letters, digits, \"_\" or \"-\""},
		{"delete of nothing", `[{"delete":{"guest":null}}]`,
			"delete: must have exactly one field: user, key, event or guest"},
		{"delete of two", `[{"delete":{"guest":"gst_1","event":"evt_1"}}]`,
			"delete: must have exactly one field"},
		{"event deleted before", `[{"delete":{"event":"evt_1"}},{"guest":{"event_id":"evt_1","name":"x"}}]`,
			`record 2: guest: event_id "evt_1" is not known`},
		{"created and deleted before",
			`[{"event":{"id":"evt_n","host_id":"usr_bob","title":"x",` + onMayDay + `}},
			{"delete":{"user":"usr_bob"}},{"guest":{"event_id":"evt_n","name":"x"}}]`,
			`record 3: guest: event_id "evt_n" is not known`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := apitest.New(t, apitest.Memory, nil)
			before := s.Dump()
			err := s.Store.ApplyJSON([]byte(tt.records))
			if _, ok := errors.AsType[*events.RecordError](err); !ok {
				t.Fatalf("ApplyJSON(%s): got %v, want a RecordError", tt.records, err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ApplyJSON(%s): got %v, want %s", tt.records, err, tt.want)
			}
			s.WantDump("ApplyJSON("+tt.records+")", before)
		})
	}
}

// getEvent returns an event of Ada.
func getEvent(t *testing.T, s *apitest.Service, ref string) events.Event {
	t.Helper()
	return apitest.Decode[events.Event](t, s.Get("/events/"+ref))
}

func asJSON(x any) string { b, _ := json.Marshal(x); return string(b) }

// A record changes the fields that it has, and null resets a field.
func TestApplyMerges(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		want := getEvent(t, s, "evt_1")
		s.Apply(`[{"event":{"id":"evt_1","status":"published","description":"New","timezone":"Asia/Tokyo"}}]`)
		got := getEvent(t, s, "evt_1")
		if !got.UpdatedAt.After(want.UpdatedAt) {
			t.Errorf("updated_at: got %v, want a time after %v", got.UpdatedAt, want.UpdatedAt)
		}
		want.Status, want.Description, want.Timezone = "published", new("New"), "Asia/Tokyo"
		want.UpdatedAt = got.UpdatedAt
		if asJSON(got) != asJSON(want) {
			t.Errorf("merged: got %s, want %s", asJSON(got), asJSON(want))
		}

		s.Apply(`[{"event":{"id":"evt_1","status":null,"description":null,"timezone":null}}]`)
		got = getEvent(t, s, "evt_1")
		want.Status, want.Description, want.Timezone = "published", nil, "Europe/London"
		want.UpdatedAt = got.UpdatedAt
		if asJSON(got) != asJSON(want) {
			t.Errorf("reset: got %s, want %s", asJSON(got), asJSON(want))
		}
	})
}

func TestUpdatedAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s := apitest.New(t, apitest.Memory, &events.Config{Now: func() time.Time { return now }})
	s.Apply(`[{"event":{"id":"evt_1","updated_at":"2027-01-01T00:00:00Z"}}]`)
	for _, tt := range []struct{ name, fields, want string }{
		{"unchanged", `"title":"One"`, "2027-01-01T00:00:00Z"},
		{"changed", `"title":"Uno"`, "2027-01-01T02:00:00Z"},
		{"later", `"updated_at":"2027-01-01T02:30:00Z"`, "2027-01-01T02:30:00Z"},
		{"later and changed", `"title":"Une","updated_at":"2027-01-01T03:30:00Z"`, "2027-01-01T03:30:00Z"},
		{"as before and changed", `"title":"Ein","updated_at":"2027-01-01T03:30:00Z"`,
			"2027-01-01T05:00:00Z"},
		{"earlier", `"updated_at":"2026-03-01T01:30:00Z"`, "2027-01-01T05:00:00Z"},
		{"earlier and changed", `"title":"Eins","updated_at":"2026-03-01T01:30:00Z"`, "2027-01-01T07:00:00Z"},
		{"null", `"updated_at":null`, "2027-01-01T07:00:00Z"},
		{"null and changed", `"title":"En","updated_at":null`, "2027-01-01T09:00:00Z"},
	} {
		now = now.Add(time.Hour)
		s.Apply(`[{"event":{"id":"evt_1",` + tt.fields + `}}]`)
		got := getEvent(t, s, "evt_1").UpdatedAt.Format(time.RFC3339)
		if got != tt.want {
			t.Errorf("%s: updated_at: got %s, want %s", tt.name, got, tt.want)
		}
	}
	now = now.Add(-10 * 365 * 24 * time.Hour) // the clock may be set back
	s.Apply(`[{"event":{"id":"evt_1","title":"Yksi"}}]`)
	got := getEvent(t, s, "evt_1").UpdatedAt.Format(time.RFC3339)
	if want := "2027-01-01T09:00:00Z"; got != want {
		t.Errorf("changed when the clock is behind: updated_at: got %s, want %s as before", got, want)
	}
}

// Applying an array twice changes nothing. A row is found by its ID or by its unique key.
func TestApplyIsIdempotent(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		want := s.Dump()
		for _, records := range []string{
			want,
			`[{"event":{"id":"evt_1","description":null,"status":"draft"}}]`,
			`[{"user":{"email":"ada@example.com"}}]`,
			`[{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}}]`,
			`[{"key":{"digest":"` + digestOfAda + `"}}]`,
			`[{"key":{"id":"key_old","revoked_at":null}}]`, // a revoked key stays revoked
			`[{"guest":{"event_id":"evt_1","email":"grace@example.com"}}]`,
			`[{"delete":{"guest":"gst_none"}}]`,
		} {
			s.Apply(records)
			s.WantDump("ApplyJSON("+records+")", want)
		}
		s.Get("/users/me", "x-service-api-key: svc_live_old").WantStatus(t, 401)
	})
}

// Within an array, a unique key can go from one row to another.
func TestApplySwapsEmails(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		s.Apply(`[{"user":{"id":"usr_ada","email":"new@example.com"}},
			{"user":{"id":"usr_bob","email":"ada@example.com"}},
			{"user":{"id":"usr_ada","email":"bob@example.com"}}]`)
		for header, want := range map[string]string{
			"x-service-api-key: svc_live_ada": "bob@example.com", asBob: "ada@example.com",
		} {
			got := apitest.Decode[events.User](t, s.Get("/users/me", header)).Email
			if got != want {
				t.Errorf("email with %s: got %s, want %s", header, got, want)
			}
		}
	})
}

// zeroFields says for every field what Put does if it is zero in a whole record. It also has another value,
// unless the field is fixed.
var zeroFields = map[string]struct {
	zero  string // kept, reset, reset to created_at, or an error
	other any
}{
	"User.ID":        {"kept", nil}, // found by email
	"User.Name":      {"kept", "Ada"},
	"User.Email":     {"kept", "new@example.com"},
	"User.AvatarURL": {"reset", new("https://example.com/b")},
	"User.Timezone":  {"reset", new("UTC")},
	"User.CreatedAt": {"kept", nil},

	"Key.ID":        {"kept", nil}, // found by digest
	"Key.UserID":    {"kept", nil},
	"Key.Secret":    {"kept", nil},
	"Key.Digest":    {"kept", nil},
	"Key.Hint":      {"kept", nil},
	"Key.CreatedAt": {"kept", nil},
	"Key.RevokedAt": {"kept", nil},

	"Event.ID":               {"event: slug is taken by evt_1", nil}, // always new
	"Event.HostID":           {"kept", nil},
	"Event.Slug":             {"kept", nil},
	"Event.Status":           {"kept", "published"},
	"Event.CreatedAt":        {"kept", nil},
	"Event.UpdatedAt":        {"kept", july(1)},
	"Event.Title":            {"kept", "New"},
	"Event.Description":      {"reset", new("New")},
	"Event.StartAt":          {"kept", july(11)},
	"Event.EndAt":            {"kept", july(13)},
	"Event.Timezone":         {"kept", "Asia/Tokyo"},
	"Event.LocationType":     {"reset", new("virtual")},
	"Event.LocationCity":     {"reset", new("Porto")},
	"Event.LocationCountry":  {"reset", new("ES")},
	"Event.Visibility":       {"kept", "public"},
	"Event.RequiresApproval": {"reset", nil}, // a bool has no third value
	"Event.CoverImageURL":    {"reset", new("https://example.com/b")},
	"Event.MeetingURL":       {"reset", new("https://example.com/b")},

	"Guest.ID":           {"kept", nil}, // found by event and email
	"Guest.EventID":      {"kept", nil},
	"Guest.CreatedAt":    {"kept", nil},
	"Guest.Email":        {"reset", new("new@example.com")},
	"Guest.Name":         {"reset", new("New")},
	"Guest.Status":       {"kept", "declined"},
	"Guest.RegisteredAt": {"reset to created_at", new(july(4))},
	"Guest.CheckedInAt":  {"reset", new(july(5))},
}

func july(day int) time.Time { return time.Date(2027, 7, day, 0, 0, 0, 0, time.UTC) }

// fullRecords has a record of each kind with all fields, except a secret.
const fullRecords = `[
{"user":{"id":"usr_1","name":"U","email":"u@example.com","avatar_url":"https://example.com/a",
	"timezone":"Europe/London","created_at":"2027-06-01T00:00:00Z"}},
{"key":{"id":"key_1","user_id":"usr_1","digest":"` + digestOfAda + `","hint":"_ada",
	"created_at":"2027-06-02T00:00:00Z","revoked_at":"2027-06-03T00:00:00Z"}},
{"event":{"id":"evt_1","host_id":"usr_1","slug":"one","status":"draft","created_at":"2027-06-04T00:00:00Z",
	"updated_at":"2027-06-05T00:00:00Z","title":"One","description":"D","start_at":"2027-07-10T00:00:00Z",
	"end_at":"2027-07-12T00:00:00Z","timezone":"Europe/Lisbon","location_type":"in_person",
	"location_city":"Lisbon","location_country":"PT","visibility":"private","requires_approval":true,
	"cover_image_url":"https://example.com/a","meeting_url":"https://example.com/a"}},
{"guest":{"id":"gst_1","event_id":"evt_1","created_at":"2027-07-01T00:00:00Z","email":"g@example.com",
	"name":"G","status":"waitlist","registered_at":"2027-07-02T00:00:00Z",
	"checked_in_at":"2027-07-03T00:00:00Z"}}
]`

// newFullStore returns a store with the full records, in which it is July 20.
func newFullStore(t *testing.T) *events.Store {
	t.Helper()
	store := events.NewStore(&events.Config{Now: func() time.Time { return july(20) }})
	err := store.ApplyJSON([]byte(fullRecords))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A record that is read, changed in one field and put back has that change and no other.
func TestPutFields(t *testing.T) {
	t.Parallel()
	for record := range newFullStore(t).Records() {
		for kind, object := range reflect.ValueOf(record).Fields() {
			if object.IsNil() {
				continue
			}
			for field := range object.Type().Elem().Fields() {
				name := kind.Name + "." + field.Name
				tt, found := zeroFields[name]
				if !found {
					t.Errorf("zeroFields: got no %s, want all fields", name)
					continue
				}
				id := recordID(record)
				checkPut(t, id, name, reflect.Zero(field.Type), tt.zero)
				if tt.other != nil {
					checkPut(t, id, name, reflect.ValueOf(tt.other), "changed")
				}
			}
		}
	}
}

// checkPut sets a field of an existing record, such as User.Name, and puts the record back.
func checkPut(t *testing.T, id, name string, value reflect.Value, result string) {
	t.Helper()
	store := newFullStore(t)
	record, err := store.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := store.Get(id)
	kind, field, _ := strings.Cut(name, ".")
	set := func(r events.Record) { reflect.ValueOf(r).FieldByName(kind).Elem().FieldByName(field).Set(value) }
	set(record)
	if result != "kept" && want.Event != nil {
		want.Event.UpdatedAt = july(20)
	}
	switch result {
	case "reset to created_at":
		want.Guest.RegisteredAt = &want.Guest.CreatedAt
	case "reset", "changed":
		set(want)
	}
	stored, err := store.Put(record)
	if err != nil {
		if !strings.Contains(err.Error(), result) {
			t.Errorf("Put with %s = %v: got %v, want %s", name, value, err, result)
		}
		return
	}
	if got, want := asJSON(stored), asJSON([]events.Record{want}); got != want {
		t.Errorf("Put with %s = %v: got %s, want %s", name, value, got, want)
	}
}

// A program that doesn't know a field, because a later version added it, leaves it zero and keeps its value.
func TestPutKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	for want := range newFullStore(t).Records() {
		for kind, object := range reflect.ValueOf(want).Fields() {
			if object.IsNil() {
				continue
			}
			for field, value := range object.Elem().Fields() {
				switch {
				case field.Name == "ID", field.Name == "Secret":
					continue
				case value.IsZero():
					t.Errorf("fullRecords: %s.%s: got zero, want a value", kind.Name, field.Name)
				}
				store := newFullStore(t)
				r, err := store.Get(recordID(want))
				if err != nil {
					t.Fatal(err)
				}
				update := reflect.ValueOf(r).FieldByName(kind.Name).Elem()
				update.FieldByName("CreatedAt").SetZero()
				update.FieldByName(field.Name).SetZero()
				stored, err := store.Put(r)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := asJSON(stored), asJSON([]events.Record{want}); got != want {
					t.Errorf("Put without %s.%s: got %s, want %s", kind.Name, field.Name, got, want)
				}
			}
		}
	}
}

// A partial record changes nothing else. The result has the records as they are stored after the call.
func TestPut(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	s.Apply(`[{"event":{"id":"evt_1","visibility":"private","description":"D"}}]`)
	want := getEvent(t, s, "evt_1")
	stored, err := s.Store.Put(
		events.Record{Event: &events.Event{ID: "evt_1", Title: "T"}},
		events.Record{Delete: &events.Ref{Guest: "gst_1"}},
		events.Record{User: &events.User{Name: "Eve", Email: "eve@example.com"}},
		events.Record{User: &events.User{Name: "Robert", Email: "Bob@example.com"}},
		events.Record{Key: &events.Key{Secret: "svc_live_bob"}},
		events.Record{Guest: &events.Guest{EventID: "evt_1", Email: new("alan@example.com")}},
		events.Record{Guest: &events.Guest{ID: "gst_new", EventID: "evt_2", Name: new("N")}},
		events.Record{Guest: &events.Guest{ID: "gst_2", Name: new("Alan")}},
		events.Record{Delete: &events.Ref{Event: "evt_2"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := *stored[0].Event
	if !got.UpdatedAt.After(want.UpdatedAt) {
		t.Errorf("updated_at: got %v, want a time after %v", got.UpdatedAt, want.UpdatedAt)
	}
	want.Title, want.UpdatedAt = "T", got.UpdatedAt
	if asJSON(got) != asJSON(want) {
		t.Errorf("partial event: got %s, want %s", asJSON(got), asJSON(want))
	}
	if got, want := asJSON(stored[1]), `{"delete":{"guest":"gst_1"}}`; got != want {
		t.Errorf("delete: got %s, want %s", got, want)
	}
	if stored[6].Guest.EventID != "evt_2" || stored[6].Guest.Status != "" {
		t.Errorf("record 7, which record 9 deletes: got %s, want it as given", asJSON(stored[6]))
	}
	ids := map[int]string{
		0: "evt_1", 2: stored[2].User.ID, 3: "usr_bob", 4: "key_bob", 5: "gst_2", 7: "gst_2",
	}
	for i, id := range ids {
		r, err := s.Store.Get(id)
		if err != nil {
			t.Errorf("Get(%s): got %v, want a record", id, err)
		}
		if got, want := asJSON(stored[i]), asJSON(r); got != want {
			t.Errorf("Put: record %d: got %s, want %s as from Get", i+1, got, want)
		}
	}
}

// A copy that was read before a change doesn't move updated_at back.
func TestPutTwice(t *testing.T) {
	t.Parallel()
	store := newFullStore(t)
	r, err := store.Get("evt_1")
	if err != nil {
		t.Fatal(err)
	}
	r.Event.Title = "New"
	for _, call := range []string{"Put", "Put again"} {
		stored, err := store.Put(r)
		if err != nil {
			t.Fatalf("%s: got %v, want no error", call, err)
		}
		if got := stored[0].Event.UpdatedAt; got != july(20) {
			t.Errorf("%s: updated_at: got %v, want the time of the change, %v", call, got, july(20))
		}
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	before := s.Dump()
	april1 := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC) // when gst_1 was created
	for _, tt := range []struct {
		record events.Record
		want   string
	}{
		{events.Record{}, "record 2: must be an object with exactly one field"},
		{events.Record{User: &events.User{}}, "record 2: user: name is required; email is required"},
		{events.Record{User: &events.User{Name: "\xff", Email: "x@example.com"}}, "name must be valid UTF-8"},
		{events.Record{Event: &events.Event{ID: "evt_1", HostID: "usr_bob"}}, "host_id can't be changed"},
		{events.Record{Event: &events.Event{}},
			"event: host_id is required; title is required; start_at is required; end_at is required"},
		{events.Record{Event: &events.Event{ID: "evt_1", EndAt: july(1).AddDate(8000, 0, 0)}},
			"end_at must be in the years 0001 to 9999"},
		{events.Record{Guest: &events.Guest{ID: "gst_1", CreatedAt: april1}},
			"guest: name or email is required"},
		{events.Record{Guest: &events.Guest{ID: "gst_1", Status: "invited", RegisteredAt: new(july(1))}},
			"guest: registered_at must be null while the status is invited"},
	} {
		stored, err := s.Store.Put(events.Record{Delete: &events.Ref{Guest: "gst_2"}}, tt.record)
		if !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("Put(%s): got %v, want %s", asJSON(tt.record), err, tt.want)
		}
		if stored != nil {
			t.Errorf("Put(%s): got %s, want no records", asJSON(tt.record), asJSON(stored))
		}
	}
	s.WantDump("refused Put", before)
}

// Only an ID finds a record: no email, slug or other unique key does.
func TestGetRefuses(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	for _, id := range []string{"", "usr_none", "one", "email:ada@example.com", "key:" + digestOfAda} {
		r, err := s.Store.Get(id)
		if !errors.Is(err, events.ErrNotFound) {
			t.Errorf("Get(%q): got %s, %v, want ErrNotFound", id, asJSON(r), err)
		}
	}
}

// A loop over the records may change the store.
func TestRecordsInLoop(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	records := s.Store.Records()
	want := recordIDs(s.Store)
	s.Apply(`[{"delete":{"user":"usr_bob"}}]`)
	want, _, _ = strings.Cut(want, " usr_bob ") // a loop begins with the current records
	var got []string
	for r := range records {
		got = append(got, recordID(r))
		s.Apply(`[{"delete":{"user":"usr_ada"}}]`)
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("Records: IDs: got %s, want %s", got, want)
	}
}

func TestGuestDefaults(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		s.Apply(`[{"event":{"id":"evt_2","requires_approval":true}},
			{"guest":{"id":"gst_a","event_id":"evt_2","name":"A"}},
			{"guest":{"id":"gst_b","event_id":"evt_3","name":"B"}},
			{"guest":{"id":"gst_c","event_id":"evt_3","name":"C","status":"invited"}},
			{"guest":{"id":"gst_d","event_id":"evt_3","name":"D","status":"waitlist",
				"registered_at":"2026-01-01T00:00:00Z"}}]`)
		check := func(id, status, registered string) {
			t.Helper()
			r, err := s.Store.Get(id)
			if err != nil {
				t.Fatal(err)
			}
			if r.Guest.Status != status {
				t.Errorf("%s: status: got %s, want %s", id, r.Guest.Status, status)
			}
			want := registered
			if registered == "created_at" {
				want = asJSON(r.Guest.CreatedAt)
			}
			if got := asJSON(r.Guest.RegisteredAt); got != want {
				t.Errorf("%s: registered_at: got %s, want %s", id, got, want)
			}
		}
		check("gst_a", "pending", "created_at")
		check("gst_b", "approved", "created_at")
		check("gst_c", "invited", "null")
		check("gst_d", "waitlist", `"2026-01-01T00:00:00Z"`)
		s.Apply(`[{"guest":{"id":"gst_d","status":"invited"}},{"guest":{"id":"gst_c","status":"approved"}}]`)
		check("gst_d", "invited", "null")
		check("gst_c", "approved", "created_at")
	})
}

// recordIDs returns the IDs of all records, in the order of a dump.
func recordIDs(store *events.Store) string {
	var ids []string
	for r := range store.Records() {
		ids = append(ids, recordID(r))
	}
	return strings.Join(ids, " ")
}

func recordID(r events.Record) string {
	switch {
	case r.User != nil:
		return r.User.ID
	case r.Key != nil:
		return r.Key.ID
	case r.Event != nil:
		return r.Event.ID
	}
	return r.Guest.ID
}

// What belongs to a row is deleted with it.
func TestDelete(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		const bob = "usr_bob key_bob evt_bob gst_bob"
		for _, tt := range []struct{ ref, want string }{
			{`{"guest":"gst_1"}`,
				"usr_ada key_ada key_old evt_1 gst_2 gst_3 evt_2 gst_two evt_3 " + bob},
			{`{"event":"evt_1"}`, "usr_ada key_ada key_old evt_2 gst_two evt_3 " + bob},
			{`{"key":"key_ada"}`,
				"usr_ada key_old evt_1 gst_1 gst_2 gst_3 evt_2 gst_two evt_3 " + bob},
			{`{"user":"usr_ada"}`, bob},
		} {
			s := apitest.New(t, mode, nil)
			s.Apply(`[{"delete":` + tt.ref + `}]`)
			s.Get("/events") // reopens the file
			if got := recordIDs(s.Store); got != tt.want {
				t.Errorf("delete %s: IDs: got %s, want %s", tt.ref, got, tt.want)
			}
			s.Apply(apitest.Seed) // the unique keys are free again
		}
	})
}

// A dump creates the same store, keys included, and has no secret.
func TestDumpIsSeed(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	secret, _, err := s.Store.IssueKey("usr_bob")
	if err != nil {
		t.Fatal(err)
	}
	want := s.Dump()
	if strings.Contains(want, "svc_live_") {
		t.Errorf("records: got %s, want no secret", want)
	}
	for name, fill := range map[string]func(*events.Store) error{
		"ApplyJSON": func(store *events.Store) error { return store.ApplyJSON([]byte(want)) },
		"Put": func(store *events.Store) error {
			_, err := store.Put(slices.Collect(s.Store.Records())...)
			return err
		},
	} {
		copied := apitest.NewWithStore(t, events.NewStore(nil))
		err := fill(copied.Store)
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		copied.WantDump(name, want)
		copied.Get("/users/me", "x-service-api-key: "+secret).WantStatus(t, 200)
	}
	apitest.NewWithStore(t, events.NewStore(nil)).WantDump("NewStore", "[\n\n]\n")
}

func TestIssueAndRevokeKey(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		secret, key, err := s.Store.IssueKey("usr_ada")
		if err != nil {
			t.Fatal(err)
		}
		random, found := strings.CutPrefix(secret, "svc_live_")
		if !found {
			t.Errorf("secret: got %s, want svc_live_ at its beginning", secret)
		}
		if len(random) < 26 { // 128 bits
			t.Errorf("secret: got %s, want 26 characters after svc_live_", secret)
		}
		if key.UserID != "usr_ada" {
			t.Errorf("user_id: got %s, want usr_ada", key.UserID)
		}
		if got := asJSON(key.Hint); got != asJSON(secret[len(secret)-4:]) {
			t.Errorf("hint of %s: got %s, want its last four characters", secret, got)
		}
		header := "x-service-api-key: " + secret
		s.Get("/users/me", header).WantStatus(t, 200)
		err = s.Store.RevokeKey(key.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.Get("/users/me", header).WantStatus(t, 401)
		want := s.Dump()
		err = s.Store.RevokeKey(key.ID)
		if err != nil {
			t.Errorf("RevokeKey again: got %v, want no error", err)
		}
		s.WantDump("RevokeKey again", want)
	})
	s := apitest.New(t, apitest.Memory, nil)
	for _, id := range []string{"key_none", "usr_ada", ""} {
		err := s.Store.RevokeKey(id)
		if !errors.Is(err, events.ErrNotFound) {
			t.Errorf("RevokeKey(%q): got %v, want ErrNotFound", id, err)
		}
	}
	for _, id := range []string{"usr_none", "evt_1", "email:ada@example.com", ""} {
		_, _, err := s.Store.IssueKey(id)
		if !errors.Is(err, events.ErrNotFound) {
			t.Errorf("IssueKey(%q): got %v, want ErrNotFound", id, err)
		}
	}
}

// The end of a short secret would give away too much of it.
func TestHints(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	for secret, want := range map[string]string{
		"svc_live_0123456789abcde": `null`, "svc_live_0123456789abcdef": `"cdef"`,
	} {
		s.Apply(`[{"key":{"id":"key_new","user_id":"usr_bob","secret":"` + secret + `"}}]`)
		records := s.Dump()
		_, record, _ := strings.Cut(records, `"id":"key_new"`)
		if !strings.Contains(record[:200], `"hint":`+want) {
			t.Errorf("records with %s: got %s, want the hint %s", secret, records, want)
		}
		s.Apply(`[{"delete":{"key":"key_new"}}]`)
	}
}

// IDs and slugs come from a function, which is called again for one in use.
func TestNewID(t *testing.T) {
	t.Parallel()
	var calls []string
	s := apitest.New(t, apitest.Memory, nil)
	events.New(s.Store).(testdouble.API).SetNewID(func(kind, owner string) string {
		calls = append(calls, kind+" "+owner)
		return []string{"1", "2", "3", "4"}[len(calls)-1]
	})
	s.Apply(`[{"event":{"id":"evt_x","host_id":"usr_bob","slug":"launch-3","title":"X",` + onMayDay + `}}]`)
	calls = nil
	s.Apply(`[{"delete":{"event":"evt_2"}}]`)
	e := apitest.Decode[events.Event](t, s.Create(newEvent))
	if e.ID != "evt_2" {
		t.Errorf("id: got %s, want evt_2 because evt_1 is in use", e.ID)
	}
	if e.Slug != "launch-4" {
		t.Errorf("slug: got %s, want launch-4 because launch-3 is in use", e.Slug)
	}
	want := []string{"evt usr_ada", "evt usr_ada", "slug usr_ada", "slug usr_ada"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls of newID: got %q, want %q", calls, want)
	}

	s.Apply(`[{"key":{"id":"key_x","user_id":"usr_bob","secret":"svc_live_1"}}]`)
	calls = nil
	secret, key, err := s.Store.IssueKey("usr_ada")
	if err != nil {
		t.Fatal(err)
	}
	if secret != "svc_live_2" {
		t.Errorf("secret: got %s, want svc_live_2 because svc_live_1 is in use", secret)
	}
	if key.ID != "key_3" {
		t.Errorf("id: got %s, want key_3", key.ID)
	}
}

// created_at increases within an array, even if the clock stands still, as it does in a bubble.
func TestCreatedAtOfArray(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := events.NewStore(nil)
		err := store.ApplyJSON([]byte(`[{"user":{"name":"A","email":"a@example.com"}},` +
			`{"user":{"name":"B","email":"b@example.com"}},{"user":{"name":"C","email":"c@example.com"}}]`))
		if err != nil {
			t.Fatal(err)
		}
		last := time.Time{}
		for r := range store.Records() {
			created := r.User.CreatedAt
			if !created.After(last) {
				t.Errorf("created_at of %s: got %v, want a later time than %v", r.User.Name, created, last)
			}
			last = created
		}
	})
}

// A record with a created_at in the future changes nothing for later events.
func TestCreatedAtInFuture(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	s.Apply(`[{"event":{"id":"evt_9","host_id":"usr_ada","title":"T",` + onMayDay +
		`,"created_at":"2099-01-01T00:00:00Z"}}]`)
	e := apitest.Decode[events.Event](t, s.Create(newEvent))
	if e.CreatedAt.Year() == 2099 {
		t.Errorf("created_at: got %v, want the current time", e.CreatedAt)
	}
	s.Apply(`[{"event":{"id":"evt_9","title":"U"}}]`)
	e = getEvent(t, s, "evt_9")
	if e.UpdatedAt.Before(e.CreatedAt) {
		t.Errorf("updated_at: got %v, want no time before created_at, %v", e.UpdatedAt, e.CreatedAt)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.File, nil)
	s.Store.Close()
	file, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"damaged", strings.Replace(string(file), "Lovelace", "lovelace", 1), events.ErrDamaged},
		{"records", apitest.Seed, events.ErrFormat},
		{"empty", "", events.ErrFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "events.json")
			err := os.WriteFile(path, []byte(tt.text), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, err = events.Open(path, nil)
			if !errors.Is(err, tt.want) {
				t.Errorf("Open: got %v, want %v", err, tt.want)
			}
			if got, _ := os.ReadFile(path); string(got) != tt.text {
				t.Errorf("file after Open: got %s, want it unchanged", got)
			}
			if got := apitest.OpenFiles(filepath.Dir(path)); got != nil {
				t.Errorf("open files after Open: got %q, want none", got)
			}
		})
	}
}

// A store that couldn't be opened leaves nothing open, so it can be as soon as the obstacle is gone.
func TestOpenAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other locks")
	}
	open := func(path string) *events.Store {
		store, err := events.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	for name, obstruct := range map[string]func(path string) (remove func() error){
		"open": func(path string) func() error { return open(path).Close },
		"open by another name": func(path string) func() error {
			open(path).Close() // an upgrade replaces the file
			err := os.Link(path, path+".link")
			if err != nil {
				t.Fatal(err)
			}
			return open(path + ".link").Close
		},
		"not to be upgraded": func(path string) func() error {
			err := os.MkdirAll(path+".tmp/x", 0o700) // where the rewrite needs a file
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return os.RemoveAll(path + ".tmp") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.json")
			text, err := os.ReadFile("testdata/events-1.json")
			if err != nil {
				t.Fatal(err)
			}
			err = os.WriteFile(path, text, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			remove := obstruct(path)
			before := apitest.OpenFiles(filepath.Dir(path))
			synctest.Test(t, func(t *testing.T) { // Open waits
				_, err = events.Open(path, nil)
			})
			inUse := errors.Is(err, events.ErrInUse)
			if err == nil || inUse != strings.HasPrefix(name, "open") {
				t.Errorf("Open: got %v, want an error, and ErrInUse if the file is open", err)
			}
			if got := apitest.OpenFiles(filepath.Dir(path)); !slices.Equal(got, before) {
				t.Errorf("open files after Open: got %q, want %q", got, before)
			}
			err = remove()
			if err != nil {
				t.Fatal(err)
			}
			open(path).Close()
		})
	}
}

// A typing mistake publishes nothing.
func TestNewEventStatusRefused(t *testing.T) {
	t.Parallel()
	cfg := &events.Config{NewEventStatus: "publisehd"}
	const want = `Config.NewEventStatus must be published, draft or empty, not "publisehd"`
	path := filepath.Join(t.TempDir(), "events.json")
	_, err := events.Open(path, cfg)
	if !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("Open: got %v, want %s", err, want)
	}
	_, err = os.Stat(path)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat after Open: got %v, want no file", err)
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("NewStore: got panic %s, want %s", got, want)
		}
	}()
	events.NewStore(cfg)
}

// A store that is closed can be read, and refuses changes.
func TestClose(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	err := s.Store.Close()
	if err != nil {
		t.Errorf("Close: got %v, want no error", err)
	}
	err = s.Store.ApplyJSON([]byte(`[{"delete":{"user":"usr_ada"}}]`))
	if !errors.Is(err, events.ErrClosed) {
		t.Errorf("ApplyJSON after Close: got %v, want ErrClosed", err)
	}
	s.Get("/events/evt_1").WantStatus(t, 200)
	s.Create(newEvent).WantStatus(t, 503)
}

// Rows are served as they are in the data file, so a file of each format must have the rows that the server
// writes today. UPDATE=1 writes a file of the current format, unless there is one. Each file has two events
// that were created with idempotency keys. Files of events/1 lose the keys.
func TestGoldenDataFile(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPDATE") != "" {
		writeGoldenDataFile(t)
	}
	files, err := filepath.Glob("testdata/events-*.json")
	if err != nil {
		t.Fatal(err)
	}
	current, _ := newDataFile(t)
	if !slices.Contains(files, current) {
		t.Errorf("data files: got %q, want %s; UPDATE=1 writes it", files, current)
	}
	for _, golden := range files {
		t.Run(filepath.Base(golden), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "events.json")
			err = os.WriteFile(path, text, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			store, err := events.Open(path, &events.Config{Now: func() time.Time { return goldenTime }})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			again := events.NewStore(nil)
			_, err = again.Put(slices.Collect(store.Records())...)
			if err != nil {
				t.Fatal(err)
			}
			got, want := apitest.NewWithStore(t, store).Dump(), apitest.NewWithStore(t, again).Dump()
			if got != want { // the rows as they are written today
				t.Errorf("Open: records: got (+), want (-)\n%s", apitest.DiffLines(got, want))
			}
			for _, kind := range []string{"user", "key", "event", "guest"} {
				if !strings.Contains(got, `{"`+kind+`":`) {
					t.Errorf("records of the file: got no %s, want one", kind)
				}
			}
			text, err = os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			replayed := "true"
			if strings.HasSuffix(golden, "events-1.json") {
				replayed = ""
			}
			for _, key := range goldenKeys {
				if bytes.Contains(text, []byte(key)) {
					t.Errorf("file after Open: got %s, want no key %s in it", text, key)
				}
				r := createGolden(t, store, key)
				r.WantHeader(t, "Idempotency-Replayed", replayed)
			}
		})
	}
}

// Golden data files have the records of the demo. With the key svc_live_demo, an event was created with each
// of goldenKeys.
var (
	goldenTime = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	goldenKeys = []string{"guest-42@example.net", `}},{"event":{"id":"x`}
)

func createGolden(t *testing.T, store *events.Store, key string) apitest.Response {
	t.Helper()
	s := apitest.NewWithStore(t, store)
	r := s.Create(newEvent, "x-service-api-key: svc_live_demo", "Idempotency-Key: "+key)
	r.WantStatus(t, 201)
	return r
}

// writeGoldenDataFile writes testdata/events-1.json for the format events/1.
func writeGoldenDataFile(t *testing.T) {
	t.Helper()
	golden, text := newDataFile(t)
	_, err := os.Stat(golden)
	if err == nil {
		return
	}
	err = os.WriteFile(golden, text, 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

// newDataFile returns a data file of the current format, and the path of such a file in testdata.
func newDataFile(t *testing.T) (golden string, text []byte) {
	t.Helper()
	demo, err := os.ReadFile("internal/demo/seed.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "events.json")
	store, err := events.Open(path, &events.Config{Now: func() time.Time { return goldenTime }})
	if err != nil {
		t.Fatal(err)
	}
	err = store.ApplyJSON(demo)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range goldenKeys {
		createGolden(t, store, key)
	}
	err = store.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"format":"`)
	format, _, _ := strings.Cut(rest, `"`)
	return filepath.Join("testdata", strings.ReplaceAll(format, "/", "-")+".json"), text
}

// TestRequestRecords reads requests in the form in which data files keep them. The ID is a hash of the user
// and the idempotency key, and the fingerprint one of the operation and the body.
func TestRequestRecords(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s := apitest.New(t, apitest.File, &events.Config{Now: func() time.Time { return now }})
	s.Store.Close()
	text, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"format":"`)
	format, _, _ := strings.Cut(rest, `"`)
	log, err := commitlog.Open(s.Path, commitlog.Options{Formats: []string{format}},
		func(commitlog.Commit) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	hash := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	for _, r := range []struct{ key, operation, created, event string }{
		{"same", "POST /events/create", "2027-01-01T00:00:00Z", "evt_1"},
		{"future", "POST /events/create", "2037-01-01T00:00:00Z", "evt_2"},
		{"other operation", "POST /events", "2027-01-01T00:00:00Z", "evt_3"},
		{"expired", "POST /events/create", "2026-12-31T00:00:00Z", "evt_1"},
		{"gone", "POST /events/create", "2027-01-01T00:00:00Z", "evt_gone"},
		{"put again", "POST /events/create", "2027-01-01T00:00:00Z", "evt_bob"},
	} {
		key := strings.ReplaceAll(r.key, " ", "-")
		id, fingerprint := hash("usr_ada\x00" + key)[:32], hash(r.operation+"\x00"+newEvent)
		err = log.Append(fmt.Appendf(nil,
			`{"request":{"id":"req_%s","created_at":"%s","fingerprint":"%s","result":"%s"}}`,
			id, r.created, fingerprint, r.event))
		if err != nil {
			t.Fatal(err)
		}
	}
	_, rest, _ = strings.Cut(string(text), `{"event":{"id":"evt_bob"`)
	again, _, _ := strings.Cut(rest, "}")
	err = log.Append([]byte(`{"delete":{"event":"evt_bob"}},{"event":{"id":"evt_bob"` + again + "}}"))
	if err != nil {
		t.Fatal(err)
	}
	err = log.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.Reopen()
	for key, want := range map[string]struct {
		status   int
		replayed string
	}{
		"same": {201, "true"}, "future": {201, "true"}, "other-operation": {422, ""},
		"expired": {201, ""}, "gone": {201, ""}, "put-again": {201, ""},
	} {
		r := s.Create(newEvent, "Idempotency-Key: "+key)
		r.WantStatus(t, want.status)
		r.WantHeader(t, "Idempotency-Replayed", want.replayed)
	}
	if got := s.Dump(); strings.Contains(got, "req_") {
		t.Errorf("records: got %s, want no request", got)
	}
}

// No array of records panics or is applied in part. The dump of an accepted one creates the same store.
func FuzzRecords(f *testing.F) {
	f.Add(apitest.Seed)
	for _, records := range []string{
		"[]", "[{}]", `[{"delete":{"user":"usr_ada"}}]`,
		`[{"event":{"id":"evt_1","status":"published","title":null}}]`,
		`[{"key":{"id":"key_ada","revoked_at":"2027-01-01T00:00:00Z"}},
			{"guest":{"id":"gst_1","status":"invited"}}]`,
		`[{"user":{"id":"usr_x","name":"x","email":"x@example.com"}},
			{"event":{"id":"evt_x","host_id":"usr_x","title":"x",` + onMayDay + `,"slug":"x"}},
			{"delete":{"user":"usr_x"}},{"user":{"name":"y","email":"x@example.com"}}]`,
	} {
		f.Add(records)
	}
	f.Fuzz(func(t *testing.T, records string) {
		s := apitest.New(t, apitest.Memory, nil)
		before := s.Dump()
		err := s.Store.ApplyJSON([]byte(records))
		if err != nil {
			s.WantDump("refused ApplyJSON", before)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("ApplyJSON: got %q, want one line", err)
			}
			return
		}
		want := s.Dump()
		copied := events.NewStore(nil)
		err = copied.ApplyJSON([]byte(want))
		if err != nil {
			t.Errorf("ApplyJSON of the dump %s: got %v, want no error", want, err)
		}
		apitest.NewWithStore(t, copied).WantDump("ApplyJSON of a dump", want)
	})
}
