// Package strict reads what a client sends by the letter of its standard: JSON
// texts (RFC 8259), date-times (RFC 3339), web addresses (RFC 3986) and time
// zone names (IANA). It stands where encoding/json, time and net/url let more
// through: duplicate member names, invalid UTF-8, lone surrogates, a comma
// before a fraction, a space in a host.
//
// No reader panics, whatever the input; each takes time linear in its input,
// keeps no state and is safe for concurrent use. No error text repeats any of
// the input. [Encode] is the one writer: encoding/json escapes what needs none.
package strict

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may stand inside each other, the
// outermost counted. RFC 8259, section 9, lets a parser set such a limit.
const MaxDepth = 32

// MaxValues is how many values one value may hold, itself and those at every
// depth counted: no document of ours has a tenth of them, and a text of short
// values would take a hundred times its size in memory.
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

// String returns the kind's name for a message: "null", "boolean", "number",
// "string", "array" or "object", and "unknown" for any other number.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object", "unknown"}[min(k, Object+1)]
}

// Value is one JSON value. Which of the fields speak depends on Kind; the
// others are zero. It shares no memory with the text that it was read from.
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

// SyntaxError says where a text is not the JSON that Parse or Elements takes.
type SyntaxError struct {
	Offset  int    // bytes before the place
	Line    int    // of the place, counted from 1; lines end with \n
	Column  int    // of the place in its line, in bytes, counted from 1
	Problem string // what is wrong there and what to do
}

// Error returns the place and the problem: "line 3, column 7: a string is not
// closed: …".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Parse returns the one JSON value that is the whole of data, white space around
// it aside. Beyond the grammar of RFC 8259 it wants what I-JSON (RFC 7493,
// section 2.1) wants of the characters: UTF-8 without a mistake or a byte order
// mark, and surrogate escapes only in pairs. It takes at most MaxDepth levels
// and MaxValues values. Duplicate member names are kept for the caller to judge,
// as are numbers of any size. Every error is a *SyntaxError.
func Parse(data []byte) (Value, error) {
	p := parser{data: data}
	p.begin()
	v := p.value()
	p.end()
	if p.err != nil {
		return Value{}, p.err
	}
	return v, nil
}

// Elements yields, one at a time and in order, the elements of the JSON array
// that is the whole of data, by the rules of Parse, so that a long array never
// stands in memory as one tree. A mistake is yielded once, as a *SyntaxError with
// a zero Value, and ends the sequence; the elements before it were yielded by
// then, unless it is invalid UTF-8, which is looked for first.
func Elements(data []byte) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		p := parser{data: data}
		p.begin()
		if p.next() == '[' {
			p.enter()
		} else {
			p.fail(p.pos, "a JSON array is needed: begin it with [")
		}
		for first := true; p.more(first, ']'); first = false {
			p.count = 0
			if v := p.value(); p.err == nil && !yield(v, nil) {
				return
			}
		}
		p.end()
		if p.err != nil {
			yield(Value{}, p.err)
		}
	}
}

// parser is a place in a JSON text. After the first mistake it stands at the end
// and what its methods return has no meaning.
type parser struct {
	data  []byte
	pos   int
	depth int
	count int   // values of the one that is read
	err   error // nil or a *SyntaxError

	// Of the containers that are still open: each finished one is copied out
	// whole, so it is allocated once, at its own size. The outermost takes all.
	members []Member
	items   []Value

	text []byte // of the string being unescaped
}

func (p *parser) fail(at int, problem string) {
	if p.err == nil {
		line := 1 + bytes.Count(p.data[:at], []byte("\n"))
		p.err = &SyntaxError{at, line, at - bytes.LastIndexByte(p.data[:at], '\n'), problem}
		p.pos = len(p.data)
	}
}

func (p *parser) begin() {
	if bytes.HasPrefix(p.data, []byte("\ufeff")) {
		p.fail(0, "a byte order mark stands before the JSON text: leave it out")
	}
	if !utf8.Valid(p.data) {
		at := 0
		for r, size := rune(0), 0; r != utf8.RuneError || size != 1; at += size {
			r, size = utf8.DecodeRune(p.data[at:])
		}
		p.fail(at-1, "this is not UTF-8: encode the text as UTF-8")
	}
}

func (p *parser) end() {
	if p.next(); p.pos < len(p.data) {
		p.fail(p.pos, "there is more text after the JSON value: remove it")
	}
}

// next skips white space and returns the byte that p then stands on, 0 at the
// end of the text.
func (p *parser) next() byte {
	for ; p.pos < len(p.data); p.pos++ {
		if c := p.data[p.pos]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// skip goes past word if p stands on it.
func (p *parser) skip(word string) bool {
	ok := bytes.HasPrefix(p.data[p.pos:], []byte(word))
	if ok {
		p.pos += len(word)
	}
	return ok
}

func (p *parser) value() Value {
	c := p.next()
	if p.count++; p.count > MaxValues {
		p.fail(p.pos, "this is the value after the first "+strconv.Itoa(MaxValues)+", which are all that one may hold: send fewer")
		return Value{}
	}
	switch {
	case c == '"':
		return Value{Kind: String, Text: string(p.chars())}
	case c == '{':
		return p.container(Object, '}')
	case c == '[':
		return p.container(Array, ']')
	case c == '-' || isDigit(c):
		return p.number()
	case p.skip("true"):
		return Value{Kind: Bool, Bool: true}
	case p.skip("false"):
		return Value{Kind: Bool}
	case p.skip("null"):
		return Value{}
	case p.pos == len(p.data):
		p.fail(p.pos, "the text ends where a value is needed")
	case c == '/' || c == '#':
		p.fail(p.pos, "a comment stands here, and JSON has none: remove it")
	case c == '\'':
		p.fail(p.pos, "single quotes do not make a string: use double quotes")
	}
	p.fail(p.pos, "a value is needed here: an object, an array, a number, a string in double quotes, true, false or null")
	return Value{}
}

func (p *parser) container(kind Kind, end byte) Value {
	members, items := len(p.members), len(p.items)
	if p.enter(); kind == Object && p.members == nil {
		p.members = make([]Member, 0, 12) // a new event has no more
	}
	for first := true; p.more(first, end); first = false {
		var m Member
		if kind == Object {
			m.Name = p.name()
		}
		if m.Value = p.value(); kind == Object {
			p.members = append(p.members, m)
		} else {
			p.items = append(p.items, m.Value)
		}
	}
	return Value{Kind: kind, Members: take(&p.members, members), Items: take(&p.items, items)}
}

// take moves what stands on a stack from base on into a slice of its own.
func take[T any](stack *[]T, base int) []T {
	top := (*stack)[base:]
	if base == 0 {
		*stack = nil
		return top
	}
	*stack = (*stack)[:base]
	if len(top) == 0 {
		return nil
	}
	return slices.Clone(top)
}

func (p *parser) enter() {
	p.pos++
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.pos-1, "arrays and objects stand more than "+strconv.Itoa(MaxDepth)+" deep in each other here: make it flatter")
	}
}

// more reports whether the open container goes on, and goes to what comes next
// in it, or past its end.
func (p *parser) more(first bool, end byte) bool {
	c, comma := p.next(), p.pos
	switch {
	case p.err != nil:
	case c == end:
		p.pos++
		p.depth--
	case first:
		return true
	case p.skip(","):
		if p.next() != end {
			return true
		}
		p.fail(comma, "a comma stands before the end: remove it")
	case p.pos == len(p.data):
		p.fail(p.pos, "the text ends too early: close what is open, with "+string(end)+" first")
	default:
		p.fail(p.pos, "a comma or "+string(end)+" is needed here")
	}
	return false
}

// name reads a member's name and the colon after it.
func (p *parser) name() string {
	if p.next() != '"' {
		p.fail(p.pos, "a member's name in double quotes is needed here")
		return ""
	}
	name := string(p.chars())
	if p.next() != ':' {
		p.fail(p.pos, "a colon and a value are needed after a member's name")
	}
	p.skip(":")
	return name
}

// chars reads the string that p stands on and returns its characters, which are
// good until the next call.
func (p *parser) chars() []byte {
	open := p.pos
	start := open + 1 // of what is not in text yet
	text := p.text[:0]
	for i := start; ; {
		i += plain(p.data[i:])
		if i == len(p.data) {
			p.fail(open, "a string is not closed: add a double quote at its end")
			return nil
		}
		switch c := p.data[i]; c {
		case '"':
			p.pos = i + 1
			if len(text) == 0 {
				return p.data[start:i]
			}
			p.text = append(text, p.data[start:i]...)
			return p.text
		case '\\':
			r, size, problem := unescape(p.data[i:])
			if problem != "" {
				p.fail(i, problem)
				return nil
			}
			text = utf8.AppendRune(append(text, p.data[start:i]...), r)
			i += size
			start = i
		default:
			p.fail(i, `a control character or line break stands in a string: close the string before it, or write it as \n or \u and four hex digits`)
			return nil
		}
	}
}

// plain returns how many bytes come before the first quote, backslash or control
// character of s.
func plain(s []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 { // a byte of w - n*ones borrows where it is below n
		w := binary.LittleEndian.Uint64(s[i:])
		quote, backslash := w^'"'*ones, w^'\\'*ones
		if ((w-' '*ones)|(quote-ones)|(backslash-ones))&^w&highs != 0 {
			break
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// unescape returns the character that the escape at the beginning of s stands
// for, and how many bytes it takes.
func unescape(s []byte) (r rune, size int, problem string) {
	if len(s) > 1 {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2, ""
		}
	}
	if r = unit(s); r < 0 {
		return 0, 0, `this escape is unknown: use \" \\ \/ \b \f \n \r \t, or \u and four hex digits`
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, ""
	}
	if r = utf16.DecodeRune(r, unit(s[6:])); r == utf8.RuneError {
		return 0, 0, `a surrogate stands alone: write both halves, \ud800 to \udbff and then \udc00 to \udfff`
	}
	return r, 12, ""
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

func (p *parser) number() Value {
	start := p.pos
	p.skip("-")
	zero := p.pos
	switch {
	case p.digits() == 0:
		p.fail(p.pos, "a digit is needed after the minus sign")
	case p.data[zero] == '0' && p.pos > zero+1:
		p.fail(zero, "a number cannot begin with a needless 0: remove it")
	case p.skip(".") && p.digits() == 0:
		p.fail(p.pos, "a digit is needed after the decimal point")
	case p.skip("e") || p.skip("E"):
		_ = p.skip("+") || p.skip("-")
		if p.digits() == 0 {
			p.fail(p.pos, "a digit is needed in the exponent")
		}
	}
	if p.err != nil {
		return Value{}
	}
	return Value{Kind: Number, Text: string(p.data[start:p.pos])}
}

// digits goes past digits and returns how many.
func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.data) && isDigit(p.data[p.pos]) {
		p.pos++
	}
	return p.pos - start
}
