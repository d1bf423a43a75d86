// Package eventstest provides a test double of the events API: the real server in memory.
//
//	func TestCreate(t *testing.T) {
//		srv := eventstest.New(t)
//		client := myclient.New(srv.URL, srv.Key)
//		…
//	}
//
// Call [New] in each test and subtest. It takes 0.3 ms, and the server stops when the test ends. If the
// test fails, its log has the newest 20 requests.
//
// Responses are the same on every run. The clock stands still at 2030-01-01T00:00:00Z until
// [Server.Advance] moves it. IDs, slugs and keys are counted for each user: usr_owner's first event is
// evt_owner_000001, whatever other users do.
//
// [Server.Fail] makes requests go wrong:
//
//	const create, list = "POST /events/create", "GET /events"
//	srv.Fail(create, eventstest.Fault{Status: 503, Times: 2})           // two errors, then it works
//	srv.Fail(create, eventstest.Fault{DropResponse: true, Times: 1})    // created, but no response
//	srv.Fail(create, eventstest.Fault{DropResponse: true, Status: 504}) // created, but a gateway gives up
//	srv.Fail(create, eventstest.Fault{Delay: time.Minute, Times: 1})    // created, but the client gives up
//	srv.Fail(create, eventstest.Fault{DropRequest: true, Times: 1})     // no response, and not created
//	srv.Fail(list, eventstest.Fault{Status: 500, Skip: 1, Times: 1})    // only the second page fails
//	srv.Fail(list, eventstest.Fault{Status: 502, Body: "<html>…"})      // a proxy's error page
//	srv.Fail(list, eventstest.Fault{Patch: `{"data":{"title":null}}`})  // an unexpected response
//	srv.Fail(list, eventstest.Fault{CutResponse: true, Times: 1})       // half a response
//
// [Server.Requests] returns the requests that arrived, and [Server.Await] waits for them. A request to
// an unknown route fails the test. So does a fault that never applied, unless it was cleared, an operation
// that doesn't exist, and a fault that makes no sense.
//
// Each connection serves one request, because clients resend a request by themselves if a connection
// that was used before is closed. Responses with status 429 or 503 have the header Retry-After: 1, so a
// client that obeys it waits for a second; Header: http.Header{"Retry-After": nil} removes it. In a
// bubble of [testing/synctest], where waiting takes no time, use [NoListener] and [Server.Client].
//
// For other languages, the command "eventsd double" is the same server.
package eventstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"example.com/events"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/testdouble"
)

// Server is a running test double. Its methods are safe for concurrent use, but those that can fail the
// test must be called from the test's goroutine, as [testing.TB.FailNow] requires.
type Server struct {
	URL   string        // base URL, which ends with /api/public/v1
	Key   string        // an API key of Owner
	Owner events.User   // the first user, usr_owner
	Store *events.Store // the server's data

	t         testing.TB
	api       testdouble.API
	double    *testdouble.Double
	problems  *testdouble.Problems
	handler   http.Handler
	transport http.RoundTripper
}

// Option configures a server.
type Option func(*options)

type options struct {
	start          time.Time
	seeds          []func(*events.Store) error
	newEventStatus string
	noListener     bool
	problems       *testdouble.Problems
}

// Seed applies records before the server starts, as [events.Store.Apply] does. The user usr_owner
// exists already.
func Seed(records ...events.Record) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error { return s.Apply(records...) })
	}
}

// SeedJSON applies a JSON array of records before the server starts, as [events.Store.ApplyJSON] does.
func SeedJSON(data []byte) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error { return s.ApplyJSON(data) })
	}
}

// StartTime sets the initial time of the clock. The default is 2030-01-01T00:00:00Z.
func StartTime(start time.Time) Option { return func(o *options) { o.start = start } }

// NewEventStatus sets the status of new events, draft or published. The default is published.
func NewEventStatus(status string) Option { return func(o *options) { o.newEventStatus = status } }

// NoListener opens no port. Only [Server.Client] and [Server.Handler] reach the server, and they work
// inside a bubble of [testing/synctest].
func NoListener() Option { return func(o *options) { o.noListener = true } }

// AllowUnknownRoutes lets the client request unknown routes without failing the test. A request with the
// method OPTIONS, or for /, /healthz, /openapi.json or /favicon.ico, never fails it.
func AllowUnknownRoutes() Option { return func(o *options) { o.problems.AllowUnknownRoutes = true } }

// AllowUnusedFaults lets faults that never applied pass. To let one fault pass, call [InjectedFault.Clear].
func AllowUnusedFaults() Option { return func(o *options) { o.problems.AllowUnusedFaults = true } }

// New starts a server on a free loopback port. When the test ends, delayed requests get their responses
// and connections are closed.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	problems := &testdouble.Problems{}
	o := options{start: testdouble.DefaultStart, newEventStatus: "published", problems: problems}
	for _, opt := range opts {
		opt(&o)
	}
	if o.newEventStatus != "draft" && o.newEventStatus != "published" {
		t.Fatalf("eventstest: NewEventStatus(%q): must be draft or published", o.newEventStatus)
	}
	s := &Server{t: t, problems: problems}
	var err error
	s.double, err = testdouble.New(o.start, problems)
	s.check("New", err)
	s.Store = events.NewStore(&events.Config{
		Now: s.double.Now, NewID: s.double.NewID, NewEventStatus: o.newEventStatus,
	})
	s.api = testdouble.NewAPI(s.Store)
	s.handler, err = s.double.Wrap(s.api)
	s.check("New", err)
	for _, seed := range o.seeds {
		s.check("New: seed", seed(s.Store))
	}
	s.Key, _, err = s.Store.IssueKey(testdouble.OwnerID)
	s.check("New", err)
	s.Owner = s.user(testdouble.OwnerID)
	transport := &http.Transport{}
	s.transport = wholeResponses{transport}
	host := "eventstest.invalid"
	if o.noListener {
		transport.DialContext = s.dial
	} else {
		host = s.listen()
	}
	s.URL = "http://" + host + events.BasePath
	t.Cleanup(s.finish) // runs before the cleanup of listen
	return s
}

// listen serves on a free port until the test ends.
func (s *Server) listen() (host string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check("New", err)
	srv := httpapi.NewServer(s.handler)
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(l) })
	s.t.Cleanup(func() {
		l.Close()
		serving.Wait() // no connection is accepted from now on
		srv.Close()    // doesn't wait for requests
	})
	return l.Addr().String()
}

// finish ends delays, reports problems and logs the newest requests of a failed test. Problems are reported
// when the test ends, because a fuzz test can't fail while its target runs.
func (s *Server) finish() {
	s.double.Close()
	for _, p := range s.problems.All() {
		if s.t.Skipped() {
			break
		}
		option := "AllowUnknownRoutes"
		if p.Kind == testdouble.UnusedFault {
			option = "AllowUnusedFaults"
		}
		s.t.Errorf("eventstest: %s: %s; use eventstest.%s if that is intended", p.Kind, p.Text, option)
	}
	if s.t.Failed() {
		newest := s.Requests("")
		newest = newest[max(0, len(newest)-maxLogged):]
		s.t.Logf("eventstest: the newest requests:%s", list(newest))
	}
}

const maxLogged = 20 // requests in the log of a failed test

// list formats requests, one in a line.
func list(requests []Request) (text string) {
	if len(requests) == 0 {
		return " none"
	}
	for _, r := range requests {
		text += fmt.Sprint("\n  ", r)
	}
	return text
}

// check fails the test if a call has failed.
func (s *Server) check(call string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("eventstest: %s: %v", call, err)
	}
}

// user returns the user with an ID.
func (s *Server) user(id string) (user events.User) {
	json.Unmarshal([]byte(s.api.User(id)), &user) // can't fail: the API has encoded the user
	return user
}

// Handler returns the server for your own listener, with faults and journal. To close a connection it
// panics with [http.ErrAbortHandler], as net/http expects. It serves everything under /api/public/v1.
func (s *Server) Handler() http.Handler { return s.handler }

// Client returns a client that reaches the server. It adds nothing to a request, so send [Server.Key].
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.transport} }

// wholeResponses reads each response to its end and closes its connection, so that nothing blocks a bubble of
// [testing/synctest] if a test fails before it has read a response.
type wholeResponses struct{ next *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (t wholeResponses) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cmp.Or(err, io.EOF))))
	return resp, nil
}

// dial returns a connection inside the process. Its server runs in the same bubble of
// [testing/synctest] as the client, even if the test double was created outside.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	httpapi.ServeConn(httpapi.NewServer(s.handler), server)
	return client, nil
}

// NewKey creates another user with a key. The user's ID comes from the name: usr_grace from "Grace",
// then usr_grace_2 and so on. A name with other characters than ASCII letters, digits and _ loses some
// of them, so the ID gets four characters of a hash: usr_grace_hopper_ylbw.
func (s *Server) NewKey(name string) (key string, owner events.User) {
	s.t.Helper()
	issued, err := s.double.NewKey(name)
	s.check(fmt.Sprintf("NewKey(%q)", name), err)
	return issued.Secret, s.user(issued.UserID)
}

// Fault says what goes wrong with a request that has a valid key, route and method. Set exactly one of
// Status, Patch, DropRequest, DropResponse and CutResponse, or DropResponse with Status, or none of them and
// Header or Delay. Header and Delay can be added to any fault that sends a response.
type Fault struct {
	// Status responds with this status, 400 to 599, in the API's error form. The request isn't handled.
	Status int
	// Body is sent with Status instead of the API's error. The status may then be 200 to 599. The media type
	// is HTML, JSON or plain text, depending on the first character.
	Body string
	// Header sets response headers. An empty list removes a header.
	Header http.Header
	// Patch is a JSON object. The request is handled, and the fields of Patch replace those of the real
	// response, at any depth. An object changes each element of a list: {"data":{"title":null}}.
	Patch string
	// Delay is the time to wait before the response is sent. It ends early if the client is gone or the fault
	// is cleared. The request is handled before the delay, whether or not its client waits.
	Delay time.Duration
	// DropRequest closes the connection. The request isn't handled.
	DropRequest bool
	// DropResponse handles the request and closes the connection, or responds with Status.
	DropResponse bool
	// CutResponse handles the request and closes the connection after half of the response body. It doesn't
	// apply to HEAD requests, whose responses have no body.
	CutResponse bool
	// Skip is the number of requests to skip. They go on to the next fault.
	Skip int
	// Times is the number of requests that the fault applies to after the skipped ones. 0 means all.
	Times int
	// User is a user ID. If set, the fault applies only to requests with this user's keys.
	User string
	// Path is a path of the operation, such as /events/evt_7. If set, the fault applies only to this path.
	Path string
}

// String returns the effects of the fault, such as "status 503, delay 200ms".
func (f Fault) String() string { return testdouble.Fault(f).String() }

// InjectedFault is a fault that was added by [Server.Fail].
type InjectedFault struct{ active *testdouble.ActiveFault }

// Fail adds a fault for an operation, such as "POST /events/create". A request matches the first fault
// for its operation that isn't used up. Its response has the header X-Eventsd-Fault. A fault that no request
// has matched when the test ends fails the test.
func (s *Server) Fail(operation string, f Fault) *InjectedFault {
	s.t.Helper()
	active, err := s.double.AddFault(operation, testdouble.Fault(f))
	s.check("Fail", err)
	return &InjectedFault{active}
}

// Hits returns the number of requests that the fault was applied to. To wait for them, use [Server.Await].
func (i *InjectedFault) Hits() int { return i.active.Hits() }

// Clear removes the fault. Requests that it delays get their responses.
func (i *InjectedFault) Clear() { i.active.Clear() }

// Request is a request that arrived, with its response.
type Request struct {
	Seq       int       // number of the request, counted from 1
	Time      time.Time // by the server's clock
	Received  time.Time // by the system clock, to measure the time between two attempts
	Method    string    // such as POST
	Path      string    // whole path, with /api/public/v1
	Query     string    // without the question mark
	Header    http.Header
	Body      string // at most 64 KiB
	Operation string // such as "GET /events/{id}"; empty if the route is unknown
	User      string // ID of the key's user; empty if the key, route or method is wrong
	Fault     string // effects of a fault, such as "status 503, delay 200ms"

	// Status, ResponseHeader and Response are the response, whether or not the client got it. Status is 0 if
	// the request was dropped. Response is the body, at most 64 KiB.
	Status         int
	ResponseHeader http.Header
	Response       string
}

// String returns the request in one line, with its status, error message and fault.
func (r Request) String() string { return testdouble.Request(r).String() }

// Requests returns the newest 1,000 requests, oldest first. If operation isn't empty, it returns only
// requests for the operation. If there are user IDs, it returns only requests of these users.
func (s *Server) Requests(operation string, userIDs ...string) []Request {
	s.t.Helper()
	return s.find(context.Background(), "Requests", 0, testdouble.Query{Operation: operation, Users: userIDs})
}

// Await waits until there are n requests and returns the same as [Server.Requests]. It fails the test after
// 10 seconds. A request that a fault delays has arrived.
func (s *Server) Await(n int, operation string, userIDs ...string) []Request {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	found := s.find(ctx, "Await", n, testdouble.Query{Operation: operation, Users: userIDs})
	if len(found) < n {
		s.t.Fatalf("eventstest: Await: %d of %d requests arrived in %v:%s",
			len(found), n, awaitTimeout, list(found))
	}
	return found
}

// find returns the requests for a call as soon as there are n of them, or when ctx is done.
func (s *Server) find(ctx context.Context, call string, n int, q testdouble.Query) (requests []Request) {
	s.t.Helper()
	found, err := s.double.Requests(ctx, n, q)
	s.check(call, err)
	for _, r := range found {
		requests = append(requests, Request(r))
	}
	return requests
}

const awaitTimeout = 10 * time.Second

// ClearRequests removes all requests so far. Seq counts on.
func (s *Server) ClearRequests() { s.double.ClearRequests() }

// Now returns the time of the server's clock.
func (s *Server) Now() time.Time { return s.double.Now() }

// Advance moves the server's clock forward.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.check("Advance", s.double.Advance(d))
}
