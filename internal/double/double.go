// Package double makes the real server a test double: one clock that stands
// still, ids and keys that repeat, faults, a journal of the requests, and the
// control API by which tests in any language use all that.
//
// To wire it up: [New]; a store configured with [Double.Now] and [Double.NewID];
// [Double.Begin] with the server of that store; then serve [Double.Handler] and, for
// other processes, [Double.Control] beside it. What is left to report when the tests
// have ended, [Double.Problems] returns.
//
// A request comes through [Double.Handler], which begins an entry of the journal, puts a
// body that records in place of the request's own, and hands the entry on in the context
// of the request. The server checks key, route and method, and calls the double again, by
// [Server.Intercept]: there, a request that meets a fault is held (fault.go says what a
// fault is, hold.go what is done to the request).
//
// It does not imitate the API: what no fault makes is answered by the server. Nor does it keep
// users and events: those are in the server's store.
package double

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/operator"
)

// OwnerID is the id of the first user of a double.
const OwnerID = "usr_owner"

// maxProblems is how many problems [Double.Problems] has, and with how many faults the
// error of [Double.SetFaults] says what is wrong.
const maxProblems = 100

// Start is when the clock of a double starts if no other time is given.
var Start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Double is the state of a test double beside its store. It is safe for
// concurrent use once [Double.Begin] has returned.
type Double struct {
	// What follows is to be set before Begin.

	// At is the time at which the clock stands at first. It is [Start] after New.
	At time.Time
	// AnyRoute lets requests to routes that the API lacks pass.
	AnyRoute bool
	// AnyRouteBy is how a person sets AnyRoute. The problem of such a request names it.
	AnyRouteBy string
	// Unknown, if it is not nil, is called at once with what is wrong with a request to
	// a route that the API lacks, unless AnyRoute is set.
	Unknown func(problem string)

	base   string // the path under which the operations are
	server Server

	// What a reset goes back to, beside At: the counts of ids and the records of the store.
	startCounts map[string]int
	records     bytes.Buffer

	// mutex guards what follows. The store calls Now and NewID while it holds locks of
	// its own, so a method of Server must never be called while the mutex is held.
	mutex    sync.Mutex
	now      time.Time
	counts   map[string]int // how many ids of a kind were made for an owner
	faults   faults
	journal  journal
	problems []string
}

// Server is what the double needs of the server: the handler that events.New returns
// is one. It routes by an [http.ServeMux] whose patterns are the method, the base path
// and the path of an operation: the journal takes the operation of a request from there.
type Server interface {
	http.Handler
	operator.Store
	// Intercept sets what is called before a request is served whose key, route and method
	// are right. It must be called before the first request.
	Intercept(answer.Intercept)
	// Operations are the endpoints, each a method and a path: "GET /events/{id}".
	Operations() []string
	// Profile is the user with this id or email, in JSON, or "" if there is none.
	Profile(user string) string
	// Replace deletes everything in the store and applies an array of records, in one step. At
	// the end of that step it calls the function then: the records are accepted, and no other
	// change of the store has begun.
	Replace(records []byte, then func()) error
	// RequestUser is the id of the user whose API key a request carries, also if the key
	// was revoked. It is "" if there is no such key.
	RequestUser(r *http.Request) string
}

// New returns a double of a server that has its operations under a base path.
func New(base string) *Double {
	return &Double{
		At:     Start,
		base:   base,
		counts: map[string]int{},
		faults: faults{holds: map[*hold]bool{}},
	}
}

// Begin makes the first user and calls setUp, which may put records into the store and make
// keys. What is there then is what [Double.Reset] goes back to.
func (d *Double) Begin(server Server, setUp func() error) error {
	d.server = server
	server.Intercept(d.intercept)
	d.At = d.At.Round(0).UTC()
	d.now = d.At
	err := d.apply(`{"user":{"id":%q,"name":"Test Owner","email":%q}}`, OwnerID, "owner"+mailDomain)
	if err != nil {
		return err
	}
	if err := setUp(); err != nil {
		return err
	}
	d.startCounts = maps.Clone(d.counts)
	return server.WriteRecords(&d.records)
}

// apply applies a record, whose format and values are those of [fmt.Sprintf].
func (d *Double) apply(format string, values ...any) error {
	_, _, err := d.server.ApplyRecords(fmt.Appendf(nil, "["+format+"]", values...))
	return err
}

// Profile is the user with this id or email, in JSON, or "" if there is none.
func (d *Double) Profile(user string) string { return d.server.Profile(user) }

// Problems are sentences about requests to routes that the API lacks.
func (d *Double) Problems() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Clone(d.problems)
}

// addProblem adds a problem, unless there are too many. The caller holds the mutex.
func (d *Double) addProblem(text string) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, text)
	}
}

// Now is the time of the clock.
func (d *Double) Now() time.Time {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.now
}

// SetClock moves the clock on from where it stands or, if from is not nil, from there. Only
// a reset takes it back.
func (d *Double) SetClock(from *time.Time, by time.Duration) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	at := cmp.Or(from, &d.now).Add(by)
	if at.Before(d.now) || at.Year() > 9999 {
		return answer.BadRequest("the clock stands at " + d.now.Format(time.RFC3339Nano) +
			" and goes forward only, to the year 9999 at most; a reset takes it back")
	}
	d.now = at
	return nil
}

// KnownUser returns an error unless there is a user with this id.
func (d *Double) KnownUser(id string) error {
	isEmail := strings.Contains(id, "@")
	if !isEmail && d.Profile(id) != "" {
		return nil
	}
	return answer.NotFound(fmt.Sprintf(
		"user %.80q is not known: give the id of one in the store, or leave it out for all", id))
}

// KnownOperation returns an error that has all operations unless this is one of them.
func (d *Double) KnownOperation(operation string) error {
	if slices.Contains(d.server.Operations(), operation) {
		return nil
	}
	return answer.BadRequest(fmt.Sprintf("operation %.80q is not known: it must be one of %s",
		operation, strings.Join(d.server.Operations(), ", ")))
}

// Reset takes everything back to the start, but the ids of faults count on. Requests that faults
// delay are released.
//
// It is one step beside whatever else goes on. The store replaces the records in
// one change. Before any other change begins, it calls the function below, which
// resets the state of the double. The store makes ids, and reads the clock, within
// its changes alone, which run one after the other. So a create that comes at the
// same time is done either before, with the old counters, and is deleted, or after,
// with the new ones: no id is skipped or made twice. And no event can be from a time
// later than that of the clock.
func (d *Double) Reset() error {
	return d.server.Replace(d.records.Bytes(), func() {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		d.faults.remove(func(*Injection) bool { return true })
		d.journal = journal{}
		d.counts = maps.Clone(d.startCounts)
		d.now = d.At
	})
}
