package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

// User is the owner of API keys and the host of events.
type User struct {
	ID        string    `json:"id"`         // usr_…
	Name      string    `json:"name"`       // 1 to 255 characters
	Email     string    `json:"email"`      // unique in a store, compared without case
	AvatarURL *string   `json:"avatar_url"` // http or https
	Timezone  *string   `json:"timezone"`   // Area/City or UTC: the default of the user's events
	CreatedAt time.Time `json:"created_at"`
}

// Event is an event as the API answers it.
type Event struct {
	ID               string    `json:"id"`      // evt_…
	HostID           string    `json:"host_id"` // the user that hosts it
	Slug             string    `json:"slug"`    // unique, never changes
	Status           string    `json:"status"`  // draft or published
	CreatedAt        time.Time `json:"created_at"`
	UpdatedAt        time.Time `json:"updated_at"`
	Title            string    `json:"title"`       // 1 to 255 characters
	Description      *string   `json:"description"` // at most 50,000 characters
	StartAt          time.Time `json:"start_at"`
	EndAt            time.Time `json:"end_at"`           // after StartAt
	Timezone         string    `json:"timezone"`         // Area/City or UTC
	LocationType     *string   `json:"location_type"`    // in_person or virtual
	LocationCity     *string   `json:"location_city"`    // at most 100 characters
	LocationCountry  *string   `json:"location_country"` // at most 100 characters
	Visibility       string    `json:"visibility"`       // public or private
	RequiresApproval bool      `json:"requires_approval"`
	CoverImageURL    *string   `json:"cover_image_url"` // http or https, at most 2,048 characters
	MeetingURL       *string   `json:"meeting_url"`     // http or https, at most 2,048 characters
}

// Guest is one person on an event's guest list. At least one of Email and Name is not
// nil. Status is invited, pending, approved, declined, waitlist or cancelled.
type Guest struct {
	ID           string     `json:"id"`       // gst_…
	EventID      string     `json:"event_id"` // the event
	CreatedAt    time.Time  `json:"created_at"`
	Email        *string    `json:"email"` // unique among the guests of an event, compared without case
	Name         *string    `json:"name"`  // 1 to 255 characters
	Status       string     `json:"status"`
	RegisteredAt *time.Time `json:"registered_at"` // nil while invited
	CheckedInAt  *time.Time `json:"checked_in_at"` // nil until then
}

// Record is one record of a seed, a dump or an [Store.Apply]: exactly one of
// its members is set.
type Record struct {
	User   *User  `json:"user,omitempty"`
	Key    *Key   `json:"key,omitempty"`
	Event  *Event `json:"event,omitempty"`
	Guest  *Guest `json:"guest,omitempty"`
	Delete *Ref   `json:"delete,omitempty"`
}

// Ref names what a record deletes: exactly one of its members is an id. With a
// user, its keys and events are deleted too, with an event its guests.
type Ref struct {
	User  string `json:"user,omitempty"`
	Key   string `json:"key,omitempty"`
	Event string `json:"event,omitempty"`
	Guest string `json:"guest,omitempty"`
}

// A RecordError says which record was refused and everything that is wrong with it.
type RecordError struct {
	Record   int      // its place in the array, counted from 1; 0 for the array as a whole
	Kind     string   // user, key, event, guest or delete; empty if the record does not say
	Problems []string // each begins with the name of a member if one is at fault
}

func (e *RecordError) Error() string {
	s := strings.Join(e.Problems, "; ")
	if e.Kind != "" {
		s = e.Kind + ": " + s
	}
	if e.Record > 0 {
		s = fmt.Sprintf("record %d: %s", e.Record, s)
	}
	return s
}

var (
	// ErrNotFound: there is no user or key with that id.
	ErrNotFound = errors.New("not found")
	// ErrInUse: another store, of this process or another, has the data file.
	ErrInUse = rows.ErrLocked
	// ErrDamaged: the data file is not as it was written.
	ErrDamaged = rows.ErrDamaged
	// ErrFormat: the file is not a data file, or one of another version.
	ErrFormat = rows.ErrFormat
	// ErrNotWritten: a change is not on disk, or it is unknown whether it is.
	ErrNotWritten = rows.ErrNotWritten
	// ErrClosed: the store is closed and takes no more changes.
	ErrClosed = rows.ErrClosed

	// errIdempotencyMismatch: the idempotency key came before with another body.
	errIdempotencyMismatch = errors.New("the idempotency key was used with another body")
	// errCallerDeleted: the caller was deleted after its API key was checked.
	errCallerDeleted = errors.New("the caller was deleted")
)

// The forms below are the members of each kind's JSON in order, with their rules. A
// stored row has them in this order, and Kind.Head lists the first of them: append new
// members at the end.
var (
	userID, keyID   = form.ID("usr"), form.ID("key")
	eventID         = form.ID("evt")
	guestID         = form.ID("gst")
	personName      = form.Length(1, 255)
	descriptionText = form.Length(0, 50_000)
	locationText    = form.Length(0, 100)
	eventStatus     = form.OneOf("draft", "published")
	locationType    = form.OneOf("in_person", "virtual")
	visibility      = form.OneOf("public", "private")
	guestStatus     = form.OneOf("invited", "pending", "approved", "declined", "waitlist", "cancelled")
)

func (u *User) form() form.Form {
	return form.Form{
		{Name: "id", Value: &u.ID, Rule: userID, Flags: form.Fixed},
		{Name: "name", Value: &u.Name, Rule: personName, Flags: form.Required},
		{Name: "email", Value: &u.Email, Rule: form.Email, Flags: form.Required},
		{Name: "avatar_url", Value: &u.AvatarURL, Rule: form.URL, Flags: form.EmptyIsNull},
		{Name: "timezone", Value: &u.Timezone, Rule: form.Zone, Flags: form.EmptyIsNull},
		{Name: "created_at", Value: &u.CreatedAt, Flags: form.Fixed},
	}
}

func (e *Event) form() form.Form {
	return form.Form{
		{Name: "id", Value: &e.ID, Rule: eventID, Flags: form.Fixed | form.Server},
		{Name: "host_id", Value: &e.HostID, Flags: form.Required | form.Fixed | form.Server},
		{Name: "slug", Value: &e.Slug, Rule: form.Slug, Flags: form.Fixed | form.Server},
		{Name: "status", Value: &e.Status, Rule: eventStatus, Flags: form.Server},
		{Name: "created_at", Value: &e.CreatedAt, Flags: form.Fixed | form.Server},
		{Name: "updated_at", Value: &e.UpdatedAt, Flags: form.Server},
		{Name: "title", Value: &e.Title, Rule: form.Title, Flags: form.Required},
		{Name: "description", Value: &e.Description, Rule: descriptionText},
		{Name: "start_at", Value: &e.StartAt, Flags: form.Required},
		{Name: "end_at", Value: &e.EndAt, Flags: form.Required},
		{Name: "timezone", Value: &e.Timezone, Rule: form.Zone, Flags: form.EmptyIsNull},
		{Name: "location_type", Value: &e.LocationType, Rule: locationType, Flags: form.EmptyIsNull},
		{Name: "location_city", Value: &e.LocationCity, Rule: locationText},
		{Name: "location_country", Value: &e.LocationCountry, Rule: locationText},
		{Name: "visibility", Value: &e.Visibility, Rule: visibility, Flags: form.EmptyIsNull},
		{Name: "requires_approval", Value: &e.RequiresApproval},
		{Name: "cover_image_url", Value: &e.CoverImageURL, Rule: form.URL, Flags: form.EmptyIsNull},
		{Name: "meeting_url", Value: &e.MeetingURL, Rule: form.URL, Flags: form.EmptyIsNull},
	}
}

func (g *Guest) form() form.Form {
	return form.Form{
		{Name: "id", Value: &g.ID, Rule: guestID, Flags: form.Fixed},
		{Name: "event_id", Value: &g.EventID, Flags: form.Required | form.Fixed},
		{Name: "created_at", Value: &g.CreatedAt, Flags: form.Fixed},
		{Name: "email", Value: &g.Email, Rule: form.Email},
		{Name: "name", Value: &g.Name, Rule: personName},
		{Name: "status", Value: &g.Status, Rule: guestStatus},
		{Name: "registered_at", Value: &g.RegisteredAt},
		{Name: "checked_in_at", Value: &g.CheckedInAt},
	}
}

// kinds is what the database must know of the rows: how ids begin, what belongs to
// what, and the leading members of a row, from which Read takes its id, its second
// name, its parent and its status. The database itself reads created_at.
//
// A row is found by its id and by a second name, a unique alternate one. An event's is
// its slug. The others have a colon, which neither ids nor slugs have, so no two kinds
// ever share a name.
var kinds = []rows.Kind{
	{Name: "user", Prefix: "usr",
		Head: []string{"id", "name", "email", "avatar_url?", "timezone?", "created_at"},
		Read: func(r *rows.Row, v [6]string) { r.ID, r.Name = v[0], emailName(v[2]) }},
	{Name: "key", Prefix: "key", Parent: "usr",
		Head: []string{"id", "user_id", "digest", "hint?", "created_at", "revoked_at?"},
		Read: func(r *rows.Row, v [6]string) {
			if r.ID, r.Parent, r.Name = v[0], v[1], apiKeyName(v[2]); v[5] != "" {
				r.Status = "revoked"
			}
		}},
	{Name: "event", Prefix: "evt", Parent: "usr",
		Head: []string{"id", "host_id", "slug", "status", "created_at"},
		Read: func(r *rows.Row, v [6]string) { r.ID, r.Parent, r.Name, r.Status = v[0], v[1], v[2], v[3] }},
	{Name: "guest", Prefix: "gst", Parent: "evt",
		Head: []string{"id", "event_id", "created_at", "email?"},
		Read: func(r *rows.Row, v [6]string) { r.ID, r.Parent, r.Name = v[0], v[1], guestName(v[1], v[3]) }},
}

func emailName(email string) string { return "email:" + strings.ToLower(email) }

// guestName is "" for a guest without an email, who has no second name.
func guestName(event, email string) string {
	if email == "" {
		return ""
	}
	return "guest:" + event + ":" + strings.ToLower(email)
}

// Store keeps users, keys, events and guests, in memory and, if it was opened on
// a file, on disk. [NewStore] and [Open] make one. It is safe for concurrent use.
//
// This file has the four kinds and their rules. Package rows keeps the rows: the
// mutex that guards them in memory is its DB.mu. Every change goes the same way, by
// its Update: it is checked against the current state, encoded, appended to the
// file, waited for until it is durable, and only then published.
type Store struct {
	cfg Config
	db  *rows.DB

	// Updates run one at a time, so they share the two fields below without a lock.
	// The first is the latest created_at so far. It may be ahead of the newest row, as
	// updates that fail move it, too. That is harmless: it only moves forward.
	last    time.Time
	encoded []byte // a buffer that put and event reuse
}

// NewStore returns an empty store in memory. A nil cfg is the zero [Config].
func NewStore(cfg *Config) *Store {
	s := newStore(cfg)
	s.db = rows.New(s.options())
	return s
}

func newStore(cfg *Config) *Store {
	s := &Store{cfg: *cmp.Or(cfg, &Config{})}
	s.cfg.Logger = cmp.Or(s.cfg.Logger, slog.New(slog.DiscardHandler))
	if s.cfg.NewEventStatus != "draft" {
		s.cfg.NewEventStatus = "published"
	}
	return s
}

// Open returns the store that the data file at path holds, or an empty one if there is
// no file: the first change makes it. Open locks the file, so a second Open of it, in
// this process or another, is refused; [Store.Close] releases the lock. A file that is
// damaged, of another program or of a newer version is refused and left as it is; the
// error wraps [ErrInUse], [ErrDamaged] or [ErrFormat] if it is one of those, and says
// what to do.
func Open(path string, cfg *Config) (*Store, error) {
	s := newStore(cfg)
	var err error
	if s.db, err = rows.Open(path, s.options()); err != nil {
		return nil, err
	}
	s.db.View(func(t *rows.Tx) { s.last = t.Newest() })
	return s, nil
}

func (s *Store) options() rows.Options {
	return rows.Options{Kinds: kinds, Now: s.now, Logger: s.cfg.Logger}
}

// Close waits for the commit in progress and releases the file. Changes that are still
// queued, and later ones, get [ErrClosed]. Reads go on. The error is why writing had
// ended before, if it had, or why the file could not be closed.
func (s *Store) Close() error { return s.db.Close() }

// Err is nil, or why the store can no longer write. Reads go on.
func (s *Store) Err() error { return s.db.Err() }

// Apply puts records into the store in their order: all of them or none. The error is a
// [*RecordError] if a record is refused, and wraps [ErrNotWritten] or [ErrClosed] if
// nothing can be written. On a file the records are durable when Apply returns nil. A
// record replaces the one that has its id, and a member with the zero value gets its
// default; ids, slugs, creation times and parents never change. A guest without an id is
// known by event and email, a key by its digest, a user by its email.
func (s *Store) Apply(records ...Record) error {
	values := func(yield func(strict.Value, error) bool) {
		for _, r := range records {
			if !yield(recordValue(r), nil) {
				return
			}
		}
	}
	return s.update(context.Background(), func(t tx) error { return t.applyAll(values) })
}

// ApplyJSON is [Store.Apply] for a JSON array of records, but merges: what a
// record leaves out stays as it is, and null sets a member back to its default.
// So applying the same array twice changes nothing.
func (s *Store) ApplyJSON(records []byte) error {
	_, _, err := s.applyJSON(records)
	return err
}

// applyJSON is ApplyJSON. It counts the records, and those of them that changed nothing.
func (s *Store) applyJSON(records []byte) (applied, unchanged int, err error) {
	err = s.update(context.Background(), func(t tx) error {
		applied, unchanged = 0, 0
		elements := func(yield func(strict.Value, error) bool) {
			for v, err := range strict.Elements(records) {
				before := t.Changes()
				if !yield(v, err) {
					return
				}
				applied++
				if t.Changes() == before {
					unchanged++
				}
			}
		}
		return t.applyAll(elements)
	})
	if err != nil {
		return 0, 0, err
	}
	return applied, unchanged, nil
}

// applySeed is ApplyJSON for a seed, which may be the dump of a store whose clock
// was ahead: a created_at later than now is accepted, unless the clock is a configured
// one. It returns the latest of those, or the zero time.
func (s *Store) applySeed(records []byte) (ahead time.Time, err error) {
	err = s.update(context.Background(), func(t tx) error {
		t.ahead = &ahead
		return t.applyAll(strict.Elements(records))
	})
	return ahead, err
}

// replace deletes the events of a user, with their guests, and applies records,
// in one step. For the user "" it deletes everything in the store. At the end of that
// step it calls the function then: the records are accepted, and no other change has
// begun. A test double goes back to its start by it, while it is in use. It is meant for
// a store in memory: on a file, then may be called twice, and also if writing fails.
func (s *Store) replace(userID string, records []byte, then func()) error {
	return s.update(context.Background(), func(t tx) error {
		for _, child := range t.Children(userID) {
			if child.Kind.Prefix != "key" {
				t.Delete(child.ID)
			}
		}
		if err := t.applyAll(strict.Elements(records)); err != nil {
			return err
		}
		then()
		return nil
	})
}

// Records returns a copy of everything in the store, as records that make the same
// store again: each user with its keys and events, each event with its guests. Keys
// come without secrets but with their digests. An event that was created in the
// first instant of the year 1 cannot be copied so, as that is Go's zero time.
func (s *Store) Records() (records []Record) {
	var all bytes.Buffer
	_ = s.writeRecords(&all, "")
	if err := json.Unmarshal(all.Bytes(), &records); err != nil {
		panic(err) // it was just encoded
	}
	return records
}

// writeRecords writes the records of the user with this id or email, of its keys and
// events, and of their guests, or for "" everything, as a JSON array with one record a
// line: a seed. If there is no such user, the array is empty. The error is the writer's.
//
// The array is the state at one moment. Others change the store while it is written,
// however slowly that goes, and it takes no memory beside that of the rows.
func (s *Store) writeRecords(w io.Writer, user string) error {
	type record struct {
		kind *rows.Kind
		json string
	}
	var records []record
	s.db.View(func(t *rows.Tx) {
		u := cmp.Or(t.Get("usr", user), t.Find(emailName(user)))
		if u == nil && user != "" {
			return
		}
		for r := range t.All(u) {
			records = append(records, record{r.Kind, r.JSON})
		}
	})
	part := []byte("[\n")
	for i, r := range records {
		if i > 0 {
			part = append(part, ",\n"...)
		}
		part = rows.AppendRecord(part, r.kind, r.json)
		if len(part) < dumpPart {
			continue
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		part = part[:0]
	}
	_, err := w.Write(append(part, "\n]\n"...))
	return err
}

// dumpPart is how much of a dump is written at once, in bytes.
const dumpPart = 64 << 10

// empty reports whether there is nothing in the store.
func (s *Store) empty() (empty bool) {
	s.db.View(func(t *rows.Tx) { empty = t.Empty() })
	return empty
}

// now is the clock: the configured one as it is, else the machine's in whole
// microseconds.
func (s *Store) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now().Round(0).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// latest is the latest of some times. Nothing is changed before it was created, for
// example, even by a clock that was ahead.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// tx is an update of the store: the rows with the changes so far, and the rules.
type tx struct {
	*rows.Tx
	s     *Store
	ahead *time.Time // of a seed: its latest created_at that is later than now
}

// update runs f, which changes the store, all or nothing. f may be called twice.
func (s *Store) update(ctx context.Context, f func(tx) error) error {
	return s.db.Update(ctx, func(t *rows.Tx) error { return f(tx{Tx: t, s: s}) })
}

// applyAll applies the records of an array.
func (t tx) applyAll(records iter.Seq2[strict.Value, error]) error {
	n := 0
	for v, err := range records {
		if err != nil {
			return &RecordError{Problems: []string{"the records are not a JSON array: " + err.Error()}}
		}
		n++
		if err := t.apply(v); err != nil {
			err.Record = n
			return err
		}
	}
	return nil
}

// apply applies one record.
func (t tx) apply(v strict.Value) *RecordError {
	kind, v, ok := onlyMember(v)
	var problems []string
	switch {
	case ok && kind == "user":
		problems = t.user(v)
	case ok && kind == "key":
		_, problems = t.key(v)
	case ok && kind == "event":
		_, problems = t.event(v, "", nil)
	case ok && kind == "guest":
		problems = t.guest(v)
	case ok && kind == "delete":
		problems = t.delete(v)
	default:
		return &RecordError{Problems: []string{
			"must be an object with exactly one member: user, key, event, guest or delete"}}
	}
	if problems == nil {
		return nil
	}
	isNew := func(problem string) bool { return strings.HasSuffix(problem, " is required") }
	if id := text(v, "id"); id != "" && t.Find(id) == nil && slices.ContainsFunc(problems, isNew) {
		problems = append(problems, fmt.Sprintf("there is no %s %.80s, so this would be a new one", kind, id))
	}
	return &RecordError{Kind: kind, Problems: problems}
}

// onlyMember returns the one member of an object that has exactly one.
func onlyMember(v strict.Value) (name string, value strict.Value, ok bool) {
	if v.Kind != strict.Object || len(v.Members) != 1 {
		return "", v, false
	}
	return v.Members[0].Name, v.Members[0].Value, true
}

// text is a member of an object that is a string, or "".
func text(v strict.Value, name string) string {
	if m := v.Member(name); m.Kind == strict.String {
		return m.Text
	}
	return ""
}

// recordValue is a record as the JSON that it stands for.
func recordValue(r Record) strict.Value {
	v := strict.Value{Kind: strict.Object}
	add := func(kind string, isSet bool, form func() form.Form) {
		if isSet {
			v.Members = append(v.Members, strict.Member{Name: kind, Value: form().JSON()})
		}
	}
	add("user", r.User != nil, r.User.form)
	add("key", r.Key != nil, r.Key.form)
	add("event", r.Event != nil, r.Event.form)
	add("guest", r.Guest != nil, r.Guest.form)
	if r.Delete != nil {
		ref, _ := strict.Parse(strict.Encode(r.Delete)) // valid: it was just encoded
		v.Members = append(v.Members, strict.Member{Name: "delete", Value: ref})
	}
	return v
}

// existing returns the row that a record is about: the one with its id or, if it has
// none, with the second name that its members give it. Nil means a new row.
func (t tx) existing(v strict.Value, prefix, name string) *rows.Row {
	if id := v.Member("id"); id.Kind != strict.Null {
		return t.Get(prefix, id.Text)
	}
	return t.Find(name)
}

// load reads a row into the value of a form. A nil row changes nothing.
func load(f form.Form, r *rows.Row) {
	if r == nil {
		return
	}
	v, err := strict.Parse([]byte(r.JSON))
	if err != nil || f.Fill(v, form.Stored).All() != nil {
		panic(fmt.Errorf("%w: %s is not of its form", ErrDamaged, r.ID)) // only a forged row is not
	}
}

// mode is how a record fills what was loaded of an old row, or a new value.
func mode(old *rows.Row) form.Mode {
	if old == nil {
		return form.New
	}
	return form.Merge
}

// checkNotTaken adds a problem if a row with another id has the name.
func (t tx) checkNotTaken(p *form.Problems, member, name, id string) {
	if r := t.Find(name); r != nil && r.ID != id {
		p.Add(member, "is taken by "+r.ID)
	}
}

// createdAt checks the created_at of a new row, or sets it. Unless the clock is a
// configured one, the time that is set is later than every created_at so far, so that
// lists show the order of creation.
func (t tx) createdAt(p *form.Problems, at *time.Time, old *rows.Row) {
	now := t.s.now()
	switch {
	case old != nil:
	case at.IsZero():
		if *at = now; t.s.cfg.Now == nil && !now.After(t.s.last) {
			*at = t.s.last.Truncate(time.Microsecond).Add(time.Microsecond)
		}
	case at.After(now) && (t.ahead == nil || t.s.cfg.Now != nil || at.Year() == 9999):
		p.Add("created_at", "must not be later than now")
		return
	case at.After(now):
		*t.ahead = latest(*t.ahead, *at)
	}
	if at.After(t.s.last) {
		t.s.last = *at
	}
}

// makeID sets an id if none was given.
func (t tx) makeID(id *string, prefix, owner string, rule form.Rule) {
	if *id == "" {
		*id = t.unique(prefix, owner, rule, func(made string) string { return prefix + "_" + made })
	}
}

// unique returns a name that is not in use. It panics, which Update returns as an error,
// if Config.NewID makes one that the rule does not allow, or a million in turn that are
// in use. The rule may be nil.
func (t tx) unique(kind, owner string, rule form.Rule, whole func(made string) string) string {
	for range 1_000_000 {
		name := whole(t.s.newID(kind, owner))
		if t.s.cfg.NewID != nil && rule != nil && rule(name) != "" { // ours needs no check
			panic(fmt.Sprintf("Config.NewID makes %q, which %s", name, rule(name)))
		}
		if t.Find(name) == nil {
			return name
		}
	}
	panic("Config.NewID makes only what is taken")
}

// put puts the value of a form as a row.
func (t tx) put(f form.Form, old *rows.Row, key *rows.IdempotencyKey) *rows.Row {
	t.s.encoded = f.Append(t.s.encoded[:0])
	return t.Put(old, t.s.encoded, key)
}

func (t tx) user(v strict.Value) []string {
	var u User
	f := u.form()
	old := t.existing(v, "usr", emailName(text(v, "email")))
	load(f, old)
	p := f.Fill(v, mode(old))
	t.checkNotTaken(p, "email", emailName(u.Email), u.ID)
	t.createdAt(p, &u.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return problems
	}
	t.makeID(&u.ID, "usr", u.Name, userID)
	t.put(f, old, nil)
	return nil
}

// event puts an event: from a record or, if host is not "", a new one from a
// request of that host.
func (t tx) event(v strict.Value, host string, key *rows.IdempotencyKey) (*rows.Row, []string) {
	e := Event{HostID: host}
	f := e.form()
	how, old := form.Client, (*rows.Row)(nil)
	if host == "" {
		old = t.existing(v, "evt", "")
		how = mode(old)
	}
	load(f, old)
	before := e.UpdatedAt
	p := f.Fill(v, how)
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
	hostRow := t.Get("usr", e.HostID)
	if hostRow == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	t.checkNotTaken(p, "slug", e.Slug, e.ID)
	t.createdAt(p, &e.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return nil, problems
	}
	if e.Timezone == "" {
		// Cut out of the row, as to read all of it takes longer than the rest of a create.
		// Inside a string the quotes are escaped, so no name or address holds this.
		_, zone, _ := strings.Cut(hostRow.JSON, `,"timezone":"`)
		zone, _, _ = strings.Cut(zone, `"`)
		e.Timezone = cmp.Or(zone, "UTC")
	}
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, t.s.cfg.NewEventStatus)
	t.makeID(&e.ID, "evt", e.HostID, eventID)
	if e.Slug == "" {
		e.Slug = t.unique("slug", e.HostID, form.Slug, func(made string) string {
			return form.MakeSlug(e.Title) + "-" + made
		})
	}
	switch isGiven := !e.UpdatedAt.IsZero() && !e.UpdatedAt.Equal(before); {
	case isGiven: // it stays as the record says
	case old == nil:
		e.UpdatedAt = e.CreatedAt
	default: // it moves if a member has changed
		e.UpdatedAt = before
		if t.s.encoded = f.Append(t.s.encoded[:0]); string(t.s.encoded) != old.JSON {
			e.UpdatedAt = latest(t.s.now(), e.CreatedAt)
		}
	}
	return t.put(f, old, key), nil
}

func (t tx) guest(v strict.Value) []string {
	var g Guest
	f := g.form()
	old := t.existing(v, "gst", guestName(text(v, "event_id"), text(v, "email")))
	load(f, old)
	p := f.Fill(v, mode(old))
	event := t.Get("evt", g.EventID)
	if event == nil {
		p.Add("event_id", fmt.Sprintf("%q is not known", g.EventID))
	}
	if g.Name == nil && g.Email == nil {
		p.Add("name", "or email is required")
	}
	if g.Email != nil {
		t.checkNotTaken(p, "email", guestName(g.EventID, *g.Email), g.ID)
	}
	if g.Status == "invited" && text(v, "registered_at") != "" {
		p.Add("registered_at", "must be null while the status is invited")
	}
	t.createdAt(p, &g.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return problems
	}
	if g.Status == "" {
		var e Event
		load(e.form(), event)
		if g.Status = "approved"; e.RequiresApproval {
			g.Status = "pending"
		}
	}
	if g.Status == "invited" {
		g.RegisteredAt = nil
	} else if g.RegisteredAt == nil {
		g.RegisteredAt = &g.CreatedAt
	}
	t.makeID(&g.ID, "gst", event.Parent, guestID)
	t.put(f, old, nil)
	return nil
}

func (t tx) delete(v strict.Value) []string {
	name, id, _ := onlyMember(v)
	for _, kind := range kinds {
		if kind.Name == name && strings.HasPrefix(id.Text, kind.Prefix+"_") {
			t.Delete(id.Text)
			return nil
		}
	}
	return []string{"must be an object with exactly one member, user, key, event or guest, " +
		"and in it an id that begins with usr_, key_, evt_ or gst_"}
}

// What the handlers ask for. Each call sees only what belongs to the caller.

// profile is the user with this id.
func (s *Store) profile(userID string) (raw string, found bool) {
	s.db.View(func(t *rows.Tx) {
		if u := t.Get("usr", userID); u != nil {
			raw, found = u.JSON, true
		}
	})
	return raw, found
}

// event is the event that ref, an id or a slug, names, if the caller hosts it.
func (s *Store) event(caller, ref string) (id, raw string, found bool) {
	s.db.View(func(t *rows.Tx) {
		e := t.Find(ref)
		if e != nil && e.Parent == caller && e.Kind.Prefix == "evt" && (e.ID == ref || e.Name == ref) {
			id, raw, found = e.ID, e.JSON, true
		}
	})
	return id, raw, found
}

// page appends to raws a page of the events of a user, of one status or, for "", of
// both, or a page of the guests of an event: the newest first. If more follow, next is
// the place of the last one.
func (s *Store) page(parent, prefix, status string, after *rows.Place, limit int, raws []string) (
	page []string, next *rows.Place) {
	s.db.View(func(t *rows.Tx) { page, next = t.Page(parent, prefix, status, after, limit, raws) })
	return page, next
}

// creation is the answer to a create: the event, and whether an earlier request
// with the same idempotency key made it.
type creation struct {
	id, raw  string
	replayed bool
}

// createEvent makes an event of the owner from a request body. An idempotency key
// that came before with the same body is answered with the event that it made, as
// that is now; with another body it is errIdempotencyMismatch. That is checked before a
// body that is not JSON is refused: a known key with such a body is 422 and not 400.
func (s *Store) createEvent(ctx context.Context, owner string, body []byte, idem string) (creation, error) {
	v, parseErr := strict.Parse(body)
	var key *rows.IdempotencyKey
	if idem != "" {
		key = &rows.IdempotencyKey{Key: idem, Body: digest(string(body))}
	}
	var made creation
	err := s.update(ctx, func(t tx) error {
		if key != nil {
			key.At = s.now()
			if e := t.FindIdempotent(owner, key.Key); e != nil {
				if e.Idempotency.Body != key.Body {
					return errIdempotencyMismatch
				}
				made = creation{e.ID, e.JSON, true}
				return nil
			}
		}
		if parseErr != nil {
			return &RecordError{Problems: []string{"the body is not a JSON object: " + parseErr.Error()}}
		}
		if v.Kind != strict.Object {
			return &RecordError{Problems: []string{"the body must be a JSON object, not " + v.Kind.String()}}
		}
		if t.Get("usr", owner) == nil {
			return errCallerDeleted
		}
		e, problems := t.event(v, owner, key)
		if problems != nil {
			return &RecordError{Problems: problems}
		}
		made = creation{e.ID, e.JSON, false}
		return nil
	})
	return made, err
}
