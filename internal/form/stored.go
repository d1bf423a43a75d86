package form

import (
	"cmp"
	"fmt"
	"reflect"
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
