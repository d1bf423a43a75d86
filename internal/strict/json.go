// Package strict reads what a client sends by the letter of its standard: JSON
// texts (RFC 8259), date-times (RFC 3339), web addresses (RFC 3986) and time
// zone names (IANA). It is used where encoding/json, time and net/url let more
// through: duplicate member names, invalid UTF-8, lone surrogates, a comma
// before a fraction, a space in a host.
//
// No reader panics, whatever the input; each takes time linear in its input,
// keeps no state and is safe for concurrent use. No error text repeats any of
// the input.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may stand inside each other, the
// outermost counted. RFC 8259, section 9, lets a parser set such a limit.
const MaxDepth = 32

// MaxValues is how many values one value may hold, itself and those at every
// depth counted. No document of this program has a tenth of them, and a text of
// short values would take a hundred times its size in memory.
const MaxValues = 1000

// Kind is the kind of a JSON value. The zero Kind is Null.
type Kind uint8

// The kinds of JSON values, as RFC 8259, section 3, has them.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind as a message names it: "null", "a boolean", "a number",
// "a string", "an array" or "an object".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is one JSON value. Kind says which of the other fields are used; the
// rest are zero. It shares no memory with the text that it was read from, but
// all strings in it are parts of one string: a program that keeps one of them
// for long keeps the memory of all, unless it clones that one.
type Value struct {
	Kind    Kind
	Bool    bool     // of a Bool
	Text    string   // a String's characters, unescaped; a Number's literal as it stands in the text
	Members []Member // an Object's, in the order of the text, duplicates kept
	Items   []Value  // an Array's
}

// Member is one member of a JSON object. Name is unescaped.
type Member struct {
	Name  string
	Value Value
}

// Member returns the value of the first member of an Object with a name, and Null
// if there is none.
func (v Value) Member(name string) Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return Value{}
}

// Parse returns the one JSON value that is the whole of data, white space around
// it aside. Beyond the grammar of RFC 8259 it wants what I-JSON (RFC 7493,
// section 2.1) wants of the characters: UTF-8 without a mistake or a byte order
// mark, and surrogate escapes only in pairs. It takes at most MaxDepth levels
// and MaxValues values. Duplicate member names are kept for the caller to judge,
// as are numbers of any size.
//
// An error says where the mistake is, what it is and what to do: "line 3, column 7:
// a string is not closed: …". Lines end with \n; columns are bytes; both count from 1.
func Parse(data []byte) (Value, error) {
	p := parser{data: data}
	p.text.Grow(len(data))
	v := p.value()
	if p.finish(); p.err != nil {
		return Value{}, p.err
	}
	return v, nil
}

// Elements yields, one at a time and in order, the elements of the JSON array
// that is the whole of data, by the rules of Parse, so that a long array never
// stands in memory as one tree. A mistake is yielded once, as an error with a zero
// Value, and ends the sequence; the elements before it were yielded by then.
func Elements(data []byte) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		p := parser{data: data, depth: 1}
		if p.next(); !p.skip("[") {
			p.fail(p.pos, "a JSON array is needed: begin it with [, in UTF-8 without a byte order mark")
		}
		for first := true; p.more(first, ']'); first = false {
			p.count = 0
			size := p.text.Len() // of the element before: a good guess for this one
			p.text.Reset()
			p.text.Grow(size)
			if v := p.value(); p.err == nil && !yield(v, nil) {
				return
			}
		}
		if p.finish(); p.err != nil {
			yield(Value{}, p.err)
		}
	}
}

// Encode returns x as JSON. Unlike json.Marshal it leaves <, > and & as they
// are. It panics if x holds what JSON cannot: a channel, a NaN.
func Encode(x any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// parser is a place in a JSON text. After its first error it stands at the end
// of the text, and what its methods return has no meaning.
type parser struct {
	data  []byte
	pos   int
	depth int             // open arrays and objects
	count int             // values read so far
	text  strings.Builder // the names and strings read so far, one after the other
	err   error
}

// finish checks that nothing but white space is left.
func (p *parser) finish() {
	if p.next(); p.pos < len(p.data) {
		p.fail(p.pos, "there is more text after the JSON value: remove it")
	}
}

// fail sets the error, unless there is one already.
func (p *parser) fail(at int, problem string) {
	if p.err == nil {
		line, column := 1+bytes.Count(p.data[:at], []byte("\n")), at-bytes.LastIndexByte(p.data[:at], '\n')
		p.err = fmt.Errorf("line %d, column %d: %s", line, column, problem)
		p.pos = len(p.data)
	}
}

// next skips white space and returns the byte that p then stands on, or 0 at the
// end of the text.
func (p *parser) next() byte {
	for ; p.pos < len(p.data); p.pos++ {
		if c := p.data[p.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// skip moves past word if p stands on it.
func (p *parser) skip(word string) bool {
	found := bytes.HasPrefix(p.data[p.pos:], []byte(word))
	if found {
		p.pos += len(word)
	}
	return found
}

// value reads the value that comes next.
func (p *parser) value() Value {
	if p.count++; p.count > MaxValues {
		p.fail(p.pos, fmt.Sprintf("there are more than %d values in one: send fewer", MaxValues))
	}
	switch c := p.next(); {
	case c == '"':
		return Value{Kind: String, Text: p.chars()}
	case c == '{':
		return p.container(Object, '}')
	case c == '[':
		return p.container(Array, ']')
	case strings.IndexByte(numberBytes, c) >= 0:
		return Value{Kind: Number, Text: p.number()}
	case p.skip("true"):
		return Value{Kind: Bool, Bool: true}
	case p.skip("false"):
		return Value{Kind: Bool}
	case p.skip("null"):
		return Value{}
	}
	p.fail(p.pos, "a value is needed here: an object, an array, a number, a string in double quotes, "+
		"true, false or null; leave out comments, a comma at the end and a byte order mark")
	return Value{}
}

// container reads the array or object that begins here.
func (p *parser) container(kind Kind, end byte) Value {
	v := Value{Kind: kind}
	p.pos++
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.pos-1, fmt.Sprintf("arrays and objects are more than %d deep: make them flatter", MaxDepth))
	}
	for first := true; p.more(first, end); first = false {
		if kind == Array {
			v.Items = append(v.Items, p.value())
			continue
		}
		if first {
			v.Members = make([]Member, 0, 12) // a new event has no more
		}
		name := p.name()
		v.Members = append(v.Members, Member{name, p.value()})
	}
	return v
}

// more reports whether the array or object that is open has another element or
// member. It moves to it, past the comma, or else past the bracket at the end.
func (p *parser) more(first bool, end byte) bool {
	switch c := p.next(); {
	case c == end:
		p.pos++
		p.depth--
	case first || p.skip(","):
		return true
	default:
		p.fail(p.pos, "a comma or "+string(end)+" is needed here")
	}
	return false
}

// name reads a member's name and the colon after it.
func (p *parser) name() string {
	if p.next() != '"' {
		p.fail(p.pos, "a member's name in double quotes is needed here; leave out a comma at the end")
	}
	name := p.chars()
	if p.next(); !p.skip(":") {
		p.fail(p.pos, "a colon and a value are needed after a member's name")
	}
	return name
}

// numberBytes are the bytes that a number is made of.
const numberBytes = "0123456789+-.eE"

// number reads the number that begins here and returns its literal.
func (p *parser) number() string {
	start := p.pos
	p.pos = len(p.data) - len(bytes.TrimLeft(p.data[start:], numberBytes))
	literal := p.data[start:p.pos]
	if !json.Valid(literal) {
		p.fail(start, "this is not a number that JSON has: write it like 12, -0.5 or 6e23, "+
			"with no + or needless 0 before it and with digits on both sides of a point")
	}
	return string(literal)
}

// chars reads the string that begins here and returns its characters.
func (p *parser) chars() string {
	start, open := p.text.Len(), p.pos
	copied := open + 1 // what stands before it is in p.text, or is the quote
	for i := copied; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.text.Write(p.data[copied:i])
			chars := p.text.String()[start:]
			p.pos = i + 1
			if !utf8.ValidString(chars) {
				p.fail(open, "a string is not UTF-8: encode the text as UTF-8")
			}
			return chars
		case c == '\\':
			r, size := unescape(p.data[i:])
			if size == 0 {
				p.fail(i, `this escape is unknown, or half of a surrogate pair: use \" \\ \/ \b \f \n `+
					`\r \t, or \u and four hex digits, for both halves of a pair`)
				return ""
			}
			p.text.Write(p.data[copied:i])
			p.text.WriteRune(r)
			copied = i + size
			i = copied - 1
		case c < ' ':
			p.fail(i, "a control character or line break stands in a string: close the string before it, "+
				`or write it as \n or \u and four hex digits`)
			return ""
		}
	}
	p.fail(open, "a string is not closed: add a double quote at its end")
	return ""
}

// unescape returns the character that the escape at the beginning of s stands
// for, and how many bytes the escape takes, which is 0 if it is not valid.
func unescape(s []byte) (r rune, size int) {
	if len(s) > 1 {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2
		}
	}
	switch r = unit(s); {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if r = utf16.DecodeRune(r, unit(s[6:])); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// unit returns the UTF-16 code unit of the escape of \u and four digits that s
// begins with, or -1.
func unit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
