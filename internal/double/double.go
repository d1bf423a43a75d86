// Package double makes the real server a test double: one clock that stands
// still, ids and keys that repeat, faults, a journal of what was called, and
// the control API by which tests in any language steer it. It knows the server
// only as a handler, a store of raw JSON and the hooks of its configuration.
//
// To wire it up: [New]; a store configured with [Double.Now], [Double.NewID]
// and [Double.Intercept]; [Double.Begin]; then serve [Double.Handler] around the
// server's handler and, for other processes, [Double.Control] beside it.
package double

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
)

const (
	owner      = "usr_owner"       // the user that every double begins with
	mailDomain = "@double.example" // of users that are made by name alone
)

// Start is when the clock of a double starts, unless it is told another time.
var Start = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Double is the state of a test double beside its store. It is safe for
// concurrent use once [Double.Begin] has returned.
type Double struct {
	Store // the server's

	// Unknown, if it is not nil, is told of each request to a route that there
	// is not, with the nearest operation. Set it before the first request.
	Unknown func(method, path, nearest string)

	base       string
	operations []string

	first state    // at the start
	seed  []record // all that was there then

	resetting sync.Mutex // held while the store goes back

	mu      sync.Mutex // guards the rest, and is free while the store works
	state              // now
	faults  []*Rule
	held    map[*hold]bool
	journal []*Request
	closed  bool
}

// Store is what the double works on: what an operator does, and UserRecordsJSON,
// an array of the records of the user with this id or email, of its keys and
// events, and of their guests, empty where there is no such user.
type Store interface {
	operator.Store
	UserRecordsJSON(user string) ([]byte, error)
}

// state is what a reset takes back beside the store.
type state struct {
	now    time.Time
	counts map[string]int // by kind and owner
}

// New returns a double whose clock stands at a time. Its server has these
// operations under a base path: each a method and a path, such as
// "GET /events/{id}", plain paths before those with a parameter they would fit.
func New(base string, operations []string, at time.Time) *Double {
	return &Double{base: base, operations: operations, held: map[*hold]bool{}, state: state{at.Round(0).UTC(), map[string]int{}}}
}

// Begin makes the first user and its key, with seed run between them, and
// takes what is then there for the start.
func (d *Double) Begin(store Store, seed func() error) (key string, err error) {
	d.Store = store
	if err := store.ApplyJSON([]byte(`[{"user":{"id":"` + owner + `","name":"Test Owner","email":"owner` + mailDomain + `"}}]`)); err != nil {
		return "", err
	}
	if err := seed(); err != nil {
		return "", err
	}
	raw, err := store.IssueKeyJSON([]byte(`{"user_id":"` + owner + `"}`))
	if err != nil {
		return "", err
	}
	var issued struct{ Key string }
	if err := json.Unmarshal(raw, &issued); err != nil {
		return "", err
	}
	d.seed, err = decode(d.RecordsJSON())
	d.first = state{d.now, maps.Clone(d.counts)}
	return issued.Key, err
}

// Close takes all faults away for good. Requests that they hold go on.
func (d *Double) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.replace(of(""))
}

// Now is the time of the clock.
func (d *Double) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Advance moves the clock on. It never goes back but by a reset, or the store
// would hold what is from the future.
func (d *Double) Advance(by time.Duration) error {
	return d.setClock(func(now time.Time) time.Time { return now.Add(by) })
}

func (d *Double) setClock(next func(now time.Time) time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := next(d.now)
	if at.Before(d.now) || at.Year() > 9999 {
		return answer.BadRequest("the clock stands at " + d.now.Format(time.RFC3339Nano) + " and goes forward only, to the year 9999 at most; a reset takes it back")
	}
	d.now = at
	return nil
}

// NewID makes what is unique from a counter of each kind and owner, so that it
// does not depend on what others do: readable ids, and hashes for slug and
// secret. The owner of usr is a name.
func (d *Double) NewID(kind, owner string) string {
	if kind == "usr" {
		return d.numbered(kind, readable(owner))
	}
	n := d.count(kind, owner)
	switch kind {
	case "slug":
		return digest(kind, owner, n)[:8]
	case "secret":
		return digest(kind, owner, n)[:26] // 130 bits
	}
	id := strings.TrimPrefix(owner, "usr_")
	if most := 64 - len("_000001"); len(id) > most {
		id = id[:most-9] + "_" + digest(kind, owner, 0)[:8]
	}
	return fmt.Sprintf("%s_%06d", id, n)
}

func (d *Double) count(kind, owner string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[kind+" "+owner]++
	return d.counts[kind+" "+owner]
}

// numbered is who, then who_2, who_3 and so on.
func (d *Double) numbered(kind, who string) string {
	if n := d.count(kind, who); n > 1 {
		return who + "_" + strconv.Itoa(n)
	}
	return who
}

// readable is a name as an id can hold it. What is cut off a long one is told
// apart by a hash.
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

// IssueKeyJSON is the store's, but a name without an email is a new user each
// time.
func (d *Double) IssueKeyJSON(request []byte) ([]byte, error) {
	v, _ := strict.Parse(request)
	name, known := "", true
	for _, m := range v.Members {
		switch {
		case m.Name == "name" && name == "" && m.Value.Kind == strict.String:
			name = m.Value.Text
		case m.Name != "email" || m.Value.Kind != strict.Null && (m.Value.Kind != strict.String || m.Value.Text != ""):
			known = false
		}
	}
	switch {
	case !known || v.Kind != strict.Object:
	case name == "":
		return nil, answer.BadRequest("name is required, 1 to 255 characters")
	default:
		email := d.numbered("email", readable(name)) + mailDomain
		for d.has(email) {
			email = d.numbered("email", readable(name)) + mailDomain
		}
		request = strict.Encode(map[string]string{"name": name, "email": email})
	}
	return d.Store.IssueKeyJSON(request)
}

// record has, by its kind, what a reset must know of a record, and itself as "".
type record map[string]struct {
	ID      string
	UserID  string `json:"user_id"`
	HostID  string `json:"host_id"`
	EventID string `json:"event_id"`
	raw     json.RawMessage
}

// decode takes an array of records, or the error with which there is none.
func decode(array []byte, err error) ([]record, error) {
	var raws []json.RawMessage
	var records []record
	if err == nil {
		err = json.Unmarshal(array, &raws)
	}
	for _, raw := range raws {
		var r record
		err = errors.Join(err, json.Unmarshal(raw, &r))
		self := r[""]
		self.raw = raw
		r[""] = self
		records = append(records, r)
	}
	return records, err
}

// has reports whether there is a user with this id or email.
func (d *Double) has(user string) bool {
	array, err := d.UserRecordsJSON(user)
	return err == nil && bytes.ContainsRune(array, '{')
}

// Known refuses the id of a user that there is not; "" is everyone.
func (d *Double) Known(userID string) error {
	if userID == "" || strings.HasPrefix(userID, "usr_") && d.has(userID) {
		return nil
	}
	return answer.NotFound(fmt.Sprintf("user %.80q is not known; its id begins with usr_", userID))
}

// Reset takes a user's events, guests, faults, journal and counters back to the
// start; its profile and keys, and the clock, stay as they are. For "" it takes
// everything back. The store changes in one step. Requests that faults hold are
// answered 503: their work would be done after it.
func (d *Double) Reset(userID string) error {
	d.resetting.Lock()
	defer d.resetting.Unlock()
	if err := d.Known(userID); err != nil {
		return err
	}
	array := d.RecordsJSON
	if userID != "" {
		array = func() ([]byte, error) { return d.UserRecordsJSON(userID) }
	}
	records, err := decode(array())
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.release(func(h *hold) bool { return userID == "" || h.user == userID }, false)
	d.mu.Unlock()
	d.replace(of(userID))
	d.ClearRequests(userID)
	d.mu.Lock()
	for _, kind := range []string{"evt ", "gst ", "slug "} {
		d.counts[kind+userID] = d.first.counts[kind+userID]
	}
	if userID == "" {
		d.state = state{d.first.now, maps.Clone(d.first.counts)}
	}
	d.mu.Unlock()
	var gone, kept []json.RawMessage
	for _, r := range records {
		if id := r["user"].ID; id != "" && (userID == "" || id == userID) {
			gone = append(gone, fmt.Appendf(nil, `{"delete":{"user":%q}}`, id))
		}
		if userID != "" && (r["user"].ID == userID || r["key"].UserID == userID) {
			kept = append(kept, r[""].raw)
		}
	}
	hosted := map[string]bool{}
	for _, r := range d.seed {
		if r["event"].HostID == userID {
			hosted[r["event"].ID] = true
		}
		if userID == "" || hosted[r["event"].ID+r["guest"].EventID] {
			kept = append(kept, r[""].raw)
		}
	}
	change, err := json.Marshal(append(gone, kept...))
	if err != nil {
		return err
	}
	return d.ApplyJSON(change)
}
