// Package eventstest is the test double of the events API: the real server, in
// memory, for one test.
//
//	func TestCreate(t *testing.T) {
//		srv := eventstest.New(t)
//		client := myclient.New(srv.URL, srv.Key)
//		…
//	}
//
// It answers as the service does, by the same code. What differs is for tests:
//
//   - The clock stands at 2030-01-01T00:00:00Z and moves by [Server.Advance].
//     Ids, slugs and keys come from counters of their owners, so the same calls
//     have the same answers, byte for byte, whatever others do meanwhile.
//   - A key is a tenant: who has it sees its own events only. With a key each,
//     by [Server.NewKey], parallel tests share a server, by [Server.For], and
//     never meet.
//   - [Server.Fail] makes requests go wrong, [Server.Requests] tells what was
//     called, and a request to a route that the API lacks fails the test.
//
// For other languages the command "eventsd double" is the same thing, with the
// same answers.
package eventstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/double"
)

// Server is a running double. Its methods are safe for concurrent use; those
// that can fail the test at once are, as [testing.TB] wants it, for the
// goroutine of the test.
type Server struct {
	URL   string        // the base URL, to /api/public/v1
	Key   string        // an API key
	Owner events.User   // whose key it is: usr_owner
	Store *events.Store // all that is there, to be looked into and added to

	t testing.TB
	*shared
}

// shared is what the views of a server share.
type shared struct {
	double  *double.Double
	handler http.Handler
	client  http.RoundTripper

	ending sync.Mutex // held while the test is told something
	ended  bool
	late   []string // to be told at the end
}

// Option is an option of [New].
type Option func(*options)

type options struct {
	at         time.Time
	seeds      []func(*events.Store) error
	anyRoute   bool
	noListener bool
}

// Seed puts records into the store before the start, as [events.Store.Apply]
// does. Records of usr_owner, who is there already, belong to [Server.Key].
func Seed(records ...events.Record) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error { return s.Apply(records...) })
	}
}

// SeedJSON is [Seed] with a JSON array of records, as a seed file has them and
// [events.Store.ApplyJSON] takes them.
func SeedJSON(data []byte) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error { return s.ApplyJSON(data) })
	}
}

// At is when the clock starts, in the place of 2030-01-01T00:00:00Z.
func At(start time.Time) Option { return func(o *options) { o.at = start } }

// AllowUnknownRoutes lets requests to routes that the API lacks have their 404
// or 405 without failing the test.
func AllowUnknownRoutes() Option { return func(o *options) { o.anyRoute = true } }

// NoListener opens no port: only [Server.Client] and [Server.Handler] reach the
// server, and the client calls it without a goroutine or a socket. So it works
// in a bubble of testing/synctest, where a fault's delay takes no time.
func NoListener() Option { return func(o *options) { o.noListener = true } }

// New starts a double on a free loopback port and ends it with the test: it
// lets go of requests that faults hold, closes the connections and the port.
// It fails the test at once if that cannot be, or if a seed is refused.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := options{at: double.Start}
	for _, opt := range opts {
		opt(&o)
	}
	if year := o.at.UTC().Year(); year < 0 || year > 9999 {
		t.Fatalf("eventstest: At(%v): the year must be 0 to 9999, in UTC", o.at)
	}
	d := double.New(events.BasePath, events.Operations(), o.at)
	s := &Server{t: t, shared: &shared{double: d}, Store: events.NewStore(&events.Config{Now: d.Now, NewID: d.NewID, Intercept: d.Intercept})}
	s.handler = d.Handler(events.New(s.Store))
	if !o.anyRoute {
		d.Unknown = s.unknown
	}
	var err error
	s.Key, err = d.Begin(s.Store, func() error {
		for _, seed := range o.seeds {
			if err := seed(s.Store); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("eventstest: the seed: %v", err)
	}
	s.Owner = s.profile("usr_owner")
	stop := func() {}
	if o.noListener {
		s.URL = "http://eventstest.invalid" + events.BasePath
		s.client = direct{s.handler}
	} else {
		ts := httptest.NewUnstartedServer(s.handler)
		ts.Config.DisableGeneralOptionsHandler = true
		ts.Config.MaxHeaderBytes = 16 << 10 // as eventsd has it
		ts.Start()
		s.URL = ts.URL + events.BasePath
		kept := ts.Client().Transport.(*http.Transport)
		fresh := kept.Clone()
		fresh.DisableKeepAlives = true
		s.client = network{d, kept, fresh}
		stop = func() {
			ts.Listener.Close() // no more of them
			ts.CloseClientConnections()
			ts.Close()
		}
	}
	t.Cleanup(func() {
		d.Close()
		stop()
		s.ending.Lock()
		defer s.ending.Unlock()
		s.ended = true
		for _, problem := range s.late {
			t.Error(problem)
		}
	})
	return s
}

// For is the same server for a subtest or a fuzz target: its methods fail t, as
// they must where the test of [New] does not run meanwhile. What Cleanup ends, and
// requests to routes that the API lacks, stay with that test.
func (s *Server) For(t testing.TB) *Server {
	view := *s
	view.t = t
	return &view
}

// unknown fails the test for a request to a route that the API lacks.
func (s *Server) unknown(method, path, nearest string) {
	s.ending.Lock()
	defer s.ending.Unlock()
	problem := fmt.Sprintf("eventstest: %s %s: the API has no such route; the nearest is %s under %s (AllowUnknownRoutes allows it)", method, path, nearest, events.BasePath)
	if _, fuzzing := s.t.(*testing.F); fuzzing { // which may be told nothing while its target runs
		s.late = append(s.late, problem)
	} else if !s.ended {
		s.t.Errorf("%s", problem)
	}
}

// profile is the user with an id, whose record comes first of its own.
func (s *Server) profile(id string) events.User {
	s.t.Helper()
	var r events.Record
	records, err := s.Store.UserRecordsJSON(id)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(records[1:])).Decode(&r)
	}
	if err != nil {
		s.t.Fatalf("eventstest: the user %s: %v", id, err)
	}
	return *r.User
}

// Handler is the server for a listener or a mux of your own, with faults and
// the journal. It takes everything under /api/public/v1. To close a connection it
// panics with [http.ErrAbortHandler], which servers of net/http expect. Where your
// listener waits for its requests to end, clear faults that hold some first.
func (s *Server) Handler() http.Handler { return s.handler }

// Client returns a new client that adds [Server.Key] to requests without a key.
// Unlike Go's own, it never repeats by itself a request whose connection was
// dropped by a fault.
func (s *Server) Client() *http.Client { return &http.Client{Transport: withKey{s.Key, s.client}} }

// NewKey makes a user with a key. The user's id comes from the letters and
// digits of the name: usr_grace, then usr_grace_2 and so on. Parallel tests want
// a name each, such as t.Name(), so that none depends on which comes first: names
// that differ in case or in other characters only are the same here. It fails
// the test at once if the name is empty or longer than 255 characters.
func (s *Server) NewKey(name string) (key string, owner events.User) {
	s.t.Helper()
	request, err := json.Marshal(map[string]string{"name": name})
	var answer []byte
	if err == nil {
		answer, err = s.double.IssueKeyJSON(request)
	}
	var issued struct{ Key, User string }
	if err == nil {
		err = json.Unmarshal(answer, &issued)
	}
	if err != nil {
		s.t.Fatalf("eventstest: NewKey(%q): %v", name, err)
	}
	return issued.Key, s.profile(issued.User)
}

// Fault is what goes wrong with a request whose key, route and method are
// right. At most one of Status, Drop and Lose is set.
type Fault struct {
	// Status is the answer, in the API's own error form and with the header
	// X-Eventsd-Fault; nothing is done. It is one of 400, 401, 404, 405, 413,
	// 415, 422, 429, 500, 502, 503, 504.
	Status int
	// Delay is how long the request is held before anything else. It ends when
	// the client goes away, or the fault is cleared.
	Delay time.Duration
	// Drop closes the connection; nothing is done.
	Drop bool
	// Lose does what was asked for, and closes the connection instead of
	// answering: what an Idempotency-Key is for.
	Lose bool
	// Times is how many requests meet the fault; 0: all, until it is cleared.
	Times int
	// User limits the fault to the requests of a user, by id.
	User string
}

// Injected is a fault that was set.
type Injected struct {
	double *double.Double
	rule   *double.Rule
}

// Fail sets a fault for an operation such as "POST /events/create". Each request
// meets the first fault for it that is not used up, in the order they were set.
// It fails the test at once if there is no such operation or fault.
func (s *Server) Fail(operation string, f Fault) *Injected {
	s.t.Helper()
	rule, err := s.double.Fail(operation, double.Fault(f))
	if err != nil {
		s.t.Fatalf("eventstest: Fail: %v", err)
	}
	return &Injected{s.double, rule}
}

// Hits is how many requests met the fault.
func (i *Injected) Hits() int { return i.double.Hits(i.rule) }

// Clear takes the fault away. Requests that it holds go on.
func (i *Injected) Clear() { i.double.Clear(i.rule) }

// Request is a request as the server got it.
type Request struct {
	Time      time.Time   // by the server's clock
	Method    string      // such as POST
	Path      string      // as it was sent, with /api/public/v1
	Query     string      // as it was sent, without the question mark
	Header    http.Header // keys with their last four characters only
	Operation string      // such as "GET /events/{id}"; "" where the API lacks the route
	Status    int         // the answer's, also of one that was lost; 0 where there was none
	User      string      // id of the key's owner; "" where the key, route or method was not right
	Body      string      // what was read of it, at most 64 KiB
}

// Requests returns those of the newest 1,000 requests that are of an operation, or
// of all where it is "", oldest first: of some users, if their ids are given. It
// fails the test at once if there is no such operation or user.
func (s *Server) Requests(operation string, userID ...string) []Request {
	s.t.Helper()
	if operation != "" && !s.double.Has(operation) {
		s.t.Fatalf("eventstest: Requests: there is no operation %q; the nearest is %q", operation, s.double.Nearest(operation))
	}
	journal := s.double.Requests(operation, "")
	for _, id := range userID {
		err := s.double.Known(cmp.Or(id, "no id"))
		if err != nil && !slices.ContainsFunc(journal, func(r double.Request) bool { return id != "" && r.User == id }) { // who may be gone
			s.t.Fatalf("eventstest: Requests: %v", err)
		}
	}
	var all []Request
	for _, r := range journal {
		if len(userID) == 0 || slices.Contains(userID, r.User) {
			all = append(all, Request(r))
		}
	}
	return all
}

// ClearRequests forgets all requests so far.
func (s *Server) ClearRequests() { s.double.ClearRequests("") }

// Now is the time of the server's clock.
func (s *Server) Now() time.Time { return s.double.Now() }

// Advance moves the clock on. It fails the test at once if d is negative.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if err := s.double.Advance(d); err != nil {
		s.t.Fatalf("eventstest: Advance: %v", err)
	}
}

// Reset takes everything back to the start: users, keys, events and guests to
// the seed, in one step, and counters and the clock; there are no faults and no
// requests then, and one that was held is answered 503. Parallel tests want
// [Server.ResetUser].
func (s *Server) Reset() {
	s.t.Helper()
	if err := s.double.Reset(""); err != nil {
		s.t.Fatalf("eventstest: Reset: %v", err)
	}
}

// ResetUser takes a user's events, guests, faults, requests and counters back
// to the start. Its profile and keys, the clock and all other users stay as
// they are. It fails the test at once if there is no such user.
func (s *Server) ResetUser(id string) {
	s.t.Helper()
	if err := s.double.Reset(cmp.Or(id, "no id")); err != nil {
		s.t.Fatalf("eventstest: ResetUser: %v", err)
	}
}
