package form

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// Append appends the object as JSON with all its members in the order of the form,
// but for those that are write-only: what encoding/json writes when it does not
// escape HTML.
func (f Form) Append(b []byte) []byte {
	separator := byte('{')
	for i := range f {
		if f[i].is(WriteOnly) {
			continue
		}
		b = append(b, separator, '"')
		b = append(b, f[i].Name...)
		b = append(b, '"', ':')
		b = f[i].append(b)
		separator = ','
	}
	return append(b, '}')
}

// append appends what the member holds as JSON.
func (m *Member) append(b []byte) []byte {
	if m.is(JSON) {
		text, isText := m.Value.(*string)
		if isText {
			return append(b, cmp.Or(*text, "null")...)
		}
		return append(b, strict.Encode(m.Value)...)
	}
	switch at := m.target().(type) {
	case *string:
		if at != nil {
			return appendString(b, *at)
		}
	case *bool:
		return strconv.AppendBool(b, *at)
	case *int:
		return strconv.AppendInt(b, int64(*at), 10)
	case *time.Duration:
		return appendString(b, at.String())
	case *time.Time:
		if at != nil {
			b = append(b, '"')
			b = at.UTC().AppendFormat(b, time.RFC3339Nano)
			return append(b, '"')
		}
	}
	return append(b, "null"...)
}

// appendString is [strict.Encode] of a string, at a fraction of its time if there is
// nothing to escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == '"' || c == '\\' || c == 0xe2 { // U+2028 and U+2029 begin with 0xe2
			return append(b, strict.Encode(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
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

// get returns what the member holds.
func (m *Member) get() strict.Value {
	s, isString := m.target().(*string)
	if isString && s != nil {
		return strict.Value{Kind: strict.String, Text: *s} // which Fill refuses if it is not UTF-8
	}
	v, _ := strict.Parse(m.append(nil))
	return v
}

// Read puts the members of a text that [Form.Append] wrote into the struct. It checks no
// rule: all were checked before the text was written. It returns false if a member is
// unknown or of another type.
func (f Form) Read(text string) (ok bool) {
	v, err := strict.Parse([]byte(text))
	if err != nil || v.Kind != strict.Object {
		return false
	}
	for _, in := range v.Members {
		i := f.index(in.Name)
		if i < 0 || f[i].set(in.Value) != "" {
			return false
		}
	}
	return true
}

// ReadIndexed is Read for the members with the flag [Indexed] alone. It is meant for a
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
