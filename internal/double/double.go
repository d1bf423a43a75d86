// Package double makes the real server a test double: one clock that stands
// still, ids and keys that repeat, faults, a journal of the requests, and the
// control API by which tests in any language use all that. It knows the server
// only as an [http.Handler], a store of raw JSON and the hooks of its configuration.
//
// To wire it up: [New]; a store configured with [Double.Now], [Double.NewID] and
// [Double.Intercept]; [Double.Begin]; then serve [Double.Handler] around the
// server's handler and, for other processes, [Double.Control] beside it.
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
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

const (
	ownerID    = "usr_owner"       // the user that every double begins with
	mailDomain = "@double.example" // of users that are made by name alone
)

// Start is when the clock of a double starts if no other time is given.
var Start = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Double is the state of a test double beside its store. It is safe for
// concurrent use once [Double.Begin] has returned.
type Double struct {
	// Store is the server's. Double has all its methods, too, so that it can stand
	// for the store in the control API, but with an IssueKey of its own.
	operator.Store
	server Server // the same one

	// Unknown, if it is not nil, is called with what is wrong with each request whose
	// route the API lacks. Set it before the first request.
	Unknown func(problem string)

	base       string   // the path under which the operations are
	operations []string // such as "GET /events/{id}"
	start      state
	seed       map[string][]any // the events and guests of each user at the start; of "", all records

	// mu guards what follows. The store calls Now and NewID while it holds locks of
	// its own, so a method of the store must never be called while mu is held.
	mu      sync.Mutex
	state   // as it is now
	faults  []*Rule
	met     map[*entry]bool     // requests that met a fault and have not gone on yet
	journal map[string][]*entry // by user
}

// Server is what the double needs of the server: the handler that events.New returns
// is one.
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
}

// state is what a reset takes back beside the store, the faults and the journal.
type state struct {
	now    time.Time
	counts map[string]int // how many ids of a kind were made for an owner
	last   int            // the Seq of the newest request
}

// New returns a double whose clock stands at a time. Its server has its operations
// under a base path. It routes by an [http.ServeMux] whose patterns are the method, the
// base path and the path of an operation: the journal takes the operation of a request
// from there.
func New(base string, at time.Time) *Double {
	return &Double{
		base:    base,
		seed:    map[string][]any{},
		state:   state{now: at.Round(0).UTC(), counts: map[string]int{}},
		met:     map[*entry]bool{},
		journal: map[string][]*entry{},
	}
}

// Begin makes the first user, applies the seed, and makes the first user a key: with
// this secret or, if it is "", with one that is the same in every double, unless the
// seed has that one. What the store holds then is what [Double.Reset] goes back to.
func (d *Double) Begin(server Server, secret string, seed func() error) (key string, err error) {
	d.Store, d.server, d.operations = server, server, server.Operations()
	first := `[{"user":{"id":"` + ownerID + `","name":"Test Owner","email":"owner` + mailDomain + `"}}]`
	if err := cmp.Or(d.apply([]byte(first)), seed()); err != nil {
		return "", err
	}
	issued := struct{ Key string }{secret}
	if secret == "" {
		raw, failed := d.IssueKey([]byte(`{"user_id":"` + ownerID + `"}`))
		err = cmp.Or(failed, json.Unmarshal(raw, &issued))
	} else if err = d.apply(fmt.Appendf(nil, `[{"key":{"user_id":%q,"secret":%s}}]`,
		ownerID, strict.Encode(secret))); err != nil {
		err = fmt.Errorf("the chosen API key cannot be that of %s beside the seed: %w", ownerID, err)
	}
	d.start = state{d.now, maps.Clone(d.counts), d.last}
	return issued.Key, cmp.Or(err, d.keepSeed())
}

// apply applies an array of records.
func (d *Double) apply(records []byte) error {
	_, _, err := d.ApplyRecords(records)
	return err
}

// keepSeed keeps the records that are in the store for resets: all of them, and by
// user the events and guests. The store returns each user before what belongs to it.
func (d *Double) keepSeed() error {
	var all bytes.Buffer
	if err := d.WriteRecords(&all, ""); err != nil {
		return err
	}
	var records []map[string]json.RawMessage // each has one member, such as event
	if err := json.Unmarshal(all.Bytes(), &records); err != nil {
		return err
	}
	var owner struct{ ID string }
	for _, record := range records {
		d.seed[""] = append(d.seed[""], record)
		if record["user"] != nil {
			_ = json.Unmarshal(record["user"], &owner) // it is part of what was just read
		} else if record["key"] == nil {
			d.seed[owner.ID] = append(d.seed[owner.ID], record)
		}
	}
	return nil
}

// Close removes all faults. Requests that they hold go on.
func (d *Double) Close() { d.replaceFaults(faultOf("")) }

// Now is the time of the clock.
func (d *Double) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Advance moves the clock on. Only a reset takes it back, as the store must not
// hold what is from the future.
func (d *Double) Advance(by time.Duration) error { return d.setClock(nil, by) }

// setClock moves the clock on from where it stands, or from another time.
func (d *Double) setClock(from *time.Time, by time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
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
// then come name_2, name_3 and so on. The same holds for the kind email, which only the
// double asks for.
func (d *Double) NewID(kind, owner string) string {
	isName := kind == "usr" || kind == "email"
	if isName {
		owner = readable(owner)
	}
	d.mu.Lock()
	d.counts[kind+" "+owner]++
	n := d.counts[kind+" "+owner]
	d.mu.Unlock()
	switch {
	case isName && n == 1:
		return owner
	case isName:
		return fmt.Sprintf("%s_%d", owner, n)
	case kind == "slug":
		return digest(kind, owner, n)[:8]
	case kind == "secret":
		return digest(kind, owner, n)[:26] // 130 bits
	}
	id := strings.TrimPrefix(owner, "usr_")
	if most := 64 - len("_000001"); len(id) > most {
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
	if strings.HasPrefix(id, "usr_") && d.server.Profile(id) != "" {
		return nil
	}
	const problem = "user %.80q is not known: give the id of one in the store, or leave it out for all"
	return answer.NotFound(fmt.Sprintf(problem, id))
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
	seed := append([]any{}, d.seed[userID]...)
	return d.server.Replace(userID, strict.Encode(seed), func() {
		d.mu.Lock()
		for e := range d.met { // first, as requests that a removed fault held would go on
			if userID == "" || e.User == userID {
				e.reset = true
				e.end()
			}
		}
		if userID == "" {
			d.state = state{d.start.now, maps.Clone(d.start.counts), d.start.last}
		} else {
			for _, kind := range []string{"evt ", "gst ", "slug "} {
				d.counts[kind+userID] = d.start.counts[kind+userID]
			}
		}
		d.mu.Unlock()
		d.replaceFaults(faultOf(userID))
		d.ClearRequests(userID)
	})
}
