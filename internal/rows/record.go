package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// The data file has a record for each change, in these forms:
//
//	{"event":{"id":"evt_1","host_id":"usr_1",…}}
//	{"event":{…},"idempotency":{"key":…,"body":…,"at":…}}
//	{"delete":{"guest":"gst_9"}}
//
// A file of a million rows must be read in a second or two, so its records are not
// parsed as JSON in general: they are cut up at separators. That is safe because
// checksums show that this program wrote them, in exactly this form, and because each
// separator that is searched for in a row contains an unescaped quote before a letter.
// In valid JSON a quote inside a string is escaped, and a quote that ends a string is
// followed by one of , : ] } and never by a letter. So a separator cannot occur in a
// string or across its end. For example, a title that is the text }},{"event is written
// as "}},{\"event", in which the separator }},{"e does not occur.
const idempotencyMember = `,"idempotency":`

// size is about how many bytes a row takes in the file, with what a line and a record
// have around it. It is not too small: else live rows would count as outdated.
func size(r *Row) int64 {
	n := len(r.JSON) + 64
	if r.Idempotency != nil {
		n += 2*len(r.Idempotency.Key) + 150 // each character may be escaped
	}
	return int64(n)
}

// appendChange appends the record of a change, with a comma before it if it is not the
// first.
func appendChange(b []byte, c change) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	r := c.row
	if c.delete {
		return fmt.Appendf(b, `{"delete":{"%s":"%s"}}`, r.Kind.Name, r.ID)
	}
	b = AppendRecord(b, r.Kind, r.JSON)
	if r.Idempotency != nil {
		b = append(append(b[:len(b)-1], idempotencyMember...), strict.Encode(r.Idempotency)...)
		b = append(b, '}')
	}
	return b
}

// AppendRecord appends the record of a row as a dump has it: without its
// idempotency key.
func AppendRecord(b []byte, kind *Kind, json string) []byte {
	b = append(append(append(b, `{"`...), kind.Name...), `":`...)
	return append(append(b, json...), '}')
}

// records yields the records of a line, which have a comma between them.
func records(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line != "" {
			end := recordEnd(line)
			if !yield(line[:end]) {
				return
			}
			line = strings.TrimPrefix(line[end:], ",")
		}
	}
}

// recordEnd is where the first record of a line ends: before a `,{"` that comes after
// two braces and before the first letter of a kind.
func recordEnd(line string) int {
	const between = `}},{"`
	for from := 0; ; {
		i := strings.Index(line[from:], between)
		if i < 0 {
			return len(line)
		}
		from += i + len(between)
		if from < len(line) && 'a' <= line[from] && line[from] <= 'z' {
			return from - len(`,{"`)
		}
	}
}

// split cuts a record up into the name of its kind, its row and, if it has one,
// its idempotency key.
func split(record string) (kind, row, key string) {
	kind, row, _ = strings.Cut(strings.TrimPrefix(record, `{"`), `":`)
	row = strings.TrimSuffix(row, "}")
	if i := strings.Index(row, "}"+idempotencyMember+`{"`); i >= 0 {
		row, key = row[:i+1], row[i+1+len(idempotencyMember):]
	}
	return kind, row, key
}

var errForm = errors.New("a record is not in the form that this program writes")

// parse reads a record.
func (db *DB) parse(record string) (change, error) {
	name, row, key := split(record)
	if name == "delete" {
		kind, id, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(row, `{"`), `"}`), `":"`)
		r := &Row{ID: id, Kind: db.kindOf(id)}
		if r.Kind == nil || r.Kind.Name != kind {
			return change{}, errForm
		}
		return change{row: r, delete: true}, nil
	}
	r, err := db.parseRow(row)
	if err != nil || r.Kind.Name != name {
		return change{}, errForm
	}
	if key != "" {
		err = json.Unmarshal([]byte(key), &r.Idempotency)
	}
	return change{row: r}, err
}

// parseRow returns the row that a text stands for, of which it reads the head alone.
func (db *DB) parseRow(text string) (*Row, error) {
	prefix, _, _ := strings.Cut(strings.TrimPrefix(text, `{"id":"`), "_")
	r := &Row{Kind: db.kindOf(prefix), JSON: text}
	if r.Kind == nil || !strings.HasSuffix(text, "}") {
		return nil, errForm
	}
	var head [maxHead]string
	rest, before, ok := text, byte('{'), true
	for i, name := range r.Kind.Head {
		name, mayBeNull := strings.CutSuffix(name, "?")
		// What comes next is the brace or a comma, the name in quotes, a colon and the value.
		at := len(name) + len(`{"":`)
		if len(rest) <= at || rest[0] != before || rest[2:at-2] != name {
			return nil, errForm
		}
		before, rest = ',', rest[at:]
		if null := strings.TrimPrefix(rest, "null"); mayBeNull && len(null) < len(rest) {
			rest = null
			continue
		}
		if head[i], rest, ok = cutString(rest); !ok {
			return nil, errForm
		}
		if name == "created_at" {
			var err error
			if r.Created, err = time.Parse(time.RFC3339Nano, head[i]); err != nil {
				return nil, errForm
			}
		}
	}
	r.Kind.Read(r, head)
	if parent, _, _ := strings.Cut(r.Parent, "_"); parent != r.Kind.Parent {
		return nil, errForm
	}
	return r, nil
}

// cutString cuts a JSON string off the beginning of a text, which is not empty.
func cutString(text string) (value, rest string, ok bool) {
	value, rest, ok = strings.Cut(text[1:], `"`)
	if text[0] != '"' || !ok {
		return "", "", false
	}
	if strings.IndexByte(value, '\\') < 0 {
		return value, rest, true
	}
	// It has escapes, which is rare. The variable keeps value itself off the heap.
	var decoded string
	d := json.NewDecoder(strings.NewReader(text))
	err := d.Decode(&decoded)
	return decoded, text[d.InputOffset():], err == nil
}
