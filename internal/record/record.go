// Package record is the form of rows as JSON texts, in the data file and in
// dumps, and the names by which rows are found.
//
//	{"event":{"id":"evt_1","host_id":"usr_1",…}}
//	{"event":{…},"idempotency":{"key":…,"body":…,"at":…}}   in the file only
//	{"delete":{"guest":"gst_9"}}                            in the file only
//
// Records are read as this program writes them, by the position of what stands
// in them: their checksums say that nobody else did.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"example.com/events/internal/index"
	"example.com/events/internal/strict"
)

// Kinds are the kinds of records by what the ids of their rows begin with.
var Kinds = map[string]string{"usr": "user", "key": "key", "evt": "event", "gst": "guest"}

// IsOf reports whether an id is of a kind of records.
func IsOf(kind, id string) bool {
	prefix, _, found := strings.Cut(id, "_")
	return found && kind != "" && Kinds[prefix] == kind
}

// Email is the other name of a user. Neither an id nor a slug, which is the
// other name of an event, holds a colon, so no two of these can be the same.
func Email(email string) string { return "email:" + strings.ToLower(email) }

// Key is the other name of a key.
func Key(digest string) string { return "key:" + digest }

// Guest is the other name of a guest with an email.
func Guest(event, email string) string { return "guest:" + event + ":" + strings.ToLower(email) }

// Origin is the name of an idempotency key of an owner.
func Origin(owner, key string) string { return "idem:" + owner + ":" + key }

var errForm = errors.New("a record is not in the form that this program writes")

// Row is the row that the JSON object raw stands for. Its state is a user's
// time zone, a key's "revoked", an event's status.
func Row(raw string) (*index.Row, error) {
	r := &index.Row{Raw: raw}
	c := cutter{rest: raw}
	r.ID = c.text(`{"id":"`)
	parent := "usr_"
	switch r.Kind() {
	case "usr":
		parent = ""
		c.text(`,"name":"`)
		r.Alias = Email(c.text(`,"email":"`))
		c.textOrNull(`,"avatar_url":`)
		r.State, r.Created = c.textOrNull(`,"timezone":`), c.instant(`,"created_at":"`)
	case "key":
		r.Parent, r.Alias = c.text(`,"user_id":"`), Key(c.text(`,"digest":"`))
		c.textOrNull(`,"hint":`)
		r.Created = c.instant(`,"created_at":"`)
		if c.textOrNull(`,"revoked_at":`) != "" {
			r.State = "revoked"
		}
	case "evt":
		r.Parent, r.Alias, r.State, r.Created = c.text(`,"host_id":"`), c.text(`,"slug":"`), c.text(`,"status":"`), c.instant(`,"created_at":"`)
	case "gst":
		parent = "evt_"
		r.Parent, r.Created = c.text(`,"event_id":"`), c.instant(`,"created_at":"`)
		if !c.skip(`,"email":null`) {
			r.Alias = Guest(r.Parent, c.text(`,"email":"`))
		}
	default:
		c.err = errForm
	}
	if !strings.HasPrefix(r.Parent, parent) || !strings.HasSuffix(raw, "}") {
		c.err = errForm
	}
	return r, c.err
}

const originMember = `,"idempotency":`

// Append appends the record of a row, with its origin where it has one.
func Append(b []byte, r *index.Row) []byte {
	b = append(append(append(b, `{"`...), Kinds[r.Kind()]...), `":`...)
	b = append(b, r.Raw...)
	if r.Origin != nil {
		b = append(append(b, originMember...), strict.Encode(r.Origin)...)
	}
	return append(b, '}')
}

// AppendSteps appends the records of steps with commas between them.
func AppendSteps(b []byte, steps []index.Step) []byte {
	for _, step := range steps {
		if len(b) > 0 {
			b = append(b, ',')
		}
		if step.Row != nil {
			b = Append(b, step.Row)
		} else {
			prefix, _, _ := strings.Cut(step.Gone, "_")
			b = fmt.Appendf(b, `{"delete":{"%s":"%s"}}`, Kinds[prefix], step.Gone)
		}
	}
	return b
}

// Split yields the records of a line.
func Split(records string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for records != "" {
			end := boundary(records)
			if !yield(records[:end]) {
				return
			}
			records = strings.TrimPrefix(records[end:], ",")
		}
	}
}

// boundary is where the first record ends. No string holds }},{"a: behind the
// quote that would end the string stands no letter.
func boundary(records string) int {
	const between = `}},{"`
	for from := 0; ; {
		i := strings.Index(records[from:], between)
		if i < 0 {
			return len(records)
		}
		from += i + len(between)
		if from < len(records) && records[from] >= 'a' && records[from] <= 'z' {
			return from - len(`,{"`)
		}
	}
}

// cut takes a record of a row apart. No string holds what the origin is looked
// for by, as between records.
func cut(record string) (kind, raw, origin string) {
	kind, raw, _ = strings.Cut(strings.TrimPrefix(record, `{"`), `":`)
	raw = strings.TrimSuffix(raw, "}")
	if i := strings.Index(raw, "}"+originMember+`{"`) + 1; i > 0 {
		raw, origin = raw[:i], raw[i+len(originMember):]
	}
	return kind, raw, origin
}

// Plain is a record without its origin, as a dump has it.
func Plain(record string) string {
	kind, raw, _ := cut(record)
	return `{"` + kind + `":` + raw + "}"
}

// Parse reads a record of the file.
func Parse(record string) (index.Step, error) {
	kind, raw, origin := cut(record)
	if kind == "delete" {
		c := cutter{rest: raw}
		kind, id := c.text(`{"`), c.text(`:"`)
		if !IsOf(kind, id) {
			c.err = errForm
		}
		return index.Step{Gone: id}, c.err
	}
	r, err := Row(raw)
	if err == nil && !IsOf(kind, r.ID) {
		err = errForm
	}
	if err == nil && origin != "" {
		if err = json.Unmarshal([]byte(origin), &r.Origin); err == nil {
			r.Origin.Name = Origin(r.Parent, r.Origin.Key)
		}
	}
	return index.Step{Row: r}, err
}

// cutter cuts a text by position.
type cutter struct {
	rest string
	err  error
}

func (c *cutter) skip(prefix string) bool {
	rest, found := strings.CutPrefix(c.rest, prefix)
	c.rest = rest
	return found
}

// text is the string that follows prefix, which includes its first quote.
func (c *cutter) text(prefix string) string {
	if !c.skip(prefix) {
		c.err = errForm
		return ""
	}
	end := strings.IndexByte(c.rest, '"')
	if end < 0 {
		c.err = errForm
		return ""
	}
	if strings.IndexByte(c.rest[:end], '\\') >= 0 { // an escape: read it by the book
		var s string
		d := json.NewDecoder(strings.NewReader(`"` + c.rest))
		if err := d.Decode(&s); err != nil {
			c.err = errForm
			return ""
		}
		c.rest = c.rest[d.InputOffset()-1:]
		return s
	}
	s := c.rest[:end]
	c.rest = c.rest[end+1:]
	return s
}

// textOrNull is the string that follows prefix, or "" for null.
func (c *cutter) textOrNull(prefix string) string {
	if !c.skip(prefix) {
		c.err = errForm
	}
	if c.skip("null") {
		return ""
	}
	return c.text(`"`)
}

func (c *cutter) instant(prefix string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, c.text(prefix))
	if err != nil {
		c.err = errForm
	}
	return at
}
