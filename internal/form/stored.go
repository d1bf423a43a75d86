package form

import (
	"reflect"
	"time"

	"example.com/events/internal/strict"
)

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
	case *time.Duration:
		return strict.Value{Kind: strict.String, Text: at.String()}
	case *time.Time:
		if at != nil {
			return strict.Value{Kind: strict.String, Text: at.UTC().Format(time.RFC3339Nano)}
		}
	}
	v, _ := strict.Parse(strict.Encode(m.Value))
	return v
}
