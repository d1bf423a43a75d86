// Package apitest has helpers for API tests: a seed, services on each kind of store, and a check of each
// response against openapi.json.
package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/testdouble"
)

const base = events.BasePath

// Seed has two hosts. Ada has events of both statuses, and two of them have guests.
const Seed = `[
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
	"created_at":"2026-04-03T00:00:00Z"}},
{"guest":{"id":"gst_two","event_id":"evt_2","email":"grace@example.com","created_at":"2026-04-04T00:00:00Z"}},
{"guest":{"id":"gst_bob","event_id":"evt_bob","name":"Kay","created_at":"2026-04-05T00:00:00Z"}}
]`

// EventTimes has the required fields of a create, except the title.
const EventTimes = `"start_at":"2027-05-01T18:00:00Z","end_at":"2027-05-01T20:00:00Z"`

// NewEvent is the body of a create.
const NewEvent = `{"title":"Launch",` + EventTimes + `}`

const (
	AsBob   = "x-service-api-key: svc_live_bob"
	Keyless = "keyless" // instead of a header: send no key
)

// EmptyIsNull has the fields of a create in which an empty string means null.
var EmptyIsNull = []string{"timezone", "location_type", "visibility", "cover_image_url", "meeting_url"}

// Mode selects the server of a service.
type Mode string

const (
	Memory   Mode = "memory"
	File     Mode = "file"
	Reopened Mode = "reopened file" // the store is closed and opened again before each request
	Double   Mode = "double"        // a test double, with a clock and IDs of its own
)

// Run runs a test in some modes or, if none are given, in Memory, Reopened and Double.
func Run(t *testing.T, test func(t *testing.T, mode Mode), modes ...Mode) {
	if modes == nil {
		modes = []Mode{Memory, Reopened, Double}
	}
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

// Service is the API on a store with the seed. It sends Ada's key.
type Service struct {
	Path    string // path of the data file
	Store   *events.Store
	Handler http.Handler

	t    testing.TB
	mode Mode
	cfg  *events.Config
}

// New starts a service until the test ends. A double takes no config.
func New(t testing.TB, mode Mode, cfg *events.Config) *Service {
	t.Helper()
	s := &Service{t: t, mode: mode, cfg: cfg}
	switch mode {
	case Memory:
		s.use(events.NewStore(cfg))
	case Double:
		srv := eventstest.New(t, eventstest.NoListener(), eventstest.Allow(eventstest.UnknownRoute))
		s.Store = srv.Store
		s.Handler = srv.Handler()
	default:
		s.Path = filepath.Join(t.TempDir(), "events.json")
		s.open()
		t.Cleanup(func() { s.Store.Close() })
	}
	s.Apply(Seed)
	return s
}

// NewWithStore starts a service on a store, without the seed.
func NewWithStore(t testing.TB, store *events.Store) *Service {
	s := &Service{t: t, mode: Memory}
	s.use(store)
	return s
}

// WithTB returns the service for another test, on the same store.
func (s *Service) WithTB(t testing.TB) *Service {
	other := *s
	other.t = t
	return &other
}

func (s *Service) use(store *events.Store) {
	s.Store = store
	s.Handler = events.New(store)
}

func (s *Service) open() {
	s.t.Helper()
	store, err := events.Open(s.Path, s.cfg)
	if err != nil {
		s.t.Fatalf("Open: got %v, want a store", err)
	}
	s.use(store)
}

// Reopen closes the store and opens it again.
func (s *Service) Reopen() {
	s.t.Helper()
	err := s.Store.Close()
	if err != nil {
		s.t.Fatalf("Close: got %v, want no error", err)
	}
	s.open()
}

// Apply applies an array of records.
func (s *Service) Apply(records string) {
	s.t.Helper()
	err := s.Store.ApplyJSON([]byte(records))
	if err != nil {
		s.t.Fatalf("ApplyJSON(%s): got %v, want no error", records, err)
	}
}

// Intercept sets a function that serves requests in place of their handlers.
func (s *Service) Intercept(f httpapi.Intercept) {
	api := events.New(s.Store).(testdouble.API)
	api.Mux().Intercept = f
	s.Handler = api
}

// Dump returns all records, one per line.
func (s *Service) Dump() string { return s.Operate("GET", "/records", "").Body }

// WantDump fails the test unless the store has these records after a call.
func (s *Service) WantDump(call, want string) {
	s.t.Helper()
	if got := s.Dump(); got != want {
		s.t.Errorf("%.200s: records: got (+), want (-)\n%s", call, DiffLines(got, want))
	}
}

// DiffLines returns the lines that only one of two texts has: those of got after a plus, those of want after
// a minus. If there are none, the order differs.
func DiffLines(got, want string) string {
	var diff strings.Builder
	only := func(mark, text, other string) {
		others := slices.Collect(strings.Lines(other))
		for line := range strings.Lines(text) {
			if !slices.Contains(others, line) {
				fmt.Fprintf(&diff, "%s %s\n", mark, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	only("-", want, got)
	only("+", got, want)
	return diff.String()
}

// Operator returns the handler of the operator's routes.
func (s *Service) Operator() http.Handler { return events.New(s.Store).(testdouble.API).Operator() }

// Operate sends a request to the operator's routes.
func (s *Service) Operate(method, target, body string) Response {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl -d sends it
	return serve(s.Operator(), r)
}

func serve(handler http.Handler, r *http.Request) Response {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return Response{r.Method + " " + r.RequestURI, w.Code, w.Result().Header, w.Body.String()}
}

// Serve serves a request and checks that openapi.json describes the response.
func (s *Service) Serve(r *http.Request) Response {
	s.t.Helper()
	if s.mode == Reopened {
		s.Reopen()
	}
	response := serve(s.Handler, r)
	for _, problem := range describe(r.Method, r.URL.Path, response) {
		s.t.Errorf("%s, want a response as in openapi.json: %s", response, problem)
	}
	return response
}

// Send sends a request. A header is "Name: value".
func (s *Service) Send(method, target string, body io.Reader, headers ...string) Response {
	s.t.Helper()
	return s.Serve(NewRequest(method, target, body, headers...))
}

// Do is Send for a path below the base path.
func (s *Service) Do(method, path, body string, headers ...string) Response {
	s.t.Helper()
	return s.Send(method, base+path, strings.NewReader(body), headers...)
}

// Get sends a GET for a path below the base path.
func (s *Service) Get(path string, headers ...string) Response {
	s.t.Helper()
	return s.Do("GET", path, "", headers...)
}

// Create sends a request to create an event.
func (s *Service) Create(body string, headers ...string) Response {
	s.t.Helper()
	return s.Do("POST", "/events/create", body, headers...)
}

// NewRequest returns a request with Ada's key, unless the headers have a key or are keyless.
func NewRequest(method, target string, body io.Reader, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, body)
	r.Header.Set("x-service-api-key", "svc_live_ada")
	for _, header := range headers {
		name, _, _ := strings.Cut(header, ": ")
		if name == Keyless || strings.EqualFold(name, "x-service-api-key") {
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

// Listen serves a handler as the program does, until the test ends, and returns the address.
func Listen(t testing.TB, handler http.Handler) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := httpapi.NewServer(handler)
	go srv.Serve(listener)
	t.Cleanup(func() { srv.Close() })
	return listener.Addr().String()
}

// Fetch sends a request over the network. A header is "Name: value".
func Fetch(client *http.Client, method, url, body string, headers ...string) (Response, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Response{method + " " + r.URL.RequestURI(), resp.StatusCode, resp.Header, string(text)}, err
}

// Response is a response with its request.
type Response struct {
	Request string // method and target
	Status  int
	Header  http.Header
	Body    string
}

// String returns the method, target, status and body.
func (r Response) String() string {
	return fmt.Sprintf("%.200s: got %d %.1000s", r.Request, r.Status, r.Body)
}

// content has what tests read from response bodies.
type content struct {
	ID         string
	Data       []struct{ ID string }
	NextCursor string `json:"next_cursor"`
	Error      struct{ Message string }
}

func (r Response) content() (c content) {
	json.Unmarshal([]byte(r.Body), &c) // other bodies have none of it
	return c
}

// Message returns the message of an error.
func (r Response) Message() string { return r.content().Error.Message }

// ID returns the ID of the returned object.
func (r Response) ID() string { return r.content().ID }

// IDs returns the IDs of the returned list, separated by spaces.
func (r Response) IDs() string {
	var ids []string
	for _, object := range r.content().Data {
		ids = append(ids, object.ID)
	}
	return strings.Join(ids, " ")
}

// Next returns the query parameter for the next page, or "" if there is none.
func (r Response) Next() string {
	cursor := r.content().NextCursor
	if cursor == "" {
		return ""
	}
	return "cursor=" + cursor
}

// WantStatus fails the test unless the response has this status.
func (r Response) WantStatus(t testing.TB, status int) {
	t.Helper()
	if r.Status != status {
		t.Errorf("%s, want %d", r, status)
	}
}

// WantError fails the test unless the response is an error with this status and with text in its message.
func (r Response) WantError(t testing.TB, status int, text string) {
	t.Helper()
	r.WantStatus(t, status)
	if !strings.Contains(r.Message(), text) {
		t.Errorf("%s, want a message with %q", r, text)
	}
}

// WantHeader fails the test unless a header of the response has the value want.
func (r Response) WantHeader(t testing.TB, name, want string) {
	t.Helper()
	got := r.Header.Get(name)
	if got != want {
		t.Errorf("%s: header %s: got %q, want %q", r.Request, name, got, want)
	}
}

// WantBody fails the test unless the response has this body.
func (r Response) WantBody(t testing.TB, want string) {
	t.Helper()
	if r.Body != want {
		t.Errorf("%s, want %s", r, want)
	}
}

// WantIDs fails the test unless the response is a list of the objects with these IDs.
func (r Response) WantIDs(t testing.TB, want string) {
	t.Helper()
	got := r.IDs()
	if got != want {
		t.Errorf("%s: IDs: got %s, want %s", r.Request, got, want)
	}
}

// Decode decodes the response body.
func Decode[T any](t testing.TB, r Response) (object T) {
	t.Helper()
	err := json.Unmarshal([]byte(r.Body), &object)
	if err != nil {
		t.Fatalf("%s, want JSON: %v", r, err)
	}
	return object
}
