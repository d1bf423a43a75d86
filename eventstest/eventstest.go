// Package eventstest is the test double of the events API: the real server, in
// memory, for one test.
//
//	func TestCreate(t *testing.T) {
//		srv := eventstest.New(t)
//		client := myclient.New(srv.URL, srv.Key)
//		…
//	}
//
// It answers as the service does, by the same code. What differs helps tests:
//
//   - Answers repeat. The clock stands at 2030-01-01T00:00:00Z and moves only by
//     [Server.Advance]. Ids, slugs and keys come from counters of their owner, so
//     the same calls of one owner have the same answers, byte for byte, whatever
//     other owners do meanwhile.
//   - Each test and subtest calls [New]. A server starts in 0.3 ms.
//   - [Server.Fail] makes requests go wrong, [Server.Requests] returns what was
//     called, and a request to a route that the API lacks fails the test when it ends.
//
// It does not stand for a disk or a machine: there is no data file, and no fault makes a
// restart, a full disk or a crash.
//
// # Faults
//
// A test says what goes wrong with an operation. Each of these is an example by
// itself:
//
//	const create, list = "POST /events/create", "GET /events"
//	srv.Fail(create, eventstest.Fault{Status: 503, Times: 2})            // twice, then it works
//	srv.Fail(create, eventstest.Fault{Lose: true, Times: 1})             // done, but the answer is lost
//	srv.Fail(create, eventstest.Fault{Lose: true, Status: 504})          // done, but a gateway gives up
//	srv.Fail(create, eventstest.Fault{Delay: time.Minute, Times: 1})     // done, but the client gives up
//	srv.Fail(list, eventstest.Fault{Status: 500, After: 1, Times: 1})    // only the second page fails
//	srv.Fail(list, eventstest.Fault{Status: 502, Body: "<html>…"})       // what a proxy would answer
//	srv.Fail(list, eventstest.Fault{Patch: `{"data":{"title":null}}`})   // an answer not expected
//	srv.Fail(list, eventstest.Fault{Cut: true, Times: 1})                // half an answer
//
// Each connection of a server serves one request: on one that was used before, clients send
// a request again by themselves if it is dropped, and a fault would count twice.
//
// Answers with the status 429 or 503 have the header Retry-After: 1. A client that
// obeys it waits for a real second each time, whatever the server's clock says.
// Header: http.Header{"Retry-After": nil} leaves it out.
//
// For other languages the command "eventsd double" is the same thing, with the
// same answers.
package eventstest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/answer"
	"example.com/events/internal/double"
)

// Server is a running double. Its methods are safe for concurrent use. A method
// that can fail the test at once must be called by the goroutine that runs the
// test, as [testing.TB] wants it.
type Server struct {
	URL   string        // the base URL, up to and with /api/public/v1
	Key   string        // an API key
	Owner events.User   // the user that it belongs to: usr_owner
	Store *events.Store // the server's data, to look into and to add to

	t       testing.TB
	double  *double.Double
	handler http.Handler
	client  *http.Transport
}

// Option is an option of [New].
type Option func(*options)

type options struct {
	double         *double.Double
	seeds          []func(*events.Store) error
	newEventStatus string
	noListener     bool
}

// Seed puts records into the store before the start, as [events.Store.Apply]
// does. The user usr_owner is there already: its records belong to [Server.Key].
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

// At sets the time at which the clock starts, in place of 2030-01-01T00:00:00Z.
func At(start time.Time) Option { return func(o *options) { o.double.At = start } }

// AllowUnknownRoutes lets requests to routes that the API lacks have their 404
// or 405 without failing the test.
func AllowUnknownRoutes() Option { return func(o *options) { o.double.AnyRoute = true } }

// NewEventStatus is the status of a new event, draft or published, as of a server that was
// started with -new-event-status. Without it, that is published.
func NewEventStatus(status string) Option {
	return func(o *options) { o.newEventStatus = status }
}

// NoListener opens no port: only [Server.Client] and [Server.Handler] reach the
// server, and the client's connections stay within the process. So it works in a
// bubble of testing/synctest, where a fault's delay takes no time. Close the body
// of each answer there, or its connection outlives the bubble.
func NoListener() Option { return func(o *options) { o.noListener = true } }

// New starts a double on a free loopback port. At the end of the test it closes
// the port and all connections, and lets requests that faults hold go on. It fails
// the test at once if the port cannot be opened or a seed is refused.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	d := double.New(events.BasePath)
	d.AnyRouteBy = "eventstest.AllowUnknownRoutes"
	o := options{double: d, newEventStatus: "published"}
	for _, opt := range opts {
		opt(&o)
	}
	year := d.At.UTC().Year()
	switch {
	case year < 0 || year > 9999:
		t.Fatalf("eventstest: At(%v): the year must be 0 to 9999, in UTC", d.At)
	case o.newEventStatus != "draft" && o.newEventStatus != "published":
		t.Fatalf("eventstest: NewEventStatus(%q): it must be draft or published", o.newEventStatus)
	}
	store := events.NewStore(&events.Config{Now: d.Now, NewID: d.NewID, NewEventStatus: o.newEventStatus})
	server := events.New(store).(double.Server)
	s := &Server{
		Store:   store,
		t:       t,
		double:  d,
		handler: d.Handler(server),
		client:  &http.Transport{},
	}
	s.check("New", d.Begin(server, func() (err error) {
		for _, seed := range o.seeds {
			if err := seed(store); err != nil {
				return fmt.Errorf("the seed: %w", err)
			}
		}
		s.Key, _, err = store.IssueKey(double.OwnerID)
		return err
	}))
	s.Owner = s.profile(double.OwnerID)
	host := "eventstest.invalid"
	if o.noListener {
		s.client.DialContext = s.dial
	} else {
		host = s.listen()
	}
	s.URL = "http://" + host + events.BasePath
	t.Cleanup(s.end) // before the clean-up of listen
	return s
}

// end ends the double, and reports what was wrong.
func (s *Server) end() {
	for _, problem := range s.double.Problems() {
		s.t.Errorf("eventstest: %s", problem)
	}
	if s.t.Failed() {
		s.logRequests()
	}
	s.double.Clear("")
}

// logRequests logs the newest requests.
func (s *Server) logRequests() {
	newest := s.double.Requests(context.Background(), double.Query{}).Requests
	if len(newest) == 0 {
		s.t.Logf("eventstest: no request has come")
		return
	}
	newest = newest[max(0, len(newest)-maxLogged):]
	s.t.Logf("eventstest: the newest requests:%s", list(newest))
}

const maxLogged = 20 // requests that the log of a failed test has

// list is one line for each request.
func list(requests []double.Request) (text string) {
	for _, r := range requests {
		text += fmt.Sprint("\n  ", r)
	}
	return text
}

// listen serves on a free port. The end of the test closes it and every connection, whatever
// that waits for, and waits for none of the requests.
func (s *Server) listen() (host string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.check("New", err)
	srv := answer.NewServer(s.handler)
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(l) })
	s.t.Cleanup(func() {
		srv.Close()
		serving.Wait()
		srv.Close() // a connection may have been accepted just before the port was closed
	})
	return l.Addr().String()
}

// check fails the test at once if a call has an error.
func (s *Server) check(call string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("eventstest: %s: %v", call, err)
	}
}

// profile is the user with an id.
func (s *Server) profile(id string) (user events.User) {
	s.t.Helper()
	s.check("the user "+id, json.Unmarshal([]byte(s.double.Profile(id)), &user))
	return user
}

// Handler returns the server for a listener or a mux of your own, with faults and
// the journal. It takes everything under /api/public/v1. To close a connection it
// panics with [http.ErrAbortHandler], which servers of net/http expect. If your
// listener waits for its requests to end, clear faults that hold some first.
func (s *Server) Handler() http.Handler { return s.handler }

// Client returns a new client that adds [Server.Key] to requests without a key.
func (s *Server) Client() *http.Client { return &http.Client{Transport: withKey{s.Key, s.client}} }

// NewKey makes a user with a key. The user's id comes from the name: usr_grace of Grace,
// and then usr_grace_2 and so on. A name of other characters than ASCII letters, digits
// and _ loses some of them, so four characters of a hash follow what is left:
// usr_grace_hopper_ and so on of "Grace Hopper". NewKey fails the test at once if the name is
// empty or longer than 255 characters.
func (s *Server) NewKey(name string) (key string, owner events.User) {
	s.t.Helper()
	call := fmt.Sprintf("NewKey(%q)", name)
	id, err := s.double.NewUser(name)
	s.check(call, err)
	key, _, err = s.Store.IssueKey(id)
	s.check(call, err)
	return key, s.profile(id)
}

// Fault is what goes wrong with a request whose key, route and method are right.
//
// What is done: with Status or Drop, nothing, unless Lose is set as well. With everything
// else the request is carried out at once, whether or not its client waits for the answer, as
// a real server does. Then the Delay passes, and then the answer is sent as the fault
// says.
//
// A fault has one of Status, Patch, Drop, Lose and Cut, or Lose and Status, or none of them
// but a Header or a Delay. A Delay goes with each of them, and a Header with each that sends an
// answer.
type Fault struct {
	// Status is that of the answer, 400 to 599, in the API's own error form and with
	// the headers that openapi.json requires of it. Nothing is done, unless Lose is set.
	Status int
	// Body is sent with Status in place of the API's error, as it is: as text/html
	// if it begins with "<", as application/json if it begins with "{" or "[", else as
	// text/plain. Status may then be from 200 to 599, but not 204, 205 or 304.
	Body string
	// Header sets header fields of the answer, whoever made it. A name without values
	// removes the field. Fields that frame the message, such as Content-Length, are
	// refused.
	Header http.Header
	// Patch is a JSON object. What was asked for is done, and the members of Patch
	// replace those of the answer, at any depth: {"title":null} in the answer of an
	// event. Where the answer has an array and Patch an object, the object changes each
	// element: {"data":{"title":7}} in that of a list.
	Patch string
	// Delay is how long the answer is held back. It ends early when the client goes away or
	// the fault is cleared; what was asked for stays done. So a client that gives up and
	// tries again with the same Idempotency-Key has one event, and one with a new key two.
	Delay time.Duration
	// Drop closes the connection. Nothing is done.
	Drop bool
	// Lose does what was asked for and keeps it, and closes the connection instead
	// of answering: what an Idempotency-Key is for. With Status, that is the answer: a
	// gateway's 504 after the event was stored.
	Lose bool
	// Cut does what was asked for, sends the header of the answer and half of its body,
	// and closes the connection.
	Cut bool
	// After is how many requests pass first: they go on to the next fault, and are
	// no hits.
	After int
	// Times is how many requests meet the fault then; 0: all, until it is cleared.
	Times int
	// User limits the fault to the requests of one owner, by id.
	User string
	// Path limits the fault to one path of the operation, such as /events/evt_7.
	Path string
}

// Injected is a fault that [Server.Fail] has set.
type Injected struct {
	double    *double.Double
	injection *double.Injection
}

// Fail sets a fault for an operation such as "POST /events/create". Each request
// meets the first fault for it that is not used up, in the order they were set; its
// answer has the header X-Eventsd-Fault. It fails the test at once if there is no
// such operation or the fault makes no sense.
func (s *Server) Fail(operation string, f Fault) *Injected {
	s.t.Helper()
	injection, err := s.double.Fail(operation, double.Fault(f))
	s.check("Fail", err)
	return &Injected{s.double, injection}
}

// Hits returns how many requests met the fault. What such a request does is done by then.
func (i *Injected) Hits() int { return i.double.Hits(i.injection) }

// Clear removes the fault. Requests that it holds wait no longer, but the rest of it is done to
// them all the same.
func (i *Injected) Clear() { i.double.Clear(i.injection.ID) }

// Request is a request as the server got it. API keys in the path, the query, the values of the
// header and the body are cut to their last four characters. Keys that are encoded, in percent
// signs or in base64, are not found.
type Request struct {
	Seq       int         // counts from 1
	Time      time.Time   // by the server's clock
	Received  time.Time   // by the machine's clock: for the time between two tries
	Method    string      // such as POST
	Path      string      // as it was sent, with /api/public/v1
	Query     string      // as it was sent, without the question mark
	Header    http.Header // of the request
	Operation string      // such as "GET /events/{id}"; "" if the API lacks the route
	Status    int         // the answer's, also of one that was lost; 0 if there was none
	User      string      // id of the key's owner, also of a revoked key; "" if no user has the key
	Body      string      // what was read of it, at most 64 KiB
	Fault     string      // what a fault did, such as "status 503, delay 200ms" or "lose"; "" without one
	Error     string      // the message of an answer that is an error, whoever made it
}

// Requests returns the newest requests, oldest first: only those of the operation, unless
// it is "", and only those of the users whose ids are given, if any. The server keeps the
// newest 1,000. It fails the test at once if there is no such operation or user.
func (s *Server) Requests(operation string, userID ...string) []Request {
	s.t.Helper()
	return s.requests("Requests", double.Query{Operation: operation, Users: userID})
}

// Await waits until n requests of the operation and users have come, as [Server.Requests]
// takes them, and returns all that have. A request has come when it is answered, or when
// a fault holds its answer back. After ten seconds Await fails the test at once. In a bubble of
// testing/synctest these are seconds of the bubble.
func (s *Server) Await(n int, operation string, userID ...string) []Request {
	s.t.Helper()
	q := double.Query{Operation: operation, Users: userID, Count: n}
	return s.requests("Await", q)
}

const awaitTime = 10 * time.Second

// requests returns what is asked for. If that has a count, it waits for so many requests, and
// fails the test if they do not come.
func (s *Server) requests(method string, q double.Query) (all []Request) {
	s.t.Helper()
	var args []string
	if q.Count > 0 {
		args = append(args, strconv.Itoa(q.Count))
	}
	args = append(args, strconv.Quote(q.Operation))
	args = append(args, q.Users...)
	call := method + "(" + strings.Join(args, ", ") + ")"
	if q.Operation != "" {
		s.check(call, s.double.KnownOperation(q.Operation))
	}
	for _, id := range q.Users {
		s.check(call, s.double.KnownUser(id))
	}
	ctx, cancel := context.WithTimeout(context.Background(), awaitTime)
	defer cancel()
	found := s.double.Requests(ctx, q)
	if found.TimedOut {
		s.t.Fatalf("eventstest: %s: %d of %d requests have come in %v:%s",
			call, len(found.Requests), q.Count, awaitTime, list(found.Requests))
	}
	for _, r := range found.Requests {
		all = append(all, Request(r))
	}
	return all
}

// ClearRequests forgets all requests so far.
func (s *Server) ClearRequests() { s.double.ClearRequests() }

// Now returns the time of the server's clock, which all its users share.
func (s *Server) Now() time.Time { return s.double.Now() }

// Advance moves the clock on, for all users. It fails the test at once if d is
// negative.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.check("Advance", s.double.SetClock(nil, d))
}
