package events_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/internal/testdouble"
)

const base = events.BasePath

// seed has two hosts. Ada has events of both statuses, and one of them has guests.
const seed = `[
{"user":{"id":"usr_ada","name":"Ada Lovelace","email":"ada@example.com","timezone":"Europe/London",
	"created_at":"2026-01-01T00:00:00Z"}},
{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com","created_at":"2026-01-02T00:00:00Z"}},
{"key":{"id":"key_ada","user_id":"usr_ada","secret":"svc_live_ada"}},
{"key":{"id":"key_old","user_id":"usr_ada","secret":"svc_live_old","revoked_at":"2026-02-01T00:00:00Z"}},
{"key":{"id":"key_bob","user_id":"usr_bob","secret":"svc_live_bob"}},
{"event":{"id":"evt_1","slug":"one","host_id":"usr_ada","title":"One","start_at":"2027-03-01T10:00:00Z",
	"end_at":"2027-03-01T12:00:00Z","status":"draft","created_at":"2026-03-01T00:00:00Z"}},
{"event":{"id":"evt_2","slug":"two","host_id":"usr_ada","title":"Two","start_at":"2027-03-02T10:00:00Z",
	"end_at":"2027-03-02T12:00:00Z","created_at":"2026-03-02T00:00:00Z"}},
{"event":{"id":"evt_3","slug":"three","host_id":"usr_ada","title":"Three","start_at":"2027-03-03T10:00:00Z",
	"end_at":"2027-03-03T12:00:00Z","created_at":"2026-03-03T00:00:00.5Z"}},
{"event":{"id":"evt_bob","slug":"bobs","host_id":"usr_bob","title":"Bob's","start_at":"2027-03-01T10:00:00Z",
	"end_at":"2027-03-01T12:00:00Z","created_at":"2026-03-04T00:00:00Z"}},
{"guest":{"id":"gst_1","event_id":"evt_1","name":"Grace Hopper","email":"grace@example.com",
	"created_at":"2026-04-01T00:00:00Z"}},
{"guest":{"id":"gst_2","event_id":"evt_1","email":"alan@example.com","status":"invited",
	"created_at":"2026-04-02T00:00:00Z"}},
{"guest":{"id":"gst_3","event_id":"evt_1","name":"Kurt","status":"declined",
	"created_at":"2026-04-03T00:00:00Z"}}
]`

const (
	onMayDay = `"start_at":"2027-05-01T18:00:00Z","end_at":"2027-05-01T20:00:00Z"`
	newEvent = `{"title":"Launch",` + onMayDay + `}` // body of a create

	asBob   = "x-service-api-key: svc_live_bob"
	keyless = "keyless" // instead of a header: send no key
)

// service is the API over a store with the seed. Its requests have Ada's key. The embedded store is shared by
// services that differ in t only.
type service struct {
	t testing.TB
	*testStore
}

type testStore struct {
	mode    string
	path    string // of the data file
	cfg     *events.Config
	store   *events.Store
	handler testdouble.Server
}

const (
	inMemory = "memory"
	onFile   = "file"
	reopened = "reopened file" // the store is closed and opened again before each request
)

// eachMode runs a test of the API in memory and on a file that is opened again before each request.
func eachMode(t *testing.T, test func(t *testing.T, mode string)) {
	for _, mode := range []string{inMemory, reopened} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

func newService(t testing.TB, mode string, cfg *events.Config) *service {
	t.Helper()
	s := &service{t, &testStore{mode: mode, cfg: cfg}}
	if mode == inMemory {
		s.use(events.NewStore(cfg))
	} else {
		s.path = filepath.Join(t.TempDir(), "events.json")
		s.open()
		t.Cleanup(func() { s.store.Close() })
	}
	s.apply(seed)
	return s
}

func (s *service) use(store *events.Store) {
	s.store = store
	s.handler = events.New(store).(testdouble.Server)
}

func (s *service) open() {
	s.t.Helper()
	store, err := events.Open(s.path, s.cfg)
	if err != nil {
		s.t.Fatalf("Open: %v", err)
	}
	s.use(store)
}

func (s *service) reopen() {
	s.t.Helper()
	err := s.store.Close()
	if err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.open()
}

// apply applies an array of records.
func (s *service) apply(records string) {
	s.t.Helper()
	err := s.store.ApplyJSON([]byte(records))
	if err != nil {
		s.t.Fatalf("ApplyJSON(%s): %v", records, err)
	}
}

// dump returns all records, one a line.
func (s *service) dump() string { return dump(s.store) }

func dump(store *events.Store) string {
	return operate(events.New(store), "GET", "/records", "").body
}

// operate sends a request to the operator's routes.
func operate(handler http.Handler, method, target, body string) response {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl -d sends it
	handler.(testdouble.Server).Operator().ServeHTTP(w, r)
	return response{method + " " + target, w.Code, w.Result().Header, w.Body.String()}
}

// send sends a request and checks that openapi.json describes the response. A header is "Name: value".
func (s *service) send(method, target string, body io.Reader, headers ...string) response {
	s.t.Helper()
	if s.mode == reopened {
		s.reopen()
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, newRequest(method, target, body, headers...))
	r := response{method + " " + target, w.Code, w.Result().Header, w.Body.String()}
	for _, problem := range describe(method, target, r) {
		s.t.Errorf("%s: %s", r, problem)
	}
	return r
}

// newRequest returns a request with Ada's key, unless the headers have a key or are keyless.
func newRequest(method, target string, body io.Reader, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, body)
	r.Header.Set("x-service-api-key", "svc_live_ada")
	for _, header := range headers {
		name, _, _ := strings.Cut(header, ": ")
		if name == keyless || strings.EqualFold(name, "x-service-api-key") {
			r.Header.Del("x-service-api-key")
		}
	}
	for _, header := range headers {
		name, value, found := strings.Cut(header, ": ")
		if found {
			r.Header.Add(name, value)
		}
	}
	return r
}

// do is send for a path below the base path.
func (s *service) do(method, path, body string, headers ...string) response {
	s.t.Helper()
	return s.send(method, base+path, strings.NewReader(body), headers...)
}

func (s *service) get(path string, headers ...string) response {
	s.t.Helper()
	return s.do("GET", path, "", headers...)
}

func (s *service) create(body string, headers ...string) response {
	s.t.Helper()
	return s.do("POST", "/events/create", body, headers...)
}

type response struct {
	request string
	status  int
	header  http.Header
	body    string
}

func (r response) String() string {
	return fmt.Sprintf("%.200s = %d %.1000s", r.request, r.status, r.body)
}

// message returns the message of an error.
func (r response) message() string {
	var e struct{ Error struct{ Message string } }
	json.Unmarshal([]byte(r.body), &e)
	return e.Error.Message
}

// id returns the ID of the object in a response.
func (r response) id() string {
	var object struct{ ID string }
	json.Unmarshal([]byte(r.body), &object)
	return object.ID
}

// ids returns the IDs of the objects in a list, separated by spaces.
func (r response) ids() string {
	var list struct{ Data []struct{ ID string } }
	json.Unmarshal([]byte(r.body), &list)
	var ids []string
	for _, object := range list.Data {
		ids = append(ids, object.ID)
	}
	return strings.Join(ids, " ")
}

// next returns the query parameter for the page after a list, or "" if there is none.
func (r response) next() string {
	var list struct {
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	}
	json.Unmarshal([]byte(r.body), &list)
	if list.NextCursor == nil {
		return ""
	}
	return "cursor=" + *list.NextCursor
}

// wantStatus fails the test unless a response has a status.
func wantStatus(t testing.TB, r response, status int) {
	t.Helper()
	if r.status != status {
		t.Errorf("%s, want %d", r, status)
	}
}

// wantError fails the test unless a response is an error with a status and a text in its message.
func wantError(t testing.TB, r response, status int, text string) {
	t.Helper()
	wantStatus(t, r, status)
	if !strings.Contains(r.message(), text) {
		t.Errorf("%s, want a message with %q", r, text)
	}
}

// wantHeader fails the test unless a header of a response has a value.
func wantHeader(t testing.TB, r response, name, want string) {
	t.Helper()
	got := r.header.Get(name)
	if got != want {
		t.Errorf("%s: %s = %q, want %q", r, name, got, want)
	}
}

// wantIDs fails the test unless a list has the objects with these IDs.
func wantIDs(t testing.TB, r response, want string) {
	t.Helper()
	got := r.ids()
	if got != want {
		t.Errorf("%s: IDs = %s, want %s", r.request, got, want)
	}
}

// decode decodes the body of a response.
func decode[T any](t testing.TB, r response) (object T) {
	t.Helper()
	err := json.Unmarshal([]byte(r.body), &object)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return object
}
