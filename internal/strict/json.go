// Package strict parses four kinds of text exactly as their standards define them: JSON (RFC 8259),
// date-times (RFC 3339), web addresses (RFC 3986) and time zone names (IANA). Go's encoding/json, time and
// net/url also accept invalid texts, such as invalid UTF-8, half a surrogate pair, a comma before a fraction
// of a second, or a space in a host.
//
// There is one exception: [ParseTime] also accepts shorter forms of ISO 8601 that common clients write.
//
// [Encode] writes JSON with encoding/json, but without its escapes for HTML.
//
// The functions that parse never panic. They take linear time and are safe for concurrent use. Their errors
// never repeat any input.
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

const (
	// MaxDepth is the maximum number of nested arrays and objects.
	MaxDepth = 32
	// MaxValues is the maximum number of values in a text, including nested ones. It bounds the memory for
	// texts of many short values, such as [0,0,0].
	MaxValues = 1000
)

// Kind is a kind of JSON value.
type Kind uint8

// Kinds of JSON values (RFC 8259, section 3).
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind for messages, such as "a string" or "an object".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is a JSON value. Its Kind determines which other field is used. It shares no memory with the parsed
// text.
type Value struct {
	Kind    Kind
	Bool    bool     // value of a Bool
	Text    string   // unescaped characters of a String, or the text of a Number
	Members []Member // of an Object, or elements of an Array
}

// Member is a member of an Object, or an element of an Array, which has no Name. Several members may have the
// same name.
type Member struct {
	Name  string // unescaped
	Value Value
}

// Member returns the first member with this name, or Null if there is none.
func (v Value) Member(name string) Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return Value{}
}

// Parse parses one JSON value, which may have white space around it. Repeated names and numbers of any size
// are valid.
//
// In addition to RFC 8259, the text must be UTF-8 without a byte order mark, and surrogates must be escaped
// in pairs (RFC 7493, section 2.1). MaxDepth and MaxValues limit it.
//
// Errors have the position, the problem and the fix: "line 3, column 7: unclosed string: add …". Lines end
// with \n and columns are bytes. Both are counted from 1.
func Parse(data []byte) (Value, error) {
	p := parser{data: data}
	v := p.value()
	return v, p.finish()
}

// ParseArray parses a JSON array like [Parse] and yields its elements. MaxValues limits each element. At the
// first problem, it yields an error and stops.
func ParseArray(data []byte) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		p := parser{data: data, depth: 1}
		p.next()
		if !p.skip("[") {
			p.fail(p.pos, "expected a JSON array: begin it with [, without a byte order mark")
		}
		for first := true; p.more(first, ']'); first = false {
			p.count = 0
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

// Encode returns x as JSON. Unlike [json.Marshal], it doesn't escape <, > and &. It panics if x can't be
// encoded.
func Encode(x any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(x)
	if err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// parser parses a JSON text. After the first error, it moves to the end of the text, where all loops stop.
// Then the results of its methods have no meaning.
type parser struct {
	data  []byte
	pos   int // index of the next byte
	depth int // number of open arrays and objects
	count int // number of values so far
	err   error
}

// finish checks that only white space is left. It returns the first error.
func (p *parser) finish() error {
	p.next()
	if p.pos < len(p.data) {
		p.fail(p.pos, "unexpected text after the JSON value: remove it")
	}
	return p.err
}

// fail sets the error, unless there is one, and moves to the end of the text.
func (p *parser) fail(pos int, problem string) {
	if p.err != nil {
		return
	}
	before := p.data[:pos]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := pos - bytes.LastIndexByte(before, '\n')
	p.err = fmt.Errorf("line %d, column %d: %s", line, column, problem)
	p.pos = len(p.data)
}

// next skips white space and returns the next byte, or 0 at the end.
func (p *parser) next() byte {
	for ; p.pos < len(p.data); p.pos++ {
		if c := p.data[p.pos]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// skip moves past word, if it comes next.
func (p *parser) skip(word string) bool {
	found := bytes.HasPrefix(p.data[p.pos:], []byte(word))
	if found {
		p.pos += len(word)
	}
	return found
}

func (p *parser) value() Value {
	p.count++
	if p.count > MaxValues {
		p.fail(p.pos, fmt.Sprintf("a value contains more than %d values: send fewer", MaxValues))
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
	p.fail(p.pos, "expected a value, such as a string in double quotes, a number, true, false or null: "+
		"remove comments, trailing commas and byte order marks")
	return Value{}
}

// container parses an array or object with its brackets.
func (p *parser) container(kind Kind, end byte) Value {
	v := Value{Kind: kind}
	p.pos++
	p.depth++
	if p.depth > MaxDepth {
		p.fail(p.pos-1, fmt.Sprintf("nested more than %d levels deep: flatten it", MaxDepth))
	}
	for first := true; p.more(first, end); first = false {
		var m Member
		if kind == Object {
			m.Name = p.name()
		}
		m.Value = p.value()
		v.Members = append(v.Members, m)
	}
	return v
}

// more reports whether the innermost array or object has another member. It moves past the comma before the
// member, or past the closing bracket.
func (p *parser) more(first bool, end byte) bool {
	c := p.next()
	switch {
	case c == end:
		p.pos++
		p.depth--
	case first || p.skip(","):
		return true
	default:
		p.fail(p.pos, "expected a comma or "+string(end))
	}
	return false
}

// name parses a member name and its colon.
func (p *parser) name() string {
	if p.next() != '"' {
		p.fail(p.pos, "expected a field name in double quotes: remove a trailing comma")
	}
	name := p.chars()
	p.next()
	if !p.skip(":") {
		p.fail(p.pos, "expected a colon and a value after the field name")
	}
	return name
}

// numberBytes are the bytes in numbers.
const numberBytes = "0123456789+-.eE"

// number parses a number and returns its text.
func (p *parser) number() string {
	start := p.pos
	p.pos = len(p.data) - len(bytes.TrimLeft(p.data[start:], numberBytes))
	literal := p.data[start:p.pos]
	if !json.Valid(literal) {
		p.fail(start, "invalid number: write it like 12, -0.5 or 6e23")
	}
	return string(literal)
}

// chars parses a string and returns its characters.
func (p *parser) chars() string {
	open := p.pos
	copied := open + 1 // everything before this index is in text
	var text []byte
	for i := copied; i < len(p.data); i++ {
		c := p.data[i]
		switch {
		case c == '"':
			chars := string(append(text, p.data[copied:i]...))
			p.pos = i + 1
			if !utf8.ValidString(chars) {
				p.fail(open, "invalid UTF-8 in a string: encode the text as UTF-8")
			}
			return chars
		case c == '\\':
			r, size := unescape(p.data[i:])
			if r < 0 {
				p.fail(i, `invalid escape or half a surrogate pair: use \" \\ \/ \b \f \n \r \t, `+
					`or \u and four hex digits, for both halves of a pair`)
				return ""
			}
			text = append(text, p.data[copied:i]...)
			text = utf8.AppendRune(text, r)
			copied = i + size
			i = copied - 1
		case c < ' ':
			p.fail(i, "control character or line break in a string: write it as "+
				`\n or \u and four hex digits, or close the string before it`)
			return ""
		}
	}
	p.fail(open, "unclosed string: add a double quote at its end")
	return ""
}

// unescape decodes the escape at the beginning of s. It returns the character, or -1 if the escape is
// invalid, and the size in bytes. For example, \ud83d\ude00 is one character in 12 bytes.
func unescape(s []byte) (r rune, size int) {
	if len(s) > 1 {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2
		}
	}
	r = codeUnit(s)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	r = utf16.DecodeRune(r, codeUnit(s[6:]))
	if r == utf8.RuneError { // not a pair
		r = -1
	}
	return r, 12
}

// codeUnit decodes an escape such as \ud83d at the beginning of s. It returns -1 if there is none.
func codeUnit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
