// Package form reads a JSON object into a struct by a table of its members, and
// reports everything that is wrong with it at once, in the order of the table.
//
// The table is made of the struct's tags. A tag json has the name of a member. A tag
// form has at most one rule for its value, and its [Flags], in any order:
//
//	type Guest struct {
//		ID          string     `json:"id" form:"id=gst fixed"`
//		Name        *string    `json:"name" form:"chars=1-255 required"`
//		Status      string     `json:"status" form:"one_of=invited|approved"`
//		Email       *string    `json:"email" form:"email"`
//		CheckedInAt *time.Time `json:"checked_in_at"`
//	}
//
//	var guests = form.NewTable(Guest{}, form.Rules{"email": form.Email})
//
// The rules with a parameter are [ID], [Chars] and [OneOf]. The others have the names that
// the caller gives them.
//
// [Table.Form] binds the table to a struct. [Form.Fill] puts the members of a JSON
// object into the struct, by the rules, and [Form.JSON] makes of a struct that was built
// in Go the object that Fill takes, so that it passes the same checks as one that came
// as JSON. [Form.Append] writes the struct for the file, in the order of its fields, as
// encoding/json does, which reads it again.
//
// It looks at one object and at each member alone: what members have to do with each other or
// with other objects is for the caller to check.
package form

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// Table is what the tags of a struct say of its members, in their order. It is safe for
// concurrent use.
type Table []Member

// Member is one member of an object: its name in JSON and its rules. The field in which it is
// kept is one of
//
//	string         a string; "" stands for null
//	*string        a string or null, which differs from ""
//	bool           true or false; null is false
//	int            a whole number; null is 0
//	*int           a whole number or null
//	time.Duration  a string in Go's form, such as "1.5s"; null is 0
//	time.Time      a date-time, read into UTC; the zero time stands for null
//	*time.Time     a date-time or null
//
// or with the flag [JSON] anything.
type Member struct {
	Name  string
	Rule  *Rule // nil if any value of the field's type will do
	Flags Flags
	field []int // see [reflect.Value.FieldByIndex]

	prefix string // the name in quotes and the colon; "" if JSON leaves the field out (json:"-")
}

// Flags are the rules of a member beside that of its text.
type Flags uint8

const (
	Required    Flags = 1 << iota // required: a new object cannot do without it
	Fixed                         // fixed: it never changes once it is set
	Server                        // server: a client must not give it: see [Form.ByClient]
	EmptyIsNull                   // empty_is_null: an empty string means the same as null
	JSON                          // json: any JSON value, which Fill leaves to its caller
)

// flags are the flags by their names in tags.
var flags = map[string]Flags{
	"required":      Required,
	"fixed":         Fixed,
	"server":        Server,
	"empty_is_null": EmptyIsNull,
	"json":          JSON,
}

// Rules are rules by their names in tags.
type Rules map[string]*Rule

// NewTable reads the tags of the exported fields of a struct, or of what points to one, also
// of those that it has from a struct that it embeds. A field that JSON leaves out (json:"-") is
// named after the field, and one with the tag form:"-" is no member. NewTable panics if a tag names
// a rule that is not among the rules.
func NewTable(object any, rules Rules) (table Table) {
	fields := reflect.Indirect(reflect.ValueOf(object)).Type()
	for _, field := range reflect.VisibleFields(fields) {
		if field.Anonymous || !field.IsExported() || field.Tag.Get("form") == "-" {
			continue
		}
		m := Member{field: field.Index}
		m.Name = strings.TrimSuffix(field.Tag.Get("json"), ",omitempty")
		m.prefix = `"` + m.Name + `":`
		if m.Name == "-" {
			m.Name = strings.ToLower(field.Name)
			m.prefix = ""
		}
		for word := range strings.FieldsSeq(field.Tag.Get("form")) {
			name, arg, _ := strings.Cut(word, "=")
			switch {
			case flags[name] != 0:
				m.Flags |= flags[name]
			case makers[name] != nil:
				m.Rule = makers[name](arg)
			case rules[name] != nil:
				m.Rule = rules[name]
			default:
				panic(fmt.Sprintf("form: the member %s has the unknown rule %s", m.Name, word))
			}
		}
		table = append(table, m)
	}
	return table
}

// Form is a table and an object. It is as safe for concurrent use as that object.
type Form struct {
	table    Table
	object   reflect.Value
	byClient bool
}

// Form binds the table to an object: a pointer to a struct of the type that the table was
// made of.
func (table Table) Form(object any) Form {
	return Form{table: table, object: reflect.ValueOf(object).Elem()}
}

// Object reads the body of a request, which must be a JSON object. It returns what is wrong with
// the body, or "".
func Object(body []byte) (v strict.Value, problem string) {
	v, problem = parse(body)
	if problem == "" && v.Kind != strict.Object {
		problem = "the body must be a JSON object, not " + v.Kind.String()
	}
	return v, problem
}

func parse(body []byte) (v strict.Value, problem string) {
	if len(body) == 0 {
		return v, "the body is empty: send a JSON object"
	}
	v, err := strict.Parse(body)
	if err != nil {
		return v, "the body is not a JSON object: " + err.Error()
	}
	return v, ""
}

// Read reads a JSON text into a new object, of whose members no rule is named in the tags. It
// returns what was read, and what is wrong with it, as [Problems.All] does.
func Read(object any, text []byte) (strict.Value, []string) {
	v, problem := parse(text)
	if problem != "" {
		return v, []string{problem}
	}
	return v, NewTable(object, nil).Form(object).Fill(v, New).All()
}

// ByClient makes [Form.Fill] refuse the server's members.
func (f Form) ByClient() Form {
	f.byClient = true
	return f
}

// isRefused reports whether who sends the object must not give the member.
func (f Form) isRefused(m *Member) bool { return f.byClient && m.is(Server) }

// Mode is what [Form.Fill] fills.
type Mode int

const (
	// Merge fills an object that exists. Its fixed members must stay as they are,
	// and null sets a member back to nothing.
	Merge Mode = iota
	// New fills a new object, which needs the required members. Null is the same
	// as leaving a member out.
	New
)

// Fill puts the members of v, which should be a JSON object, into the struct of
// the form and returns what is wrong with them. Members that v does not have stay
// as they are. If there are problems, the struct is of no use.
func (f Form) Fill(v strict.Value, mode Mode) *Problems {
	if v.Kind != strict.Object {
		return &Problems{others: []string{"must be a JSON object, not " + v.Kind.String()}}
	}
	p := &Problems{form: f}
	given := make([]bool, len(f.table)) // whether the object has the member at this place
	var unknown []string
	for _, in := range v.Members {
		i := f.table.index(in.Name)
		if i < 0 {
			unknown = append(unknown, in.Name)
			continue
		}
		m := &f.table[i]
		switch {
		case given[i]:
			p.Add(in.Name, "is given more than once: send it once")
		case f.isRefused(m):
			p.others = append(p.others, in.Name+" is set by the server, so leave it out")
		default:
			p.Add(in.Name, m.fill(f.object.FieldByIndex(m.field), in.Value, mode))
		}
		given[i] = true
	}
	for i := range f.table {
		m := &f.table[i]
		if mode == New && m.is(Required) && !f.isRefused(m) && !given[i] {
			p.Add(m.Name, "is required")
		}
	}
	if unknown != nil {
		p.addUnknown(unknown)
	}
	return p
}

// index returns the place of the member with the name in the table, or -1.
func (table Table) index(name string) int {
	for i := range table { // slices.IndexFunc would copy each member
		if table[i].Name == name {
			return i
		}
	}
	return -1
}

func (m *Member) is(flag Flags) bool { return m.Flags&flag != 0 }

// fill sets the field of the member to v by the rules of the mode, and returns what is wrong
// with v as the end of a sentence that begins with the member's name, or "".
func (m *Member) fill(field reflect.Value, v strict.Value, mode Mode) (problem string) {
	if m.is(EmptyIsNull) && v.Kind == strict.String && v.Text == "" {
		v = strict.Value{}
	}
	isFixed := m.is(Fixed) && mode == Merge
	switch {
	case v.Kind != strict.Null:
	case isFixed:
		return "" // the same as leaving it out
	case m.is(Required):
		return "is required and must not be null"
	}
	before := "" // what must not change
	if isFixed {
		before = get(field).Text
	}
	if m.Rule != nil && v.Kind != strict.Null {
		problem = m.Rule.Problem(v)
	}
	problem = cmp.Or(problem, m.set(field, v))
	if problem == "" && before != "" && get(field).Text != before {
		problem = "never changes: it is " + before
	}
	return problem
}

// set puts v into the field of the member and returns what is wrong with its type, or "".
func (m *Member) set(field reflect.Value, v strict.Value) (problem string) {
	if v.Kind == strict.Null || m.is(JSON) {
		field.SetZero()
		return ""
	}
	if field.Kind() == reflect.Pointer { // to a new value, as the one before may be shared
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	var err error
	switch at := field.Addr().Interface().(type) {
	case *string:
		*at = v.Text
		if v.Kind != strict.String {
			return "must be a string, not " + v.Kind.String()
		}
		if !utf8.ValidString(v.Text) { // it comes from a struct, not from a JSON text
			return "must be valid UTF-8"
		}
	case *bool:
		*at = v.Bool
		if v.Kind != strict.Bool {
			return "must be true or false, not " + v.Kind.String()
		}
	case *int:
		*at, err = strconv.Atoi(v.Text)
		if err != nil || v.Kind != strict.Number {
			return "must be a whole number in digits"
		}
	case *time.Duration:
		*at, err = time.ParseDuration(v.Text)
		if err != nil || v.Kind != strict.String {
			return "must be a string with a duration, such as 200ms, 1.5s or 2h"
		}
	case *time.Time:
		*at, err = strict.Time(v.Text)
		if err != nil {
			return err.Error()
		}
	default:
		panic(fmt.Sprintf("form: the member %s has the type %s", m.Name, field.Type()))
	}
	return ""
}

// JSON returns the object as [Form.Fill] would read it, with null for each field that
// has its zero value, so that a struct that was built in Go passes the checks of a JSON
// text.
func (f Form) JSON() strict.Value {
	object := strict.Value{Kind: strict.Object, Members: make([]strict.Member, len(f.table))}
	for i, m := range f.table {
		object.Members[i].Name = m.Name
		field := f.object.FieldByIndex(m.field)
		if !field.IsZero() {
			object.Members[i].Value = get(field)
		}
	}
	return object
}

// get returns what a field holds, which Fill refuses if it cannot be expressed in JSON: a
// string that is not UTF-8, or a year beyond 9999.
func get(field reflect.Value) strict.Value {
	if field.Kind() == reflect.Pointer && !field.IsNil() {
		field = field.Elem()
	}
	switch x := field.Interface().(type) {
	case string:
		return strict.Value{Kind: strict.String, Text: x}
	case time.Duration:
		return strict.Value{Kind: strict.String, Text: x.String()}
	case time.Time:
		return strict.Value{Kind: strict.String, Text: x.UTC().Format(time.RFC3339Nano)}
	}
	v, _ := strict.Parse(strict.Encode(field.Interface()))
	return v
}

// Problems is what is wrong with an object, at most one problem a member that may be given.
type Problems struct {
	form    Form
	members map[string]string // by name, the sentence about a member of the form
	others  []string          // about members that must not be there
}

// Add adds a problem of a member of the form, unless it has one already. The tail
// ends the sentence that the name begins; an empty one is no problem.
func (p *Problems) Add(name, tail string) {
	if tail == "" || p.Has(name) || p.form.table.index(name) < 0 {
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
	for _, m := range p.form.table {
		if p.Has(m.Name) {
			all = append(all, p.members[m.Name])
		}
	}
	return append(all, p.others...)
}

const maxUnknown = 20 // unknown members that a message names

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// addUnknown adds members that the form does not have, at most maxUnknown and 40
// characters of each, and lists those that may be given.
func (p *Problems) addUnknown(names []string) {
	for _, name := range names[:min(len(names), maxUnknown)] {
		if !plainName.MatchString(name) {
			name = fmt.Sprintf("%.40q", name)
		}
		p.others = append(p.others, name+" is not known")
	}
	last := &p.others[len(p.others)-1]
	more := len(names) - maxUnknown
	if more > 0 {
		*last += fmt.Sprintf(", nor are %d more", more)
	}
	var known []string
	for _, m := range p.form.table {
		if !p.form.isRefused(&m) {
			known = append(known, m.Name)
		}
	}
	*last += " (the members are " + strings.Join(known, ", ") + ")"
}
