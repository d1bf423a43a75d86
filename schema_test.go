// The JSON Schema judge: whether a value is valid by a schema of openapi.json. It
// knows the words of JSON Schema that the file uses, and no others.
package events_test

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// schema is a JSON Schema, as far as openapi.json uses that language. Type is one
// name: of an array of names, which some generators refuse, the decoder makes an error.
type schema struct {
	reference
	Description, Type         string
	Const                     any
	Enum                      []string
	AnyOf                     []*schema
	Not, Items                *schema
	MinLength, MaxLength      *int
	MaxItems                  *int
	Minimum, Maximum, Default *float64
	Pattern, Format           string
	Required                  []string
	Properties                map[string]*schema
	AdditionalProperties      *bool

	at     string  // where it is in the document, such as "#/components/schemas/Event"
	target *schema // what it refers to
}

// inWords has the rules that a schema states in its description only, because a
// pattern there would harm the clients that are generated from it. The judge holds
// values against these patterns as if they stood in the schema.
var inWords = map[string]string{
	// The schema has \S in its pattern. What that matches is not the same in all engines:
	// in Go any character beyond ASCII, in JavaScript U+0085 too, but not U+FEFF. Some
	// engines refuse the characters themselves, which would have to be written as \u0085.
	// Everywhere it is the opposite of \s, so the pattern takes what has one \S.
	"#/components/schemas/Title": `[^\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}` +
		`\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`,
	// What \s matches is not the same in all engines.
	"#/components/schemas/Email": `^[^\pZ\p{Cc}]*$`,
	// Beside a format, generated models apply a pattern to the parsed date or URL, and
	// so refuse every event.
	"#/components/schemas/Instant": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}` +
		`(\.[0-9]{0,8}[1-9])?Z$`,
	"#/components/schemas/WebUrl": `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@:][^/?#@]*([/?#]|$)`,
}

// reach visits a schema, the schemas inside it, and those that they refer to,
// each of them once.
func (s *schema) reach(visit func(*schema)) {
	seen := map[*schema]bool{nil: true}
	var down func(*schema)
	down = func(s *schema) {
		if seen[s] {
			return
		}
		seen[s] = true
		visit(s)
		parts := append(slices.Collect(maps.Values(s.Properties)), s.AnyOf...)
		for _, part := range append(parts, s.Items, s.Not, s.target) {
			down(part)
		}
	}
	down(s)
}

// validator holds values against schemas.
type validator struct {
	closed bool // an object may have only those members that its schema names
}

// check returns what is wrong with a value by the schema. The place says which
// value it is: it is "" for a whole body.
func (v validator) check(s *schema, place string, value any) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, cmp.Or(place, "the body")+" "+fmt.Sprintf(format, args...))
	}
	if s.target != nil {
		problems = v.check(s.target, place, value)
	}
	if s.Type != "" && !isOfType(value, s.Type) {
		add("is not of type %s", s.Type)
	}
	if s.Const != nil && value != s.Const {
		add("is not %v", s.Const)
	}
	if s.AnyOf != nil {
		fits := func(s *schema) bool { return v.check(s, place, value) == nil }
		if !slices.ContainsFunc(s.AnyOf, fits) {
			add("is none of the alternatives of %s", s.at)
		}
	}
	if s.Not != nil && (validator{}).check(s.Not, place, value) == nil {
		add("is excluded by %s", s.Not.at)
	}
	switch value := value.(type) {
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, value) {
			add("is not one of %v", s.Enum)
		}
		length := utf8.RuneCountInString(value)
		if s.MinLength != nil && length < *s.MinLength || s.MaxLength != nil && length > *s.MaxLength {
			add("has %d characters, too few or too many", length)
		}
		for _, pattern := range []string{s.Pattern, inWords[s.at]} {
			if !compile(pattern).MatchString(value) {
				add("does not match %s", pattern)
			}
		}
		if s.Format != "" && !formats[s.Format](value) {
			add("is not a %s", s.Format)
		}
	case float64:
		if s.Minimum != nil && value < *s.Minimum || s.Maximum != nil && value > *s.Maximum {
			add("is out of bounds")
		}
	case []any:
		if s.MaxItems != nil && len(value) > *s.MaxItems {
			add("has more than %d items", *s.MaxItems)
		}
		for i, item := range value {
			if s.Items != nil {
				problems = append(problems, v.check(s.Items, fmt.Sprintf("%s/%d", place, i), item)...)
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, has := value[name]; !has {
				add("lacks %s", name)
			}
		}
		open := s.Type == "" || !v.closed
		if s.AdditionalProperties != nil {
			open = *s.AdditionalProperties
		}
		for name, member := range value {
			if part := s.Properties[name]; part != nil {
				problems = append(problems, v.check(part, place+"/"+name, member)...)
			} else if !open {
				add("has the member %s, which is not described", name)
			}
		}
	}
	return problems
}

func isOfType(value any, name string) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "integer" && value == float64(int64(value))
	case []any:
		return name == "array"
	}
	return name == "object"
}

var patterns sync.Map

// compile returns a regular expression, which it makes once.
func compile(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

// formats has the two formats that the document uses. A URI is one by the same
// function as in the server, which has its own tests.
var formats = map[string]func(string) bool{
	"date-time": isDateTime,
	"uri":       strict.URL,
}

var dateTimeShape = regexp.MustCompile(
	`^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// isDateTime follows RFC 3339, section 5.6. A leap second is at 23:59 UTC.
func isDateTime(s string) bool {
	m := dateTimeShape.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	leap := m[2] == "60"
	if leap {
		m[2] = "59"
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(m[1]+":"+m[2]+m[4]))
	return err == nil && (!leap || t.UTC().Hour() == 23 && t.UTC().Minute() == 59)
}
