package answer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// readBody reads the body of a request. If it has more than max bytes, the error is a 413. If it
// can't be read, the error is a 408 (RFC 9110, section 15.5.9): the client may send it again.
func readBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if r.ContentLength > max { // a client that waits for "100 Continue" need not send it
		return nil, tooLarge(max)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err == nil {
		return body, nil
	}
	limit, isTooLarge := errors.AsType[*http.MaxBytesError](err) // also that of a handler in front
	if isTooLarge {
		return nil, tooLarge(limit.Limit)
	}
	return nil, NewError(408, "the body did not arrive whole and in time; send it again",
		"Connection", "close")
}

// tooLarge returns the error for a body of more than max bytes. It closes the connection because
// the rest of the body is not read.
func tooLarge(max int64) *Error {
	if max == 0 {
		return NewError(400, "the body must be empty", "Connection", "close")
	}
	size := thousands(max) + " bytes"
	if max%(1<<20) == 0 {
		size = fmt.Sprintf("%d MiB (%s)", max>>20, size)
	}
	return NewError(413, "the body must have at most "+size, "Connection", "close")
}

// thousands is a number with commas: 1,048,576.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
