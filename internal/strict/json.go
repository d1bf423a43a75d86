// Package strict reads four kinds of text that a client sends, each by its standard and
// no more: JSON (RFC 8259), date-times (RFC 3339), web addresses (RFC 3986) and names of
// time zones (IANA). Go's encoding/json, time and net/url accept more than these
// standards: invalid UTF-8, half of a surrogate pair, a comma before a fraction of a
// second, a space in a host.
//
// There is one exception. [Time] also accepts date-times in shorter forms of ISO 8601,
// because common clients write them and they can mean one thing only.
//
// No function that reads panics, whatever a client sends. Each takes time linear in its
// input, keeps no state and is safe for concurrent use. No error repeats any of the input.
//
// It does not know what a text is for: which members an object may have, for example, is said
// by package form.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may stand inside each other, with the
// outermost. RFC 8259, section 9, lets a parser set such a limit.
const MaxDepth = 32

// MaxValues is how many values a text may hold at all depths together, with the
// outermost. No request has a tenth of them. Without a limit, a text of short values
// such as [0,0,0] would take many times its size in memory.
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

// Value is one JSON value. Its Kind says which of the other fields are used; the rest
// are zero.
//
// A Value shares no memory with the text that it was read from. All its strings are parts
// of one string, so keeping one of them for long keeps the memory of all:
// strings.Clone it.
type Value struct {
	Kind    Kind
	Bool    bool     // the value of a Bool
	Text    string   // the characters of a String, without escapes; a Number as it is written
	Members []Member // the members of an Object or the elements of an Array, in their order
}

// Member is one member of an Object, whose name has no escapes any more, or one element
// of an Array, which has no name. An Object may have several members of one name.
type Member struct {
	Name  string
	Value Value
}

// Member returns the value of the first member with a name, and Null if there is none.
func (v Value) Member(name string) Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return Value{}
}

// Parse reads data, which must be one JSON value with nothing but white space around it.
// The names of an object's members may be equal, and numbers may have any size: these
// are for the caller to judge.
//
// Beyond RFC 8259, the characters must be as I-JSON has them (RFC 7493, section 2.1): in
// valid UTF-8 without a byte order mark, and with surrogates escaped in pairs only. There
// are at most MaxDepth levels and MaxValues values.
//
// An error says where the mistake is, what it is and what to do: "line 3, column 7:
// a string is not closed: add …". Lines end with \n. Columns are bytes. Both count from 1.
// With an error, the Value is of no use.
func Parse(data []byte) (Value, error) {
	p := parser{data: data}
	p.open = make([]Member, 0, 12) // a new event has no more
	p.text.Grow(len(data))
	v := p.value()
	return v, p.finish()
}

// Elements reads data, which must be one JSON array, by the rules of [Parse], and yields
// its elements one after the other. MaxValues limits each element. The first mistake
// ends the sequence with an error and a zero Value, after the elements before it.
func Elements(data []byte) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		p := parser{data: data, depth: 1}
		p.next()
		if !p.skip("[") {
			p.fail(p.pos, "a JSON array is needed: begin it with [, in UTF-8 without a byte order mark")
		}
		for first := true; p.more(first, ']'); first = false {
			p.count = 0
			p.text.Reset()
			p.text.Grow(elementText)
			v := p.value()
			if p.err != nil {
				break
			}
			if !yield(v, nil) {
				return
			}
		}
		err := p.finish()
		if err != nil {
			yield(Value{}, err)
		}
	}
}

// elementText is how many bytes of names and strings an element has, if it is not a long one.
const elementText = 1 << 10

// Encode returns x as JSON. Unlike json.Marshal, it leaves <, > and & as they are, and escapes
// all control characters, so that the text is safe to show on a terminal. It panics if x has
// something that JSON cannot express, such as a channel or a NaN.
func Encode(x any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		panic(err)
	}
	text := bytes.TrimSpace(b.Bytes()) // Encode adds a line break
	if bytes.ContainsFunc(text, unicode.IsControl) {
		text = escapeControls(text)
	}
	return text
}

// escapeControls escapes the control characters that encoding/json leaves as they are: U+007F to
// U+009F.
func escapeControls(text []byte) (escaped []byte) {
	for _, r := range string(text) {
		if unicode.IsControl(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}

// parser reads a JSON text from its beginning to its end. Its methods return no errors:
// after the first one, the parser stands at the end of the text, where each loop
// ends, and what its methods return has no meaning.
type parser struct {
	data  []byte
	pos   int             // the index of the next byte
	depth int             // open arrays and objects
	count int             // values that were begun
	text  strings.Builder // all names and strings until now, without escapes
	err   error
	open  []Member // the members so far of the arrays and objects that are not closed
}

// finish returns the error, which is one if more than white space is left.
func (p *parser) finish() error {
	p.next()
	if p.pos < len(p.data) {
		p.fail(p.pos, "there is more text after the JSON value: remove it")
	}
	return p.err
}

// fail sets the error, unless there is one already, and moves to the end of the text.
func (p *parser) fail(at int, problem string) {
	if p.err == nil {
		before := p.data[:at]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := at - bytes.LastIndexByte(before, '\n')
		p.err = fmt.Errorf("line %d, column %d: %s", line, column, problem)
		p.pos = len(p.data)
	}
}

// next moves past white space and returns the byte that follows, or 0 at the end.
func (p *parser) next() byte {
	for ; p.pos < len(p.data); p.pos++ {
		if c := p.data[p.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// skip moves past word and returns true if the text goes on with it.
func (p *parser) skip(word string) bool {
	found := bytes.HasPrefix(p.data[p.pos:], []byte(word))
	if found {
		p.pos += len(word)
	}
	return found
}

// value reads the next value.
func (p *parser) value() Value {
	p.count++
	if p.count > MaxValues {
		p.fail(p.pos, fmt.Sprintf("there are more than %d values in one: send fewer", MaxValues))
	}
	c := p.next()
	switch {
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

// container reads an array or object from the bracket at its beginning to the one at its
// end.
func (p *parser) container(kind Kind, end byte) Value {
	v := Value{Kind: kind}
	p.pos++
	p.depth++
	if p.depth > MaxDepth {
		p.fail(p.pos-1, fmt.Sprintf("arrays and objects are more than %d deep: make them flatter", MaxDepth))
	}
	begin := len(p.open)
	for first := true; p.more(first, end); first = false {
		var m Member
		if kind == Object {
			m.Name = p.name()
		}
		m.Value = p.value()
		p.open = append(p.open, m)
	}
	v.Members = append(v.Members, p.open[begin:]...)
	p.open = p.open[:begin]
	return v
}

// more reports whether the innermost array or object has another element or member, and
// moves past the comma before it. If it has none, more moves past the bracket at the end.
func (p *parser) more(first bool, end byte) bool {
	c := p.next()
	switch {
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

// name reads the name of a member and the colon after it.
func (p *parser) name() string {
	if p.next() != '"' {
		p.fail(p.pos, "a member's name in double quotes is needed here; leave out a comma at the end")
	}
	name := p.chars()
	p.next()
	if !p.skip(":") {
		p.fail(p.pos, "a colon and a value are needed after a member's name")
	}
	return name
}

// numberBytes are the bytes that a number is made of.
const numberBytes = "0123456789+-.eE"

// number reads a number and returns it as it is written.
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

// chars reads a string from its first quote to its last, and returns its characters. It
// copies them to p.text in parts: what stands between two escapes at once.
func (p *parser) chars() string {
	start := p.text.Len()
	open := p.pos
	copied := open + 1 // everything before it is in p.text, but for the quote
	for i := copied; i < len(p.data); i++ {
		c := p.data[i]
		switch {
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
			if r < 0 {
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

// unescape returns the character of the escape with which s begins, and the number of
// bytes that the escape takes. If it is not valid, the character is -1. Example:
// \ud83d\ude00 is one character in 12 bytes.
func unescape(s []byte) (r rune, size int) {
	if len(s) > 1 {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2
		}
	}
	r = unit(s)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	r = utf16.DecodeRune(r, unit(s[6:]))
	if r == utf8.RuneError { // the halves are no pair
		r = -1
	}
	return r, 12
}

// unit returns the UTF-16 code unit of an escape such as \ud83d with which s begins, or -1
// if s begins otherwise.
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
