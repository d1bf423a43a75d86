// Package schema decodes a JSON object into a struct and reports all problems at once, in the order of the
// struct's fields.
//
// Struct tags define the fields. The tag json has the field name. The tag schema has at most one rule and any
// flags:
//
//	type Guest struct {
//		ID          string     `json:"id" schema:"id=gst fixed"`
//		Name        *string    `json:"name" schema:"chars=1-255 required"`
//		Status      string     `json:"status" schema:"one_of=invited|approved"`
//		Email       *string    `json:"email" schema:"email"`
//		CheckedInAt *time.Time `json:"checked_in_at"`
//	}
//
//	var guestSchema = schema.For(Guest{}, nil)
//
// Rules apply to strings. You can add your own. These exist:
//
//	id=usr           a user ID: usr_ followed by 1 to 64 letters, digits, "_" or "-"
//	chars=1-255      1 to 255 characters (Unicode code points)
//	one_of=a|b       one of these words
//	title            1 to 255 characters, not only white space
//	email            one @, and at most 254 characters
//	url              an http or https URL of at most 2,048 characters; see [strict.IsURL]
//	zone             a time zone name; see [strict.IsZone]
//	slug             at most 100 lower-case letters and digits, with single hyphens between them
//
// Flags:
//
//	required         a new object must have the field
//	fixed            the field never changes once it is set; not for bool
//	server           only the server sets the field
//	empty_is_null    an empty string means null
//
// Types:
//
//	string           a string; null is ""
//	*string          a string or null
//	bool             true or false; null is false
//	time.Time        a date-time, converted to UTC; null is the zero time
//	*time.Time       a date-time or null
//	a [Decoder]      what it accepts; null is the zero value
//
// A schema checks each field on its own. Callers check how fields relate to each other or to other objects.
package schema

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// Schema is a list of fields in struct order. It is safe for concurrent use.
type Schema []field

type field struct {
	name  string
	rule  Rule     // or nil
	flags []string // see flagNames
	index []int    // see [reflect.Value.FieldByIndex]
}

var flagNames = []string{"required", "fixed", "server", "empty_is_null"}

// For creates the schema of a struct, or of the struct that a pointer points to. The rules are the caller's
// own and may be nil. Promoted fields are included. A field with the tag json:"-" gets the lower-case name of
// the Go field. For panics if a field has a type that isn't listed above, if a tag has an unknown word, or if
// a field that isn't a string has a rule.
func For(object any, rules Rules) Schema {
	var schema Schema
	structType := reflect.Indirect(reflect.ValueOf(object)).Type()
	for _, structField := range reflect.VisibleFields(structType) {
		if structField.Anonymous || !structField.IsExported() {
			continue
		}
		f := field{index: structField.Index}
		f.name, _, _ = strings.Cut(structField.Tag.Get("json"), ",")
		if f.name == "-" {
			f.name = strings.ToLower(structField.Name)
		}
		for word := range strings.FieldsSeq(structField.Tag.Get("schema")) {
			f.addWord(word, rules)
		}
		t := structField.Type
		if f.rule != nil && t != reflect.TypeFor[string]() && t != reflect.TypeFor[*string]() {
			panic(fmt.Sprintf("schema: field %s has a rule, and is not a string", f.name))
		}
		f.set(reflect.New(t).Elem(), strict.Value{Kind: strict.Bool}) // panics if the type is unsupported
		schema = append(schema, f)
	}
	return schema
}

func (f *field) addWord(word string, rules Rules) {
	name, parameter, _ := strings.Cut(word, "=")
	switch {
	case slices.Contains(flagNames, name):
		f.flags = append(f.flags, name)
	case ruleConstructors[name] != nil:
		f.rule = ruleConstructors[name](parameter)
	case commonRules[name] != nil:
		f.rule = commonRules[name]
	case rules[name] != nil:
		f.rule = rules[name]
	default:
		panic(fmt.Sprintf("schema: field %s has the unknown rule %s", f.name, word))
	}
}

// Decoder is implemented by pointers to fields of other types.
type Decoder interface {
	// DecodeJSON stores a value that isn't null. It returns a problem, or "".
	DecodeJSON(v strict.Value) (problem string)
}

// Mode selects the checks of [Schema.Decode].
type Mode int

const (
	// Merge decodes changes to an existing object. Fixed fields keep their values, and null resets other
	// fields.
	Merge Mode = iota
	// Create decodes a new object, which needs the required fields. A null field counts as absent.
	Create
	// FromClient is like Create, but refuses fields that only the server sets.
	FromClient
)

// Decode stores the fields of v, which should be a JSON object, in the struct that object points to, and
// returns their problems. It doesn't change missing fields. If there are problems, don't use the struct.
func (s Schema) Decode(object any, v strict.Value, mode Mode) *FieldProblems {
	if v.Kind != strict.Object {
		return &FieldProblems{others: []string{"must be a JSON object, not " + v.Kind.String()}}
	}
	p := &FieldProblems{schema: s}
	target := reflect.ValueOf(object).Elem()
	for i := range s {
		f := &s[i]
		value, times := find(v.Members, f.name)
		switch {
		case f.refused(mode):
			if times > 0 {
				p.others = append(p.others, f.name+" is set by the server, so leave it out")
			}
		case times > 0:
			p.Add(f.name, f.decode(target.FieldByIndex(f.index), value, mode))
			if times > 1 { // next to the problem of the first value
				p.add(f.name, "is given more than once: send it once")
			}
		case mode != Merge && f.has("required"):
			p.Add(f.name, "is required")
		}
	}
	p.addUnknown(v.Members, mode)
	return p
}

// find returns the first value with a name, and how often the name is given.
func find(members []strict.Member, name string) (value strict.Value, times int) {
	for _, m := range members {
		if m.Name != name {
			continue
		}
		if times == 0 {
			value = m.Value
		}
		times++
	}
	return value, times
}

func (f *field) has(flag string) bool { return slices.Contains(f.flags, flag) }

// refused reports whether the sender must not set the field.
func (f *field) refused(mode Mode) bool { return mode == FromClient && f.has("server") }

// decode stores v in a struct field. It returns a problem, or "".
func (f *field) decode(target reflect.Value, v strict.Value, mode Mode) (problem string) {
	if f.has("empty_is_null") && v.Kind == strict.String && v.Text == "" {
		v = strict.Value{}
	}
	unchangeable := f.has("fixed") && mode == Merge
	switch {
	case v.Kind != strict.Null:
	case unchangeable:
		return "" // like a missing field
	case f.has("required"):
		return "is required and must not be null"
	}
	before := "" // value of a fixed field that is already set
	if unchangeable && !target.IsZero() {
		before = encode(target).Text
	}
	problem = f.set(target, v)
	if problem == "" && before != "" && encode(target).Text != before {
		problem = "can't be changed: it is " + before
	}
	return problem
}

// set stores v in a struct field, without the checks for fixed and required fields.
func (f *field) set(target reflect.Value, v strict.Value) (problem string) {
	if v.Kind == strict.Null {
		target.SetZero()
		return ""
	}
	if target.Kind() == reflect.Pointer { // allocate, because the old value may be shared
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	switch p := target.Addr().Interface().(type) {
	case *string:
		*p = v.Text
		return f.checkString(v)
	case *bool:
		*p = v.Bool
		if v.Kind != strict.Bool {
			return "must be true or false, not " + v.Kind.String()
		}
	case Decoder:
		return p.DecodeJSON(v)
	case *time.Time:
		t, err := strict.ParseTime(v.Text)
		if err != nil {
			return err.Error()
		}
		*p = t
	default:
		panic(fmt.Sprintf("schema: field %s has the type %s, which isn't supported: see CONTRIBUTING.md",
			f.name, target.Type()))
	}
	return ""
}

// checkString checks that v is a string and follows the rule.
func (f *field) checkString(v strict.Value) string {
	switch {
	case v.Kind != strict.String:
		return "must be a string, not " + v.Kind.String()
	case !utf8.ValidString(v.Text): // only if v comes from a struct
		return "must be valid UTF-8"
	case f.rule == nil:
		return ""
	}
	return f.rule(v.Text)
}

// Value converts the struct that object points to into a JSON object for [Schema.Decode], so that a struct
// from Go passes the same checks as a JSON text. It leaves out zero strings and times, which stand for a
// missing value. A nil pointer and false are null.
func (s Schema) Value(object any) strict.Value {
	source := reflect.ValueOf(object).Elem()
	v := strict.Value{Kind: strict.Object, Members: make([]strict.Member, 0, len(s))}
	for _, f := range s {
		m := strict.Member{Name: f.name}
		value := source.FieldByIndex(f.index)
		zero := value.IsZero()
		if value.Kind() == reflect.Struct {
			zero = value.Interface().(time.Time).IsZero() // in any location
		}
		nullable := value.Kind() == reflect.Pointer || value.Kind() == reflect.Bool
		if !zero {
			m.Value = encode(value)
		}
		if !zero || nullable {
			v.Members = append(v.Members, m)
		}
	}
	return v
}

// encode converts a struct field. Decode refuses the values that JSON doesn't have: invalid UTF-8, and years
// that aren't 1 to 9999. RFC 3339 can write only year 0 of those, so it stands for all.
func encode(source reflect.Value) strict.Value {
	if source.Kind() == reflect.Pointer && !source.IsNil() {
		source = source.Elem()
	}
	switch x := source.Interface().(type) {
	case string:
		return strict.Value{Kind: strict.String, Text: x}
	case time.Time:
		x = x.UTC()
		if x.Year() < 0 || x.Year() > 9999 {
			x = x.AddDate(-x.Year(), 0, 0)
		}
		return strict.Value{Kind: strict.String, Text: x.Format(time.RFC3339Nano)}
	}
	v, _ := strict.Parse(strict.Encode(source.Interface()))
	return v
}

// Unmarshal parses a JSON object, such as a request body, and decodes it like [Schema.Decode].
func (s Schema) Unmarshal(text []byte, object any, mode Mode) *FieldProblems {
	if len(text) == 0 {
		return &FieldProblems{others: []string{"the body is empty: send a JSON object"}}
	}
	v, err := strict.Parse(text)
	if err != nil {
		return &FieldProblems{others: []string{"the body is not a JSON object: " + err.Error()}}
	}
	if v.Kind != strict.Object {
		return &FieldProblems{others: []string{"the body must be a JSON object, not " + v.Kind.String()}}
	}
	return s.Decode(object, v, mode)
}

// FieldProblems are the problems of an object, in the order of its schema, and then those of fields that
// shouldn't be there.
type FieldProblems struct {
	schema Schema
	fields map[string][]string // by field name
	others []string            // of the object itself, and of fields that shouldn't be there
}

// Add adds a problem, which follows the field name in messages. It does nothing if the problem is empty or
// the field already has one.
func (p *FieldProblems) Add(name, problem string) {
	if problem != "" && !p.Has(name) {
		p.add(name, problem)
	}
}

func (p *FieldProblems) add(name, problem string) {
	if p.fields == nil {
		p.fields = map[string][]string{}
	}
	p.fields[name] = append(p.fields[name], name+" "+problem)
}

// Has reports whether the field has a problem.
func (p *FieldProblems) Has(name string) bool { return p.fields[name] != nil }

// All returns all problems, or nil if there are none.
func (p *FieldProblems) All() []string {
	var all []string
	for _, f := range p.schema {
		all = append(all, p.fields[f.name]...)
	}
	return append(all, p.others...)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxShown = 40 // characters of an unknown name in a message

// addUnknown adds the names of members that aren't fields, shortened, and lists the fields.
func (p *FieldProblems) addUnknown(members []strict.Member, mode Mode) {
	var names []string
	for _, m := range members {
		isField := slices.ContainsFunc(p.schema, func(f field) bool { return f.name == m.Name })
		if !isField && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if names == nil {
		return
	}
	for _, name := range names {
		if len(name) > maxShown || !plainName.MatchString(name) {
			name = fmt.Sprintf("%.*q", maxShown, name)
		}
		p.others = append(p.others, name+" is not known")
	}
	var known []string
	for _, f := range p.schema {
		if !f.refused(mode) {
			known = append(known, f.name)
		}
	}
	p.others[len(p.others)-1] += " (the fields are " + strings.Join(known, ", ") + ")"
}
