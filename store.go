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
	"sync/atomic"
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
// append new ones at the end. A field holds no struct, map or slice: package rows refuses it.
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
		Sample:  string(strict.Encode(User{})),
		Check:   checkRow[User],
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
		Sample: string(strict.Encode(Key{})),
		Check:  checkRow[Key],
	},
	{
		Name:    "event",
		Prefix:  "evt",
		Parent:  "usr",
		Members: []string{`"id":`, `"host_id":`, `"slug":`, `"status":`, `"created_at":`},
		Index:   func(v rows.Values) (name, status string) { return v[2], v[3] },
		Sample:  string(strict.Encode(Event{})),
		Check:   checkRow[Event],
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
		Sample: string(strict.Encode(Guest{})),
		Check:  checkRow[Guest],
	},
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

	// applied is how many records of the array that is applied at present are through.
	applied atomic.Int64

	// Updates run one at a time, so they share the fields below without a lock. The first is
	// the latest created_at so far. It may be ahead of the newest row, as updates that fail move
	// it, too. That is harmless: it only moves forward.
	last    time.Time
	encoded []byte // the row that was encoded last; kept for its memory

	userDeleted func(userID string) // see inner.OnDelete
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
	s := &Store{cfg: *cmp.Or(cfg, &Config{}), userDeleted: func(string) {}}
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
	return openStore(cfg, func(o rows.Options) (*rows.DB, error) { return rows.Open(path, o) })
}

// openStore returns the store of a database that open opens.
func openStore(cfg *Config, open func(rows.Options) (*rows.DB, error)) (*Store, error) {
	s := newStore(cfg)
	var err error
	s.db, err = open(s.options())
	if err != nil {
		return nil, err
	}
	s.last = s.db.Stats().Newest
	return s, nil
}

func (s *Store) options() rows.Options {
	return rows.Options{Kinds: kinds, Formats: formats, Now: s.now, Logger: s.cfg.Logger}
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
	return s.update(context.Background(), func(t tx) error {
		_, err := t.applyAll(values)
		return err
	})
}

// ApplyJSON is [Store.Apply] for a JSON array of records, but merges: what a
// record leaves out stays as it is, and null sets a member back to its default.
// So applying the same array twice changes nothing.
func (s *Store) ApplyJSON(records []byte) error {
	_, err := s.applyArray(records, false)
	return err
}

// Applied is how many records of the array that is applied at present are through, or of the last one.
func (s inner) Applied() int64 { return s.applied.Load() }

// ApplyRecords is ApplyJSON. It counts the records as applyAll does.
func (s inner) ApplyRecords(records []byte) (count map[string]int, err error) {
	return s.applyArray(records, false)
}

// applyArray applies a JSON array of records. A seed may be the dump of a store whose clock was
// ahead: a created_at later than now is accepted, unless the clock is a configured one.
func (s *Store) applyArray(records []byte, isSeed bool) (count map[string]int, err error) {
	err = s.update(context.Background(), func(t tx) error {
		t.isSeed = isSeed
		count, err = t.applyAll(strict.Elements(bytes.NewReader(records)))
		return err
	})
	return count, err
}

// Replace deletes the events of a user, with their guests, and applies records, in one
// step. For the user "" it deletes everything in the store. At the end of that step it
// calls the function then: the records are accepted, and no other change has begun. A
// test double goes back to its start by it, while it is in use. It is for a store in
// memory: on a file, then may be called twice, and also if writing fails.
func (s inner) Replace(userID string, records []byte, then func()) error {
	return s.update(context.Background(), func(t tx) error {
		for _, child := range t.Children(userID) {
			if child.Kind.Prefix != "key" {
				t.Delete(child.ID)
			}
		}
		_, err := t.applyAll(strict.Elements(bytes.NewReader(records)))
		if err == nil {
			then()
		}
		return err
	})
}

// OnDelete sets a function that is called with the id of each user that records delete, at the
// end of the change that does it: the records are accepted, and no other change has begun. It
// must be called before the first change. A test double forgets by it what it has of the user.
// It is for a store in memory: on a file, f may be called twice, and also if writing fails.
func (s inner) OnDelete(f func(userID string)) { s.userDeleted = f }

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
			err = fmt.Errorf("user %q: %w", userID, ErrNotFound)
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

// now is the clock: the configured one as it is, else the machine's in whole
// microseconds.
func (s *Store) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now().Round(0).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// latest is the latest of some times. It keeps updated_at, for example, from being before
// created_at, even if the clock went back.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// tx is an update of the store: the rows with the changes so far, and the rules.
type tx struct {
	*rows.Tx
	s      *Store
	isSeed bool // the records are a seed: their created_at may be later than now
}

// update runs f, which changes the store, all or nothing. On a file f may be called twice
// ([rows.DB.Batch]), so it sets what it returns anew each time.
func (s *Store) update(ctx context.Context, f func(tx) error) error {
	return s.db.Batch(ctx, func(t *rows.Tx) error { return f(tx{Tx: t, s: s}) })
}

// applyAll applies the records of an array. It counts them as "applied", those that changed
// nothing as "unchanged", and those of each kind under its name.
func (t tx) applyAll(records iter.Seq2[strict.Value, error]) (map[string]int, error) {
	count := map[string]int{}
	var deleted []string // the ids of users
	for in, err := range strict.Ahead(inputs(records)) {
		if err != nil {
			return nil, &RecordError{Problems: []string{"the records are not a JSON array: " + err.Error()}}
		}
		count["applied"]++
		t.s.applied.Store(int64(count["applied"]))
		before := t.Changes()
		refused := t.apply(in)
		if refused != nil {
			refused.Record = count["applied"]
			return nil, refused
		}
		kind := in.record.Members[0] // apply has refused what has none
		count[kind.Name]++
		if t.Changes() == before {
			count["unchanged"]++
		} else if kind.Name == "delete" && stringIn(kind.Value, "user") != "" {
			deleted = append(deleted, stringIn(kind.Value, "user"))
		}
	}
	for _, id := range deleted {
		t.s.userDeleted(id)
	}
	return count, nil
}

// input is a record and, if it is one of an event, that event, filled as a new one. Most records
// of a large array are new events, and nothing of the store is needed to fill them.
type input struct {
	record   strict.Value
	event    *Event
	problems *form.Problems // of the event
}

func inputs(records iter.Seq2[strict.Value, error]) iter.Seq2[input, error] {
	return func(yield func(input, error) bool) {
		for v, err := range records {
			in := input{record: v}
			if len(v.Members) == 1 && v.Members[0].Name == "event" {
				in.event = &Event{}
				in.problems = eventTable.Form(in.event).Fill(v.Members[0].Value, form.New)
			}
			if !yield(in, err) {
				return
			}
		}
	}
}

// apply applies one record.
func (t tx) apply(in input) *RecordError {
	record := in.record
	if record.Kind != strict.Object || len(record.Members) != 1 {
		return errNoKind()
	}
	kind := record.Members[0].Name
	v := record.Members[0].Value
	var problems []string
	switch kind {
	case "user":
		problems = t.applyUser(v)
	case "key":
		problems = t.applyKey(v)
	case "event":
		problems = t.applyEvent(in)
	case "guest":
		problems = t.applyGuest(v)
	case "delete":
		problems = t.applyDelete(v)
	default:
		return errNoKind()
	}
	if problems == nil {
		return nil
	}
	isNew := func(problem string) bool { return strings.HasSuffix(problem, " is required") }
	id := stringIn(v, "id")
	if id != "" && t.Find(id) == nil && slices.ContainsFunc(problems, isNew) {
		problems = append(problems, fmt.Sprintf("there is no %s %.80s, so this would be a new one", kind, id))
	}
	return &RecordError{Kind: kind, Problems: problems}
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

// load reads a row, if there is one, into x, which points to a User, Key, Event or Guest. It
// returns how a record fills that then.
func load(x any, from *rows.Row) form.Mode {
	if from == nil {
		return form.New
	}
	if decodeRow(x, from.JSON) != nil { // only a forged row is not of this form
		panic(fmt.Errorf("%w: %s is not of its form; a check of the file names its line",
			ErrDamaged, from.ID))
	}
	return form.Merge
}

// decodeRow decodes the text of a row.
func decodeRow(x any, text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(x)
}

// checkRow is the check of a row of a kind: see [rows.Kind].
func checkRow[T any](text string) error {
	if decodeRow(new(T), text) != nil {
		return errors.New("a member is unknown or of another type")
	}
	return nil
}

// newTime is the created_at of what is made now. Unless the clock is a configured one, it
// is later than every created_at so far, so that lists show the order of creation.
func (t tx) newTime() time.Time {
	now := t.s.now()
	if t.s.cfg.Now == nil && !now.After(t.s.last) {
		now = t.s.last.Truncate(time.Microsecond).Add(time.Microsecond)
	}
	t.s.last = latest(t.s.last, now)
	return now
}

// check checks what is the same for each kind, and returns all problems: the second name, which
// comes from the member, must not be that of a row with another id, and a new row gets its
// created_at, unless the record has one.
func (t tx) check(
	p *form.Problems, old *rows.Row, id, member, name string, createdAt *time.Time,
) []string {
	named := t.Find(name)
	if named != nil && named.ID != id {
		p.Add(member, "is taken by "+named.ID)
	}
	switch {
	case old != nil:
	case createdAt.IsZero():
		*createdAt = t.newTime()
	default:
		problem := t.futureProblem(*createdAt)
		p.Add("created_at", problem)
		if problem == "" {
			t.s.last = latest(t.s.last, *createdAt)
		}
	}
	return p.All()
}

// futureProblem is what is wrong with the created_at of a record, or "".
func (t tx) futureProblem(at time.Time) string {
	switch {
	case !at.After(t.s.now()):
		return ""
	case t.s.cfg.Now != nil:
		return "must not be later than now: set -time or At to a later start of the clock"
	case t.isSeed && at.Year() < 9999:
		return ""
	}
	return "must not be later than now; only a backup that -seed reads may be"
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
func (t tx) unique(kind, owner string, rule form.Rule, whole func(made string) string) string {
	isOurs := t.s.cfg.NewID == nil // which needs no check, and of which 128 bits never come twice
	for range 1_000_000 {
		name := whole(t.s.newID(kind, owner))
		if !isOurs && rule != nil && rule(name) != "" {
			panic(fmt.Sprintf("Config.NewID makes %q, which %s", name, rule(name)))
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

// encode is the text of the row of a form. It panics, which Batch returns as an error, if a time
// cannot be written: Config.Now is beyond the year 9999.
func (t tx) encode(f form.Form) string {
	text, err := f.Append(t.s.encoded[:0])
	if err != nil {
		panic(err)
	}
	t.s.encoded = text
	return string(text)
}

func (t tx) applyUser(v strict.Value) []string {
	var u User
	old := t.existing(v, "usr", emailName(stringIn(v, "email")))
	mode := load(&u, old)
	f := userTable.Form(&u)
	p := f.Fill(v, mode)
	problems := t.check(p, old, u.ID, "email", emailName(u.Email), &u.CreatedAt)
	if problems != nil {
		return problems
	}
	t.makeID(&u.ID, userTable, "usr", u.Name)
	t.put(f, old, nil)
	return nil
}

// applyKey puts the key of a record, which has the secret or its digest.
func (t tx) applyKey(v strict.Value) []string {
	var k Key
	sum := stringIn(v, "digest")
	given := "digest"
	secret := stringIn(v, "secret")
	if secret != "" {
		sum = digest(secret)
		given = "secret"
	}
	old := t.existing(v, "key", apiKeyName(sum))
	mode := load(&k, old)
	f := keyTable.Form(&k)
	p := f.Fill(v, mode)
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
	problems := t.check(p, old, k.ID, given, apiKeyName(k.Digest), &k.CreatedAt)
	if problems != nil {
		return problems
	}
	t.makeID(&k.ID, keyTable, "key", k.UserID)
	t.put(f, old, nil)
	return nil
}

// applyEvent puts the event of a record. Its updated_at moves if another member changes.
func (t tx) applyEvent(in input) []string {
	v := in.record.Members[0].Value
	e := in.event
	p := in.problems
	f := eventTable.Form(e)
	old := t.existing(v, "evt", "")
	var before time.Time
	if old != nil {
		*e = Event{}
		mode := load(e, old)
		before = e.UpdatedAt
		p = f.Fill(v, mode)
	}
	if e.UpdatedAt.IsZero() { // the record has null
		e.UpdatedAt = before
	}
	problems := t.complete(e, p, old)
	if problems != nil {
		return problems
	}
	if old != nil && e.UpdatedAt.Equal(before) && t.encode(f) != old.JSON {
		e.UpdatedAt = latest(t.s.now(), e.CreatedAt)
	}
	t.put(f, old, nil)
	return nil
}

// newEvent puts the event of a host that a client creates.
func (t tx) newEvent(host string, v strict.Value, idem *rows.IdempotencyKey) (*rows.Row, []string) {
	e := Event{HostID: host}
	f := eventTable.Form(&e)
	p := f.ByClient().Fill(v, form.New)
	// Many languages have no year 0: one event in it would break each list of their clients.
	const yearZero = "must be in the years 0001 to 9999, in UTC"
	if e.StartAt.Year() == 0 {
		p.Add("start_at", yearZero)
	}
	if e.EndAt.Year() == 0 {
		p.Add("end_at", yearZero)
	}
	problems := t.complete(&e, p, nil)
	if problems != nil {
		return nil, problems
	}
	return t.put(f, nil, idem), nil
}

// complete checks what the members of an event have to do with each other and with other
// rows. If there are no problems, it sets the members that were left out.
func (t tx) complete(e *Event, p *form.Problems, old *rows.Row) []string {
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
	host := t.Get("usr", e.HostID)
	if host == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	problems := t.check(p, old, e.ID, "slug", e.Slug, &e.CreatedAt)
	if problems != nil {
		return problems
	}
	e.Timezone = cmp.Or(e.Timezone, host.Value("timezone"), "UTC")
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, t.s.cfg.NewEventStatus)
	t.makeID(&e.ID, eventTable, "evt", e.HostID)
	if e.Slug == "" {
		e.Slug = t.unique("slug", e.HostID, form.Slug, func(made string) string {
			return form.MakeSlug(e.Title) + "-" + made
		})
	}
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = e.CreatedAt
	}
	return nil
}

func (t tx) applyGuest(v strict.Value) []string {
	var g Guest
	old := t.existing(v, "gst", guestName(stringIn(v, "event_id"), stringIn(v, "email")))
	mode := load(&g, old)
	f := guestTable.Form(&g)
	p := f.Fill(v, mode)
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
	problems := t.check(p, old, g.ID, "email", name, &g.CreatedAt)
	if problems != nil {
		return problems
	}
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
	return nil
}

func (t tx) applyDelete(v strict.Value) []string {
	isNull := func(m strict.Member) bool { return m.Value.Kind == strict.Null }
	given := slices.DeleteFunc(slices.Clone(v.Members), isNull)
	for _, kind := range t.s.db.Kinds {
		if len(given) != 1 || given[0].Name != kind.Name {
			continue
		}
		id := given[0].Value.Text
		if strings.HasPrefix(id, kind.Prefix+"_") {
			t.Delete(id)
			return nil
		}
	}
	return []string{"must be an object with exactly one member, user, key, event or guest, " +
		"and in it an id that begins with usr_, key_, evt_ or gst_"}
}
