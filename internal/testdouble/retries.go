package testdouble

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/events/internal/httpapi"
	"example.com/events/internal/strict"
)

// createOperation is the operation that creates events.
const createOperation = "POST /events/create"

// openCreate is a create that made an event. It is open as long as its client can't know the event, because a
// fault lost the response or delays it. A client that creates the same event meanwhile, without the same
// Idempotency-Key, has probably given up and tried again. That is an unsafe retry.
type openCreate struct {
	seq     int
	key     string            // Idempotency-Key, or ""
	event   string            // ID
	content [sha256.Size]byte // see contentDigest
	fault   *InjectedFault
}

// checkCreateLocked reports a create that is an unsafe retry, and opens a create whose response is lost or
// delayed.
func (d *Double) checkCreateLocked(r *Request, x *exchange) {
	f := x.fault
	opens := !f.removed && (f.losesResponse() || f.Delay > 0)
	if x.event == "" || x.replayed || !opens && len(d.open) == 0 {
		return
	}
	c := &openCreate{r.Seq, r.idempotencyKey(), x.event, contentDigest(x.created), f}
	i := slices.IndexFunc(d.open, c.repeats)
	if i >= 0 {
		text := fmt.Sprintf("unsafe retry: request %d of %s (%s) created %s, but request %d (%s) had "+
			"created the same event as %s, and its response hadn't arrived (%v): send the same "+
			"Idempotency-Key with every attempt", c.seq, r.UserID, describeKey(c.key), c.event,
			d.open[i].seq, describeKey(d.open[i].key), d.open[i].event, d.open[i].fault)
		d.reportLocked(Problem{UnsafeRetry, httpapi.Redact(text), r.UserID})
	}
	if opens {
		d.open = append(d.open, c)
	}
}

// repeats reports whether a create made the same event of the same user as an open one, without its
// Idempotency-Key.
func (c *openCreate) repeats(open *openCreate) bool {
	return c.content == open.content && (c.key == "" || c.key != open.key)
}

// closeCreate closes the create of an event that now reaches its client. Call it before the response is sent,
// because then the client may create the same event again on purpose.
func (d *Double) closeCreate(x *exchange, r *http.Request) {
	if x.event == "" || x.fault.losesResponse() || r.Context().Err() != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(c *openCreate) bool { return c.event == x.event })
}

// contentDigest returns a digest of what the client determined about an event, including its host.
func contentDigest(event []byte) [sha256.Size]byte {
	fields, _ := parse(event).(map[string]any)
	for _, name := range []string{"id", "slug", "created_at", "updated_at"} {
		delete(fields, name)
	}
	return sha256.Sum256(strict.Encode(fields))
}

// idempotencyKey returns the Idempotency-Key header, or "".
func (r *Request) idempotencyKey() string { return strings.Join(r.Header["Idempotency-Key"], ", ") }

// describeKey returns the Idempotency-Key of a create, or that there is none.
func describeKey(key string) string {
	if key == "" {
		return "no Idempotency-Key"
	}
	return "Idempotency-Key " + key
}
