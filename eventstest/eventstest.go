// Package eventstest runs the events API inside your tests. It is the real server in memory, with the same
// responses on every run, and it fails when you tell it to.
//
// Suppose your client creates an event, and the connection breaks before the response arrives. Does it try
// again, and with the same Idempotency-Key? Lose one response, and see:
//
//	func TestLostResponse(t *testing.T) {
//		srv := eventstest.New(t)
//		srv.Fail("POST /events/create", eventstest.Fault{DropResponse: true, Times: 1})
//		client := myclient.New(srv.URL, srv.Key)
//		if err := client.CreateEvent("Launch"); err != nil {
//			t.Error(err)
//		}
//	}
//
// The event exists now, but your client doesn't know. If it tries again without its key, there are two
// events, so the test fails and says why.
//
// Call [New] in each test and subtest, because that takes only 0.3 ms and each server stops with its test.
// The clock stands still at 2030-01-01T00:00:00Z until you call [Server.Advance]. Each user's IDs, slugs and
// keys are the same whatever other users do, so the first event of usr_owner is always evt_owner_000001.
//
// If your client waits before it tries again, run the test in a [testing/synctest] bubble, where waiting
// takes no time. Call [New] there with [NoListener], and give your client [Server.Client].
//
// # Faults
//
// A [Fault] changes what happens to requests for one operation, if their key is valid:
//
//	const create, list = "POST /events/create", "GET /events"
//	srv.Fail(create, eventstest.Fault{Status: 503, Times: 2})           // fails twice, then works
//	srv.Fail(create, eventstest.Fault{DropResponse: true, Status: 504}) // created, but a gateway gives up
//	srv.Fail(create, eventstest.Fault{Delay: time.Minute, Times: 1})    // created, but the client gives up
//	srv.Fail(create, eventstest.Fault{DropRequest: true, Times: 1})     // not created, and no response
//	srv.Fail(list, eventstest.Fault{Status: 500, Skip: 1, Times: 1})    // only the second page fails
//	srv.Fail(list, eventstest.Fault{Status: 502, Body: "<html>…"})      // a proxy's error page
//	srv.Fail(list, eventstest.Fault{Patch: `{"data":{"title":null}}`})  // an unexpected response
//	srv.Fail(list, eventstest.Fault{CutResponse: true, Times: 1})       // half a response
//
// Responses with status 429 and 503 have the header Retry-After: 1, unless you remove it with Header:
// http.Header{"Retry-After": nil}.
//
// # Problems
//
// When a test ends, it fails because of these problems, unless you [Allow] them:
//
//   - An unknown route: your client requested a route or method that doesn't exist. Without a valid key, that
//     is only a 401 below /api/public/v1. OPTIONS requests are no problem, nor are those that browsers and
//     probes send by themselves, such as for /favicon.ico or /healthz.
//   - An unused fault: it never applied, and you didn't clear it, so your client didn't send the request that
//     the test expects.
//   - An unsafe retry: a fault loses or delays the response to a create, and your client creates the same
//     event again, with another Idempotency-Key or none. If your test means to do that, clear the fault, or
//     give the second event another title or user.
//
// The log of a failed test has the newest 20 requests with their waits and Idempotency-Keys. To check them
// yourself, call [Server.Requests] or [Server.Await].
//
// # Connections
//
// The server handles one request per connection. Otherwise, HTTP clients would resend a dropped request by
// themselves.
//
// In other languages, use the command "eventsd double".
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

// Server is a running test double. Its methods are safe for concurrent use. Call methods that can fail the
// test only from the test's goroutine, as [testing.TB.FailNow] requires.
type Server struct {
	URL   string        // base URL; ends with /api/public/v1
	Key   string        // API key of Owner
	Owner events.User   // the first user, usr_owner
	Store *events.Store // the server's data

	t         testing.TB
	api       testdouble.API
	double    *testdouble.Double
	problems  *testdouble.ProblemList
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
	allowed        []string
}

// Seed puts records into the store before the server starts, like [events.Store.Put]. The user usr_owner
// already exists.
func Seed(records ...events.Record) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error {
			_, err := s.Put(records...)
			return err
		})
	}
}

// SeedJSON applies a JSON array of records before the server starts, like [events.Store.ApplyJSON].
func SeedJSON(data []byte) Option {
	return func(o *options) {
		o.seeds = append(o.seeds, func(s *events.Store) error { return s.ApplyJSON(data) })
	}
}

// StartTime sets the start time of the clock. The default is 2030-01-01T00:00:00Z.
func StartTime(start time.Time) Option { return func(o *options) { o.start = start } }

// NewEventStatus sets the status of new events: published, which is the default, or draft.
func NewEventStatus(status string) Option { return func(o *options) { o.newEventStatus = status } }

// NoListener makes a server without a port. Reach it with [Server.Client] or [Server.Handler]. Both work
// inside a [testing/synctest] bubble. Call [New] in the bubble, too. While the faults of a server from
// outside delay requests in the bubble, clear them only there.
func NoListener() Option { return func(o *options) { o.noListener = true } }

// Problem kinds, for [Allow].
const (
	UnknownRoute = testdouble.UnknownRoute // "unknown_route"
	UnusedFault  = testdouble.UnusedFault  // "unused_fault"
	UnsafeRetry  = testdouble.UnsafeRetry  // "unsafe_retry"
)

// Allow ignores problems of these kinds. To ignore only one unused fault or unsafe retry, call
// [InjectedFault.Clear] instead: at the end of the test, or before the client creates the event again.
func Allow(kinds ...string) Option {
	return func(o *options) { o.allowed = append(o.allowed, kinds...) }
}

// New starts a server on a free loopback port. When the test ends, delays end and connections are closed.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := options{start: testdouble.DefaultStart, newEventStatus: "published"}
	for _, opt := range opts {
		opt(&o)
	}
	if o.newEventStatus != "draft" && o.newEventStatus != "published" {
		t.Fatalf("eventstest: NewEventStatus(%q): must be draft or published", o.newEventStatus)
	}
	if !o.noListener && inBubble() {
		t.Fatalf("eventstest: New: a server in a synctest bubble needs the option NoListener, because time " +
			"stands still there while a real connection is open; reach it with Client")
	}
	s := &Server{t: t, problems: &testdouble.ProblemList{}}
	err := s.problems.Allow(o.allowed...)
	s.check("Allow", err)
	s.double, err = testdouble.New(o.start, s.problems)
	s.check("New", err)
	s.Store = events.NewStore(&events.Config{Now: s.double.Now, NewEventStatus: o.newEventStatus})
	s.api = events.New(s.Store).(testdouble.API)
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
	host := "use-Server.Client-with-NoListener.invalid" // what an error shows
	if o.noListener {
		transport.DialContext = s.dial
	} else {
		host = s.listen()
	}
	s.URL = "http://" + host + events.BasePath
	t.Cleanup(s.finish) // runs before the cleanup of listen
	return s
}

// inBubble reports whether it is called in a synctest bubble, whose clock starts in the year 2000.
func inBubble() bool { return time.Now().Year() < 2020 }

// listen serves on a free port until the test ends.
func (s *Server) listen() (host string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check("New", err)
	srv := &httpapi.BoundServer{Server: httpapi.NewServer(s.handler), Listener: l}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { httpapi.Serve(ctx, 0, srv) }) // doesn't wait for requests when it stops
	s.t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// finish ends delays, reports problems and logs the newest requests of a failed test. It runs when the test
// ends, because a fuzz test can't fail while its target runs.
func (s *Server) finish() {
	s.double.Close()
	for _, p := range s.problems.All() {
		if s.t.Skipped() {
			break
		}
		s.t.Errorf("eventstest: %s; use eventstest.Allow(%q) if that is intended", p.Text, p.Kind)
	}
	if s.t.Failed() {
		newest := s.Requests("")
		newest = newest[max(0, len(newest)-maxLogged):]
		s.t.Logf("eventstest: the newest requests:%s", list(newest))
	}
}

const maxLogged = 20 // requests in the log of a failed test

func list(requests []Request) (text string) {
	if len(requests) == 0 {
		return " none"
	}
	for _, r := range requests {
		text += fmt.Sprint("\n  ", r)
	}
	return text
}

func (s *Server) check(call string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("eventstest: %s: %v", call, err)
	}
}

func (s *Server) user(id string) (user events.User) {
	json.Unmarshal([]byte(s.api.User(id)), &user) // can't fail: the API has encoded the user
	return user
}

// Handler returns the handler of the server, for your own listener. It serves everything under
// /api/public/v1. To close a connection, it panics with [http.ErrAbortHandler].
func (s *Server) Handler() http.Handler { return s.handler }

// Client returns a client that reaches the server, also with [NoListener]. It adds nothing to your requests,
// so send the key yourself.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.transport} }

// wholeResponses reads each response to its end and closes the connection. Otherwise, a test that fails
// before it reads a response would block its synctest bubble.
type wholeResponses struct{ next *http.Transport }

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

// dial returns a connection inside the process. It is served in the client's synctest bubble, also if the
// server was created outside. See NoListener for what doesn't work then.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	httpapi.ServeConn(httpapi.NewServer(s.handler), server)
	return client, nil
}

// NewKey creates another user with a key. The name determines the user ID: "Grace" is usr_grace, then
// usr_grace_2. A name that is long or has other characters than ASCII letters, digits and _ is
// simplified and gets four characters of its hash: "Grace Hopper" is usr_grace_hopper_ylbw.
func (s *Server) NewKey(name string) (key string, owner events.User) {
	s.t.Helper()
	issued, err := s.double.NewKey(name)
	s.check(fmt.Sprintf("NewKey(%q)", name), err)
	return issued.Secret, s.user(issued.UserID)
}

// Fault changes what happens to requests with a valid key, route and method. Set one effect: Status, Patch,
// DropRequest, DropResponse, CutResponse, or DropResponse with Status. Header and Delay go with any effect
// that sends a response, or stand alone.
type Fault struct {
	// Status responds with an error of this status, 400 to 599, or with an empty response, 200 to 399. The
	// request isn't handled.
	Status int
	// Body is sent with Status instead of the error, but not with 204, 205 or 304. Its first character
	// determines the media type: HTML, JSON or plain text.
	Body string
	// Header sets response headers. An empty list removes a header.
	Header http.Header
	// Patch is a JSON object. The request is handled, and the fields of Patch replace fields of the response
	// or are added, at any depth. An object changes each element of a list: {"data":{"title":null}}.
	Patch string
	// Delay waits before the response is sent, until the client is gone or the fault is cleared. The request
	// is handled first, unless Status prevents that, so a client that gives up has created its event. Make
	// Delay much longer than the client's timeout.
	Delay time.Duration
	// DropRequest closes the connection. The request isn't handled.
	DropRequest bool
	// DropResponse handles the request and closes the connection. With Status, 400 to 599, it responds with
	// an error instead.
	DropResponse bool
	// CutResponse handles the request and closes the connection after half of the response body. It never
	// applies to HEAD requests.
	CutResponse bool
	// Skip is the number of requests to skip first. They go on to the next fault.
	Skip int
	// Times is the number of requests that the fault then applies to, or 0 for all.
	Times int
	// UserID, if set, selects only this user's requests.
	UserID string
	// Path, if set, selects only requests for this path, such as /events/evt_7.
	Path string
}

// String returns the effects, such as "status 503, delay 200ms".
func (f Fault) String() string { return testdouble.Fault(f).String() }

// InjectedFault is a fault that [Server.Fail] has added.
type InjectedFault struct{ active *testdouble.InjectedFault }

// Fail adds a fault for an operation, such as "POST /events/create". A request gets the first fault that
// selects it and isn't used up. Its response has the header X-Eventsd-Fault. If the fault never applies, the
// test fails when it ends.
func (s *Server) Fail(operation string, f Fault) *InjectedFault {
	s.t.Helper()
	active, err := s.double.AddFault(operation, testdouble.Fault(f))
	s.check("Fail", err)
	return &InjectedFault{active}
}

// Hits returns the number of requests that the fault applied to. Use [Server.Await] to wait for requests.
func (i *InjectedFault) Hits() int { return i.active.Hits() }

// Clear removes the fault and ends its delays. Then a create may repeat one whose response the fault lost.
func (i *InjectedFault) Clear() { i.active.Clear() }

// Request is a request from the journal, with its response.
type Request struct {
	Seq       int       // sequence number, counted from 1
	Time      time.Time // by the server's clock
	Received  time.Time // by the system clock, for the time between attempts
	Method    string    // such as POST
	Path      string    // whole path, with /api/public/v1
	Query     string    // without the question mark
	Header    http.Header
	Body      string // at most 64 KiB
	Operation string // such as "GET /events/{id}"; empty for an unknown route
	UserID    string // user of the API key; empty if the key is invalid
	Fault     string // effects of its fault, such as "status 503, delay 200ms"

	// The response, whether or not the client got it. Status is 0 if a fault dropped the request. Response is
	// the body, at most 64 KiB.
	Status         int
	ResponseHeader http.Header
	Response       string

	// Truncated reports whether Body or Response is only the beginning.
	Truncated bool

	text string // see String
}

// String returns the request in one line: what was sent, how long after the previous request in the journal,
// the status, the error message and the fault. A create has its Idempotency-Key. API keys are shortened.
func (r Request) String() string { return r.text }

// Requests returns the newest 1,000 requests, oldest first. Pass an operation and user IDs to select
// requests. An empty operation selects all operations, and no user IDs select all users.
func (s *Server) Requests(operation string, userIDs ...string) []Request {
	s.t.Helper()
	return s.find(context.Background(), "Requests", 0, testdouble.Query{Operation: operation, Users: userIDs})
}

// Await waits for n requests and returns the same as [Server.Requests]. It fails the test after 10 seconds.
// Delayed requests count.
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

// find waits for n requests or until ctx is done.
func (s *Server) find(ctx context.Context, call string, n int, q testdouble.Query) (requests []Request) {
	s.t.Helper()
	found, err := s.double.Requests(ctx, n, q)
	s.check(call, err)
	for _, r := range found {
		requests = append(requests, Request{r.Seq, r.Time, r.Received, r.Method, r.Path, r.Query, r.Header,
			r.Body, r.Operation, r.UserID, r.Fault, r.Status, r.ResponseHeader, r.Response, r.Truncated,
			r.String()})
	}
	return requests
}

const awaitTimeout = 10 * time.Second

// ClearRequests empties the journal. Sequence numbers continue. Then a create may repeat one whose response
// was lost.
func (s *Server) ClearRequests() { s.double.ClearRequests() }

// Now returns the server's clock time.
func (s *Server) Now() time.Time { return s.double.Now() }

// Advance moves the server's clock forward.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.check("Advance", s.double.Advance(d))
}
