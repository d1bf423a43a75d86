package jsondb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// The data file has a record for each change, in one of these forms:
//
//	{"event":{"id":"evt_1","host_id":"usr_1",…}}
//	{"event":{…},"idempotency":{"key":…,"body":…,"at":…}}
//	{"delete":{"guest":"gst_9"}}
//
// A file of a million rows must be read in a second or two, so its records are not parsed as JSON in general:
// they are cut at separators. That is safe because checksums show that this program wrote them, in exactly
// this form, and because every separator that is searched for in a row contains an unescaped quote before a
// letter. In valid JSON a quote inside a string is escaped, and a quote that ends a string is followed by one
// of , : ] } and never by a letter. So a separator cannot occur in a string or across its end. For example, a
// title that is the text }},{"event is written as "}},{\"event", which doesn't contain the separator }},{"e.
const (
	recordSeparator      = `}},{"` // before a lower-case letter
	idempotencySeparator = `,"idempotency":`
)

var errRecord = errors.New("a record is not in the form that this program writes")

// appendRecord appends the record of the row, {"event":{…}}, as dumps have it: without its idempotency key.
func (r *Row) appendRecord(b []byte) []byte {
	b = append(b, `{"`...)
	b = append(b, r.Table.Name...)
	b = append(b, `":`...)
	b = append(b, r.JSON...)
	return append(b, '}')
}

// WriteRecords writes rows as an array of records, one a line. Rows never change, so w may be slow.
func WriteRecords(w io.Writer, rows []*Row) error {
	out := bufio.NewWriterSize(w, 128<<10) // bytes
	out.WriteString("[\n")
	for i, row := range rows {
		if i > 0 {
			out.WriteString(",\n")
		}
		out.Write(row.appendRecord(out.AvailableBuffer()))
	}
	out.WriteString("\n]\n")
	return out.Flush() // also returns the errors of the writes above
}

// appendRow appends the record of the row as the data file has it.
func (db *DB) appendRow(b []byte, r *Row) []byte {
	b = r.appendRecord(b)
	if !db.valid(r.idempotency) {
		return b
	}
	key, err := json.Marshal(r.idempotency)
	if err != nil {
		panic(err) // its time has no form in RFC 3339
	}
	b = append(b[:len(b)-1], idempotencySeparator...)
	b = append(b, key...)
	return append(b, '}')
}

// appendChange appends the record of a change, after a comma if it is not the first.
func (db *DB) appendChange(b []byte, c change) []byte {
	if c.cascaded {
		return b
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	if c.new == nil {
		return fmt.Appendf(b, `{"delete":{"%s":"%s"}}`, c.old.Table.Name, c.old.ID)
	}
	return db.appendRow(b, c.new)
}

// cutRecord cuts the first record off the records of a commit, and the comma after it.
func cutRecord(records []byte) (record, rest []byte) {
	end := 0
	for {
		i := bytes.Index(records[end:], []byte(recordSeparator))
		if i < 0 {
			return records, nil
		}
		end += i + len(recordSeparator)
		if end < len(records) && 'a' <= records[end] && records[end] <= 'z' {
			comma := end - len(`,{"`)
			return records[:comma], records[comma+1:]
		}
	}
}

// splitRecord splits a record into the name of its table, its row and its idempotency key, which may be
// empty.
func splitRecord(record []byte) (name, row, key []byte) {
	name, text, _ := bytes.Cut(bytes.TrimPrefix(record, []byte(`{"`)), []byte(`":`))
	text = bytes.TrimSuffix(text, []byte("}"))
	// The search begins with the brace because bytes.Index is many times slower at a byte that is frequent.
	row, key, found := bytes.Cut(text, []byte("}"+idempotencySeparator))
	if found {
		row = text[:len(row)+1] // with its own brace
	}
	return name, row, key
}

// scan sets the fields of a row from its JSON.
func (db *DB) scan(r *Row) error {
	s := Scanner{rest: r.JSON}
	id, found := strings.CutPrefix(r.JSON, `{"id":"`)
	r.Table = db.table(id)
	if !found || r.Table == nil || !strings.HasSuffix(r.JSON, "}") {
		return errRecord
	}
	r.ID = s.String("id")
	r.Table.Scan(&s, r)
	if s.failed {
		return errRecord
	}
	return nil
}

// A Scanner reads fields of a row, in their order in the text. It searches the text for the name of a field
// and for the quote that ends its value. That is as safe as the search for separators: a row has no objects
// inside, so only field names are between a quote before a letter and a quote before a colon.
type Scanner struct {
	rest   string
	failed bool
}

// String returns the value of the next field with the name, which must be a string or null. Null is "".
func (s *Scanner) String(field string) (value string) {
	_, text, _ := strings.Cut(s.rest, `"`+field+`":`)
	value, rest, err := cutValue(text)
	s.rest = rest
	s.failed = s.failed || err != nil
	return value
}

// Time returns the value of the next field with the name, which must be a date-time.
func (s *Scanner) Time(field string) time.Time {
	t, err := time.Parse(time.RFC3339, s.String(field))
	s.failed = s.failed || err != nil
	return t
}

// Value returns the value of a field of the text: the characters of a string, or "true". It returns "" for
// null, for false, and if there is no such field.
func (r *Row) Value(field string) string {
	_, value, _ := strings.Cut(r.JSON, `"`+field+`":`)
	if strings.HasPrefix(value, "true") {
		return "true"
	}
	value, _, _ = cutValue(value)
	return value
}

// cutValue cuts a JSON string or null, which counts as "", off the beginning of a text.
func cutValue(text string) (value, rest string, err error) {
	rest, null := strings.CutPrefix(text, "null")
	if null {
		return "", rest, nil
	}
	inside, quoted := strings.CutPrefix(text, `"`)
	value, rest, closed := strings.Cut(inside, `"`)
	if !quoted || !closed {
		return "", "", errRecord
	}
	if !strings.Contains(value, `\`) {
		return value, rest, nil
	}
	// The value has escapes, which is rare. This variable keeps value itself off the heap.
	var decoded string
	d := json.NewDecoder(strings.NewReader(text))
	err = d.Decode(&decoded)
	return decoded, text[d.InputOffset():], err
}
