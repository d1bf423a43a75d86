package answer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

const (
	smallBody = 64<<10 + 16 // what each body may take freely: 64 KiB, and room to see its end
	maxFirst  = 16 << 10    // the first buffer of a body, however long it is said to be
	maxReads  = 256<<10 - 1 // what net/http reads of a body that no handler wanted
	maxDrain  = 16 << 20    // what is read of a body after its request was refused
)

// Bodies reads bodies of requests. It is safe for concurrent use.
type Bodies struct {
	max, maxHeld int64
	advice       string
	held         atomic.Int64 // by all bodies, beyond smallBody of each
}

// NewBodies returns what reads bodies of at most maxBody bytes each. Of all that are read at
// once or wait for their answer, the memory is limited to maxHeld bytes, unless that is 0. The
// advice says what to do with a body that is too large, after a semicolon; "" says nothing.
func NewBodies(maxBody, maxHeld int64, advice string) *Bodies {
	return &Bodies{max: maxBody, maxHeld: maxHeld, advice: advice}
}

// read reads the body of a request. What it holds beyond smallBody bytes counts towards
// maxHeld, which all requests share. This request's share is added to held, before the memory
// is allocated. The caller returns the share by release when it has answered, also if the body
// was refused.
//
// Without the limit, many large bodies at once could use up the memory of the machine:
// 400 clients that send all but the last byte and then wait would hold 400 MiB. So
// would bodies that have arrived and wait for a slow disk.
//
// The buffer doubles as bytes arrive. It is not made as long as Content-Length says,
// because that is only a promise, which costs its sender nothing.
func (b *Bodies) read(r *http.Request, held *int64) ([]byte, error) {
	if r.ContentLength > b.max {
		return nil, b.tooLarge(b.max)
	}
	// The first read tells a client that waits for "100 Continue" to send: see Refuse.
	r.Header.Del("Expect")
	first := min(uint64(r.ContentLength), maxFirst) // -1, unknown, is the largest
	body := make([]byte, 0, 1+first)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > b.max:
			return nil, b.tooLarge(b.max)
		case err == io.EOF:
			r.Body = http.NoBody // nothing is left to be read away: see Refuse
			return body, nil
		case err != nil:
			return nil, b.incomplete(err)
		case len(body) < cap(body):
			continue
		}
		size := min(2*int64(cap(body))+1, b.max+1)
		more := max(0, size-smallBody) - *held
		*held += more
		if b.held.Add(more) > b.maxHeld && b.maxHeld > 0 {
			return nil, errBusy
		}
		body = append(make([]byte, 0, size), body...)
	}
}

// release returns a share of the memory that all bodies may hold.
func (b *Bodies) release(held *int64) { b.held.Add(-*held) }

// tooLarge is the answer to a body of more bytes than it may have. It closes the connection, as
// the rest of the body is not wanted.
func (b *Bodies) tooLarge(most int64) *Error {
	if most == 0 {
		return NewError(400, "the body must be empty"+b.advice, "Connection", "close")
	}
	size := thousands(most) + " bytes"
	if most%(1<<20) == 0 {
		size = fmt.Sprintf("%d MiB (%s)", most>>20, size)
	}
	return NewError(413, "the body must have at most "+size+b.advice, "Connection", "close")
}

// incomplete is the answer to a request whose body could not be read to its end. It is a 408
// (RFC 9110, section 15.5.9) unless it would be the same if the client sent the body again.
func (b *Bodies) incomplete(err error) *Error {
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err) // of a handler in front of this one
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case isTooLarge:
		return b.tooLarge(tooLarge.Limit)
	case isNetwork && network.Timeout():
		return NewError(408, "the body did not arrive in time; send it again", "Connection", "close")
	case isNetwork || errors.Is(err, io.ErrUnexpectedEOF):
		return NewError(408, "the body did not arrive whole; send it again", "Connection", "close")
	}
	return NewError(400, "the body could not be read: its chunks are malformed (RFC 9112, section 7.1)",
		"Connection", "close")
}

var errBusy = NewError(503,
	"large bodies take all the memory that they may have; send this one again later",
	"Retry-After", "1", "Connection", "close")

// thousands is a number with commas: 1,048,576.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Refuse answers with an error in such a way that a client which is still sending
// its body gets to see it.
//
// Most clients send all of a body before they read. If a server closes a
// connection on which bytes arrive that it has not read, TCP resets it, and the
// reset may take the answer away from the client. Example: a POST of 10 MiB with
// a wrong key is refused after its headers; its client would see "connection
// reset by peer" in place of the 401.
//
// If a connection stays open, net/http sees to that: it reads up to maxReads
// bytes of a body that the handler left. If the connection will be closed, it
// reads nothing. So then the answer is sent first, and the rest of the body is
// read after it, up to maxDrain bytes and the server's time to read. Two bodies
// have no rest that could arrive: one that was read to its end, and one whose
// sender waits for "100 Continue" and was not told so.
func Refuse(w http.ResponseWriter, r *http.Request, e *Error) {
	h := w.Header()
	closes := r.Close || r.ContentLength > maxReads ||
		h["Connection"] != nil || e.Header["Connection"] != nil
	hasRest := r.ContentLength != 0 &&
		r.Body != http.NoBody &&
		r.Header["Expect"] == nil
	if !closes || !hasRest {
		e.Write(w)
		return
	}
	h["Connection"] = []string{"close"}
	e.Write(w)
	http.NewResponseController(w).Flush()
	io.CopyN(io.Discard, r.Body, maxDrain)
}
