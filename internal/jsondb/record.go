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

// The data file has a record for each change, except that a row which is deleted with another has none.
// Records have one of these forms:
//
//	{"event":{"id":"evt_1","host_id":"usr_1",…}}
//	{"event":{"id":"evt_1","host_id":"usr_1",…},"idempotency":{…}}    only in format events/1
//	{"delete":{"guest":"gst_9"}}
//
// Parsing a million rows as JSON would take too long, so records are split at a separator instead. That is
// safe, because checksums show that this program wrote them in exactly this form, and because the separator
// ends with an unescaped quote before a letter. In valid JSON, a quote inside a string is escaped, and a
// quote that ends a string is followed by , : ] or } and never by a letter. So no string contains the
// separator or the end of one. For example, the title }},{"event is written as "}},{\"event", which doesn't
// contain the separator }},{"e.
const recordSeparator = `}},{"` // before a lower-case letter

var errRecord = errors.New("a record is not in the form that this program writes")

// appendRecord appends the row as a record: {"event":{…}}.
func (r *Row) appendRecord(b []byte) []byte {
	b = append(b, `{"`...)
	b = append(b, r.Table.Name...)
	b = append(b, `":`...)
	b = append(b, r.JSON...)
	return append(b, '}')
}

// WriteRecords writes rows as a JSON array of records, one per line. w may be slow, because rows never
// change.
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
	return out.Flush() // also returns earlier errors
}

// appendChange appends a change as a record, with a comma before it unless it is the first.
func appendChange(b []byte, c change) []byte {
	if c.cascaded {
		return b
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	if c.new == nil {
		return fmt.Appendf(b, `{"delete":{"%s":"%s"}}`, c.old.Table.Name, c.old.ID)
	}
	return c.new.appendRecord(b)
}

// cutRecord splits records after the first one.
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

// splitRecord splits a record into its name and the text behind it, which is a row or the content of a
// delete.
func splitRecord(record []byte) (name, text []byte) {
	name, text, _ = bytes.Cut(bytes.TrimPrefix(record, []byte(`{"`)), []byte(`":`))
	return name, bytes.TrimSuffix(text, []byte("}"))
}

// scan parses the JSON of a row.
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

// A Scanner reads row fields in their JSON order. It searches for a field name and for the quote that ends
// the value. That is safe, because quotes inside strings are escaped: "email": can only be a field name, and
// a row has no objects inside.
type Scanner struct {
	rest   string
	failed bool
}

// String returns the value of the next field with this name, which must be a string or null. It returns ""
// for null.
func (s *Scanner) String(field string) (value string) {
	_, text, _ := strings.Cut(s.rest, `"`+field+`":`)
	value, rest, err := cutValue(text)
	s.rest = rest
	s.failed = s.failed || err != nil
	return value
}

// Time returns the next value with a field name, which must be a date-time.
func (s *Scanner) Time(field string) time.Time {
	t, err := time.Parse(time.RFC3339, s.String(field))
	s.failed = s.failed || err != nil
	return t
}

// Value returns a string field, or "true" for a true one. It returns "" for null and false. It panics if
// there is no such field, or if it is a number.
func (r *Row) Value(field string) string {
	_, text, _ := strings.Cut(r.JSON, `"`+field+`":`)
	if strings.HasPrefix(text, "true") {
		return "true"
	}
	value, _, err := cutValue(text)
	if err != nil && !strings.HasPrefix(text, "false") {
		panic(fmt.Errorf("jsondb: %s: field %s: %w", r.ID, field, err))
	}
	return value
}

// cutValue splits a text after its first value, which must be a JSON string or null. It returns "" for null.
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
	// Escapes are rare. Decoding into this variable keeps value off the heap.
	var decoded string
	d := json.NewDecoder(strings.NewReader(text))
	err = d.Decode(&decoded)
	return decoded, text[d.InputOffset():], err
}
