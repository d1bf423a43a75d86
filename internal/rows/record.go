package rows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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

const createdMember = `"created_at":`

// lineAround is what stands around the record of a row in a new file, where each has a line
// of its own.
const lineAround = `,{"c":"00000000","n":00000000,"w":[{"":}]}` + "\n"

// fileBytes is how many bytes a row takes in a new file, or a few more: less would count
// rows as outdated that are not.
func fileBytes(r *Row) int64 {
	n := len(lineAround) + len(r.Kind.Name) + len(r.JSON)
	if r.Idempotency != nil {
		n += r.Idempotency.bytes
	}
	return int64(n)
}

// appendChange appends the record of a change, with a comma before it if it is not the
// first.
func (db *DB) appendChange(b []byte, r *Row) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	if r.JSON == "" {
		return fmt.Appendf(b, `{"delete":{"%s":"%s"}}`, r.Kind.Name, r.ID)
	}
	b = AppendRecord(b, r.Kind, r.JSON)
	if db.isValid(r.Idempotency) {
		b = append(b[:len(b)-1], idempotencyMember...)
		b = append(b, strict.Encode(r.Idempotency)...)
		b = append(b, '}')
	}
	return b
}

// AppendRecord appends the record of a row as a dump has it: without its
// idempotency key.
func AppendRecord(b []byte, kind *Kind, json string) []byte {
	b = append(b, `{"`+kind.Name+`":`...)
	b = append(b, json...)
	return append(b, '}')
}

// cutRecord cuts the first record off a line, and the comma after it. The record ends before
// a `,{"` that comes after two braces and before the first letter of a kind.
func cutRecord(line string) (record, rest string) {
	const between = `}},{"`
	end := 0
	for {
		i := strings.Index(line[end:], between)
		if i < 0 {
			return line, ""
		}
		end += i + len(between)
		if end < len(line) && 'a' <= line[end] && line[end] <= 'z' {
			end -= len(`,{"`)
			return line[:end], line[end+1:]
		}
	}
}

// split cuts a record up into the name of its kind, its row and, if it has one,
// its idempotency key. What is searched for begins with the brace, as
// [strings.Index] is many times slower at a character that is frequent.
func split(record string) (kind, row, idem string) {
	kind, text, _ := strings.Cut(strings.TrimPrefix(record, `{"`), `":`)
	text = strings.TrimSuffix(text, "}")
	row, idem, hasKey := strings.Cut(text, "}"+idempotencyMember)
	if hasKey {
		row = text[:len(row)+1] // with its own brace
	}
	return kind, row, idem
}

var errForm = errors.New("a record is not in the form that this program writes")

// parse returns the change that a record stands for: a row, without a text if it is to be
// deleted. The text that missing has for its kind is added to the end of a row: see [Format].
// It returns nil if the record is not in the form that this program writes.
func (db *DB) parse(record string, missing map[string]string) *Row {
	name, text, idem := split(record)
	var r *Row
	if name == "delete" {
		name, text, _ = split(text)
		id := strings.Trim(text, `"`)
		r = &Row{Place: Place{ID: id}, Kind: db.kindOf(id)}
	} else {
		if added := missing[name]; added != "" {
			text = strings.TrimSuffix(text, "}") + added + "}"
		}
		r = db.readRow(text)
	}
	if r == nil || r.Kind == nil || r.Kind.Name != name {
		return nil
	}
	if idem != "" && json.Unmarshal([]byte(idem), &r.Idempotency) != nil {
		return nil
	}
	if r.Idempotency != nil {
		r.Idempotency.bytes = len(idempotencyMember) + len(idem)
	}
	return r
}

// readRow returns the row that a text stands for, or nil if it has not the members of a kind.
// It searches the text for the members that the kind names, and each for the quote that ends
// its value. That is as safe as the search for separators: in a row, which has no objects
// inside, only a member's name stands between a quote before a letter and a quote before a
// colon.
func (db *DB) readRow(text string) *Row {
	id, isRow := strings.CutPrefix(text, `{"id":"`)
	kind := db.kindOf(id)
	if kind == nil || !isRow || !strings.HasSuffix(text, "}") {
		return nil
	}
	r := &Row{Kind: kind, JSON: text}
	var v Values
	rest := text
	for i, member := range kind.Members {
		_, value, _ := strings.Cut(rest, member)
		var err error
		v[i], rest, err = cutValue(value)
		if err == nil && member == createdMember {
			r.Created, err = time.Parse(time.RFC3339, v[i])
		}
		if err != nil {
			return nil
		}
	}
	r.ID = v[0]
	if kind.Parent != "" {
		r.Parent = v[1]
	}
	r.Name, r.Status = kind.Index(v)
	r.Name = cmp.Or(r.Name, r.ID)
	return r
}

// Value returns the value of a member of the row, found as readRow finds one: the characters of
// a string, or "true". It is "" for null, for false, and if the row has no such member.
func (r *Row) Value(member string) string {
	_, value, _ := strings.Cut(r.JSON, `"`+member+`":`)
	if strings.HasPrefix(value, "true") {
		return "true"
	}
	value, _, _ = cutValue(value)
	return value
}

// cutValue cuts a JSON string or null, which counts as "", off the beginning of a text.
func cutValue(text string) (value, rest string, err error) {
	rest, isNull := strings.CutPrefix(text, "null")
	if isNull {
		return "", rest, nil
	}
	inside, isString := strings.CutPrefix(text, `"`)
	value, rest, isClosed := strings.Cut(inside, `"`)
	if !isString || !isClosed {
		return "", "", errForm
	}
	if !strings.Contains(value, `\`) {
		return value, rest, nil
	}
	// It has escapes, which is rare. The variable keeps value itself off the heap.
	var decoded string
	d := json.NewDecoder(strings.NewReader(text))
	err = d.Decode(&decoded)
	return decoded, text[d.InputOffset():], err
}
