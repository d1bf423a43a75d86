package double

import (
	"bufio"
	"cmp"
	"container/list"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/strict"
)

// The limits of the journal.
const (
	maxJournal     = 1000     // requests of one user, and of those without a user
	maxBody        = 64 << 10 // bytes of a request's body
	maxHeader      = 8 << 10  // bytes of its header
	maxHeaderLines = 100      // of it
	maxTexts       = 64 << 20 // bytes of all headers and bodies
	lineCost       = 80       // bytes of memory that a line of a header takes beside its text
	maxEvictions   = 10_000   // requests of a user that had to leave, of which it knows the number
)

// Request is an entry of the journal, as package eventstest documents it.
type Request struct {
	Seq       int         `json:"seq"`
	Time      time.Time   `json:"time"`
	Received  time.Time   `json:"received"`
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Query     string      `json:"query"`
	Header    http.Header `json:"header"`
	Operation string      `json:"operation"`
	Status    int         `json:"status"`
	User      string      `json:"user"`
	Body      string      `json:"body"`
	Fault     string      `json:"fault"`
	Error     string      `json:"error"`
}

// String is the request in one line: what was asked by whom, its answer and its fault.
func (r Request) String() string {
	text := fmt.Sprintf("%d: %s %s of %s: %d",
		r.Seq,
		r.Method,
		strings.TrimSuffix(r.Path+"?"+r.Query, "?"),
		cmp.Or(r.User, "nobody"),
		r.Status)
	if r.Error != "" {
		text += ": " + r.Error
	}
	if r.Fault != "" {
		text += " (" + r.Fault + ")"
	}
	return text
}

// entry is a line of the journal. The double's mutex guards what changes in it.
type entry struct {
	Request
	body      strings.Builder // what was read of it, before it is redacted
	place     *list.Element   // in the texts of the journal; nil once the entry has left it
	size      int             // bytes that its header and body count
	hasBody   bool            // some of its body has arrived
	isDropped bool            // its header and body went to make room
	hasCome   bool            // it is answered, or its body was read and a fault holds it
}

// journal has the newest requests of each user. The double's mutex guards it.
type journal struct {
	newest  int             // the Seq of the newest request
	cleared time.Time       // when it was last cleared, by the machine's clock; evictions do not count
	open    map[*entry]bool // those that may still change
	users   map[string]*userJournal
	texts   *list.List // the entries, the oldest first
	size    int        // bytes of their headers and bodies
}

// userJournal has the newest requests of a user, or of those that no user has sent.
type userJournal struct {
	entries []*entry // in the order of their Seq

	// Of the requests that had to leave because newer ones came, the journal keeps the numbers of
	// the newest maxEvictions, and counts those before.
	evictions []eviction
	older     map[string]int // by operation
	lastOlder int            // the Seq of the last of them
}

// eviction is a request that had to leave the journal.
type eviction struct {
	seq       int
	operation string
}

func newJournal() journal {
	return journal{
		users: map[string]*userJournal{},
		texts: list.New(),
	}
}

// add adds the newest request.
func (j *journal) add(e *entry) {
	j.newest++
	e.Seq = j.newest
	own := j.users[e.User]
	if own == nil {
		own = &userJournal{older: map[string]int{}}
		j.users[e.User] = own
	}
	own.entries = append(own.entries, e)
	if len(own.entries) > maxJournal {
		oldest := own.entries[0]
		own.entries = slices.Delete(own.entries, 0, 1)
		own.evict(oldest)
		j.release(oldest)
	}
	e.place = j.texts.PushBack(e)
	for name, values := range e.Header {
		for _, value := range values {
			j.count(e, len(name)+len(value)+lineCost)
		}
	}
}

// evict notes that an entry has to leave.
func (u *userJournal) evict(e *entry) {
	u.evictions = append(u.evictions, eviction{e.Seq, e.Operation})
	if len(u.evictions) > maxEvictions {
		oldest := u.evictions[0]
		u.lastOlder = oldest.seq
		u.older[oldest.operation]++
		u.evictions = u.evictions[1:]
	}
}

// countEvictions returns how many requests that q asks for had to leave. If it begins amid those
// that are only counted, these count as well.
func (u *userJournal) countEvictions(q Query) (n int) {
	for _, left := range u.evictions {
		if q.wants(left.seq, left.operation) {
			n++
		}
	}
	for operation, older := range u.older {
		if q.wants(u.lastOlder, operation) {
			n += older
		}
	}
	return n
}

// release drops the texts of an entry that leaves the journal.
func (j *journal) release(e *entry) {
	j.size -= e.size
	e.size = 0
	e.body.Reset()
	if e.place != nil {
		j.texts.Remove(e.place)
		e.place = nil
	}
}

// dropped is in the journal in place of texts that it had no more room for.
const dropped = "(dropped: the journal keeps the newest 64 MiB of headers and bodies)"

// count counts bytes of the texts of an entry. The oldest texts go where all have too many.
func (j *journal) count(e *entry, bytes int) {
	if e.place == nil {
		return
	}
	e.size += bytes
	j.size += bytes
	for j.size > maxTexts {
		oldest := j.texts.Front().Value.(*entry)
		j.release(oldest)
		oldest.Header = http.Header{"(dropped)": {dropped}}
		oldest.isDropped = true
	}
}

// addBody records a piece of the body of a request.
func (j *journal) addBody(e *entry, piece []byte) {
	e.hasBody = e.hasBody || len(piece) > 0
	piece = piece[:min(len(piece), maxBody-e.body.Len())]
	if e.place == nil {
		return // the entry has left the journal, or its texts have
	}
	e.body.Write(piece)
	j.count(e, len(piece))
}

// copyOf is a copy of an entry as it is shown, but for what must be redacted.
func (e *entry) copyOf() Request {
	r := e.Request
	r.Body = e.body.String()
	if e.isDropped && e.hasBody {
		r.Body = dropped
	}
	return r
}

// clear empties the journal.
func (j *journal) clear() {
	for user, own := range j.users {
		for _, e := range own.entries {
			j.release(e)
		}
		delete(j.users, user)
	}
}

// ClearRequests empties the journal.
func (d *Double) ClearRequests() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.journal.clear()
}

// Query says which requests are asked for.
type Query struct {
	Operation string   // "": any
	Users     []string // nil: of all; the user "" is those without a known key
	After     int      // only those with a larger Seq

	// Count is how many to wait for. 0 does not wait, and asks for those, too, that have not
	// come yet: whose body is still to be read.
	Count int
}

// wants reports whether the query asks for a request, if it is of one of its users.
func (q Query) wants(seq int, operation string) bool {
	return seq > q.After && (q.Operation == "" || q.Operation == operation)
}

// counts reports whether a request that the query wants counts.
func (q Query) counts(e *entry) bool {
	return q.Count == 0 || e.hasCome
}

// Found are the requests that a [Query] asks for.
type Found struct {
	Requests []Request `json:"-"`         // the oldest first
	TimedOut bool      `json:"timed_out"` // there are fewer than were waited for
	Dropped  int       `json:"dropped"`   // how many older ones the journal no longer has
}

// write writes what was found as the control API answers it: {"data":[…],"timed_out":…}. It
// encodes a request at a time, as all of them may be long.
func (f Found) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	out.WriteString(`{"data":[`)
	for i, r := range f.Requests {
		if i > 0 {
			out.WriteByte(',')
		}
		_, err := out.Write(strict.Encode(r))
		if err != nil {
			return err
		}
	}
	out.WriteString("],")
	out.Write(strict.Encode(f)[len("{"):]) // the other members
	return out.Flush()
}

// find returns the entries that count for a query, and how many others the journal no longer
// has.
func (j *journal) find(q Query) (entries []*entry, dropped int) {
	for user, own := range j.users {
		if q.Users != nil && !slices.Contains(q.Users, user) {
			continue
		}
		dropped += own.countEvictions(q)
		begin, _ := slices.BinarySearchFunc(own.entries, q.After+1, func(e *entry, seq int) int {
			return cmp.Compare(e.Seq, seq)
		})
		for _, e := range own.entries[begin:] {
			if q.wants(e.Seq, e.Operation) && q.counts(e) {
				entries = append(entries, e)
			}
		}
	}
	return entries, dropped
}

// Requests returns copies of the newest requests that q asks for. If q has a count, it waits
// until so many have come, or ctx is done.
func (d *Double) Requests(ctx context.Context, q Query) Found {
	found := Found{Requests: []Request{}}
	d.mutex.Lock()
	entries, dropped := d.journal.find(q)
	for len(entries) < q.Count && ctx.Err() == nil {
		d.mutex.Unlock()
		time.Sleep(time.Millisecond)
		d.mutex.Lock()
		entries, dropped = d.journal.find(q)
	}
	for _, e := range entries {
		found.Requests = append(found.Requests, e.copyOf())
	}
	d.mutex.Unlock()
	found.TimedOut = len(entries) < q.Count
	found.Dropped = dropped
	slices.SortFunc(found.Requests, func(a, b Request) int { return a.Seq - b.Seq })
	for i := range found.Requests { // without the mutex, as it takes long for many large bodies
		r := &found.Requests[i]
		r.Header = r.Header.Clone()
		r.Body = answer.Redact(r.Body) // only here, as a key may come in two pieces
		r.Error = answer.Redact(r.Error)
	}
	return found
}
