// Package form reads a JSON object into a struct by a table of its members and
// tells everything that is wrong with it at once, in the order of the table.
//
// A [Form] says of each member its name, its type, its rule and whether it is
// required or fixed. [Form.Fill] puts the members of an object into a struct;
// [Form.Value] is the way back, so that a struct made in Go passes the very
// same checks as one that came as JSON.
package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// Form is the table of the members of a T.
type Form[T any] []Member[T]

// Member is one member of a T: made by [Text], [TextOrNull], [Bool], [Int],
// [Duration], [Instant] or [InstantOrNull].
type Member[T any] struct {
	Name     string
	required bool
	fixed    bool
	set      func(*T, strict.Value) string // puts the value, or tells what is wrong with it
	get      func(*T) strict.Value
}

// Required returns the member as one that a new T cannot do without.
func (m Member[T]) Required() Member[T] { m.required = true; return m }

// Fixed returns the member as one that never changes once a T is there.
func (m Member[T]) Fixed() Member[T] { m.fixed = true; return m }

// A Rule tells what is wrong with a string as the end of a sentence that begins
// with the member's name ("must have at most 100 characters"), or "".
type Rule func(string) string

// Text is a member whose empty string stands for null: left out or null, it is
// the empty string.
func Text[T any](name string, at func(*T) *string, rule Rule) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string { return setText(at(x), v, rule) },
		get: func(x *T) strict.Value {
			if *at(x) == "" {
				return strict.Value{}
			}
			return strict.Value{Kind: strict.String, Text: *at(x)}
		}}
}

// TextOrNull is a string member that may be null, which differs from "".
func TextOrNull[T any](name string, at func(*T) **string, rule Rule) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = nil
			if v.Kind == strict.Null {
				return ""
			}
			var s string
			problem := setText(&s, v, rule)
			*at(x) = &s
			return problem
		},
		get: func(x *T) strict.Value {
			if *at(x) == nil {
				return strict.Value{}
			}
			return strict.Value{Kind: strict.String, Text: **at(x)}
		}}
}

func setText(s *string, v strict.Value, rule Rule) string {
	*s = ""
	switch {
	case v.Kind == strict.Null:
		return ""
	case v.Kind != strict.String:
		return "must be a string, not " + a(v.Kind)
	case !utf8.ValidString(v.Text):
		return "must be valid UTF-8"
	}
	*s = v.Text
	if rule == nil {
		return ""
	}
	return rule(v.Text)
}

// Bool is a member that is false when left out or null.
func Bool[T any](name string, at func(*T) *bool) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = v.Bool
			if v.Kind != strict.Bool && v.Kind != strict.Null {
				return "must be true or false, not " + a(v.Kind)
			}
			return ""
		},
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.Bool, Bool: *at(x)} }}
}

// Int is a whole number that is 0 when left out or null.
func Int[T any](name string, at func(*T) *int) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			n, err := strconv.Atoi(v.Text)
			if *at(x) = n; v.Kind != strict.Null && (v.Kind != strict.Number || err != nil) {
				return "must be a whole number in digits"
			}
			return ""
		},
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.Number, Text: strconv.Itoa(*at(x))} }}
}

// Duration is a string in Go's form that is 0 when left out or null.
func Duration[T any](name string, at func(*T) *time.Duration) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			d, err := time.ParseDuration(v.Text)
			if *at(x) = d; v.Kind != strict.Null && (v.Kind != strict.String || err != nil) {
				return "must be a string with a duration, such as 200ms, 1.5s or 2h"
			}
			return ""
		},
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.String, Text: at(x).String()} }}
}

// Instant is an RFC 3339 date-time, read into UTC. The zero time is null.
func Instant[T any](name string, at func(*T) *time.Time) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string { return setInstant(at(x), v) },
		get: func(x *T) strict.Value { return instant(*at(x)) }}
}

// InstantOrNull is an RFC 3339 date-time, read into UTC, that may be null.
func InstantOrNull[T any](name string, at func(*T) **time.Time) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = nil
			if v.Kind == strict.Null {
				return ""
			}
			var t time.Time
			problem := setInstant(&t, v)
			*at(x) = &t
			return problem
		},
		get: func(x *T) strict.Value {
			if *at(x) == nil {
				return strict.Value{}
			}
			return instant(**at(x))
		}}
}

func setInstant(t *time.Time, v strict.Value) string {
	*t = time.Time{}
	switch v.Kind {
	case strict.Null:
		return ""
	case strict.String:
		parsed, err := strict.Time(v.Text)
		if err != nil {
			return err.Error()
		}
		*t = parsed
		return ""
	}
	return "must be a string with an RFC 3339 date-time, not " + a(v.Kind)
}

func instant(t time.Time) strict.Value {
	if t.IsZero() {
		return strict.Value{}
	}
	return strict.Value{Kind: strict.String, Text: t.UTC().Format(time.RFC3339Nano)}
}

// Value is x as the JSON object that [Form.Fill] would read it from, with null
// for what is not set.
func (f Form[T]) Value(x *T) strict.Value {
	v := strict.Value{Kind: strict.Object, Members: make([]strict.Member, len(f))}
	for i, m := range f {
		v.Members[i] = strict.Member{Name: m.Name, Value: m.get(x)}
	}
	return v
}

// Fill puts the members of the object v into x and returns what is wrong with
// them. Null is the same as leaving a member of a new T out, and sets one of a
// T that is there back to nothing. With fresh, x is a new T: it needs the
// required members; otherwise the fixed ones must stay as they are. Only the
// first own members of the form may be given: the others are the server's.
func (f Form[T]) Fill(x *T, v strict.Value, fresh bool, own int) *Problems {
	p := &Problems{place: func(name string) int {
		return slices.IndexFunc(f, func(m Member[T]) bool { return m.Name == name })
	}}
	if v.Kind != strict.Object {
		p.place = func(string) int { return -1 } // no member has a problem of its own
		p.rest = append(p.rest, "must be a JSON object, not "+a(v.Kind))
		return p
	}
	before := *x
	var given uint64 // a bit a member
	unknown, lastUnknown := 0, 0
	for _, m := range v.Members {
		i := p.place(m.Name)
		switch {
		case i < 0:
			if unknown++; unknown <= maxUnknown {
				lastUnknown = len(p.rest)
				p.rest = append(p.rest, plain(m.Name)+" is not known")
			}
		case i >= own && given&(1<<i) == 0:
			given |= 1 << i
			p.rest = append(p.rest, m.Name+" is set by the server, so leave it out")
		case i >= own:
		case given&(1<<i) != 0:
			p.Say(m.Name, "is given more than once: send it once")
		default:
			given |= 1 << i
			if m.Value.Kind == strict.Null && (f[i].fixed || f[i].required) {
				if f[i].required && (fresh || !f[i].fixed) {
					p.Say(m.Name, "is required and must not be null")
				}
				continue
			}
			if problem := f[i].set(x, m.Value); problem != "" {
				p.Say(m.Name, problem)
			}
		}
	}
	for i, m := range f {
		switch {
		case fresh && m.required && i < own && given&(1<<i) == 0:
			p.Say(m.Name, "is required")
		case !fresh && m.fixed && m.get(x).Text != m.get(&before).Text:
			p.Say(m.Name, "never changes: it is "+m.get(&before).Text)
		}
	}
	if unknown > 0 {
		if unknown > maxUnknown {
			p.rest[lastUnknown] += fmt.Sprintf(", nor are %d more", unknown-maxUnknown)
		}
		p.rest[lastUnknown] += " (the members are " + strings.Join(f.names()[:own], ", ") + ")"
	}
	return p
}

func (f Form[T]) names() []string {
	names := make([]string, len(f))
	for i, m := range f {
		names[i] = m.Name
	}
	return names
}

const maxUnknown = 20 // unknown members told one by one

// Problems is what is wrong with an object, at most one problem a member.
type Problems struct {
	place func(name string) int // in the form
	found []problem             // of its members
	rest  []string              // of members that the form has not, or must not be given
}

type problem struct{ name, tail string }

// Say adds a problem of a member of the form, unless it has one already. The
// tail ends the sentence that the name begins.
func (p *Problems) Say(name, tail string) {
	if p.place(name) >= 0 && !p.Of(name) {
		p.found = append(p.found, problem{name, tail})
	}
}

// Of reports whether the member has a problem.
func (p *Problems) Of(name string) bool {
	return slices.ContainsFunc(p.found, func(f problem) bool { return f.name == name })
}

// All returns the problems in the order of the form, then those of members
// that are not in it; nil when there are none.
func (p *Problems) All() []string {
	slices.SortFunc(p.found, func(a, b problem) int { return p.place(a.name) - p.place(b.name) })
	var all []string
	for _, f := range p.found {
		all = append(all, f.name+" "+f.tail)
	}
	return append(all, p.rest...)
}

// Length is the rule of min to max characters (Unicode code points).
func Length(min, max int) Rule {
	return func(s string) string {
		n := utf8.RuneCountInString(s)
		switch {
		case n >= min && n <= max:
			return ""
		case min == 0:
			return fmt.Sprintf("must have at most %d characters, not %d", max, n)
		}
		return fmt.Sprintf("must have %d to %d characters, not %d", min, max, n)
	}
}

// OneOf is the rule of a fixed list of words.
func OneOf(words ...string) Rule {
	return func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		if len(words) == 2 {
			return "must be " + words[0] + " or " + words[1]
		}
		return "must be one of " + strings.Join(words, ", ")
	}
}

// plain is an unknown name as a message can carry it: short, and quoted where
// it is not a plain word.
func plain(name string) string {
	short := name
	if utf8.RuneCountInString(name) > 40 {
		short = string([]rune(name)[:40]) + "…"
	}
	for _, c := range name {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return strconv.Quote(short)
		}
	}
	if name == "" {
		return `""`
	}
	return short
}

// Kind is the kind of a value with its article, for a message.
func Kind(v strict.Value) string { return a(v.Kind) }

// a is a kind of JSON value with its article.
func a(k strict.Kind) string {
	switch k {
	case strict.Null:
		return "null"
	case strict.Array, strict.Object:
		return "an " + k.String()
	}
	return "a " + k.String()
}
