package events

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// User is the owner of API keys and the host of events. In this and the other types, the tag schema has the
// rules of a field; package schema explains it.
type User struct {
	ID        string    `json:"id" schema:"id=usr fixed"`
	Name      string    `json:"name" schema:"chars=1-255 required"`
	Email     string    `json:"email" schema:"email required"`         // unique, ignoring case
	AvatarURL *string   `json:"avatar_url" schema:"url empty_is_null"` // http or https
	Timezone  *string   `json:"timezone" schema:"zone empty_is_null"`  // default of the user's events
	CreatedAt time.Time `json:"created_at" schema:"fixed"`
}

// Key is an API key. A store keeps the digest of its secret.
type Key struct {
	ID        string     `json:"id" schema:"id=key fixed"`
	UserID    string     `json:"user_id" schema:"required fixed"` // user that the key identifies
	Secret    string     `json:"-" schema:"secret"`               // only read by [Store.Apply]
	Digest    string     `json:"digest" schema:"digest fixed"`    // SHA-256 of the secret in hexadecimal
	Hint      *string    `json:"hint" schema:"hint fixed"`        // last four characters of a long secret
	CreatedAt time.Time  `json:"created_at" schema:"fixed"`
	RevokedAt *time.Time `json:"revoked_at" schema:"fixed"` // nil if the key is valid
}

// Event is an event in the form of the API.
type Event struct {
	ID        string    `json:"id" schema:"id=evt fixed server"`
	HostID    string    `json:"host_id" schema:"required fixed server"` // user that hosts it
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

// Guest is an entry of an event's guest list. It has an Email, a Name or both.
type Guest struct {
	ID        string    `json:"id" schema:"id=gst fixed"`
	EventID   string    `json:"event_id" schema:"required fixed"`
	CreatedAt time.Time `json:"created_at" schema:"fixed"`
	Email     *string   `json:"email" schema:"email"` // unique within an event, ignoring case
	Name      *string   `json:"name" schema:"chars=1-255"`

	// If empty, Status is pending for an event that requires approval, and approved for others.
	Status string `json:"status" schema:"one_of=invited|pending|approved|declined|waitlist|cancelled"`

	RegisteredAt *time.Time `json:"registered_at"` // nil while invited
	CheckedInAt  *time.Time `json:"checked_in_at"` // nil until the guest is checked in
}

// Record is an element of the array that [Store.Apply] puts into a store. Exactly one field is set.
type Record struct {
	User   *User  `json:"user,omitempty"`
	Key    *Key   `json:"key,omitempty"`
	Event  *Event `json:"event,omitempty"`
	Guest  *Guest `json:"guest,omitempty"`
	Delete *Ref   `json:"delete,omitempty"`
}

// Ref names what a record deletes. Exactly one field is set, to an ID. Deleting a user deletes its keys and
// events, and deleting an event deletes its guests.
type Ref struct {
	User  string `json:"user,omitempty" schema:"id=usr"`
	Key   string `json:"key,omitempty" schema:"id=key"`
	Event string `json:"event,omitempty" schema:"id=evt"`
	Guest string `json:"guest,omitempty" schema:"id=gst"`
}

// RecordError is returned if a record is refused. It has everything that is wrong with the record.
type RecordError struct {
	Record   int      // position in the array, counted from 1; 0 if the problem is the array
	Kind     string   // user, key, event, guest or delete; "" if unknown
	Problems []string // sentences, each of which begins with the name of a field if it is about one
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
	// ErrNotFound is returned if there is no user or key with the given ID.
	ErrNotFound = errors.New("not found")
	// ErrInUse is returned by [Open] if another store, in this process or another, has the data file open.
	ErrInUse = jsondb.ErrLocked
	// ErrDamaged is returned by [Open] if the data file isn't as it was written.
	ErrDamaged = jsondb.ErrDamaged
	// ErrFormat is returned by [Open] if the file isn't a data file, or has a newer format.
	ErrFormat = jsondb.ErrFormat
	// ErrNotWritten is returned if a change could not be written to the data file. It isn't visible. If a
	// sync failed, it may still be there after a restart.
	ErrNotWritten = jsondb.ErrNotWritten
	// ErrClosed is returned by methods that change a store that is closed.
	ErrClosed = jsondb.ErrClosed

	errUserDeleted         = errors.New("the user was deleted")
	errIdempotencyMismatch = errors.New("the idempotency key was used with another body")
)

var secretRule = schema.Match(httpapi.KeyPrefix+`[A-Za-z0-9._~-]{1,246}`,
	"must be "+httpapi.KeyPrefix+" and 1 to 246 of A-Z a-z 0-9 . _ ~ -")

var (
	userSchema = schema.Of(User{}, nil)
	keySchema  = schema.Of(Key{}, schema.Rules{
		"secret": secretRule,
		"digest": schema.Match(`[0-9a-f]{64}`, "must be a SHA-256 as 64 hexadecimal digits in lower case"),
		"hint":   schema.Match(`[!-~]{4}`, "must be the last four characters of the secret, visible ASCII"),
	})
	eventSchema = schema.Of(Event{}, nil)
	guestSchema = schema.Of(Guest{}, nil)
	refSchema   = schema.Of(Ref{}, nil)
)

// The functions below return unique keys of rows. The unique key of an event is its slug. The others contain
// a colon, which neither IDs nor slugs do, so no two kinds have a key in common.

func emailKey(email string) string          { return "email:" + strings.ToLower(email) }
func digestKey(digest string) string        { return "key:" + digest }
func guestKey(eventID, email string) string { return "guest:" + eventID + ":" + strings.ToLower(email) }

// tables describe the rows of a database. A row is the struct of its kind in JSON, and the API serves it
// unchanged. So a new field needs a new format, in which all rows have it. It belongs at the end of the
// struct, because Scan reads the fields in their order.
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
}

// revoked is the status of the row of a revoked key.
const revoked = "revoked"

// formats are the formats of data files that can be read, the oldest first.
var formats = []string{"events/1"}

// upgrade returns a row of an older format in the current one, in which new fields have their zero values.
func upgrade[T any](text string) (string, error) {
	var x T
	err := json.Unmarshal([]byte(text), &x)
	return string(strict.Encode(&x)), err
}

// Config configures a [Store]. The zero value of each field selects the default. A store calls Now and NewID
// within changes, one at a time, so they must not change the same store.
type Config struct {
	// Now is the clock. The time must be in the years 0 to 9999. If nil, the store uses the system clock in
	// whole microseconds, and moves created_at forward so that each is later than all before.
	Now func() time.Time
	// NewID returns a new ID without its prefix: 1 to 64 of A-Z a-z 0-9 _ -. The kind is usr, key, evt or
	// gst, or slug for the end of a slug, or secret for an API key without its prefix. The owner is the ID of
	// the user it belongs to or, if kind is usr, the name of the new user. The store calls NewID again as
	// long as the ID is in use. If nil, IDs are random: 128 bits, or 40 for a slug.
	NewID func(kind, owner string) string
	// Logger receives the causes of responses with status 500, failed writes and repairs of the data file. It
	// never receives a key or a body. If nil, nothing is logged.
	Logger *slog.Logger
	// NewEventStatus is the status of new events: draft or published. If empty, it is published. Any other
	// value means draft.
	NewEventStatus string
}

// Store keeps users, keys, events and guests in memory and, after [Open], in a data file. It is safe for
// concurrent use.
//
// Its methods that change it return when the change is visible and, if there is a data file, durable.
type Store struct {
	cfg Config
	db  *jsondb.DB

	// lastCreated is the latest created_at that the store has set. Only transactions use it, and they run one
	// at a time.
	lastCreated time.Time
}

// NewStore returns an empty store in memory. A nil cfg is the zero [Config].
func NewStore(cfg *Config) *Store {
	s := newStore(cfg)
	s.db = jsondb.New(s.options())
	return s
}

// Open returns the store in the data file at path, which it creates if it is missing, and locks the file
// until [Store.Close]. A file of an older format is rewritten in the current one. If the file is in use,
// damaged, not a data file or of a newer format, the error wraps [ErrInUse], [ErrDamaged] or [ErrFormat], and
// the file is unchanged. A nil cfg is the zero [Config].
func Open(path string, cfg *Config) (*Store, error) {
	s := newStore(cfg)
	db, err := jsondb.Open(path, s.options())
	if err != nil {
		return nil, err
	}
	s.db = db
	return s, nil
}

func newStore(cfg *Config) *Store {
	s := &Store{cfg: *cmp.Or(cfg, &Config{})}
	s.cfg.Logger = cmp.Or(s.cfg.Logger, slog.New(slog.DiscardHandler))
	s.cfg.NewEventStatus = cmp.Or(s.cfg.NewEventStatus, "published")
	if s.cfg.NewEventStatus != "published" { // a typing mistake publishes nothing
		s.cfg.NewEventStatus = "draft"
	}
	if s.cfg.NewID == nil {
		s.cfg.NewID = randomID
	}
	return s
}

func (s *Store) options() jsondb.Options {
	return jsondb.Options{Tables: tables, Formats: formats, Now: s.now, Logger: s.cfg.Logger}
}

// Close waits for the change under way and closes the data file. Later changes return [ErrClosed]. Reads go
// on.
func (s *Store) Close() error { return s.db.Close() }

// Err returns the error because of which nothing can be written until a restart, or nil.
func (s *Store) Err() error { return s.db.Err() }

// addEvent creates an event from the body of a request by its host. If the host has already created one
// with this idempotency key and body, it returns that event, and replayed is true. The key may be empty.
func (s *Store) addEvent(host string, body []byte, idempotencyKey string) (
	event *jsondb.Row, replayed bool, err error,
) {
	var e Event
	p := eventSchema.Unmarshal(body, &e, schema.FromClient)
	checkTimes(&e, p)
	problems := p.All()
	e.HostID = host
	sum := digest(body)
	err = s.db.Batch(func(tx *jsondb.Tx) error {
		// The key comes before the problems, because a body that is wrong is also another body than that of
		// the first request.
		var firstSum string
		event, firstSum = tx.FindIdempotent(host, idempotencyKey)
		switch {
		case event != nil && firstSum != sum:
			return errIdempotencyMismatch
		case event != nil:
			replayed = true
			return nil
		case problems != nil:
			return &RecordError{Problems: problems}
		case tx.Get("usr", host) == nil:
			return errUserDeleted
		}
		s.completeEvent(tx, &e)
		if idempotencyKey == "" {
			event = tx.Put(strict.Encode(&e))
		} else {
			event = tx.PutIdempotent(strict.Encode(&e), idempotencyKey, sum)
		}
		return nil
	})
	return event, replayed, err
}

func checkTimes(e *Event, p *schema.Problems) {
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
}

// completeEvent sets the fields of an event that are not given. Its host must exist.
func (s *Store) completeEvent(tx *jsondb.Tx, e *Event) {
	e.Timezone = cmp.Or(e.Timezone, tx.Get("usr", e.HostID).Value("timezone"), "UTC")
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, s.cfg.NewEventStatus)
	s.setCreatedAt(&e.CreatedAt)
	s.setID(tx, &e.ID, "evt", e.HostID)
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = e.CreatedAt
	}
	words := schema.Slugify(e.Title)
	for e.Slug == "" {
		e.Slug = words + "-" + s.cfg.NewID("slug", e.HostID)
		if tx.Find(e.Slug) != nil {
			e.Slug = ""
		}
	}
}

// setID sets an ID that is empty to an unused one.
func (s *Store) setID(tx *jsondb.Tx, id *string, prefix, owner string) {
	for *id == "" {
		*id = prefix + "_" + s.cfg.NewID(prefix, owner)
		if tx.Find(*id) != nil {
			*id = ""
		}
	}
}

// randomID is the default of Config.NewID. 128 bits are never used twice.
func randomID(kind, _ string) string {
	text := strings.ToLower(rand.Text())
	if kind == "slug" {
		return text[:8]
	}
	return text
}

// setCreatedAt sets *created to the current time, unless the record has its own. Times are unique: if the
// clock stands still or goes back, the next time is one microsecond after the last.
func (s *Store) setCreatedAt(created *time.Time) {
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

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Apply applies records in order, all or none. A record replaces the row with its ID; a user is also found by
// email, a key by its digest, and a guest by event and email. A field with its zero value is reset to its
// default, except for IDs, slugs, parents and times of creation, which never change. The error is a
// [*RecordError] if a record is refused.
func (s *Store) Apply(records ...Record) error {
	_, err := s.applyRecords(func(yield func(strict.Value, error) bool) {
		for _, r := range records {
			if !yield(r.value(), nil) {
				return
			}
		}
	})
	return err
}

// ApplyJSON is like [Store.Apply] for a JSON array of records, but merges them. A field that isn't given
// keeps its value, and null resets it. So applying an array twice changes nothing.
func (s *Store) ApplyJSON(records []byte) error {
	_, err := s.applyRecords(strict.ParseArray(records))
	return err
}

// applied counts the records of an array, and those that changed nothing.
type applied struct{ records, unchanged int }

// applyRecords applies records and stops at the first mistake. There may be any number of them, so no other
// request shares their commit.
func (s *Store) applyRecords(records iter.Seq2[strict.Value, error]) (applied, error) {
	var done applied
	err := s.db.Update(func(tx *jsondb.Tx) error {
		for record, err := range records {
			if err != nil {
				return &RecordError{Problems: []string{"the records are not a JSON array: " + err.Error()}}
			}
			done.records++
			before := tx.NumChanges()
			kind, problems := s.applyRecord(tx, record)
			if problems != nil {
				return &RecordError{Record: done.records, Kind: kind, Problems: problems}
			}
			if tx.NumChanges() == before {
				done.unchanged++
			}
		}
		return nil
	})
	return done, err
}

// applyRecord applies one record.
func (s *Store) applyRecord(tx *jsondb.Tx, record strict.Value) (kind string, problems []string) {
	if record.Kind == strict.Object && len(record.Members) == 1 {
		kind = record.Members[0].Name
	}
	v := record.Member(kind)
	switch kind {
	case "user":
		_, problems = s.applyUser(tx, v)
	case "key":
		_, problems = s.applyKey(tx, v)
	case "event":
		problems = s.applyEvent(tx, v)
	case "guest":
		problems = s.applyGuest(tx, v)
	case "delete":
		problems = applyDelete(tx, v)
	default:
		return "", []string{"must be an object with exactly one field: user, key, event, guest or delete"}
	}
	return kind, problems
}

func (s *Store) applyUser(tx *jsondb.Tx, v strict.Value) (id string, problems []string) {
	var u User
	old := findExisting(tx, v, "usr", emailKey(stringField(v, "email")))
	decode(old, &u)
	p := userSchema.Decode(&u, v, modeOf(old))
	problems = checkConflict(tx, p, u.ID, "email", emailKey(u.Email))
	if problems != nil {
		return "", problems
	}
	s.setCreatedAt(&u.CreatedAt)
	s.setID(tx, &u.ID, "usr", u.Name)
	tx.Put(strict.Encode(&u))
	return u.ID, nil
}

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
		if k.Digest != "" && k.Digest != sum {
			p.Add("digest", "doesn't match the secret: leave one of them out")
		}
		k.Digest = sum
		k.Hint = hint(secret)
	}
	if k.Digest == "" {
		p.Add("secret", "is required, or its digest")
	}
	if tx.Get("usr", k.UserID) == nil {
		p.Add("user_id", fmt.Sprintf("%q is not known", k.UserID))
	}
	problems = checkConflict(tx, p, k.ID, given, digestKey(k.Digest))
	if problems != nil {
		return "", problems
	}
	s.setCreatedAt(&k.CreatedAt)
	s.setID(tx, &k.ID, "key", k.UserID)
	tx.Put(strict.Encode(&k))
	return k.ID, nil
}

// digest returns the SHA-256 of a secret or of a body. A secret that the server created needs no slower
// function, because nobody can guess 128 random bits.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// hint returns the end of a secret by which a person can tell keys apart. It returns nil if the secret is so
// short that four characters would be much of it.
func hint(secret string) *string {
	if len(secret) < len(httpapi.KeyPrefix)+16 {
		return nil
	}
	return new(secret[len(secret)-4:])
}

func (s *Store) applyEvent(tx *jsondb.Tx, v strict.Value) (problems []string) {
	var e Event
	old := findExisting(tx, v, "evt", "")
	decode(old, &e)
	before := e.UpdatedAt
	p := eventSchema.Decode(&e, v, modeOf(old))
	if e.UpdatedAt.IsZero() { // the record has null
		e.UpdatedAt = before
	}
	checkTimes(&e, p)
	if tx.Get("usr", e.HostID) == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	problems = checkConflict(tx, p, e.ID, "slug", e.Slug)
	if problems != nil {
		return problems
	}
	s.completeEvent(tx, &e)
	text := strict.Encode(&e)
	if old != nil && string(text) != old.JSON && e.UpdatedAt.Equal(before) {
		e.UpdatedAt = latest(s.now(), before)
		text = strict.Encode(&e)
	}
	tx.Put(text)
	return nil
}

func (s *Store) applyGuest(tx *jsondb.Tx, v strict.Value) (problems []string) {
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
	problems = checkConflict(tx, p, g.ID, "email", key)
	if problems != nil {
		return problems
	}
	if g.Status == "" {
		g.Status = "approved"
		if event.Value("requires_approval") == "true" {
			g.Status = "pending"
		}
	}
	s.setCreatedAt(&g.CreatedAt)
	if g.RegisteredAt == nil {
		g.RegisteredAt = &g.CreatedAt
	}
	if g.Status == "invited" {
		g.RegisteredAt = nil
	}
	s.setID(tx, &g.ID, "gst", event.Parent)
	tx.Put(strict.Encode(&g))
	return nil
}

func applyDelete(tx *jsondb.Tx, v strict.Value) (problems []string) {
	var ref Ref
	problems = refSchema.Decode(&ref, v, schema.New).All()
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

// findExisting returns the row with the ID of a record or, if the record has no ID, the row with the unique
// key that its fields give it. It returns nil if the record is a new row.
func findExisting(tx *jsondb.Tx, v strict.Value, prefix, key string) *jsondb.Row {
	id := v.Member("id")
	if id.Kind != strict.Null {
		return tx.Get(prefix, id.Text)
	}
	return tx.Find(key)
}

// decode decodes a row into the struct that object points to. A nil row changes nothing.
func decode(row *jsondb.Row, object any) {
	if row == nil {
		return
	}
	err := json.Unmarshal([]byte(row.JSON), object)
	if err != nil {
		panic(fmt.Errorf("%s: %w", row.ID, err)) // only possible if someone forged the file
	}
}

func modeOf(old *jsondb.Row) schema.Mode {
	if old == nil {
		return schema.New
	}
	return schema.Merge
}

// checkConflict adds a problem of a field if another row than the one with the ID has its unique key. It
// returns all problems.
func checkConflict(tx *jsondb.Tx, p *schema.Problems, id, field, key string) []string {
	other := tx.Find(key)
	if other != nil && other.ID != id {
		p.Add(field, "is taken by "+other.ID)
	}
	return p.All()
}

// stringField returns the field of an object if it is a string, otherwise "".
func stringField(v strict.Value, name string) string {
	field := v.Member(name)
	if field.Kind != strict.String {
		return ""
	}
	return field.Text
}

// value returns the record as a JSON object.
func (r Record) value() strict.Value {
	v := strict.Value{Kind: strict.Object}
	add := func(kind string, s schema.Schema, object any) {
		if !reflect.ValueOf(object).IsNil() {
			v.Members = append(v.Members, strict.Member{Name: kind, Value: s.Value(object)})
		}
	}
	add("user", userSchema, r.User)
	add("key", keySchema, r.Key)
	add("event", eventSchema, r.Event)
	add("guest", guestSchema, r.Guest)
	add("delete", refSchema, r.Delete)
	return v
}

// Records returns everything in the store as records that create the same store: each user with its keys and
// events, each event with its guests. Keys have a digest and no secret.
func (s *Store) Records() []Record {
	rows, _ := s.rows("")
	var all bytes.Buffer
	jsondb.WriteRecords(&all, rows)
	var records []Record
	err := json.Unmarshal(all.Bytes(), &records)
	if err != nil {
		panic(err) // it was just encoded
	}
	return records
}

// rows returns the rows of a user and of all that belongs to it or, if userID is empty, all rows, parents
// before their children. The error wraps [ErrNotFound] if there is no such user.
func (s *Store) rows(userID string) (rows []*jsondb.Row, err error) {
	s.db.View(func(tx *jsondb.Tx) {
		switch {
		case userID == "":
			rows = slices.Collect(tx.All())
		case tx.Get("usr", userID) == nil:
			err = notFound("user", userID)
		default:
			rows = slices.Collect(tx.Tree(userID))
		}
	})
	return rows, err
}

func notFound(kind, id string) error { return fmt.Errorf("%s %q: %w", kind, id, ErrNotFound) }
