package strict

import (
	"bytes"
	"io"
	"iter"
)

const (
	firstWindow = 256 << 10 // bytes of a long text that are in memory at once, if no element is longer
	pieceText   = 64 << 10  // bytes of the names and strings of elements that share one piece of memory
	pieceOfRoom = 512       // members that share one
)

// Source is a text that can be read more than once: a file, or what is in memory.
type Source interface {
	io.ReaderAt
	Size() int64
}

// Elements reads a text, which must be one JSON array, by the rules of [Parse], and yields
// its elements one after the other. So a long array is never in memory as a whole, and
// MaxValues limits each element. The first mistake ends the sequence with an error and
// a zero Value, after the elements before it. If r fails, its error does.
//
// The sequence can be ranged over once, as it reads r. Elements share pieces of memory: keeping a
// string of one for long keeps that of many.
func Elements(r io.Reader) iter.Seq2[Value, error] { return elements(r, firstWindow) }

func elements(r io.Reader, window int) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		p := arrayParser{r: r, window: window}
		p.pieces = pieceOfRoom
		for {
			if p.text.Len() > pieceText {
				p.text.Reset()
			}
			if p.text.Cap() == 0 {
				p.text.Grow(pieceText + pieceText/8) // the last element may go beyond it
			}
			v, isElement := p.element()
			switch {
			case isElement && yield(v, nil):
			case p.err != nil:
				yield(Value{}, p.err)
				return
			default:
				return
			}
		}
	}
}

// arrayParser parses an array of which a part is in memory, the window. An element that the end of
// the window cuts is parsed again in a larger one.
type arrayParser struct {
	parser
	r      io.Reader
	window int
	isOpen bool  // the bracket at the beginning was read
	isPast bool  // an element was read
	ended  error // io.EOF once all of the text is in the window, or why it cannot be read
}

// element parses the next element, or the end of the array and of the text.
func (p *arrayParser) element() (v Value, isElement bool) {
	if p.ended == nil && len(p.data)-p.pos < p.window/2 {
		p.read()
	}
	for {
		before := *p
		v, isElement = p.try()
		isCut := p.isCut
		if p.err == nil {
			isCut = p.pos == len(p.data) // where a number, or the space around the array, may go on
		}
		switch {
		case !isCut, p.ended == io.EOF:
			return v, isElement
		case p.ended != nil:
			p.err = p.ended
			return Value{}, false
		}
		text := p.text
		*p = before
		p.text = text // which must not be copied, and may have parts that are not needed
		p.window *= 2
		p.read()
	}
}

func (p *arrayParser) try() (v Value, isElement bool) {
	p.depth = 1
	if !p.isOpen {
		p.next()
		if !p.skip("[") {
			p.fail(p.pos, "a JSON array is needed: begin it with [, in UTF-8 without a byte order mark")
		}
		p.isOpen = true
	}
	if !p.more(!p.isPast, ']') {
		p.finish()
		return Value{}, false
	}
	p.isPast = true
	p.count = 0
	v = p.value()
	return v, p.err == nil
}

// read drops what was parsed and fills the window.
func (p *arrayParser) read() {
	parsed := p.data[:p.pos]
	p.lines += bytes.Count(parsed, []byte("\n"))
	lineEnd := bytes.LastIndexByte(parsed, '\n')
	if lineEnd >= 0 {
		p.column = 0
	}
	p.column += p.pos - lineEnd - 1
	left := p.data[p.pos:]
	if cap(p.data) < p.window {
		p.data = make([]byte, 0, p.window)
	}
	n := copy(p.data[:p.window], left)
	p.pos = 0
	more, err := io.ReadFull(p.r, p.data[n:p.window])
	p.data = p.data[:n+more]
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	p.ended = err
}
