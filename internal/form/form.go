// Package form reads a JSON object into a struct by a table of its members and
// tells everything that is wrong with it at once, in the order of the table.
//
// A [Form] says of each member its name, its type, its rule and whether it is
// required, fixed or the server's. [Form.Fill] puts the members of an object
// into a struct; [Form.Value] is the way back, so that a struct made in Go passes
// the very same checks as one that came as JSON; [Form.Append] writes the JSON
// that is kept and answered.
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
	Name      string
	required  bool
	fixed     bool
	server    bool
	writeOnly bool
	set       func(*T, strict.Value) string // puts the value, or tells what is wrong with it
	get       func(*T) strict.Value         // null where it is not set
	put       func([]byte, *T) []byte       // appends it as JSON
}

// Required returns the member as one that a new T cannot do without.
func (m Member[T]) Required() Member[T] { m.required = true; return m }

// Fixed returns the member as one that never changes once a T is there.
func (m Member[T]) Fixed() Member[T] { m.fixed = true; return m }

// Server returns the member as one that a client must not give.
func (m Member[T]) Server() Member[T] { m.server = true; return m }

// WriteOnly returns the member as one that [Form.Append] leaves out.
func (m Member[T]) WriteOnly() Member[T] { m.writeOnly = true; return m }

// Text is a member whose empty string stands for null: left out or null, it is
// the empty string.
func Text[T any](name string, at func(*T) *string, rule Rule) Member[T] {
	return nullIf(func(x *T) bool { return *at(x) == "" }, text(name, at, rule))
}

// TextOrNull is a string member that may be null, which differs from "".
func TextOrNull[T any](name string, at func(*T) **string, rule Rule) Member[T] {
	return orNull(at, text(name, func(x *T) *string { return *at(x) }, rule))
}

func text[T any](name string, at func(*T) *string, rule Rule) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = ""
			switch {
			case v.Kind == strict.Null:
				return ""
			case v.Kind != strict.String:
				return "must be a string, not " + Kind(v)
			case !utf8.ValidString(v.Text):
				return "must be valid UTF-8"
			}
			*at(x) = v.Text
			if rule == nil {
				return ""
			}
			return rule(v.Text)
		},
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.String, Text: *at(x)} },
		put: func(b []byte, x *T) []byte { return appendText(b, *at(x)) }}
}

// nullIf is m, but null where its value stands for that.
func nullIf[T any](is func(*T) bool, m Member[T]) Member[T] {
	get := m.get
	m.get = func(x *T) strict.Value {
		if is(x) {
			return strict.Value{}
		}
		return get(x)
	}
	return m
}

// orNull is a member that may be nil, which is null, and is m where it is not.
func orNull[T, V any](at func(*T) **V, m Member[T]) Member[T] {
	return Member[T]{Name: m.Name,
		set: func(x *T, v strict.Value) string {
			if *at(x) = nil; v.Kind == strict.Null {
				return ""
			}
			*at(x) = new(V)
			return m.set(x, v)
		},
		get: func(x *T) strict.Value {
			if *at(x) == nil {
				return strict.Value{}
			}
			return m.get(x)
		},
		put: func(b []byte, x *T) []byte {
			if *at(x) == nil {
				return append(b, "null"...)
			}
			return m.put(b, x)
		}}
}

// Bool is a member that is false when left out or null.
func Bool[T any](name string, at func(*T) *bool) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = v.Bool
			if v.Kind != strict.Bool && v.Kind != strict.Null {
				return "must be true or false, not " + Kind(v)
			}
			return ""
		},
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.Bool, Bool: *at(x)} },
		put: func(b []byte, x *T) []byte { return strconv.AppendBool(b, *at(x)) }}
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
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.Number, Text: strconv.Itoa(*at(x))} },
		put: func(b []byte, x *T) []byte { return strconv.AppendInt(b, int64(*at(x)), 10) }}
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
		get: func(x *T) strict.Value { return strict.Value{Kind: strict.String, Text: at(x).String()} },
		put: func(b []byte, x *T) []byte { return appendText(b, at(x).String()) }}
}

// Instant is an RFC 3339 date-time, read into UTC. The zero time is null.
func Instant[T any](name string, at func(*T) *time.Time) Member[T] {
	return nullIf(func(x *T) bool { return at(x).IsZero() }, instant(name, at))
}

// InstantOrNull is an RFC 3339 date-time, read into UTC, that may be null.
func InstantOrNull[T any](name string, at func(*T) **time.Time) Member[T] {
	return orNull(at, instant(name, func(x *T) *time.Time { return *at(x) }))
}

func instant[T any](name string, at func(*T) *time.Time) Member[T] {
	return Member[T]{Name: name,
		set: func(x *T, v strict.Value) string {
			*at(x) = time.Time{}
			if v.Kind == strict.Null {
				return ""
			}
			if v.Kind != strict.String {
				return "must be a string with an RFC 3339 date-time, not " + Kind(v)
			}
			t, err := strict.Time(v.Text)
			if err != nil {
				return err.Error()
			}
			*at(x) = t
			return ""
		},
		get: func(x *T) strict.Value {
			return strict.Value{Kind: strict.String, Text: at(x).UTC().Format(time.RFC3339Nano)}
		},
		put: func(b []byte, x *T) []byte {
			return append(at(x).UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
		}}
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

func (f Form[T]) place(name string) int {
	for i := range f { // slices.IndexFunc copies each member
		if f[i].Name == name {
			return i
		}
	}
	return -1
}

// Append appends x as a JSON object with all its members in the order of the
// form, but for those that are write-only.
func (f Form[T]) Append(b []byte, x *T) []byte {
	sep := byte('{')
	for i := range f {
		m := &f[i]
		if m.writeOnly {
			continue
		}
		b = append(append(append(b, sep, '"'), m.Name...), '"', ':')
		sep = ','
		b = m.put(b, x)
	}
	return append(b, '}')
}

// appendText is strict.Encode of a string, at a fraction of its time where there
// is nothing to escape.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == 0xe2 { // 0xe2 begins U+2028 and U+2029
			return append(b, strict.Encode(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Mode is what [Form.Fill] fills.
type Mode int

const (
	// Merge: a T that is there. Its fixed members must stay as they are, and null
	// sets one back to nothing.
	Merge Mode = iota
	// New: a new T, which needs the required members. Null is the same as leaving
	// a member out.
	New
	// Client: a new T of a client, who must not give the server's members.
	Client
)

// Fill puts the members of the object v into x and returns what is wrong with
// them.
func (f Form[T]) Fill(x *T, v strict.Value, mode Mode) *Problems {
	p := &Problems{place: f.place}
	if v.Kind != strict.Object {
		p.place = func(string) int { return -1 } // no member has a problem of its own
		p.rest = append(p.rest, "must be a JSON object, not "+Kind(v))
		return p
	}
	before := x
	if mode == Merge {
		before = new(*x)
	}
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
		case f[i].server && mode == Client:
			if given&(1<<i) == 0 {
				p.rest = append(p.rest, m.Name+" is set by the server, so leave it out")
			}
		case given&(1<<i) != 0:
			p.Say(m.Name, "is given more than once: send it once")
		case m.Value.Kind == strict.Null && (f[i].fixed || f[i].required):
			if f[i].required && (mode != Merge || !f[i].fixed) {
				p.Say(m.Name, "is required and must not be null")
			}
		default:
			if problem := f[i].set(x, m.Value); problem != "" {
				p.Say(m.Name, problem)
			}
		}
		if i >= 0 {
			given |= 1 << i
		}
	}
	for i := range f {
		m := &f[i]
		switch {
		case mode != Merge && m.required && given&(1<<i) == 0 && !(m.server && mode == Client):
			p.Say(m.Name, "is required")
		case mode == Merge && m.fixed && m.get(x).Text != m.get(before).Text:
			p.Say(m.Name, "never changes: it is "+m.get(before).Text)
		}
	}
	if unknown > 0 {
		if unknown > maxUnknown {
			p.rest[lastUnknown] += fmt.Sprintf(", nor are %d more", unknown-maxUnknown)
		}
		var known []string
		for _, m := range f {
			if !m.server || mode != Client {
				known = append(known, m.Name)
			}
		}
		p.rest[lastUnknown] += " (the members are " + strings.Join(known, ", ") + ")"
	}
	return p
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
func Kind(v strict.Value) string {
	switch v.Kind {
	case strict.Null:
		return "null"
	case strict.Array, strict.Object:
		return "an " + v.Kind.String()
	}
	return "a " + v.Kind.String()
}
