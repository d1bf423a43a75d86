// Package double makes the real server a test double: one clock that stands
// still, ids and keys that repeat, faults, a journal of the requests, and the
// control API by which tests in any language use all that.
//
// To wire it up: [New]; a store configured with [Double.Now] and [Double.NewID];
// [Double.Begin] with the server of that store; then serve [Double.Handler] and, for
// other processes, [Double.Control] beside it. What is left to
// report when the tests have ended, [Double.Problems] returns.
package double

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

// OwnerID is the id of the first user of a double, whom it makes by itself.
const OwnerID = "usr_owner"

const mailDomain = "@double.example" // of the users that the double makes

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
	// Strict makes a problem of each fault that is set at the end and that fewer
	// requests met than its Times says.
	Strict bool
	// Unknown, if it is not nil, is called at once with what is wrong with a request to
	// a route that the API lacks, unless AnyRoute is set.
	Unknown func(problem string)

	base string    // the path under which the operations are
	made time.Time // when New was called, by the machine's clock
	come chan bool // gets a value when a request has come

	// What a reset goes back to, beside At: the counts, the faults and the records of the store.
	startCounts map[string]int
	startFaults []*Rule
	records     bytes.Buffer

	// Server is whose double this is. Begin sets it, and the limits of its bodies.
	Server
	limits answer.BodyLimits

	// The mutex guards what follows. The store calls Now and NewID while it holds locks of
	// its own, so a method of Server must never be called while the mutex is held.
	sync.Mutex
	now     time.Time
	counts  map[string]int // how many ids of a kind were made for an owner
	faults  []*Rule
	named   map[string][]string // ids of the users that were made by name alone, by readable name
	last    int                 // the Seq of the newest request
	met     map[*entry]bool     // requests that met a fault and are not answered yet
	holding uint64              // bytes of the bodies that they hold: see maxHolding
	journal map[string][]*entry // by user
	bodies  []*string           // of requests, the oldest first
	size    int                 // bytes of them
	set     int                 // how many faults were set so far
	unknown []string            // what was wrong with requests to routes that the API lacks
}

// Server is what the double needs of the server: the handler that events.New returns
// is one. It routes by an [http.ServeMux] whose patterns are the method, the base path
// and the path of an operation: the journal takes the operation of a request from there.
type Server interface {
	http.Handler
	operator.Store
	// Operations are the endpoints, each a method and a path: "GET /events/{id}".
	Operations() []string
	// Profile is the user with this id or email, in JSON, or "" if there is none.
	Profile(user string) string
	// Replace deletes the events of a user with their guests and applies an
	// array of records, in one step; of "" it deletes everything in the store first.
	// At the end of that step it calls the function then: the records are accepted,
	// and no other change of the store has begun.
	Replace(userID string, records []byte, then func()) error
	// KeyOwner is the id of the user whose API key a request carries, also if the key
	// was revoked. It is "" if there is no such key.
	KeyOwner(r *http.Request) string
	// Intercept lets a function answer requests in place of the server. It is called before
	// the server serves.
	Intercept(answer.Intercept)
	// BodyLimits are the limits of the bodies of requests.
	BodyLimits() answer.BodyLimits
}

// New returns a double of a server that has its operations under a base path.
func New(base string) *Double {
	return &Double{
		At:      Start,
		base:    base,
		made:    time.Now().Round(0),
		come:    make(chan bool, 1),
		counts:  map[string]int{},
		named:   map[string][]string{},
		met:     map[*entry]bool{},
		journal: map[string][]*entry{},
	}
}

// Begin makes the first user and calls setUp, which may put records into the store, make
// keys and set faults. What is there then is what [Double.Reset] goes back to.
func (d *Double) Begin(server Server, setUp func() error) error {
	d.Server = server
	server.Intercept(d.intercept)
	d.limits = server.BodyLimits()
	d.At = d.At.Round(0).UTC()
	d.now = d.At
	err := d.apply(`{"user":{"id":%q,"name":"Test Owner","email":"owner%s"}}`, OwnerID, mailDomain)
	if err != nil {
		return err
	}
	if err := setUp(); err != nil {
		return err
	}
	d.startCounts = maps.Clone(d.counts)
	d.startFaults = slices.Clone(d.faults)
	return server.WriteRecords(&d.records)
}

// apply applies a record, whose format and values are those of [fmt.Sprintf].
func (d *Double) apply(format string, values ...any) error {
	_, err := d.ApplyRecords(fmt.Appendf(nil, "["+format+"]", values...))
	return err
}

// Problems are sentences about what was wrong when the tests have ended: requests to
// routes that the API lacks and, if the double is strict, faults that were not met as
// often as they should have been.
func (d *Double) Problems() []string {
	d.Lock()
	defer d.Unlock()
	problems := slices.Clip(d.unknown)
	for _, f := range d.faults {
		if d.Strict && f.Hits < f.Times {
			problems = append(problems, fmt.Sprintf("fault %s of %s (%s): %d of %d requests met it",
				f.ID, f.Operation, f.Fault, f.Hits, f.Times))
		}
	}
	return problems
}

// Now is the time of the clock.
func (d *Double) Now() time.Time {
	d.Lock()
	defer d.Unlock()
	return d.now
}

// SetClock moves the clock on from where it stands or, if from is not nil, from there. Only
// a reset takes it back, as the store must not hold what is from the future.
func (d *Double) SetClock(from *time.Time, by time.Duration) error {
	d.Lock()
	defer d.Unlock()
	at := cmp.Or(from, &d.now).Add(by)
	if at.Before(d.now) || at.Year() > 9999 {
		return answer.BadRequest("the clock stands at " + d.now.Format(time.RFC3339Nano) +
			" and goes forward only, to the year 9999 at most; a reset takes it back")
	}
	d.now = at
	return nil
}

// NewID makes the part of an id, slug or secret that must be unique, as the
// configuration of a store asks for it. It counts by kind and owner, so that no
// result depends on what is made for other owners: ids are readable, slugs and
// secrets are hashes. For kind usr the owner is a name: the first id is that name, and
// then come name_2, name_3 and so on.
func (d *Double) NewID(kind, owner string) string {
	if kind == "usr" {
		owner = readable(owner)
	}
	counted := kind + " " + owner
	d.Lock()
	d.counts[counted]++
	n := d.counts[counted]
	d.Unlock()
	switch kind {
	case "usr":
		return strings.TrimSuffix(fmt.Sprintf("%s_%d", owner, n), "_1")
	case "slug":
		return digest(kind, owner, n)[:8]
	case "secret":
		return digest(kind, owner, n)[:26] // 130 bits
	}
	id := strings.TrimPrefix(owner, "usr_")
	const most = 64 - len("_000001")
	if len(id) > most {
		id = id[:most-9] + "_" + digest(kind, owner, 0)[:8]
	}
	return fmt.Sprintf("%s_%06d", id, n)
}

// readable is a name in the characters of an id: grace_hopper of "Grace Hopper".
// A long one is cut, and a hash of the whole name keeps it apart from others. "x " is
// put before the name, so that the slug of a name without a usable letter is "x".
func readable(name string) string {
	s, found := strings.CutPrefix(form.MakeSlug("x "+name), "x-")
	if !found {
		return "user"
	}
	if len(s) >= form.MaxSlug-len("x-")-1 {
		s += "_" + digest("usr", name, 0)[:8]
	}
	return strings.ReplaceAll(s, "-", "_")
}

func digest(kind, owner string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", kind, owner, n))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))
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

// NewUser makes a user of this name, with an id and email that no user has. Fresh first
// deletes the users that were made by such a name before, so that the new one has the id
// that the first of them had.
func (d *Double) NewUser(name string, fresh bool) (userID string, err error) {
	if name == "" {
		return "", answer.BadRequest("name is required: the id of the user comes from it")
	}
	short := readable(name)
	if fresh {
		d.forget(short)
	}
	id := d.NewID("usr", name)
	for d.Profile("usr_"+id) != "" || d.Profile(id+mailDomain) != "" {
		id = d.NewID("usr", name)
	}
	userID = "usr_" + id
	d.Lock()
	d.named[short] = append(d.named[short], userID)
	d.Unlock()
	return userID, d.apply(`{"user":{"id":%q,"name":%s,"email":%q}}`,
		userID, strict.Encode(name), id+mailDomain)
}

// forget deletes the users that [Double.NewUser] made by names of this readable form, with
// everything of theirs, and begins to count their ids anew. If the store takes no change, this
// shows when NewUser adds the new user.
func (d *Double) forget(name string) {
	d.Lock()
	ids := d.named[name]
	delete(d.named, name)
	d.Unlock()
	for _, id := range ids {
		d.apply(`{"delete":{"user":%q}}`, id)
	}
	d.Lock()
	defer d.Unlock()
	for _, id := range append(ids, name) { // the ids of users are counted by the name
		d.drop(id)
	}
}

// Reset takes a known user's events, guests, faults, journal and counters back to the
// start; its profile and keys, and the clock, stay as they are. For "" it takes
// everything back. Requests that faults hold are answered 503, as their work would
// be done after it.
//
// It is one step beside whatever else goes on. The store replaces the records in
// one change. Before any other change begins, it calls the function below, which ends
// the requests that faults hold and resets the state of the double. The store
// makes ids, and reads the clock, within its changes alone, which run one after
// the other. So a create that comes at the same time is done either before, with
// the old counters, and is deleted, or after, with the new ones: no id is skipped
// or made twice. And no event can be from a time later than that of the clock.
func (d *Double) Reset(userID string) error {
	return d.Replace(userID, d.seed(userID), func() {
		d.Lock()
		defer d.Unlock()
		d.drop(userID)
		if userID == "" {
			d.now = d.At
			d.last = 0
			clear(d.named)
		}
		for _, f := range d.startFaults {
			if userID == "" || userID == f.User {
				f.came = 0
				f.Hits = 0
				d.faults = append(d.faults, f)
			}
		}
	})
}

// seed is an array of the records at the start: of a user's events and guests or, for "",
// of all. The store has written each user before what belongs to it.
func (d *Double) seed(userID string) []byte {
	if userID == "" {
		return d.records.Bytes()
	}
	var records []map[string]json.RawMessage    // each has one member: user, key, event or guest
	json.Unmarshal(d.records.Bytes(), &records) // which were written as JSON
	var owner struct{ ID string }
	own := slices.DeleteFunc(records, func(record map[string]json.RawMessage) bool {
		json.Unmarshal(record["user"], &owner) // if it is a user; else the owner stays
		return owner.ID != userID || record["user"] != nil || record["key"] != nil
	})
	return strict.Encode(own)
}

// drop ends what the double has of a user, or for "" of all: the requests that faults
// hold, the faults, the journal, and what was counted. The caller holds the mutex.
func (d *Double) drop(userID string) {
	for e := range d.met { // first, as requests that a removed fault held would go on
		if userID == "" || e.User == userID {
			e.refuse("reset")
		}
	}
	for counted := range d.counts {
		if userID == "" || strings.HasSuffix(counted, " "+userID) {
			d.counts[counted] = d.startCounts[counted]
		}
	}
	d.clear("", userID)
	d.clearRequests(userID)
}
