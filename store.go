package events

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

// User is the owner of API keys and the host of events. In this and the other resources,
// the tag form has the rules of a member: package form explains it.
type User struct {
	ID        string    `json:"id" form:"id=usr fixed"`
	Name      string    `json:"name" form:"chars=1-255 required"`
	Email     string    `json:"email" form:"email required"`         // unique, whatever its case
	AvatarURL *string   `json:"avatar_url" form:"url empty_is_null"` // http or https
	Timezone  *string   `json:"timezone" form:"zone empty_is_null"`  // of the user's events
	CreatedAt time.Time `json:"created_at" form:"fixed"`
}

// Key is an API key without its secret, which no store keeps.
type Key struct {
	ID        string     `json:"id" form:"id=key fixed"`
	UserID    string     `json:"user_id" form:"required fixed"` // the user that the key identifies
	Secret    string     `json:"-" form:"secret"`               // svc_live_ and more; never read back
	Digest    string     `json:"digest" form:"digest fixed"`    // SHA-256 in hexadecimal
	Hint      *string    `json:"hint" form:"hint"`              // the end of a long secret
	CreatedAt time.Time  `json:"created_at" form:"fixed"`
	RevokedAt *time.Time `json:"revoked_at" form:"fixed"` // since when it is refused
}

// Event is an event as the API answers it.
type Event struct {
	ID        string    `json:"id" form:"id=evt fixed server"`
	HostID    string    `json:"host_id" form:"required fixed server"` // the user that hosts it
	Slug      string    `json:"slug" form:"slug fixed server"`        // unique, never changes
	Status    string    `json:"status" form:"one_of=draft|published server"`
	CreatedAt time.Time `json:"created_at" form:"fixed server"`
	UpdatedAt time.Time `json:"updated_at" form:"server"`

	Title       string    `json:"title" form:"title required"` // 1 to 255 characters
	Description *string   `json:"description" form:"chars=0-50000"`
	StartAt     time.Time `json:"start_at" form:"required"`
	EndAt       time.Time `json:"end_at" form:"required"`             // after StartAt
	Timezone    string    `json:"timezone" form:"zone empty_is_null"` // Area/City or UTC

	LocationType     *string `json:"location_type" form:"one_of=in_person|virtual empty_is_null"`
	LocationCity     *string `json:"location_city" form:"chars=0-100"`
	LocationCountry  *string `json:"location_country" form:"chars=0-100"`
	Visibility       string  `json:"visibility" form:"one_of=public|private empty_is_null"`
	RequiresApproval bool    `json:"requires_approval"`
	CoverImageURL    *string `json:"cover_image_url" form:"url empty_is_null"` // at most 2,048 characters
	MeetingURL       *string `json:"meeting_url" form:"url empty_is_null"`     // at most 2,048 characters
}

// Guest is one person on an event's guest list. At least one of Email and Name is not
// nil.
type Guest struct {
	ID           string     `json:"id" form:"id=gst fixed"`
	EventID      string     `json:"event_id" form:"required fixed"` // the event
	CreatedAt    time.Time  `json:"created_at" form:"fixed"`
	Email        *string    `json:"email" form:"email"` // unique in an event, compared without case
	Name         *string    `json:"name" form:"chars=1-255"`
	Status       string     `json:"status" form:"one_of=invited|pending|approved|declined|waitlist|cancelled"`
	RegisteredAt *time.Time `json:"registered_at"` // nil while invited
	CheckedInAt  *time.Time `json:"checked_in_at"` // nil until then
}

// Record is one record of a seed, a dump or a call of [Store.Apply]: exactly one of
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
	// ErrFormat: the file is not a data file, or one of a newer version.
	ErrFormat = rows.ErrFormat
	// ErrNotWritten: a change is not on disk, or it is unknown whether it is.
	ErrNotWritten = rows.ErrNotWritten
	// ErrClosed: the store is closed and takes no more changes.
	ErrClosed = rows.ErrClosed
)

// The tags of the structs above have form.Flags, rules with a parameter such as chars=1-255,
// and the names of these rules. The members of a stored row stand in the order of the fields:
// append new ones at the end. A field holds no struct, map or slice: package rows could not read it.
var rules = form.Rules{
	"email":  form.Email,
	"url":    form.URL,
	"zone":   form.Zone,
	"secret": secretRule,
	"digest": form.Match(`[0-9a-f]{64}`, "must be a SHA-256 as 64 hexadecimal digits in lower case"),
	"hint":   form.Match(`[!-~]{4}`, "must be the last four characters of the secret, visible ASCII"),
	"slug":   form.Slug,
	"title":  form.Title,
}

var (
	userTable  = form.NewTable(User{}, rules)
	keyTable   = form.NewTable(Key{}, rules)
	eventTable = form.NewTable(Event{}, rules)
	guestTable = form.NewTable(Guest{}, rules)
	refTable   = form.NewTable(Ref{}, rules)
)

// A row is found by its id and by a second name, a unique alternate one. An event's is
// its slug. The others have a colon, which neither ids nor slugs have, so no two kinds
// ever share a name. A guest without an email has no second name.

func emailName(email string) string        { return "email:" + strings.ToLower(email) }
func apiKeyName(digest string) string      { return "key:" + digest }
func guestName(event, email string) string { return "guest:" + event + ":" + strings.ToLower(email) }

// formats are the formats of the data file, the oldest first, each with the members that
// it added: see [rows.Format].
var formats = []rows.Format{
	{Name: "events/1"},
}

// kinds are the kinds of rows, with what the database reads of each.
var kinds = []rows.Kind{
	{
		Name:    "user",
		Prefix:  "usr",
		Members: []string{`"id":`, `"email":`, `"created_at":`},
		Index:   func(v rows.Values) (name, status string) { return emailName(v[1]), "" },
	},
	{
		Name:    "key",
		Prefix:  "key",
		Parent:  "usr",
		Members: []string{`"id":`, `"user_id":`, `"digest":`, `"created_at":`, `"revoked_at":`},
		Index: func(v rows.Values) (name, status string) {
			if v[4] != "" {
				status = "revoked"
			}
			return apiKeyName(v[2]), status
		},
	},
	{
		Name:    "event",
		Prefix:  "evt",
		Parent:  "usr",
		Members: []string{`"id":`, `"host_id":`, `"slug":`, `"status":`, `"created_at":`},
		Index:   func(v rows.Values) (name, status string) { return v[2], v[3] },
	},
	{
		Name:    "guest",
		Prefix:  "gst",
		Parent:  "evt",
		Members: []string{`"id":`, `"event_id":`, `"created_at":`, `"email":`},
		Index: func(v rows.Values) (name, status string) {
			if v[3] != "" {
				name = guestName(v[1], v[3])
			}
			return name, ""
		},
	},
}

// Config says how a store differs from the usual. The zero value of each member is the usual. A
// store calls Now and NewID while it makes a change, one at a time, so they must not change that
// store.
type Config struct {
	// Now is the clock; a clock given here is taken as it is, from the year 0 to 9999. Nil is the
	// machine's, in whole microseconds: the creation times that a store takes from that one are
	// moved forward as needed, so that no two of them are equal. Records that come
	// with a created_at keep it, and theirs may be equal.
	Now func() time.Time
	// NewID makes what is unique. The kind is usr, key, evt or gst for the part of
	// an id after "usr_" and so on, slug for the end of a slug, and secret for the
	// part of an API key after its prefix. The owner is the id of the user that the
	// result belongs to; for kind usr it is the user's name. NewID is called again if
	// the result is in use already. Nil is random.
	NewID func(kind, owner string) string
	// Logger gets what an operator must know: the cause of each 500, repairs of
	// the data file. It never gets a key or a body. Nil discards.
	Logger *slog.Logger
	// NewEventStatus is the status of an event that comes without one: draft or
	// published. Empty is published. Any other value is draft, so that a typing mistake
	// publishes nothing.
	NewEventStatus string
}

// Store keeps users, keys, events and guests, in memory and, if it was opened on
// a file, on disk. [NewStore] and [Open] make one. It is safe for concurrent use.
//
// This file has the four kinds and their rules. Package rows keeps the rows: the
// mutex that guards them in memory is its DB.mu. Every change goes the same way, by
// its Batch: it is checked against the current state, encoded, appended to the
// file, waited for until it is durable, and only then published.
type Store struct {
	cfg Config
	db  *rows.DB

	clock clock

	encoded []byte // the row that was encoded last; kept for its memory: updates run one at a time
}

// inner is a store with what the packages under internal/ need of it beside its public
// methods. They cannot import this package: they reach these methods through the
// [http.Handler] that [New] returns, by interfaces of their own. So nothing that only they
// need is public.
type inner struct{ *Store }

// NewStore returns an empty store in memory. A nil cfg is the zero [Config].
func NewStore(cfg *Config) *Store {
	s := newStore(cfg)
	s.db = rows.New(s.options())
	return s
}

func newStore(cfg *Config) *Store {
	s := &Store{cfg: *cmp.Or(cfg, &Config{})}
	s.clock.configured = s.cfg.Now
	s.cfg.Logger = cmp.Or(s.cfg.Logger, slog.New(slog.DiscardHandler))
	switch s.cfg.NewEventStatus {
	case "", "published":
		s.cfg.NewEventStatus = "published"
	default: // a typing mistake publishes nothing
		s.cfg.NewEventStatus = "draft"
	}
	return s
}

// Open returns the store that the data file at path holds, or an empty one if there is
// no file: the first change makes it. Open locks the file, so a second Open of it, in
// this process or another, is refused; [Store.Close] releases the lock. A file of an
// older version is written anew in the current format. A file that is damaged, of
// another program or of a newer version is refused and left as it is; the error wraps
// [ErrInUse], [ErrDamaged] or [ErrFormat] if it is one of those, and says what to do.
func Open(path string, cfg *Config) (*Store, error) {
	s := newStore(cfg)
	var err error
	s.db, err = rows.Open(path, s.options())
	if err != nil {
		return nil, err
	}
	s.clock.advance(s.db.Stats().Newest)
	return s, nil
}

func (s *Store) options() rows.Options {
	return rows.Options{Kinds: kinds, Formats: formats, Now: s.clock.now, Logger: s.cfg.Logger}
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
			if !yield(r.value(), nil) {
				return
			}
		}
	}
	ctx := context.Background()
	_, err := update(ctx, s, func(t tx) (applyResult, error) { return t.applyAll(ctx, values) })
	return err
}

// ApplyJSON is [Store.Apply] for a JSON array of records, but merges: what a
// record leaves out stays as it is, and null sets a member back to its default.
// So applying the same array twice changes nothing.
func (s *Store) ApplyJSON(records []byte) error {
	_, err := s.applyArray(context.Background(), records)
	return err
}

// ApplyRecords is ApplyJSON. It counts the records as "applied", those that changed nothing as
// "unchanged", and those of each kind under its name. Of the records of each kind that changed
// something, it returns the ids.
func (s inner) ApplyRecords(
	records []byte,
) (count map[string]int, ids map[string][]string, err error) {
	done, err := s.applyArray(context.Background(), records)
	return done.count, done.ids, err
}

// applyArray applies a JSON array of records.
func (s *Store) applyArray(ctx context.Context, records []byte) (applyResult, error) {
	return update(ctx, s, func(t tx) (applyResult, error) {
		return t.applyAll(ctx, strict.ParseArray(records))
	})
}

// Replace deletes everything in the store and applies records, in one step. At the end of that step
// it calls the function then: the records are accepted, and no other change has begun. A test double
// goes back to its start by it, while it is in use. The store must be in memory, where an update runs
// once, and nothing fails after it.
func (s inner) Replace(records []byte, then func()) error {
	ctx := context.Background()
	_, err := update(ctx, s.Store, func(t tx) (applyResult, error) {
		for _, user := range t.Children("") {
			t.Delete(user.ID)
		}
		done, err := t.applyAll(ctx, strict.ParseArray(records))
		if err == nil {
			then()
		}
		return done, err
	})
	return err
}

// Records returns a copy of everything in the store, as records that make the same
// store again: each user with its keys and events, each event with its guests. Keys
// come without secrets but with their digests. An event that was created in the
// first instant of the year 1 cannot be copied so, as that is Go's zero time.
func (s *Store) Records() (records []Record) {
	var all bytes.Buffer
	err := inner{s}.WriteRecords(&all)
	if err == nil {
		err = json.Unmarshal(all.Bytes(), &records)
	}
	if err != nil {
		panic(err) // it was just encoded
	}
	return records
}

// dumpPart is how many bytes of a dump are joined before they are written.
const dumpPart = 128 << 10

// WriteRecords writes all records as a JSON array with one record a line: a seed. They
// are written in parts after they were found, so that others can change the store
// meanwhile, however slowly they are read. The error is that of w.
func (s inner) WriteRecords(w io.Writer) error {
	total := 0
	for _, n := range s.db.Stats().Rows {
		total += n
	}
	records := make([]storedRecord, 0, total+total/16) // growing it would take longer than to walk all rows
	s.db.View(func(v rows.View) {
		for r := range v.All {
			records = append(records, storedRecord{r.Kind, r.JSON})
		}
	})
	return writeRecords(w, records)
}

// UserRecords returns what writes the records of one user as WriteRecords does: the user, its keys,
// its events and their guests. The error wraps [ErrNotFound] if there is no such user.
func (s inner) UserRecords(userID string) (write func(io.Writer) error, err error) {
	var records []storedRecord
	s.db.View(func(v rows.View) {
		user := v.Get("usr", userID)
		if user == nil {
			err = notFound("user", userID)
			return
		}
		for r := range v.Tree(user) {
			records = append(records, storedRecord{r.Kind, r.JSON})
		}
	})
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return writeRecords(w, records) }, nil
}

// storedRecord is a row as a dump writes it. It stays as it is when the row changes.
type storedRecord struct {
	kind *rows.Kind
	json string
}

// writeRecords writes records as an array with one of them a line.
func writeRecords(w io.Writer, records []storedRecord) error {
	out := bufio.NewWriterSize(w, dumpPart)
	out.WriteString("[\n")
	for i, r := range records {
		if i > 0 {
			out.WriteString(",\n")
		}
		_, err := out.Write(rows.AppendRecord(out.AvailableBuffer(), r.kind, r.json))
		if err != nil {
			return err
		}
	}
	out.WriteString("\n]\n")
	return out.Flush()
}

// clock is the time of a store: that of the machine in whole microseconds, or the configured one
// as it is. It is safe for concurrent use.
type clock struct {
	configured func() time.Time // or nil

	mu sync.Mutex
	// created is the latest created_at so far. It may be ahead of the newest row, as updates that
	// fail move it, too. That is harmless: it only moves forward.
	created time.Time
}

func (c *clock) now() time.Time {
	if c.configured != nil {
		return c.configured().Round(0).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// check returns an error if the time has no form in RFC 3339.
func (c *clock) check() error {
	if c.configured == nil {
		return nil
	}
	year := c.now().Year()
	if year < 0 || year > 9999 {
		return fmt.Errorf("the configured clock is in the year %d: it must be from 0 to 9999, in UTC", year)
	}
	return nil
}

// next is the created_at of what is made now. Unless the clock is a configured one, it
// is later than every created_at so far, so that lists show the order of creation.
func (c *clock) next() time.Time {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	later := c.created.Truncate(time.Microsecond).Add(time.Microsecond)
	if c.configured == nil && !now.After(c.created) && later.Year() <= 9999 { // the last date-time
		now = later
	}
	c.created = latest(c.created, now)
	return now
}

// advance takes note of the created_at of a record.
func (c *clock) advance(created time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created = latest(c.created, created)
}

// latest is the later of two times. It keeps updated_at, for example, from being before
// created_at, even if the clock went back.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tx is an update of the store: the rows with the changes so far, and the rules.
type tx struct {
	*rows.Tx
	s *Store
}

// update runs f, which changes the store, all or nothing, and returns what f returns. On a file f
// may run twice ([rows.DB.Batch]): what the first run returned is forgotten.
func update[T any](ctx context.Context, s *Store, f func(tx) (T, error)) (T, error) {
	var result, nothing T
	err := s.clock.check()
	if err == nil {
		err = s.db.Batch(ctx, func(t *rows.Tx) (err error) {
			result, err = f(tx{Tx: t, s: s})
			return err
		})
	}
	if err != nil {
		return nothing, err
	}
	return result, nil
}

// applyResult is what became of the records of an array.
type applyResult struct {
	count map[string]int      // "applied", those that changed nothing as "unchanged", and by kind
	ids   map[string][]string // by kind, those that were changed: the first maxNamed, and how many more
}

const maxNamed = 10 // rows that a message or a line of the log names

// applyAll applies the records of an array, or returns the error of ctx once that is done.
func (t tx) applyAll(
	ctx context.Context, records iter.Seq2[strict.Value, error],
) (applyResult, error) {
	done := applyResult{map[string]int{}, map[string][]string{}}
	changed := map[string]int{} // by kind
	for record, err := range records {
		if ctx.Err() != nil {
			return applyResult{}, ctx.Err()
		}
		if err != nil {
			return applyResult{}, &RecordError{
				Problems: []string{"the records are not a JSON array: " + err.Error()},
			}
		}
		done.count["applied"]++
		before := t.Changes()
		id, refused := t.apply(record)
		if refused != nil {
			refused.Record = done.count["applied"]
			return applyResult{}, refused
		}
		kind := record.Members[0].Name // apply has refused what has no kind
		done.count[kind]++
		if t.Changes() == before {
			done.count["unchanged"]++
			continue
		}
		changed[kind]++
		if changed[kind] <= maxNamed {
			done.ids[kind] = append(done.ids[kind], id)
		}
	}
	for kind, n := range changed {
		if n > maxNamed {
			done.ids[kind] = append(done.ids[kind], fmt.Sprintf("and %d more", n-maxNamed))
		}
	}
	return done, nil
}

// apply applies one record. It returns the id of the row that it is about.
func (t tx) apply(record strict.Value) (id string, refused *RecordError) {
	if record.Kind != strict.Object || len(record.Members) != 1 {
		return "", errNoKind()
	}
	kind := record.Members[0].Name
	v := record.Members[0].Value
	var problems []string
	switch kind {
	case "user":
		id, problems = t.applyUser(v)
	case "key":
		id, problems = t.applyKey(v)
	case "event":
		id, problems = t.applyEvent(v)
	case "guest":
		id, problems = t.applyGuest(v)
	case "delete":
		id, problems = t.applyDelete(v)
	default:
		return "", errNoKind()
	}
	if problems != nil {
		return "", &RecordError{Kind: kind, Problems: problems}
	}
	return id, nil
}

func errNoKind() *RecordError {
	const problem = "must be an object with exactly one member: user, key, event, guest or delete"
	return &RecordError{Problems: []string{problem}}
}

// stringIn is a member of an object that is a string, or "".
func stringIn(v strict.Value, name string) string {
	m := v.Member(name)
	if m.Kind != strict.String {
		return ""
	}
	return m.Text
}

// value is the JSON object that a record stands for.
func (r Record) value() strict.Value {
	v := strict.Value{Kind: strict.Object}
	add := func(kind string, table form.Table, resource any) {
		if !reflect.ValueOf(resource).IsNil() {
			member := strict.Member{Name: kind, Value: table.Form(resource).JSON()}
			v.Members = append(v.Members, member)
		}
	}
	add("user", userTable, r.User)
	add("key", keyTable, r.Key)
	add("event", eventTable, r.Event)
	add("guest", guestTable, r.Guest)
	add("delete", refTable, r.Delete)
	return v
}

// existing returns the row that a record is about: the one with its id or, if it has
// none, with the second name that its members give it. Nil means a new row.
func (t tx) existing(v strict.Value, prefix, name string) *rows.Row {
	id := v.Member("id")
	if id.Kind != strict.Null {
		return t.Get(prefix, id.Text)
	}
	return t.Find(name)
}

// modeOf is how a record fills a row that exists, or a new one if old is nil.
func modeOf(old *rows.Row) form.Mode {
	if old == nil {
		return form.New
	}
	return form.Merge
}

// decode reads a row, if there is one, into x, which points to a User, Key, Event or Guest.
func decode(x any, from *rows.Row) {
	if from == nil {
		return
	}
	err := json.Unmarshal([]byte(from.JSON), x)
	if err != nil {
		panic(fmt.Errorf("the row %s: %w", from.ID, err))
	}
}

// conflicts checks what is the same for each kind: the second name, which comes from the member,
// must not be that of a row with another id. It returns all problems.
func (t tx) conflicts(p *form.Problems, id, member, name string) []string {
	named := t.Find(name)
	if named != nil && named.ID != id {
		p.Add(member, "is taken by "+named.ID)
	}
	return p.All()
}

// stamp sets the created_at of a new row, unless its record has one.
func (t tx) stamp(created *time.Time, old *rows.Row) {
	switch {
	case old != nil:
	case created.IsZero():
		*created = t.s.clock.next()
	default:
		t.s.clock.advance(*created)
	}
}

// makeID sets an id, which is the first member of a table, if none was given.
func (t tx) makeID(id *string, table form.Table, prefix, owner string) {
	if *id == "" {
		whole := func(made string) string { return prefix + "_" + made }
		*id = t.unique(prefix, owner, table[0].Rule, whole)
	}
}

// unique returns a name that is not in use. It panics, which Batch returns as an error,
// if Config.NewID makes one that the rule does not allow, or a million in turn that are
// in use. The rule may be nil.
func (t tx) unique(kind, owner string, rule *form.Rule, whole func(made string) string) string {
	isOurs := t.s.cfg.NewID == nil // which needs no check, and of which 128 bits never come twice
	for range 1_000_000 {
		name := whole(t.s.newID(kind, owner))
		if !isOurs && rule != nil && rule.Of(name) != "" {
			panic(fmt.Sprintf("Config.NewID makes %q, which %s", name, rule.Of(name)))
		}
		if isOurs && kind != "slug" || t.Find(name) == nil {
			return name
		}
	}
	panic("Config.NewID makes only what is taken")
}

// idAlphabet has 32 characters that ids, slugs and secrets can all hold.
var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newID is the random part of an id, slug or secret: what Config.NewID gives, else
// 128 random bits (40 of a slug, which is no secret and is made again if it is in
// use).
func (s *Store) newID(kind, owner string) string {
	if s.cfg.NewID != nil {
		return s.cfg.NewID(kind, owner)
	}
	random := make([]byte, 16)
	rand.Read(random) // it never fails
	text := idAlphabet.EncodeToString(random)
	if kind == "slug" {
		return text[:8]
	}
	return text
}

// put puts the row of a form, which is bound to a User, Key, Event or Guest, in place of the
// old one, if there is one.
func (t tx) put(f form.Form, old *rows.Row, idem *rows.IdempotencyKey) *rows.Row {
	return t.Put(old, t.encode(f), idem)
}

// encode is the text of the row of a form, until the next call. It panics, which Batch returns as
// an error, if a time cannot be written, which [clock.check] prevents.
func (t tx) encode(f form.Form) []byte {
	text, err := f.Append(t.s.encoded[:0])
	if err != nil {
		panic(err)
	}
	t.s.encoded = text
	return text
}

func (t tx) applyUser(v strict.Value) (id string, problems []string) {
	var u User
	old := t.existing(v, "usr", emailName(stringIn(v, "email")))
	decode(&u, old)
	f := userTable.Form(&u)
	p := f.Fill(v, modeOf(old))
	problems = t.conflicts(p, u.ID, "email", emailName(u.Email))
	if problems != nil {
		return "", problems
	}
	t.stamp(&u.CreatedAt, old)
	t.makeID(&u.ID, userTable, "usr", u.Name)
	t.put(f, old, nil)
	return u.ID, nil
}

// applyKey puts the key of a record, which has the secret or its digest.
func (t tx) applyKey(v strict.Value) (id string, problems []string) {
	var k Key
	sum := stringIn(v, "digest")
	given := "digest"
	secret := stringIn(v, "secret")
	if secret != "" {
		sum = digest(secret)
		given = "secret"
	}
	old := t.existing(v, "key", apiKeyName(sum))
	decode(&k, old)
	f := keyTable.Form(&k)
	p := f.Fill(v, modeOf(old))
	if secret != "" {
		if k.Digest != "" && k.Digest != sum {
			p.Add("digest", "is not that of the secret: leave one of them out")
		}
		k.Digest = sum
		k.Hint = hint(secret)
	}
	if k.Digest == "" {
		p.Add("secret", "is required, or its digest")
	}
	if t.Get("usr", k.UserID) == nil {
		p.Add("user_id", fmt.Sprintf("%q is not known", k.UserID))
	}
	problems = t.conflicts(p, k.ID, given, apiKeyName(k.Digest))
	if problems != nil {
		return "", problems
	}
	t.stamp(&k.CreatedAt, old)
	t.makeID(&k.ID, keyTable, "key", k.UserID)
	t.put(f, old, nil)
	return k.ID, nil
}

// applyEvent puts the event of a record. Its updated_at moves if another member changes.
func (t tx) applyEvent(v strict.Value) (id string, problems []string) {
	var e Event
	old := t.existing(v, "evt", "")
	decode(&e, old)
	before := e.UpdatedAt
	f := eventTable.Form(&e)
	p := f.Fill(v, modeOf(old))
	if e.UpdatedAt.IsZero() { // the record has null
		e.UpdatedAt = before
	}
	problems = t.checkEvent(&e, p)
	if problems != nil {
		return "", problems
	}
	t.completeEvent(&e, old)
	if old != nil && e.UpdatedAt.Equal(before) && string(t.encode(f)) != old.JSON {
		e.UpdatedAt = latest(t.s.clock.now(), e.CreatedAt)
	}
	t.put(f, old, nil)
	return e.ID, nil
}

// newEvent puts the event of a host that a client creates.
func (t tx) newEvent(host string, v strict.Value, idem *rows.IdempotencyKey) (*rows.Row, []string) {
	e := Event{HostID: host}
	f := eventTable.Form(&e)
	p := f.ByClient().Fill(v, form.New)
	problems := t.checkEvent(&e, p)
	if problems != nil {
		return nil, problems
	}
	t.completeEvent(&e, nil)
	return t.put(f, nil, idem), nil
}

// checkEvent checks what the members of an event have to do with each other and with other rows.
func (t tx) checkEvent(e *Event, p *form.Problems) []string {
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
	if t.Get("usr", e.HostID) == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	return t.conflicts(p, e.ID, "slug", e.Slug)
}

// completeEvent sets the members of an event that were left out.
func (t tx) completeEvent(e *Event, old *rows.Row) {
	host := t.Get("usr", e.HostID)
	e.Timezone = cmp.Or(e.Timezone, host.Value("timezone"), "UTC")
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, t.s.cfg.NewEventStatus)
	t.stamp(&e.CreatedAt, old)
	t.makeID(&e.ID, eventTable, "evt", e.HostID)
	if e.Slug == "" {
		e.Slug = t.unique("slug", e.HostID, form.Slug, func(made string) string {
			return form.MakeSlug(e.Title) + "-" + made
		})
	}
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = e.CreatedAt
	}
}

func (t tx) applyGuest(v strict.Value) (id string, problems []string) {
	var g Guest
	old := t.existing(v, "gst", guestName(stringIn(v, "event_id"), stringIn(v, "email")))
	decode(&g, old)
	f := guestTable.Form(&g)
	p := f.Fill(v, modeOf(old))
	event := t.Get("evt", g.EventID)
	if event == nil {
		p.Add("event_id", fmt.Sprintf("%q is not known", g.EventID))
	}
	if g.Name == nil && g.Email == nil {
		p.Add("name", "or email is required")
	}
	if g.Status == "invited" && stringIn(v, "registered_at") != "" {
		p.Add("registered_at", "must be null while the status is invited")
	}
	name := "" // of a guest without an email
	if g.Email != nil {
		name = guestName(g.EventID, *g.Email)
	}
	problems = t.conflicts(p, g.ID, "email", name)
	if problems != nil {
		return "", problems
	}
	t.stamp(&g.CreatedAt, old)
	switch {
	case g.Status != "":
	case event.Value("requires_approval") == "true":
		g.Status = "pending"
	default:
		g.Status = "approved"
	}
	if g.Status == "invited" {
		g.RegisteredAt = nil
	} else if g.RegisteredAt == nil {
		g.RegisteredAt = &g.CreatedAt
	}
	t.makeID(&g.ID, guestTable, "gst", event.Parent)
	t.put(f, old, nil)
	return g.ID, nil
}

func (t tx) applyDelete(v strict.Value) (id string, problems []string) {
	isNull := func(m strict.Member) bool { return m.Value.Kind == strict.Null }
	given := slices.DeleteFunc(slices.Clone(v.Members), isNull)
	for _, kind := range t.s.db.Kinds {
		if len(given) != 1 || given[0].Name != kind.Name {
			continue
		}
		id = given[0].Value.Text
		if strings.HasPrefix(id, kind.Prefix+"_") {
			t.Delete(id)
			return id, nil
		}
	}
	return "", []string{"must be an object with exactly one member, user, key, event or guest, " +
		"and in it an id that begins with usr_, key_, evt_ or gst_"}
}
