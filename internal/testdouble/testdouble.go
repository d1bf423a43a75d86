// Package testdouble turns the real server into a test double. Its clock stands still, its IDs and keys are
// the same on every run, faults make requests fail, a journal remembers requests, and mistakes of the client
// become problems. The control API offers all this to tests in any language.
//
// Create a [Double] first, because the store needs its clock:
//
//	d, err := testdouble.New(start, problems)
//	store := events.NewStore(&events.Config{Now: d.Now})
//	handler, err := d.Wrap(events.New(store).(testdouble.API))
//
// A double serves a request in four steps:
//
//  1. The API checks the key, route and method. The request takes the first fault that selects it.
//  2. The API handles the request, unless the fault prevents that. The fault changes the response in memory.
//  3. The request enters the journal and is checked for problems. Then it waits for the fault's delay.
//  4. The client gets the response, or the connection is closed.
//
// A create is open from step 3 to step 4, or longer if its response is lost; see openCreate.
//
// The API handles the request whether or not the client waits. So a client that gives up during a delay has
// created its event, as with a real server.
package testdouble

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/httpapi"
)

// OwnerID is the ID of the first user.
const OwnerID = "usr_owner"

// DefaultStart is the usual start time of the clock.
var DefaultStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// API is the API of a store. The handler that events.New returns has these methods.
type API interface {
	http.Handler
	Mux() *httpapi.Mux                    // handles API operations
	Operator() http.Handler               // handles the operator's routes
	User(id string) string                // returns a user's JSON, or ""
	AddUser(id, name, email string) error // creates a user
	IssueKey(userID string) (Key, error)  // creates a key of a user

	// SetNewID sets the function that returns the unique part of new IDs. The store calls it again if the ID
	// is taken, and holds a lock then. The kind is usr, key, evt or gst, slug for the end of a slug, or
	// secret for an API key without its prefix. The owner is the ID of the user it belongs to or, for kind
	// usr, the name of the new user.
	SetNewID(newID func(kind, owner string) string)
}

// Key is a new API key.
type Key struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	UserID  string `json:"user_id"`
	BaseURL string `json:"base_url"` // set by the control API
}

// Double is a test double. It is safe for concurrent use.
type Double struct {
	problems *ProblemList

	// Wrap sets these.
	api          API
	authenticate func(*http.Request) (httpapi.Caller, error) // checks the key of a request

	// mu guards the fields below. Don't hold it while you call the API, which calls Now and newID.
	mu       sync.Mutex
	now      time.Time
	ids      counters
	faults   []*InjectedFault // oldest first
	faultIDs int              // number of faults added so far
	requests []*Request       // the newest maxRequests, oldest first; they never change
	seq      int              // Seq of the newest request
	open     []*openCreate    // oldest first
	found    []Problem        // of this double's requests; problems has those of the whole run
}

// New creates a double whose clock starts at a time. Until you call [Double.Wrap], use only [Double.Now].
func New(start time.Time, p *ProblemList) (*Double, error) {
	return &Double{problems: p, ids: counters{}, now: start.UTC()}, checkStart(start)
}

// checkStart refuses the zero time, which means no time elsewhere.
func checkStart(start time.Time) error {
	if start.After(time.Time{}) && start.UTC().Year() <= 9999 {
		return nil
	}
	return httpapi.BadRequest("the start time must be after 0001-01-01T00:00:00Z and before the year 10000")
}

// Now returns the clock time.
func (d *Double) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Advance moves the clock forward.
func (d *Double) Advance(step time.Duration) error {
	return d.moveClock(func(now time.Time) time.Time { return now.Add(step) })
}

func (d *Double) moveClock(next func(now time.Time) time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := next(d.now).UTC()
	if now.Before(d.now) || now.Year() > 9999 {
		return httpapi.BadRequest("the clock goes forward only, from " + d.now.Format(time.RFC3339Nano) +
			" up to the year 9999")
	}
	d.now = now
	return nil
}

// newID returns the unique part of an owner's next ID, slug or key. See [API].
func (d *Double) newID(kind, owner string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids.next(kind, owner)
}

// NewKey creates a user with a key. The name determines the user ID: Grace is usr_grace, and a second Grace
// is usr_grace_2. A long name, such as a test's, is cut, but its ID has a hash of the whole.
func (d *Double) NewKey(name string) (Key, error) {
	if name == "" {
		return Key{}, httpapi.BadRequest("name is required: the ID of the user comes from it")
	}
	id := d.newID("usr", name)
	for d.api.User("usr_"+id) != "" { // the seed has this user
		id = d.newID("usr", name)
	}
	characters := []rune(name)
	shown := string(characters[:min(len(characters), maxUserName)])
	err := d.api.AddUser("usr_"+id, shown, id+mailDomain)
	if err != nil {
		return Key{}, err
	}
	return d.api.IssueKey("usr_" + id)
}

// checkUser returns an error if there is no user with this ID.
func (d *Double) checkUser(id string) error {
	if d.api.User(id) != "" {
		return nil
	}
	return httpapi.NotFound(fmt.Sprintf("user %.80q is not known: use the ID of a user in the store, or "+
		"leave it out for all", httpapi.Redact(id)))
}

// checkOperation returns an error if the API has no such operation.
func (d *Double) checkOperation(operation string) error {
	operations := d.api.Mux().Operations()
	if slices.Contains(operations, operation) {
		return nil
	}
	return httpapi.BadRequest(fmt.Sprintf("operation %.80q is not known: it must be one of %s",
		operation, strings.Join(operations, ", ")))
}

// Close removes all faults, which ends their delays. Faults that never applied become problems.
func (d *Double) Close() {
	for _, p := range unusedFaults(d.replaceFaults(allFaults)) {
		d.problems.add(p)
	}
}
