package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// Append appends the object as JSON with all its members in the order of the form.
func (f Form) Append(b []byte) []byte {
	separator := "{"
	for i := range f {
		b = fmt.Appendf(b, "%s%q:%s", separator, f[i].Name, f[i].encode())
		separator = ","
	}
	return append(b, '}')
}

// encode returns what the member holds as JSON.
func (m *Member) encode() []byte {
	switch at := m.Value.(type) {
	case *time.Duration:
		return strict.Encode(at.String())
	case *string:
		if m.is(JSON) {
			return []byte(cmp.Or(*at, "null"))
		}
	}
	return strict.Encode(m.Value)
}

// JSON returns the object as [Form.Fill] would read it, with null for each field that
// has its zero value, so that a struct that was built in Go passes the checks of a JSON
// text.
func (f Form) JSON() strict.Value {
	object := strict.Value{Kind: strict.Object, Members: make([]strict.Member, len(f))}
	for i := range f {
		object.Members[i].Name = f[i].Name
		if !reflect.ValueOf(f[i].Value).Elem().IsZero() {
			object.Members[i].Value = f[i].get()
		}
	}
	return object
}

// get returns what the member holds, which Fill refuses if it cannot be expressed in JSON: a
// string that is not UTF-8, or a year beyond 9999.
func (m *Member) get() strict.Value {
	switch at := m.target().(type) {
	case *string:
		if at != nil {
			return strict.Value{Kind: strict.String, Text: *at}
		}
	case *time.Time:
		if at != nil {
			return strict.Value{Kind: strict.String, Text: at.UTC().Format(time.RFC3339Nano)}
		}
	}
	v, _ := strict.Parse(m.encode())
	return v
}

// ReadIndexed reads the members with the flag [Indexed] out of a text that encoding/json wrote
// of the struct. It returns false if one of them is missing or of another type. It is meant for a
// million texts in a row: it does not parse the text, but searches it for the names of
// these members, each in quotes and before a colon. A text inside a string cannot look like
// that, because the quote at its end is escaped. Example: the title
//
//	x","slug":"y
//
// stands in the text as "x\",\"slug\":\"y", with a backslash between the g and the quote.
func (f Form) ReadIndexed(text string) (ok bool) {
	rest := text
	for i := range f {
		m := &f[i]
		if !m.is(Indexed) {
			continue
		}
		// Nearly always the text begins with this member.
		value, isNext := strings.CutPrefix(rest[min(len(`,"`), len(rest)):], m.Name)
		value, hasColon := strings.CutPrefix(value, `":`)
		if !isNext || !hasColon {
			value = afterName(rest, m.Name)
		}
		rest, ok = m.read(value)
		if !ok || !strings.HasPrefix(rest, ",") && !strings.HasPrefix(rest, "}") {
			return false
		}
	}
	return true
}

// afterName returns what follows the name of a member and its colon, or "". It searches
// for the name without its quotes, as [strings.Index] is many times slower at a character
// that is frequent.
func afterName(text, name string) string {
	for text != "" {
		before, after, _ := strings.Cut(text, name)
		value, isName := strings.CutPrefix(after, `":`)
		if isName && strings.HasSuffix(before, `"`) {
			return value
		}
		text = after
	}
	return ""
}

// read sets the member to the value that text begins with, and returns what follows it.
func (m *Member) read(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return m.readWord(text)
	}
	m.makeTarget()
	value, rest, ok := cutString(text)
	switch at := m.target().(type) {
	case *string:
		*at = value
	case *time.Time:
		var err error
		*at, err = time.Parse(time.RFC3339, value)
		ok = ok && err == nil
	default:
		ok = false
	}
	return rest, ok
}

// readWord is read for null, true and false.
func (m *Member) readWord(text string) (rest string, ok bool) {
	field := reflect.ValueOf(m.Value).Elem()
	field.SetZero()
	rest, isNull := strings.CutPrefix(text, "null")
	if isNull {
		return rest, field.Kind() == reflect.Pointer
	}
	flag, isBool := m.Value.(*bool)
	if !isBool {
		return "", false
	}
	rest, *flag = strings.CutPrefix(text, "true")
	if *flag {
		return rest, true
	}
	return strings.CutPrefix(text, "false")
}

// cutString cuts a JSON string off the beginning of a text, which is its quote.
func cutString(text string) (value, rest string, ok bool) {
	value, rest, isClosed := strings.Cut(text[1:], `"`)
	if !isClosed {
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
