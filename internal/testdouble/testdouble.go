// Package testdouble turns the real server into a test double: its clock stands still, its IDs and
// keys are the same on every run, faults make requests fail, and a journal keeps the requests. The
// control API makes these features available to tests in any language.
//
// A request is served in four steps:
//
//  1. Let the server check the key, route and method, and take the first fault that matches.
//  2. Carry the request out, unless the fault says not to, and keep the response in memory. Change
//     the response as the fault says.
//  3. Add the request to the journal, and wait for the delay of the fault.
//  4. Send the response, or close the connection.
//
// The request is carried out whether or not its client waits. So a client that gives up during a
// delay has created its event, as with a real server.
package testdouble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

// OwnerID is the ID of the first user.
const OwnerID = "usr_owner"

// DefaultStart is the initial time of the clock unless [Config.Start] is set.
var DefaultStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Server is the handler of the API: events.New returns one.
type Server interface {
	http.Handler
	// Mux returns the handler of the API's operations.
	Mux() *httpapi.Mux
	// Operator returns the handler of the operator's routes for keys and records.
	Operator() http.Handler
}

// Config configures a [Double].
type Config struct {
	// BasePath is the beginning of the path of every operation.
	BasePath string
	// NewServer returns a server without data. Its arguments are the clock, and a function that
	// returns the unique part of an ID, slug or key of an owner.
	NewServer func(now func() time.Time, newID func(kind, owner string) string) Server
	// Seed, if not nil, adds records to a new server, which has only the first user.
	Seed func(Server) error
	// Start is the initial time of the clock. If zero, it is [DefaultStart].
	Start time.Time
	// Key is the first user's key. If empty, the server issues one.
	Key string
	// AllowUnknownRoutes is true if a request to an unknown route isn't a problem.
	AllowUnknownRoutes bool
	// Logger receives a warning for each problem. If nil, nothing is logged.
	Logger *slog.Logger
}

// Double is a test double. It is safe for concurrent use.
type Double struct {
	config  Config
	session atomic.Pointer[session]

	mu       sync.Mutex // guards problems
	problems []string
}

// session is a server with its clock, counters, faults and journal. A reset replaces it. Requests in
// flight finish in the old session.
type session struct {
	basePath string
	server   Server
	operator http.Handler
	key      string // API key of the first user

	mu       sync.Mutex // guards the fields below; not held while the server is called
	now      time.Time
	ids      counters
	faults   []*ActiveFault // in the order they were added
	faultIDs int            // number of faults added so far
	requests []Request      // the newest maxRequests, oldest first
	seq      int            // Seq of the newest request
}

// New returns a double. Its server has the first user, the seed and the first user's key.
func New(c Config) (*Double, error) {
	if c.Start.IsZero() {
		c.Start = DefaultStart
	}
	c.Start = c.Start.UTC()
	if c.Start.Year() < 1 || c.Start.Year() > 9999 {
		return nil, fmt.Errorf("the clock must start in the years 1 to 9999, not at %v", c.Start)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Double{config: c}
	s, err := newSession(c)
	if err != nil {
		return nil, err
	}
	d.session.Store(s)
	return d, nil
}

// reset returns to the state after [New]. Requests that are delayed get their responses.
func (d *Double) reset() error {
	s, err := newSession(d.config)
	if err != nil {
		return err
	}
	d.session.Swap(s).setFaults(nil)
	return nil
}

func newSession(c Config) (*session, error) {
	s := &session{basePath: c.BasePath, now: c.Start, ids: counters{}}
	s.server = c.NewServer(s.time, s.newID)
	s.server.Mux().Intercept = intercept
	s.operator = s.server.Operator()
	err := s.addUser(OwnerID, "Test Owner", "owner"+mailDomain)
	if err != nil {
		return nil, err
	}
	if c.Seed != nil {
		err := c.Seed(s.server)
		if err != nil {
			return nil, err
		}
	}
	if c.Key == "" {
		issued, err := s.issueKey(OwnerID)
		s.key = issued.Key
		return s, err
	}
	s.key = c.Key
	err = s.addRecord("key", map[string]string{"user_id": OwnerID, "secret": s.key})
	if err != nil {
		return nil, fmt.Errorf("the first user can't have the chosen API key: %w", err)
	}
	return s, nil
}

func (s *session) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *session) newID(kind, owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.next(kind, owner)
}

// operate sends a request to the operator's routes, and returns the body of the response.
func (s *session) operate(method, path string, body any) ([]byte, error) {
	r, err := http.NewRequest(method, path, bytes.NewReader(strict.Encode(body)))
	if err != nil {
		return nil, err
	}
	w := &response{header: http.Header{}}
	s.operator.ServeHTTP(w, r)
	if w.status >= 400 {
		return nil, httpapi.NewError(w.status, errorMessage(string(w.body)))
	}
	return w.body, nil
}

func (s *session) addRecord(kind string, fields map[string]string) error {
	_, err := s.operate("POST", "/records", []any{map[string]any{kind: fields}})
	return err
}

func (s *session) addUser(id, name, email string) error {
	return s.addRecord("user", map[string]string{"id": id, "name": name, "email": email})
}

// issuedKey is a new API key.
type issuedKey struct {
	ID      string `json:"id"`
	Key     string `json:"key"`
	User    string `json:"user"` // ID of its user
	BaseURL string `json:"base_url,omitempty"`
}

func (s *session) issueKey(userID string) (issued issuedKey, err error) {
	body, err := s.operate("POST", "/keys", map[string]string{"user_id": userID})
	if err != nil {
		return issued, err
	}
	return issued, json.Unmarshal(body, &issued)
}

// checkUser returns an error unless there is a user with an ID.
func (s *session) checkUser(id string) error {
	_, err := s.operate("GET", "/records?user="+url.QueryEscape(id), nil)
	if err != nil {
		return httpapi.NotFound(fmt.Sprintf(
			"user %.80q is not known: use the ID of a user in the store, or leave it out for all", id))
	}
	return nil
}

// checkOperation returns an error unless the API has the operation.
func (s *session) checkOperation(operation string) error {
	operations := s.server.Mux().Operations()
	if !slices.Contains(operations, operation) {
		return httpapi.BadRequest(fmt.Sprintf("operation %.80q is not known: it must be one of %s",
			operation, strings.Join(operations, ", ")))
	}
	return nil
}

// Server returns the current server.
func (d *Double) Server() Server { return d.session.Load().server }

// Key returns the first user's key.
func (d *Double) Key() string { return d.session.Load().key }

// NewKey creates a user with a key. The user's ID comes from the name: usr_grace from Grace, and
// usr_grace_2 if that is taken.
func (d *Double) NewKey(name string) (key, userID string, err error) {
	issued, err := d.session.Load().newKey(name)
	return issued.Key, issued.User, err
}

// newKey creates a user with a key.
func (s *session) newKey(name string) (issued issuedKey, err error) {
	if name == "" {
		return issued, httpapi.BadRequest("name is required: the ID of the user comes from it")
	}
	id := s.newID("usr", name)
	for s.checkUser("usr_"+id) == nil { // the seed has this user
		id = s.newID("usr", name)
	}
	err = s.addUser("usr_"+id, name, id+mailDomain)
	if err != nil {
		return issued, err
	}
	return s.issueKey("usr_" + id)
}

// Now returns the time of the clock.
func (d *Double) Now() time.Time { return d.session.Load().time() }

// Advance moves the clock forward.
func (d *Double) Advance(step time.Duration) error {
	s := d.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setClockLocked(s.now.Add(step))
}

func (s *session) setClockLocked(now time.Time) error {
	if now.Before(s.now) || now.Year() > 9999 {
		return httpapi.BadRequest("the clock is at " + s.now.Format(time.RFC3339Nano) +
			" and goes forward only, up to the year 9999")
	}
	s.now = now
	return nil
}

// maxProblems is the maximum number of problems that [Double.Problems] returns.
const maxProblems = 100

// Problems returns a sentence for each request to an unknown route, also from before a reset.
func (d *Double) Problems() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.problems)
}
