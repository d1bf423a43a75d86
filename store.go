package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/index"
	"example.com/events/internal/record"
	"example.com/events/internal/recordfile"
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

// Key is an API key without its secret, which no store keeps.
type Key struct {
	ID        string     `json:"id"`      // key_…
	UserID    string     `json:"user_id"` // whose key it is
	Digest    string     `json:"digest"`  // SHA-256 of the secret, 64 hexadecimal digits
	Hint      *string    `json:"hint"`    // the last four characters of a long secret
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"` // since when it is refused
	Secret    string     `json:"-"`          // write-only: svc_live_ and up to 246 visible characters
}

// Event is an event as the API answers it. The members that the index needs
// stand first, so that a start can cut them out of a line by their position.
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

// Guest is one person on an event's guest list.
type Guest struct {
	ID           string     `json:"id"`       // gst_…
	EventID      string     `json:"event_id"` // the event
	CreatedAt    time.Time  `json:"created_at"`
	Email        *string    `json:"email"` // one guest of an event has it, compared without case
	Name         *string    `json:"name"`  // 1 to 255 characters
	Status       string     `json:"status"`
	RegisteredAt *time.Time `json:"registered_at"` // nil while invited
	CheckedInAt  *time.Time `json:"checked_in_at"`
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

// Ref names what a record deletes: exactly one of its members is an id. A user
// takes its keys and events along, an event its guests.
type Ref struct {
	User  string `json:"user,omitempty"`
	Key   string `json:"key,omitempty"`
	Event string `json:"event,omitempty"`
	Guest string `json:"guest,omitempty"`
}

// A RecordError tells which record was refused and everything that is wrong
// with it.
type RecordError struct {
	Record   int      // its place in the array, counted from 1; 0 for the array as a whole
	Kind     string   // user, key, event, guest or delete; empty where it cannot be told
	Problems []string // each begins with the name of a member where one is at fault
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
	ErrInUse = recordfile.ErrLocked
	// ErrDamaged: the data file is not as it was written.
	ErrDamaged = recordfile.ErrDamaged
	// ErrFormat: the file is not a data file, or one of a newer version.
	ErrFormat = recordfile.ErrFormat
	// ErrNotWritten: a change is not on disk, or whether it is cannot be told.
	ErrNotWritten = errors.New("not written to the data file")
	// ErrClosed: the store is closed and takes no more changes.
	ErrClosed = errors.New("the store is closed")
	// errReused: the idempotency key came before with another body.
	errReused = errors.New("idempotency key reused")
	// errGone: the caller was deleted since its key was checked.
	errGone = errors.New("the caller is gone")
)

func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotWritten, err)
}

// The rules that have parameters.
var (
	userID, keyID     = form.ID("usr"), form.ID("key")
	eventID, guestID  = form.ID("evt"), form.ID("gst")
	personName        = form.Length(1, 255)
	eventDescription  = form.Length(0, 50_000)
	eventPlace        = form.Length(0, 100)
	eventStatus       = form.OneOf("draft", "published")
	eventLocationType = form.OneOf("in_person", "virtual")
	eventVisibility   = form.OneOf("public", "private")
	guestStatus       = form.OneOf("invited", "pending", "approved", "declined", "waitlist", "cancelled")
)

// The forms of the four kinds of records. The order is that of the JSON, and
// begins with what the index needs: a start cuts it out of a line by position.

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

func (k *Key) form() form.Form {
	return form.Form{
		{Name: "id", Value: &k.ID, Rule: keyID, Flags: form.Fixed},
		{Name: "user_id", Value: &k.UserID, Flags: form.Required | form.Fixed},
		{Name: "secret", Value: &k.Secret, Rule: secretRule, Flags: form.WriteOnly},
		{Name: "digest", Value: &k.Digest, Rule: digestRule, Flags: form.Fixed},
		{Name: "hint", Value: &k.Hint, Rule: hintRule},
		{Name: "created_at", Value: &k.CreatedAt, Flags: form.Fixed},
		{Name: "revoked_at", Value: &k.RevokedAt},
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
		{Name: "description", Value: &e.Description, Rule: eventDescription},
		{Name: "start_at", Value: &e.StartAt, Flags: form.Required},
		{Name: "end_at", Value: &e.EndAt, Flags: form.Required},
		{Name: "timezone", Value: &e.Timezone, Rule: form.Zone, Flags: form.EmptyIsNull},
		{Name: "location_type", Value: &e.LocationType, Rule: eventLocationType, Flags: form.EmptyIsNull},
		{Name: "location_city", Value: &e.LocationCity, Rule: eventPlace},
		{Name: "location_country", Value: &e.LocationCountry, Rule: eventPlace},
		{Name: "visibility", Value: &e.Visibility, Rule: eventVisibility, Flags: form.EmptyIsNull},
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

// Store keeps users, keys, events and guests in memory behind a mutex, and
// on disk where it was opened on a file. [NewStore] and [Open] make one. It is
// safe for concurrent use.
//
// Every change goes the same way: it is checked against what is there, encoded,
// appended to the file, waited for until it is durable, and only then published
// in memory. Changes that wait at the same time share one write and one sync.
// So a reader sees only what is on disk, and nothing ever needs rolling back.
type Store struct {
	cfg  Config
	file *recordfile.File // nil in memory

	queueMu sync.Mutex    // guards the two below
	queue   []*change     // what waits for the goroutine that owns the file
	writing bool          // there is such a goroutine
	slots   chan struct{} // bounds the queue

	writer  sync.Mutex // held by whoever checks and writes; guards what follows
	last    time.Time  // the newest created_at
	closed  bool
	records []byte // of the commit that is made; kept for its memory, as is
	encoded []byte // the row that is made

	commits atomic.Uint64 // how many were written: by it an outage is seen to end

	mu    sync.RWMutex // guards index
	index *index.Index // users, keys, events and guests
}

const idempotencyLifetime = 24 * time.Hour

// NewStore returns an empty store in memory. A nil cfg is the zero [Config].
func NewStore(cfg *Config) *Store {
	s := &Store{index: index.New(), slots: make(chan struct{}, maxQueue)}
	if cfg != nil {
		s.cfg = *cfg
	}
	if s.cfg.Logger == nil {
		s.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if s.cfg.NewEventStatus != "draft" {
		s.cfg.NewEventStatus = "published"
	}
	return s
}

// Open returns the store that the data file at path holds, or an empty one with
// a new file where there is none. It takes a lock that a second Open of the
// same file, in this process or another, is refused by; [Store.Close] frees it.
// A file that is damaged, of another program or of a newer version is refused
// and left as it is; the error says where and what to do, and is [ErrInUse],
// [ErrDamaged] or [ErrFormat] where it is one of those.
func Open(path string, cfg *Config) (*Store, error) { return open(path, cfg, func(int64, int64) {}) }

func open(path string, cfg *Config, progress func(done, total int64)) (*Store, error) {
	s := NewStore(cfg)
	l := loader{s: s}
	grown := false
	f, err := recordfile.Open(path, s.fileOptions(func(done, total int64) {
		if !grown {
			s.index.Grow(int(total / bytesPerName))
			grown = true
		}
		progress(done, total)
	}), l.load)
	if err != nil {
		return nil, err
	}
	s.index.Sort()
	s.file = f
	if err := l.makeDurable(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

const (
	fileFormat   = "events/1"
	bytesPerName = 300 // of a data file, about: an event has two names
)

func (s *Store) fileOptions(progress func(done, total int64)) recordfile.Options {
	return recordfile.Options{Format: fileFormat, Progress: progress,
		Logf: func(format string, args ...any) { s.cfg.Logger.Warn(fmt.Sprintf(format, args...)) }}
}

// Close waits for the change that runs, refuses those that come later, and
// frees the file. Reads go on. The error tells where a write failed for good.
func (s *Store) Close() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.closed || s.file == nil {
		s.closed = true
		return nil
	}
	s.closed = true
	return notWritten(s.file.Close())
}

// Err is nil, or why the store can no longer write. Reads go on.
func (s *Store) Err() error {
	if s.file == nil {
		return nil
	}
	return notWritten(s.file.Err())
}

// Apply puts records into the store in their order: all of them, or none and a
// [*RecordError]. On a file they are durable when it returns. A record replaces
// what has its id, and a member with the zero value gets its default; ids,
// slugs, creation times and whose something is never change. A guest without
// an id is known by event and email, a key by its digest, a user by its email.
func (s *Store) Apply(records ...Record) error {
	return s.change(context.Background(), func(t *tx) error {
		for i, r := range records {
			if err := t.apply(recordValue(r)); err != nil {
				err.Record = i + 1
				return err
			}
		}
		return nil
	})
}

// ApplyJSON is [Store.Apply] for a JSON array of records, but merges: what a
// record leaves out stays as it is, and null sets a member back to its default.
// So applying the same array twice changes nothing.
func (s *Store) ApplyJSON(data []byte) error { return s.applyJSON(data, func(int64, int64) {}) }

func (s *Store) applyJSON(data []byte, progress func(done, total int64)) error {
	return s.change(context.Background(), func(t *tx) error {
		n := 0
		for v, err := range strict.Elements(data) {
			if err != nil {
				return &RecordError{Problems: []string{"the records are not a JSON array: " + err.Error()}}
			}
			n++
			if err := t.apply(v); err != nil {
				err.Record = n
				return err
			}
			progress(int64(n), 0)
		}
		progress(int64(n), int64(n))
		return nil
	})
}

// Records returns a copy of all that is in the store, as records that make the
// same store again, but for an event in the first instant of the year 1, as that
// is the zero time: each user with its keys and events, each event with its
// guests. Keys come without secrets but with their digests.
func (s *Store) Records() []Record {
	var records []Record
	var raw []byte
	for _, r := range s.rows(s.index.All()) {
		raw = r.append(raw[:0])
		var decoded Record
		mustDecode(raw, &decoded)
		records = append(records, decoded)
	}
	return records
}

// RecordsJSON is [Store.Records] as a JSON array, one record a line: a seed. The
// error is always nil.
func (s *Store) RecordsJSON() ([]byte, error) { return array(s.rows(s.index.All())), nil }

// UserRecordsJSON is the records of the user with this id or email, of its keys
// and events, and of their guests: an empty array where there is no such user.
// The error is always nil.
func (s *Store) UserRecordsJSON(user string) ([]byte, error) {
	return array(s.rows(func(yield func(*index.Row) bool) {
		if u := cmp.Or(s.index.Find(user), s.index.Find(record.Email(user))); u != nil && u.Kind() == "usr" {
			u.All()(yield)
		}
	})), nil
}

// empty reports whether there is nothing in the store.
func (s *Store) empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.index.Empty()
}

// keyOwner is the first user with a key, or nil, and whether any key is good.
func (s *Store) keyOwner() (first *User, anyGood bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for r := range s.index.All() {
		if r.Kind() != "key" {
			continue
		}
		if first == nil {
			first = new(User)
			mustDecode(s.index.Find(r.Parent).Raw, first)
		}
		if r.State != "revoked" {
			return first, true
		}
	}
	return first, false
}

// dumped is what a dump has of a row.
type dumped struct{ id, raw string }

func (d dumped) append(b []byte) []byte { return record.Append(b, &index.Row{ID: d.id, Raw: d.raw}) }

// rows copies rows of the store, to be encoded without the lock.
func (s *Store) rows(of iter.Seq[*index.Row]) (rows []dumped) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for r := range of {
		rows = append(rows, dumped{r.ID, r.Raw})
	}
	return rows
}

// array is records as a JSON array. It may be most of the memory, so it is made
// once.
func array(rows []dumped) []byte {
	size := 0
	for _, r := range rows {
		size += len(r.raw) + len(`{"event":},`+"\n")
	}
	b := append(make([]byte, 0, size+8), "[\n"...)
	for i, r := range rows {
		if i > 0 {
			b = append(b, ",\n"...)
		}
		b = r.append(b)
	}
	return append(b, "\n]\n"...)
}

// now is the clock: the configured one as it is, else the machine's in whole
// microseconds.
func (s *Store) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now().Round(0).UTC()
	}
	return time.Now().UTC().Truncate(time.Microsecond)
}

// createdNow is now for a created_at: later than every one before, so that the
// order of a list is total, unless the clock was configured.
func (s *Store) createdNow() time.Time {
	now := s.now()
	if s.cfg.Now == nil && !now.After(s.last) {
		now = s.last.Truncate(time.Microsecond).Add(time.Microsecond)
	}
	s.last = now
	return now
}

// change is one request to change the store, as it waits for its turn.
type change struct {
	stage func(*tx) error
	err   error
	after bool // others are staged before it, in the same commit
	done  chan struct{}
}

const maxQueue = 4096 // changes waiting at a time; more wait for a place, while their clients do

// change runs stage on what is there and on what is staged before it, and makes
// what it stages durable and visible. All of it or, with an error, nothing. When
// ctx is done, it waits for a place in the queue no longer.
func (s *Store) change(ctx context.Context, stage func(*tx) error) error {
	c := &change{stage: stage}
	if s.file == nil {
		s.commit([]*change{c})
		return c.err
	}
	c.done = make(chan struct{})
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.queueMu.Lock()
	s.queue = append(s.queue, c)
	if !s.writing {
		s.writing = true
		go s.write()
	}
	s.queueMu.Unlock()
	<-c.done
	<-s.slots
	return c.err
}

// write is the goroutine that owns the file, for as long as changes wait.
func (s *Store) write() {
	for {
		runtime.Gosched() // whoever is about to wait shares this commit and its sync
		s.queueMu.Lock()
		waiting := s.queue
		s.queue = nil
		s.writing = len(waiting) > 0
		s.queueMu.Unlock()
		if len(waiting) == 0 {
			return
		}
		for len(waiting) > 0 {
			waiting = s.commit(waiting)
		}
	}
}

// commit makes one commit of as many of the waiting changes as fit into one,
// and returns the others.
func (s *Store) commit(waiting []*change) (rest []*change) {
	s.writer.Lock()
	defer s.writer.Unlock()
	t := &tx{s.index.Begin(), s}
	taken, records := s.gather(waiting, t)
	if s.records = records; cap(records) > recordfile.MaxCommit {
		s.records = nil
	}
	var err error
	switch {
	case s.file == nil || len(t.Steps) == 0: // nothing is to be written
	case s.index.Empty() || len(records) > recordfile.MaxCommit: // a seed, or more than a line holds
		err = notWritten(s.rewrite(t.Steps))
	default:
		err = notWritten(s.file.Append(records))
	}
	if err == nil {
		s.publish(t.Steps)
		if len(t.Steps) > 0 {
			s.commits.Add(1)
		}
	}
	for _, c := range taken {
		if err != nil && (c.err == nil || c.after) { // what refused it may never have been
			c.err = err
		}
		if c.done != nil {
			close(c.done)
		}
	}
	return waiting[len(taken):]
}

// gather stages as many of the changes as fit into one commit, at least one, and
// encodes them where there is a file.
func (s *Store) gather(waiting []*change, t *tx) (taken []*change, records []byte) {
	records = s.records[:0]
	for i, c := range waiting {
		steps, size := len(t.Steps), len(records)
		c.after = steps > 0
		if c.err = s.stage(c, t); c.err != nil {
			t.Back(steps)
			continue
		}
		if s.file == nil {
			continue
		}
		records = record.AppendSteps(records, t.Steps[steps:])
		switch {
		case len(records) <= recordfile.MaxCommit:
		case size == 0: // it goes alone, by a rewrite
			return waiting[:i+1], records
		default: // it is the first of the next commit
			t.Back(steps)
			return waiting[:i], records[:size]
		}
	}
	return waiting, records
}

// stage runs one change. A panic refuses that change alone: nothing is
// published before it is durable, so there is nothing to undo.
func (s *Store) stage(c *change, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if s.closed {
		return ErrClosed
	}
	return c.stage(t)
}

// rewrite replaces the file by one with all that is in the store, and steps.
func (s *Store) rewrite(steps []index.Step) error {
	s.publish(nil) // what has expired is not written
	return s.file.Rewrite(func(yield func([]byte) bool) {
		var buf []byte
		for r := range s.index.All() {
			if buf = record.Append(buf[:0], r); !yield(buf) {
				return
			}
		}
		for i := range steps {
			if buf = record.AppendSteps(buf[:0], steps[i:i+1]); !yield(buf) {
				return
			}
		}
	})
}

// publish makes steps that are durable visible, and forgets the idempotency
// keys that have expired.
func (s *Store) publish(steps []index.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.Do(steps)
	s.index.Forget(s.now().Add(-idempotencyLifetime))
}

// tx is the changes of one commit as they are checked and staged. Only the
// holder of Store.writer has one.
type tx struct {
	*index.Tx
	s *Store
}

// apply stages one record.
func (t *tx) apply(v strict.Value) *RecordError {
	kind, v, problem := only(v)
	var problems []string
	switch kind {
	case "user":
		problems = t.user(v)
	case "key":
		_, problems = t.key(v)
	case "event":
		_, problems = t.event(v, "", nil)
	case "guest":
		problems = t.guest(v)
	case "delete":
		problems = t.delete(v)
	default:
		if problem == "" {
			problem = "must be an object with one member: user, key, event, guest or delete"
		}
		return &RecordError{Problems: []string{problem}}
	}
	if problems == nil {
		return nil
	}
	if id := text(v, "id"); slices.ContainsFunc(problems, func(p string) bool { return strings.HasSuffix(p, " is required") }) && id != "" && t.Find(id) == nil {
		problems = append(problems, fmt.Sprintf("there is no %s %.80s, so this would be a new one", kind, id))
	}
	return &RecordError{Kind: kind, Problems: problems}
}

// put stages the row that raw stands for, in the place of old where that is not
// nil, unless it is the same.
func (t *tx) put(raw []byte, old *index.Row, origin *index.Origin) *index.Row {
	if old != nil && old.Raw == string(raw) {
		return old
	}
	r, err := record.Row(string(raw))
	if err != nil {
		panic(err) // told to the caller as an error
	}
	r.Origin = origin
	t.Put(r, old)
	return r
}

// mode is how a record fills a row that is there, or is not.
func mode(old *index.Row) form.Mode {
	if old == nil {
		return form.New
	}
	return form.Merge
}

// only returns the one member of an object.
func only(v strict.Value) (name string, value strict.Value, problem string) {
	if v.Kind != strict.Object || len(v.Members) != 1 {
		return "", v, "must be an object with exactly one member: user, key, event, guest or delete"
	}
	return v.Members[0].Name, v.Members[0].Value, ""
}

// known is the row with the id of a record or, where it has none, the row with
// its other name.
func (t *tx) known(v strict.Value, kind, name string) *index.Row {
	for _, m := range v.Members {
		if m.Name == "id" && m.Value.Kind != strict.Null {
			return t.Get(kind, m.Value.Text)
		}
	}
	return t.Find(name)
}

// taken tells of another row that has the name already.
func (t *tx) taken(p *form.Problems, member, name, id string) {
	if r := t.Find(name); r != nil && r.ID != id {
		p.Add(member, "is taken by "+r.ID)
	}
}

// createdAt checks the created_at of a new row or sets it.
func (t *tx) createdAt(p *form.Problems, at *time.Time, old *index.Row) {
	switch {
	case old != nil:
	case at.IsZero():
		*at = t.s.createdNow()
	case at.After(t.s.now()):
		p.Add("created_at", "must not be later than now")
	case at.After(t.s.last):
		t.s.last = *at
	}
}

// newID sets an id where none was given.
func (t *tx) newID(id *string, kind, owner string) {
	if *id == "" {
		t.unique(id, kind, owner, form.ID(kind), func(made string) string { return kind + "_" + made })
	}
}

// unique sets a name that is not taken. Its panics are told to the caller as
// errors.
func (t *tx) unique(name *string, kind, owner string, rule form.Rule, whole func(made string) string) {
	for range 1_000_000 {
		*name = whole(t.s.newID(kind, owner))
		if t.s.cfg.NewID != nil { // ours need no check
			if problem := rule(*name); problem != "" {
				panic(fmt.Sprintf("Config.NewID makes %q, which %s", *name, problem))
			}
		}
		if t.Find(*name) == nil {
			return
		}
	}
	panic("Config.NewID gives only what is taken: " + *name)
}

func (t *tx) user(v strict.Value) []string {
	var u User
	old := t.known(v, "usr", record.Email(text(v, "email")))
	if old != nil {
		mustDecode(old.Raw, &u)
	}
	p := u.form().Fill(v, mode(old))
	t.taken(p, "email", record.Email(u.Email), u.ID)
	t.createdAt(p, &u.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return problems
	}
	t.newID(&u.ID, "usr", u.Name)
	t.put(u.form().Append(nil), old, nil)
	return nil
}

func (t *tx) key(v strict.Value) (*index.Row, []string) {
	var k Key
	sum := text(v, "digest")
	if secret := text(v, "secret"); secret != "" {
		sum = digest(secret)
	}
	old := t.known(v, "key", record.Key(sum))
	if old != nil {
		mustDecode(old.Raw, &k)
	}
	revoked := k.RevokedAt
	p := k.form().Fill(v, mode(old))
	if k.Secret != "" {
		if k.Digest != "" && k.Digest != sum {
			p.Add("digest", "is not that of the secret: leave one of them out")
		}
		k.Digest, k.Hint = sum, hint(k.Secret)
	}
	if k.Digest == "" {
		p.Add("secret", "is required, or its digest")
	}
	if old == nil {
		if t.Get("usr", k.UserID) == nil {
			p.Add("user_id", fmt.Sprintf("%q is not known", k.UserID))
		}
	}
	t.taken(p, "digest", record.Key(k.Digest), k.ID)
	if revoked != nil {
		if k.RevokedAt != nil && !k.RevokedAt.Equal(*revoked) {
			p.Add("revoked_at", "never changes once it is set")
		}
		k.RevokedAt = revoked
	}
	t.createdAt(p, &k.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return nil, problems
	}
	t.newID(&k.ID, "key", k.UserID)
	return t.put(k.form().Append(nil), old, nil), nil
}

// event stages an event. With a host it is a new one from that host's request.
func (t *tx) event(v strict.Value, host string, origin *index.Origin) (*index.Row, []string) {
	e := Event{HostID: host}
	var old *index.Row
	how := form.Client
	if host == "" {
		old = t.known(v, "evt", "")
		how = mode(old)
	}
	if old != nil {
		mustDecode(old.Raw, &e)
	}
	before := e.UpdatedAt
	p := e.form().Fill(v, how)
	if !p.Has("start_at") && !p.Has("end_at") && !e.EndAt.After(e.StartAt) {
		p.Add("end_at", "must be after start_at")
	}
	h := t.Get("usr", e.HostID)
	if h == nil {
		p.Add("host_id", fmt.Sprintf("%q is not known", e.HostID))
	}
	if e.Slug != "" {
		t.taken(p, "slug", e.Slug, e.ID)
	}
	t.createdAt(p, &e.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return nil, problems
	}
	if old == nil {
		t.newID(&e.ID, "evt", e.HostID)
		if e.Slug == "" {
			t.unique(&e.Slug, "slug", e.HostID, form.Slug, func(made string) string { return form.MakeSlug(e.Title) + "-" + made })
		}
		if e.UpdatedAt.IsZero() {
			e.UpdatedAt = e.CreatedAt
		}
	}
	e.Timezone = cmp.Or(e.Timezone, h.State, "UTC")
	e.Visibility = cmp.Or(e.Visibility, "public")
	e.Status = cmp.Or(e.Status, t.s.cfg.NewEventStatus)
	if old != nil && (e.UpdatedAt.IsZero() || e.UpdatedAt.Equal(before)) { // else it is as the record says
		if e.UpdatedAt = before; string(e.form().Append(nil)) != old.Raw {
			e.UpdatedAt = t.s.now()
		}
	}
	t.s.encoded = e.form().Append(t.s.encoded[:0])
	return t.put(t.s.encoded, old, origin), nil
}

func (t *tx) guest(v strict.Value) []string {
	var g Guest
	old := t.known(v, "gst", record.Guest(text(v, "event_id"), text(v, "email")))
	if old != nil {
		mustDecode(old.Raw, &g)
	}
	p := g.form().Fill(v, mode(old))
	e := t.Get("evt", g.EventID)
	if e == nil {
		p.Add("event_id", fmt.Sprintf("%q is not known", g.EventID))
	}
	if g.Name == nil && g.Email == nil {
		p.Add("name", "or email is required")
	}
	if g.Email != nil {
		t.taken(p, "email", record.Guest(g.EventID, *g.Email), g.ID)
	}
	if g.Status == "invited" && g.RegisteredAt != nil && text(v, "registered_at") != "" {
		p.Add("registered_at", "must be null while the status is invited")
	}
	t.createdAt(p, &g.CreatedAt, old)
	if problems := p.All(); problems != nil {
		return problems
	}
	if g.Status == "" {
		var ev Event
		mustDecode(e.Raw, &ev)
		if g.Status = "approved"; ev.RequiresApproval {
			g.Status = "pending"
		}
	}
	if g.Status == "invited" {
		g.RegisteredAt = nil
	} else if g.RegisteredAt == nil {
		g.RegisteredAt = &g.CreatedAt
	}
	t.newID(&g.ID, "gst", e.Parent)
	t.put(g.form().Append(nil), old, nil)
	return nil
}

func (t *tx) delete(v strict.Value) []string {
	kind, id, _ := only(v)
	for prefix, name := range record.Kinds {
		if name != kind {
			continue
		}
		if id.Kind != strict.String || !strings.HasPrefix(id.Text, prefix+"_") {
			return []string{kind + " must be an id that begins with " + prefix + "_"}
		}
		t.Remove(id.Text)
		return nil
	}
	return []string{"must be an object with exactly one member: user, key, event or guest"}
}

// text is a string member of an object, or "".
func text(v strict.Value, name string) string {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value.Text
		}
	}
	return ""
}

// recordValue is a record as the JSON it stands for.
func recordValue(r Record) strict.Value {
	v := strict.Value{Kind: strict.Object}
	add := func(name string, value strict.Value) {
		v.Members = append(v.Members, strict.Member{Name: name, Value: value})
	}
	if r.User != nil {
		add("user", r.User.form().JSON())
	}
	if r.Key != nil {
		add("key", r.Key.form().JSON())
	}
	if r.Event != nil {
		add("event", r.Event.form().JSON())
	}
	if r.Guest != nil {
		add("guest", r.Guest.form().JSON())
	}
	if r.Delete != nil {
		ref := strict.Value{Kind: strict.Object}
		for name, id := range map[string]string{"user": r.Delete.User, "key": r.Delete.Key, "event": r.Delete.Event, "guest": r.Delete.Guest} {
			if id != "" {
				ref.Members = append(ref.Members, strict.Member{Name: name, Value: strict.Value{Kind: strict.String, Text: id}})
			}
		}
		add("delete", ref)
	}
	return v
}

// mustDecode reads what was encoded.
func mustDecode[B string | []byte](raw B, x any) {
	if err := json.Unmarshal([]byte(raw), x); err != nil {
		panic(err)
	}
}

// loader puts the lines of a file into a store.
type loader struct {
	s        *Store
	deletes  bool  // a line deletes something
	outdated int64 // bytes of rows that were replaced later on
}

func (l *loader) load(line recordfile.Line) error {
	for text := range record.Split(line.Records) {
		step, err := record.Parse(text)
		if err != nil {
			return err
		}
		r := step.Row
		if r == nil {
			l.deletes = true
			l.s.index.Remove(step.Gone, true)
			continue
		}
		if r.Parent != "" && l.s.index.Find(r.Parent) == nil {
			return fmt.Errorf("%s hangs on %s, which is not there", r.ID, r.Parent)
		}
		if old := l.s.index.Find(r.ID); old != nil {
			l.outdated += int64(len(old.Raw))
		}
		l.s.index.Put(r, true)
		if r.Created.After(l.s.last) {
			l.s.last = r.Created
		}
	}
	return nil
}

// makeDurable sees to it that what was read is on disk as it was read, by a
// rewrite where one is due.
func (l *loader) makeDurable(f *recordfile.File) error {
	if f.New() || l.deletes || l.outdated > f.Size()/2 || f.Tail() > f.Size()/2 {
		err := l.s.rewrite(nil)
		if err == nil || f.New() {
			return err
		}
		l.s.cfg.Logger.Warn("the data file was not rewritten", "error", err)
	}
	err := f.Settle()
	if errors.Is(err, recordfile.ErrReadOnly) {
		l.s.cfg.Logger.Error("serving reads only", "error", err)
		return nil
	}
	return err
}

// What the handlers ask for. Each call sees only what belongs to the caller.

// profile is the user with this id.
func (s *Store) profile(userID string) (raw string, found bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if u := s.index.Find(userID); u != nil {
		return u.Raw, true
	}
	return "", false
}

// event is the event that ref, an id or a slug, names, if the caller hosts it.
func (s *Store) event(caller, ref string) (id, raw string, found bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.index.Find(ref)
	if e == nil || e.Parent != caller || e.Kind() != "evt" || e.ID != ref && e.Alias != ref {
		return "", "", false
	}
	return e.ID, e.Raw, true
}

// page appends to raws a page of what hangs on a row, the newest first: events
// of a user with a status or, where it is "", both, or guests of an event.
func (s *Store) page(parent, kind, status string, after *index.Place, limit int, raws []string) ([]string, *index.Place) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.index.Page(parent, kind, status, after, limit, raws)
}

// creation is the answer to a create: the event, and whether an earlier request
// with the same idempotency key made it.
type creation struct {
	id, raw  string
	replayed bool
}

// createEvent makes an event of the owner from a request body. With a key that
// came before, it answers what is there of that event: [ErrNotFound] where it
// is gone (until a rewrite of the file forgets it), errReused where the body was
// another one.
func (s *Store) createEvent(ctx context.Context, owner string, body []byte, key string) (creation, error) {
	v, parseErr := strict.Parse(body)
	var sum string
	if key != "" {
		sum = digest(string(body))
	}
	var done creation
	err := s.change(ctx, func(t *tx) error {
		var origin *index.Origin
		if key != "" {
			now := s.now()
			name := record.Origin(owner, key)
			if r := t.Find(name); r != nil && now.Before(r.Origin.At.Add(idempotencyLifetime)) {
				if r.Origin.Body != sum {
					return errReused
				}
				e := t.Find(r.ID)
				if e == nil || e.Origin != r.Origin { // it is gone, or another one has its id
					return ErrNotFound
				}
				done = creation{e.ID, e.Raw, true}
				return nil
			}
			origin = &index.Origin{Name: name, Key: key, Body: sum, At: now}
		}
		if parseErr != nil {
			return &RecordError{Problems: []string{"the body is not a JSON object: " + parseErr.Error()}}
		}
		if v.Kind != strict.Object {
			return &RecordError{Problems: []string{"the body must be a JSON object, not " + v.Kind.String()}}
		}
		if t.Get("usr", owner) == nil {
			return errGone
		}
		r, problems := t.event(v, owner, origin)
		if problems != nil {
			return &RecordError{Problems: problems}
		}
		done = creation{r.ID, r.Raw, false}
		return nil
	})
	return done, err
}
