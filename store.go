package events

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/jsondb"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// User is the owner of API keys and the host of events. The schema tags of this and the other types are
// validation rules; package schema explains them.
type User struct {
	ID        string    `json:"id" schema:"id=usr fixed"`
	Name      string    `json:"name" schema:"chars=1-255 required"`
	Email     string    `json:"email" schema:"email required"`         // unique, ignoring case
	AvatarURL *string   `json:"avatar_url" schema:"url empty_is_null"` // http or https
	Timezone  *string   `json:"timezone" schema:"zone empty_is_null"`  // default for the user's events
	CreatedAt time.Time `json:"created_at" schema:"fixed"`
}

// Key is an API key. The store keeps the digest of its secret, but not the secret.
type Key struct {
	ID        string     `json:"id" schema:"id=key fixed"`
	UserID    string     `json:"user_id" schema:"required fixed"` // owner of the key
	Secret    string     `json:"-" schema:"secret"`               // input of [Store.Put]; never stored
	Digest    string     `json:"digest" schema:"digest fixed"`    // hexadecimal SHA-256 of the secret
	Hint      *string    `json:"hint" schema:"hint fixed"`        // last four characters of a long secret
	CreatedAt time.Time  `json:"created_at" schema:"fixed"`
	RevokedAt *time.Time `json:"revoked_at" schema:"fixed"` // nil if the key is valid
}

// Event is an event, as the API returns it. By default, a new event has a slug made of its title, the status
// in [Config], CreatedAt as UpdatedAt, its host's time zone or UTC, and it is public.
type Event struct {
	ID        string    `json:"id" schema:"id=evt fixed server"`
	HostID    string    `json:"host_id" schema:"required fixed server"` // user who hosts it
	Slug      string    `json:"slug" schema:"slug fixed server"`        // unique
	Status    string    `json:"status" schema:"one_of=draft|published server"`
	CreatedAt time.Time `json:"created_at" schema:"fixed server"`
	UpdatedAt time.Time `json:"updated_at" schema:"server"`

	Title       string    `json:"title" schema:"title required"` // 1 to 255 characters
	Description *string   `json:"description" schema:"chars=0-50000"`
	StartAt     time.Time `json:"start_at" schema:"required"`
	EndAt       time.Time `json:"end_at" schema:"required"`             // after StartAt
	Timezone    string    `json:"timezone" schema:"zone empty_is_null"` // Area/City or UTC

	LocationType     *string `json:"location_type" schema:"one_of=in_person|virtual empty_is_null"`
	LocationCity     *string `json:"location_city" schema:"chars=0-100"`
	LocationCountry  *string `json:"location_country" schema:"chars=0-100"`
	Visibility       string  `json:"visibility" schema:"one_of=public|private empty_is_null"`
	RequiresApproval bool    `json:"requires_approval"`
	CoverImageURL    *string `json:"cover_image_url" schema:"url empty_is_null"` // at most 2,048 characters
	MeetingURL       *string `json:"meeting_url" schema:"url empty_is_null"`     // at most 2,048 characters
}

// Guest is an entry on an event's guest list. It needs an Email or a Name.
type Guest struct {
	ID        string    `json:"id" schema:"id=gst fixed"`
	EventID   string    `json:"event_id" schema:"required fixed"`
	CreatedAt time.Time `json:"created_at" schema:"fixed"`
	Email     *string   `json:"email" schema:"email"` // unique within an event, ignoring case
	Name      *string   `json:"name" schema:"chars=1-255"`

	// Status is approved by default, or pending if the event requires approval.
	Status string `json:"status" schema:"one_of=invited|pending|approved|declined|waitlist|cancelled"`

	RegisteredAt *time.Time `json:"registered_at"` // must be nil while invited; by default CreatedAt
	CheckedInAt  *time.Time `json:"checked_in_at"` // nil until the guest is checked in
}

// Record adds, changes or deletes a user, key, event or guest. Set exactly one field.
type Record struct {
	User   *User  `json:"user,omitempty"`
	Key    *Key   `json:"key,omitempty"`
	Event  *Event `json:"event,omitempty"`
	Guest  *Guest `json:"guest,omitempty"`
	Delete *Ref   `json:"delete,omitempty"`
}

// Ref identifies a record to delete by its ID. Set exactly one field. Deleting a user also deletes its keys
// and events, and deleting an event also deletes its guests.
type Ref struct {
	User  string `json:"user,omitempty" schema:"id=usr"`
	Key   string `json:"key,omitempty" schema:"id=key"`
	Event string `json:"event,omitempty" schema:"id=evt"`
	Guest string `json:"guest,omitempty" schema:"id=gst"`
}

// RecordError reports all problems with a refused record.
type RecordError struct {
	Record   int      // position in the array, counted from 1; 0 if the array itself is wrong
	Kind     string   // user, key, event, guest or delete; "" if unknown
	Problems []string // such as "name is required"
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

// Errors may wrap these, so compare with [errors.Is].
var (
	// ErrNotFound is returned if no record has the given ID.
	ErrNotFound = errors.New("not found")
	// ErrInUse is returned by [Open] if the data file is open, in this process or another.
	ErrInUse = jsondb.ErrLocked
	// ErrDamaged is returned by [Open] if the data file is damaged. The message names the line.
	ErrDamaged = jsondb.ErrDamaged
	// ErrFormat is returned by [Open] if the file isn't a data file or has a newer format.
	ErrFormat = jsondb.ErrFormat
	// ErrNotWritten is returned if a change could not be written to the data file. The change isn't visible,
	// but after a failed sync it may reappear on restart.
	ErrNotWritten = jsondb.ErrNotWritten
	// ErrClosed is returned if you change a closed store.
	ErrClosed = jsondb.ErrClosed
)

var secretRule = schema.Match(len(keyPrefix)+1, 255, keyPrefix+`[A-Za-z0-9._~-]+`,
	"must be "+keyPrefix+` followed by 1 to 246 letters, digits, ".", "_", "~" or "-"`)

var (
	userSchema = schema.For(User{}, nil)
	keySchema  = schema.For(Key{}, schema.Rules{
		"secret": secretRule,
		"digest": schema.Match(64, 64, `[0-9a-f]+`, "must be a SHA-256 as 64 lower-case hexadecimal digits"),
		"hint":   schema.Match(4, 4, `[!-~]+`, "must be the last four characters of the secret"),
	})
	eventSchema = schema.For(Event{}, nil)
	guestSchema = schema.For(Guest{}, nil)
	refSchema   = schema.For(Ref{}, nil)
)

// These functions return the unique keys of rows. An event's unique key is its slug. The other keys contain a
// colon, which IDs and slugs never do, so keys of different kinds can't collide.

func emailKey(email string) string          { return "email:" + lowerASCII(email) }
func digestKey(digest string) string        { return "key:" + digest }
func guestKey(eventID, email string) string { return "guest:" + eventID + ":" + lowerASCII(email) }

// lowerASCII folds only ASCII letters: if Unicode's tables changed, two stored rows could have the same key.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// idempotencyRecord is a row of the table "request". It remembers the event that a create with an idempotency
// key made. It is deleted with this event, so that the key is free for good. Its ID is a hash of the user and
// the key, so that no file contains a key. It is in no dump, and Put and ApplyJSON refuse it.
type idempotencyRecord struct {
	ID          string    `json:"id"`
	CreatedAt   time.Time `json:"created_at"`
	Fingerprint string    `json:"fingerprint"` // digest of the operation and the body
	Result      string    `json:"result"`      // ID of the event that it created
}

// requestLifetime is the time after which an idempotency key can be used again.
const requestLifetime = 24 * time.Hour

func requestID(userID, idempotencyKey string) string {
	return "req_" + digest([]byte(userID + "\x00" + idempotencyKey))[:32]
}

func fingerprint(operation string, body []byte) string {
	hash := sha256.New()
	io.WriteString(hash, operation+"\x00")
	hash.Write(body)
	return hex.EncodeToString(hash.Sum(nil))
}

// keepRequest reports whether a request is younger than requestLifetime. A request from the future counts as
// young, because the clock may have been set back.
func keepRequest(r *jsondb.Row, now time.Time) bool { return now.Sub(r.Created) < requestLifetime }

// tables defines the database. Rows are stored in the JSON that the API returns, so a new field needs a new
// format (see CONTRIBUTING.md). Add it at the end of its struct, because Scan reads fields in order.
var tables = []jsondb.Table{
	{
		Name:   "user",
		Prefix: "usr",
		Scan: func(s *jsondb.Scanner, r *jsondb.Row) {
			r.UniqueKey = emailKey(s.String("email"))
			r.Created = s.Time("created_at")
		},
		Upgrade: upgrade[User],
	},
	{
		Name:   "key",
		Prefix: "key",
		Parent: "usr",
		Scan: func(s *jsondb.Scanner, r *jsondb.Row) {
			r.Parent = s.String("user_id")
			r.UniqueKey = digestKey(s.String("digest"))
			r.Created = s.Time("created_at")
			if s.String("revoked_at") != "" {
				r.Status = revoked
			}
		},
		Upgrade: upgrade[Key],
	},
	{
		Name:   "event",
		Prefix: "evt",
		Parent: "usr",
		Scan: func(s *jsondb.Scanner, r *jsondb.Row) {
			r.Parent = s.String("host_id")
			r.UniqueKey = s.String("slug")
			r.Status = s.String("status")
			r.Created = s.Time("created_at")
		},
		Upgrade: upgrade[Event],
	},
	{
		Name:   "guest",
		Prefix: "gst",
		Parent: "evt",
		Scan: func(s *jsondb.Scanner, r *jsondb.Row) {
			r.Parent = s.String("event_id")
			r.Created = s.Time("created_at")
			email := s.String("email")
			if email != "" {
				r.UniqueKey = guestKey(r.Parent, email)
			}
		},
		Upgrade: upgrade[Guest],
	},
	{
		Name:   "request",
		Prefix: "req",
		Scan: func(s *jsondb.Scanner, r *jsondb.Row) {
			r.Created = s.Time("created_at")
		},
		Keep:    keepRequest,
		Owner:   func(r *jsondb.Row) string { return r.Value("result") },
		Upgrade: upgrade[idempotencyRecord],
	},
}

// revoked is the row status of revoked keys.
const revoked = "revoked"

// formats are the readable data file formats, oldest first. In events/1, an event may be followed by the
// idempotency key that it was created with, and upgrading drops the key.
var formats = []string{"events/1", "events/2"}

// upgrade converts a row from an older format, and leaves out the text behind it. New fields get their zero
// values.
func upgrade[T any](text string) (string, error) {
	var x T
	err := json.NewDecoder(strings.NewReader(text)).Decode(&x)
	return string(strict.Encode(&x)), err
}

// Config configures a [Store]. The zero value is a good default.
type Config struct {
	// Now is the clock. It must return times after the first instant of year 1, and before year 10000. If
	// nil, the store uses the system clock and sets each created_at at least a microsecond after the last
	// one. The store calls Now while it holds a lock, so it must not use the store.
	Now func() time.Time

	// Logger receives the causes of 500 responses, write errors, and a line when the data file is opened,
	// repaired or rewritten. It never receives keys or request bodies. If nil, nothing is logged.
	Logger *slog.Logger

	// NewEventStatus is the status of new events, published or draft. If empty, it is published.
	NewEventStatus string
}

// Store keeps users, keys, events and guests in memory and, after [Open], in a data file. It is safe for
// concurrent use. When a method that changes a store returns, the change is visible and, with a data file,
// durable.
type Store struct {
	cfg Config
	db  *jsondb.DB

	// newID returns the unique part of a new ID, slug or secret. A test double sets its own; see SetNewID in
	// package testdouble.
	newID func(kind, owner string) string

	// lastCreated is the last created_at that the store has set. Only write transactions use it.
	lastCreated time.Time
}

// NewStore creates an empty store in memory. A nil cfg is the zero [Config]. NewStore panics if cfg has an
// invalid NewEventStatus.
func NewStore(cfg *Config) *Store {
	s := newStore(cfg)
	err := s.checkConfig()
	if err != nil {
		panic(err)
	}
	s.db = jsondb.New(s.options())
	return s
}

// Open opens or creates the data file at path. It locks the file until [Store.Close]. A file of an older
// format is upgraded. A nil cfg is the zero [Config]. If cfg has an invalid NewEventStatus, or if the error
// wraps [ErrInUse], [ErrDamaged] or [ErrFormat], the file is unchanged.
func Open(path string, cfg *Config) (*Store, error) {
	s := newStore(cfg)
	err := s.checkConfig()
	if err != nil {
		return nil, err
	}
	db, err := jsondb.Open(path, s.options())
	if err != nil {
		return nil, err
	}
	s.db = db
	return s, nil
}

func newStore(cfg *Config) *Store {
	s := &Store{cfg: *cmp.Or(cfg, &Config{}), newID: randomID}
	s.cfg.Logger = cmp.Or(s.cfg.Logger, slog.New(slog.DiscardHandler))
	s.cfg.NewEventStatus = cmp.Or(s.cfg.NewEventStatus, "published")
	return s
}

func (s *Store) checkConfig() error {
	status := s.cfg.NewEventStatus
	if status == "published" || status == "draft" {
		return nil
	}
	return fmt.Errorf("events: Config.NewEventStatus must be published, draft or empty, not %q", status)
}

func (s *Store) options() jsondb.Options {
	return jsondb.Options{Tables: tables, Formats: formats, Now: s.now, Logger: s.cfg.Logger}
}

// Close waits for the current change and closes the data file. Later changes return [ErrClosed], but reads
// still work.
func (s *Store) Close() error { return s.db.Close() }

// Err returns the error that stopped writes, or nil. Only reopening the data file clears it.
func (s *Store) Err() error { return s.db.Err() }

// addEvent creates an event from the body of a request for an operation. If the host already made the same
// request with this idempotency key, addEvent returns the event of the first one, and replayed is true. An
// empty key is no key.
func (s *Store) addEvent(operation, host string, body []byte, idempotencyKey string) (
	event *jsondb.Row, replayed bool, err error,
) {
	var e Event
	p := eventSchema.Unmarshal(body, &e, schema.FromClient)
	checkTimes(&e, p)
	problems := p.All()
	e.HostID = host
	var req idempotencyRecord
	if idempotencyKey != "" {
		req.ID = requestID(host, idempotencyKey)
		req.Fingerprint = fingerprint(operation, body)
	}
	err = s.db.Batch(func(tx *jsondb.Tx) error {
		// Check the idempotency key before the problems: even an invalid body differs from the first one.
		var first string
		event, first = s.findRequest(tx, req.ID, host)
		switch {
		case event != nil && first != req.Fingerprint:
			return errMismatch
		case event != nil:
			replayed = true
			return nil
		case problems != nil:
			return &RecordError{Problems: problems}
		case tx.Get("usr", host) == nil:
			return errUserDeleted
		}
		s.completeEvent(tx, &e)
		event = tx.Put(strict.Encode(&e))
		if req.ID != "" {
			req.CreatedAt, req.Result = s.now(), e.ID
			tx.Put(strict.Encode(&req))
		}
		return nil
	})
	return event, replayed, err
}

// findRequest returns the event that an earlier request of the host created, and the request's fingerprint.
// It returns nil if there is no such request or if it has expired, or if another host's event has the ID of
// its event: earlier versions kept the request of a deleted event.
func (s *Store) findRequest(tx *jsondb.Tx, id, host string) (event *jsondb.Row, fingerprint string) {
	r := tx.Get("req", id)
	if r == nil || !keepRequest(r, s.now()) {
		return nil, ""
	}
	event = tx.Get("evt", r.Value("result"))
	if event == nil || event.Parent != host {
		return nil, ""
	}
	return event, r.Value("fingerprint")
}

func checkTimes(e *Event, p *schema.FieldProblems) {
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
}

// completeEvent sets missing fields to their defaults. The host must exist.
func (s *Store) completeEvent(tx *jsondb.Tx, e *Event) {
	e.Timezone = cmp.Or(e.Timezone, tx.Get("usr", e.HostID).Value("timezone"), "UTC")
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, s.cfg.NewEventStatus)
	s.assignCreatedAt(&e.CreatedAt)
	s.assignID(tx, &e.ID, "evt", e.HostID)
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = e.CreatedAt
	}
	words := cmp.Or(schema.Slugify(e.Title), "event")
	for e.Slug == "" {
		e.Slug = words + "-" + s.newID("slug", e.HostID)
		if tx.Find(e.Slug) != nil {
			e.Slug = ""
		}
	}
}

// assignID sets *id to an unused ID, unless the record has its own.
func (s *Store) assignID(tx *jsondb.Tx, id *string, prefix, owner string) {
	for *id == "" {
		*id = prefix + "_" + s.newID(prefix, owner)
		if tx.Find(*id) != nil {
			*id = ""
		}
	}
}

// randomID is the newID of a store. IDs have 128 random bits, so they never collide in practice.
func randomID(kind, _ string) string {
	text := strings.ToLower(rand.Text())
	if kind == "slug" {
		return text[:8]
	}
	return text
}

// assignCreatedAt sets *created to the current time, unless the record has its own. Until a restart, times
// are unique: if the clock stands still or goes back, the next time is one microsecond after the last.
func (s *Store) assignCreatedAt(created *time.Time) {
	if !created.IsZero() {
		return
	}
	*created = s.now()
	if s.cfg.Now != nil {
		return
	}
	next := s.lastCreated.Add(time.Microsecond)
	if created.Before(next) {
		*created = next
	}
	s.lastCreated = *created
}

func (s *Store) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now().Round(0).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// Put adds, changes and deletes records in order, either all of them or none. It returns each record as it is
// stored after the call, with its ID, but a delete, and a record that a later one deletes, as you gave it. If
// a record is refused, the error is a [*RecordError].
//
// A record with the ID of an existing one changes it. Without an ID, Put finds a user by email, a key by its
// secret or digest, and a guest by event and email; an event without an ID is always new. A new record gets a
// random ID, the current time as CreatedAt, and the defaults of its other zero fields.
//
// If you leave out CreatedAt, a record changes only the fields that you set: nil, false and "" change
// nothing. With CreatedAt, as in a record from [Store.Get], it is the whole record: nil resets a pointer to
// its default and false a bool, and other zero fields keep their values. So you can get a record, change it
// and put it back. An importer that creates records with its own times leaves CreatedAt out of its updates,
// or uses [Store.ApplyJSON].
//
// If a field of an event changes, its UpdatedAt becomes the current time, unless you set a later time than
// before. IDs, slugs, parents, creation times and the fields of a key never change once they are set: Put
// refuses another value, and nil changes nothing there.
func (s *Store) Put(records ...Record) ([]Record, error) {
	ids := make([]string, len(records))
	rows := make([]*jsondb.Row, len(records))
	err := s.db.Update(func(tx *jsondb.Tx) (err error) {
		for i, r := range records {
			ids[i], err = s.applyRecord(tx, i+1, r.value())
			if err != nil {
				return err
			}
		}
		for i, id := range ids {
			rows[i] = tx.Find(id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	stored := slices.Clone(records)
	for i, row := range rows {
		if row != nil {
			stored[i] = decodeRecord(row)
		}
	}
	return stored, nil
}

// ApplyJSON applies a JSON array of records in order, either all of them or none. It finds existing records
// like [Store.Put], but merges them: a missing field keeps its value, and null resets it.
func (s *Store) ApplyJSON(records []byte) error {
	_, err := s.applyRecords(strict.ParseArray(records))
	return err
}

// applyResult counts the records of an array, and the ones that changed nothing.
type applyResult struct{ records, unchanged int }

// applyRecords applies records until the first problem. It uses a commit of its own, because there may be any
// number of them.
func (s *Store) applyRecords(records iter.Seq2[strict.Value, error]) (applyResult, error) {
	var result applyResult
	err := s.db.Update(func(tx *jsondb.Tx) error {
		for record, err := range records {
			if err != nil {
				return &RecordError{Problems: []string{"records: " + err.Error()}}
			}
			result.records++
			before := tx.NumChanges()
			_, err := s.applyRecord(tx, result.records, record)
			if err != nil {
				return err
			}
			if tx.NumChanges() == before {
				result.unchanged++
			}
		}
		return nil
	})
	return result, err
}

// applyRecord applies the record at a position, counted from 1. It returns its ID, or "" for a delete.
func (s *Store) applyRecord(tx *jsondb.Tx, position int, record strict.Value) (id string, err error) {
	kind := ""
	if record.Kind == strict.Object && len(record.Members) == 1 {
		kind = record.Members[0].Name
	}
	var problems []string
	v := record.Member(kind)
	switch kind {
	case "user":
		id, problems = s.applyUser(tx, v)
	case "key":
		id, problems = s.applyKey(tx, v)
	case "event":
		id, problems = s.applyEvent(tx, v)
	case "guest":
		id, problems = s.applyGuest(tx, v)
	case "delete":
		problems = applyDelete(tx, v)
	default:
		kind = ""
		problems = []string{"must be an object with exactly one field: user, key, event, guest or delete"}
	}
	if problems != nil {
		return "", &RecordError{Record: position, Kind: kind, Problems: problems}
	}
	return id, nil
}

// applyUser adds a user or changes an existing one, found by ID or by email. Emails are unique.
func (s *Store) applyUser(tx *jsondb.Tx, v strict.Value) (id string, problems []string) {
	var u User
	old := findExisting(tx, v, "usr", emailKey(stringField(v, "email")))
	decode(old, &u)
	p := userSchema.Decode(&u, v, modeOf(old))
	problems = addConflict(tx, p, u.ID, "email", emailKey(u.Email))
	if problems != nil {
		return "", problems
	}
	s.assignCreatedAt(&u.CreatedAt)
	s.assignID(tx, &u.ID, "usr", u.Name)
	tx.Put(strict.Encode(&u))
	return u.ID, nil
}

// applyKey adds a key or changes an existing one, found by ID or by digest. The record has a secret or, in a
// dump, its digest. Once a key is revoked, it stays revoked, because revoked_at is a fixed field.
func (s *Store) applyKey(tx *jsondb.Tx, v strict.Value) (id string, problems []string) {
	var k Key
	given, sum := "digest", stringField(v, "digest")
	secret := stringField(v, "secret")
	if secret != "" {
		given, sum = "secret", digest([]byte(secret))
	}
	old := findExisting(tx, v, "key", digestKey(sum))
	decode(old, &k)
	p := keySchema.Decode(&k, v, modeOf(old))
	if secret != "" {
		switch {
		case k.Digest == "", k.Digest == sum:
		case old != nil:
			p.Add("secret", "can't be changed: add another key")
		default:
			p.Add("digest", "doesn't match the secret: leave one of them out")
		}
		k.Digest = sum
		k.Hint = hint(secret)
	}
	if k.Digest == "" {
		p.Add("secret", "or digest is required")
	}
	if tx.Get("usr", k.UserID) == nil {
		p.Add("user_id", fmt.Sprintf("%q is not known", k.UserID))
	}
	problems = addConflict(tx, p, k.ID, given, digestKey(k.Digest))
	if problems != nil {
		return "", problems
	}
	s.assignCreatedAt(&k.CreatedAt)
	s.assignID(tx, &k.ID, "key", k.UserID)
	tx.Put(strict.Encode(&k))
	return k.ID, nil
}

// digest returns the SHA-256 of a text. Secrets don't need a slower hash: nobody can
// guess the 128 random bits of a generated one.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// hint returns the last four characters of a secret, which help people to tell keys apart. It returns nil for
// a short secret, because they would reveal too much of it.
func hint(secret string) *string {
	if len(secret) < len(keyPrefix)+16 {
		return nil
	}
	return new(secret[len(secret)-4:])
}

// applyEvent adds an event or changes an existing one, found by ID.
//
// If any other field changes, updated_at becomes the current time, unless the record sets a later one than
// before. It never goes back. So applying a record twice changes nothing the second time, and a dump that is
// restored into an empty store has the same events.
func (s *Store) applyEvent(tx *jsondb.Tx, v strict.Value) (id string, problems []string) {
	var e Event
	old := findExisting(tx, v, "evt", "")
	decode(old, &e)
	before := e.UpdatedAt
	p := eventSchema.Decode(&e, v, modeOf(old))
	if !e.UpdatedAt.After(before) {
		e.UpdatedAt = before
	}
	checkTimes(&e, p)
	if tx.Get("usr", e.HostID) == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	problems = addConflict(tx, p, e.ID, "slug", e.Slug)
	if problems != nil {
		return "", problems
	}
	s.completeEvent(tx, &e)
	text := strict.Encode(&e)
	if old != nil && string(text) != old.JSON && e.UpdatedAt.Equal(before) {
		now := s.now()
		if now.After(before) {
			e.UpdatedAt = now
		}
		text = strict.Encode(&e)
	}
	tx.Put(text)
	return e.ID, nil
}

// applyGuest adds a guest or changes an existing one, found by ID or by event and email. A guest without
// either is always new.
//
// An invited guest hasn't registered, so registered_at is null. For others, it is created_at by default.
func (s *Store) applyGuest(tx *jsondb.Tx, v strict.Value) (id string, problems []string) {
	var g Guest
	old := findExisting(tx, v, "gst", guestKey(stringField(v, "event_id"), stringField(v, "email")))
	decode(old, &g)
	p := guestSchema.Decode(&g, v, modeOf(old))
	event := tx.Get("evt", g.EventID)
	if event == nil {
		p.Add("event_id", fmt.Sprintf("%q is not known", g.EventID))
	}
	if g.Name == nil && g.Email == nil {
		p.Add("name", "or email is required")
	}
	if g.Status == "invited" && stringField(v, "registered_at") != "" {
		p.Add("registered_at", "must be null while the status is invited")
	}
	key := ""
	if g.Email != nil {
		key = guestKey(g.EventID, *g.Email)
	}
	problems = addConflict(tx, p, g.ID, "email", key)
	if problems != nil {
		return "", problems
	}
	if g.Status == "" {
		g.Status = "approved"
		if event.Value("requires_approval") == "true" {
			g.Status = "pending"
		}
	}
	s.assignCreatedAt(&g.CreatedAt)
	if g.RegisteredAt == nil {
		g.RegisteredAt = &g.CreatedAt
	}
	if g.Status == "invited" {
		g.RegisteredAt = nil
	}
	s.assignID(tx, &g.ID, "gst", event.Parent)
	tx.Put(strict.Encode(&g))
	return g.ID, nil
}

// applyDelete deletes a row and everything below it. A missing row is no error, so that an array can be
// applied twice.
func applyDelete(tx *jsondb.Tx, v strict.Value) (problems []string) {
	var ref Ref
	problems = refSchema.Decode(&ref, v, schema.Create).All()
	if problems != nil {
		return problems
	}
	ids := []string{ref.User, ref.Key, ref.Event, ref.Guest}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if len(ids) != 1 {
		return []string{"must have exactly one field: user, key, event or guest"}
	}
	tx.Delete(ids[0])
	return nil
}

// findExisting returns the row that a record changes: the row with its ID or, without an ID, with its unique
// key. It returns nil for a new record.
func findExisting(tx *jsondb.Tx, v strict.Value, prefix, key string) *jsondb.Row {
	id := v.Member("id")
	if id.Kind != strict.Null {
		return tx.Get(prefix, id.Text)
	}
	return tx.Find(key)
}

// decode decodes a row into the struct that object points to. It does nothing if row is nil.
func decode(row *jsondb.Row, object any) {
	if row == nil {
		return
	}
	err := json.Unmarshal([]byte(row.JSON), object)
	if err != nil {
		panic(fmt.Errorf("%s: %w", row.ID, err)) // someone forged the file
	}
}

func modeOf(old *jsondb.Row) schema.Mode {
	if old == nil {
		return schema.Create
	}
	return schema.Merge
}

// addConflict adds a problem to a field if another row has its unique key. It returns all problems.
func addConflict(tx *jsondb.Tx, p *schema.FieldProblems, id, field, key string) []string {
	other := tx.Find(key)
	if other != nil && other.ID != id {
		p.Add(field, "is taken by "+other.ID)
	}
	return p.All()
}

// stringField returns a string field of an object, or "" if it is missing or no string.
func stringField(v strict.Value, name string) string {
	field := v.Member(name)
	if field.Kind != strict.String {
		return ""
	}
	return field.Text
}

// value converts a record for applyRecord, which merges it. Only a record with CreatedAt is a whole one, so
// that nil and false reset fields. Others leave them out, because a program that doesn't know a field must
// not reset it.
func (r Record) value() strict.Value {
	v := strict.Value{Kind: strict.Object}
	add := func(kind string, s schema.Schema, object any) {
		if reflect.ValueOf(object).IsNil() {
			return
		}
		fields := s.Value(object)
		if fields.Member("created_at").Kind == strict.Null {
			fields.Members = slices.DeleteFunc(fields.Members, func(m strict.Member) bool {
				return m.Value.Kind == strict.Null
			})
		}
		v.Members = append(v.Members, strict.Member{Name: kind, Value: fields})
	}
	add("user", userSchema, r.User)
	add("key", keySchema, r.Key)
	add("event", eventSchema, r.Event)
	add("guest", guestSchema, r.Guest)
	add("delete", refSchema, r.Delete)
	return v
}

// Get returns the user, key, event or guest with an ID. If there is none, the error wraps [ErrNotFound].
func (s *Store) Get(id string) (Record, error) {
	var r Record
	s.db.View(func(tx *jsondb.Tx) {
		row := tx.Find(id)
		if row != nil && row.ID == id { // not an email or a slug
			r = decodeRecord(row)
		}
	})
	if r == (Record{}) {
		return r, fmt.Errorf("%w: no user, key, event or guest has the ID %q; Records lists them all",
			ErrNotFound, id)
	}
	return r, nil
}

// Records yields all records: each user with its keys and events, and each event with its guests. Putting
// them into an empty store copies this one. Keys have a digest instead of a secret.
//
// Each loop sees the records as they were when it started, so it may change the store.
func (s *Store) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		rows, _ := s.rows("")
		for _, row := range rows {
			if !yield(decodeRecord(row)) {
				return
			}
		}
	}
}

// decodeRecord decodes a row into the field of a record that has the name of its table.
func decodeRecord(row *jsondb.Row) (r Record) {
	text := `{"` + row.Table.Name + `":` + row.JSON + "}"
	err := json.Unmarshal([]byte(text), &r)
	if err != nil {
		panic(fmt.Errorf("%s: %w", row.ID, err)) // someone forged the file
	}
	return r
}

// rows returns a user's row and everything below it, parents before their children, or all rows if userID is
// empty. The error wraps [ErrNotFound].
func (s *Store) rows(userID string) (rows []*jsondb.Row, err error) {
	s.db.View(func(tx *jsondb.Tx) {
		switch {
		case userID == "":
			for user := range tx.Children("", "usr") {
				rows = slices.AppendSeq(rows, tx.Tree(user.ID))
			}
		case tx.Get("usr", userID) == nil:
			err = notFound("user", userID)
		default:
			rows = slices.Collect(tx.Tree(userID))
		}
	})
	return rows, err
}

func notFound(kind, id string) error { return fmt.Errorf("%s %q: %w", kind, id, ErrNotFound) }
