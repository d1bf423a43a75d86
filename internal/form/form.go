// Package form reads a JSON object into a struct by a table of its members, and
// reports everything that is wrong with it at once, in the order of the table.
//
// A [Form] is that table. Of each member it has the JSON name, a pointer to where
// the value is kept, a rule for its text, and whether it is required, fixed or
// set by the server. A type makes the form of one of its objects in a method:
//
//	func (g *Guest) form() form.Form {
//		return form.Form{
//			{Name: "id", Value: &g.ID, Rule: guestID, Flags: form.Fixed},
//			{Name: "name", Value: &g.Name, Rule: personName, Flags: form.Required},
//			{Name: "checked_in_at", Value: &g.CheckedInAt},
//		}
//	}
//
// [Form.Fill] puts the members of a JSON object into the struct, [Form.Append]
// writes the JSON that is stored and answered, and [Form.JSON] makes of a struct
// that was built in Go the object that Fill reads, so that it passes the same
// checks as one that came as JSON.
package form

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// Form is the table of the members of one object, in the order of its JSON. It is
// as safe for concurrent use as that object.
type Form []Member

// Member is one member of an object: its name in JSON, where its value is kept,
// and its rules.
type Member struct {
	Name string

	// Value points to a field of the object. It is one of
	//
	//	*string        a string; "" stands for null
	//	**string       a string or null, which differs from ""
	//	*bool          true or false; null is false
	//	*int           a whole number; null is 0
	//	*time.Duration a string in Go's form, such as "1.5s"; null is 0
	//	*time.Time     a date-time, read into UTC; the zero time stands for null
	//	**time.Time    a date-time or null
	Value any

	Rule  Rule // of a string; nil if any will do
	Flags Flags
}

// Flags are the rules of a member beside that of its text.
type Flags uint8

const (
	Required    Flags = 1 << iota // a new object cannot do without it
	Fixed                         // it never changes once it is set
	Server                        // a client must not give it
	WriteOnly                     // Append leaves it out
	EmptyIsNull                   // an empty string means the same as null
)

// Mode is what [Form.Fill] fills.
type Mode int

const (
	// Merge fills an object that exists. Its fixed members must stay as they are,
	// and null sets a member back to nothing.
	Merge Mode = iota
	// New fills a new object, which needs the required members. Null is the same
	// as leaving a member out.
	New
	// Client is New for a client, who must not give the server's members.
	Client
	// Stored fills a new object from JSON that Append wrote. No member is required,
	// and no rule is checked: all were when it was written.
	Stored
)

// Fill puts the members of v, which should be a JSON object, into the struct of
// the form and returns what is wrong with them. Members that v does not have stay
// as they are. If there are problems, the struct is of no use.
func (f Form) Fill(v strict.Value, mode Mode) *Problems {
	if v.Kind != strict.Object {
		return &Problems{others: []string{"must be a JSON object, not " + v.Kind.String()}}
	}
	p := &Problems{form: f}
	given := make([]bool, len(f)) // whether the object has the member at this place in the form
	var unknown []string
	for _, in := range v.Members {
		i := f.index(in.Name)
		switch {
		case i < 0:
			unknown = append(unknown, in.Name)
			continue
		case given[i]:
			p.Add(in.Name, "is given more than once: send it once")
		case f[i].is(Server) && mode == Client:
			p.others = append(p.others, in.Name+" is set by the server, so leave it out")
		default:
			p.Add(in.Name, f[i].fill(in.Value, mode))
		}
		given[i] = true
	}
	for i := range f {
		if f[i].is(Required) && !given[i] && (mode == New || mode == Client && !f[i].is(Server)) {
			p.Add(f[i].Name, "is required")
		}
	}
	if unknown != nil {
		p.addUnknown(unknown, mode)
	}
	return p
}

// index returns the place of the member with the name in the form, or -1.
func (f Form) index(name string) int {
	for i := range f { // slices.IndexFunc would copy each member
		if f[i].Name == name {
			return i
		}
	}
	return -1
}

func (m *Member) is(flag Flags) bool { return m.Flags&flag != 0 }

// fill sets the member to v by the rules of the mode, and returns what is wrong
// with v as the end of a sentence that begins with the member's name, or "".
func (m *Member) fill(v strict.Value, mode Mode) (problem string) {
	if m.is(EmptyIsNull) && v.Kind == strict.String && v.Text == "" {
		v = strict.Value{}
	}
	before := "" // what must not change
	switch isFixed := m.is(Fixed) && mode == Merge; {
	case isFixed && v.Kind == strict.Null:
		return "" // the same as leaving it out
	case isFixed:
		before = m.get().Text
	case m.is(Required) && v.Kind == strict.Null:
		return "is required and must not be null"
	}
	problem = m.set(v, mode == Stored)
	if problem == "" && before != "" && m.get().Text != before {
		return "never changes: it is " + before
	}
	return problem
}

// set puts v where the member is kept and returns what is wrong with v, or "".
// What was stored is taken without the rule.
func (m *Member) set(v strict.Value, isStored bool) (problem string) {
	if v.Kind == strict.Null {
		reflect.ValueOf(m.Value).Elem().SetZero()
		return ""
	}
	switch at := m.Value.(type) { // what a pointer pointed to may be shared with another object
	case **string:
		*at = new(string)
	case **time.Time:
		*at = new(time.Time)
	}
	var err error
	switch at := m.target().(type) {
	case *string:
		*at = v.Text
		switch {
		case v.Kind != strict.String:
			return "must be a string, not " + v.Kind.String()
		case !utf8.ValidString(v.Text): // it comes from a struct, not from a JSON text
			return "must be valid UTF-8"
		case m.Rule != nil && !isStored:
			return m.Rule(v.Text)
		}
	case *bool:
		if *at = v.Bool; v.Kind != strict.Bool {
			return "must be true or false, not " + v.Kind.String()
		}
	case *int:
		if *at, err = strconv.Atoi(v.Text); err != nil || v.Kind != strict.Number {
			return "must be a whole number in digits"
		}
	case *time.Duration:
		if *at, err = time.ParseDuration(v.Text); err != nil || v.Kind != strict.String {
			return "must be a string with a duration, such as 200ms, 1.5s or 2h"
		}
	case *time.Time:
		if isStored {
			*at, err = time.Parse(time.RFC3339, v.Text) // in UTC, as it was written
		} else {
			*at, err = strict.Time(v.Text)
		}
		if err != nil {
			return err.Error()
		}
	}
	return ""
}

// target returns a pointer to the string, bool, int, duration or time that the member
// holds. It is a nil *string or *time.Time if the member holds null.
func (m *Member) target() any {
	switch at := m.Value.(type) {
	case **string:
		return *at
	case **time.Time:
		return *at
	case *string, *bool, *int, *time.Duration, *time.Time:
		return at
	}
	panic(fmt.Sprintf("form: the member %s has a value of the type %T", m.Name, m.Value))
}

// append appends what the member holds as JSON, as encoding/json writes it when it
// does not escape HTML.
func (m *Member) append(b []byte) []byte {
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
			return append(at.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
		}
	}
	return append(b, "null"...)
}

// appendString is [strict.Encode] of a string, at a fraction of its time if there is
// nothing to escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == 0xe2 { // U+2028 and U+2029 begin with 0xe2
			return append(b, strict.Encode(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// get returns what the member holds.
func (m *Member) get() strict.Value {
	if s, ok := m.target().(*string); ok && s != nil {
		return strict.Value{Kind: strict.String, Text: *s} // which Fill refuses if it is not UTF-8
	}
	v, _ := strict.Parse(m.append(nil))
	return v
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

// Append appends the object as JSON with all its members in the order of the form,
// but for those that are write-only: what encoding/json writes when it does not
// escape HTML.
func (f Form) Append(b []byte) []byte {
	separator := byte('{')
	for i := range f {
		if !f[i].is(WriteOnly) {
			b = append(append(append(b, separator, '"'), f[i].Name...), '"', ':')
			b = f[i].append(b)
			separator = ','
		}
	}
	return append(b, '}')
}

// Problems is what is wrong with an object, at most one problem a member.
type Problems struct {
	form    Form
	members map[string]string // by name, the sentence about a member of the form
	others  []string          // about members that must not be there
}

// Add adds a problem of a member of the form, unless it has one already. The tail
// ends the sentence that the name begins; an empty one is no problem.
func (p *Problems) Add(name, tail string) {
	if tail == "" || p.Has(name) || p.form.index(name) < 0 {
		return
	}
	if p.members == nil {
		p.members = map[string]string{}
	}
	p.members[name] = name + " " + tail
}

// Has reports whether the member has a problem.
func (p *Problems) Has(name string) bool { return p.members[name] != "" }

// All returns the problems in the order of the form, then those of members that
// must not be there; nil when there are none.
func (p *Problems) All() []string {
	var all []string
	for _, m := range p.form {
		if p.Has(m.Name) {
			all = append(all, p.members[m.Name])
		}
	}
	return append(all, p.others...)
}

const maxUnknown = 20 // unknown members that a message names

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// addUnknown adds members that the form does not have, at most maxUnknown and 40
// characters of each, and lists those that the mode allows.
func (p *Problems) addUnknown(names []string, mode Mode) {
	for _, name := range names[:min(len(names), maxUnknown)] {
		if !plainName.MatchString(name) {
			name = fmt.Sprintf("%.40q", name)
		}
		p.others = append(p.others, name+" is not known")
	}
	last := &p.others[len(p.others)-1]
	if more := len(names) - maxUnknown; more > 0 {
		*last += fmt.Sprintf(", nor are %d more", more)
	}
	var known []string
	for _, m := range p.form {
		if mode != Client || !m.is(Server) {
			known = append(known, m.Name)
		}
	}
	*last += " (the members are " + strings.Join(known, ", ") + ")"
}
