package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Query reads query parameters, each of which may be given once. Call [ReadQuery], then a method for each
// parameter, and then [Query.Err].
type Query struct {
	operation string
	values    url.Values // unread parameters
	names     []string   // parameters that were read, if there is a query
	problems  []string
}

// ReadQuery returns the query of a request.
func ReadQuery(r Request) Query {
	q := Query{operation: r.Operation}
	if r.URL.RawQuery == "" {
		return q
	}
	var err error
	q.names = make([]string, 0, 4)
	q.values, err = url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.problems = []string{"the query string is malformed; write it as a=b&c=d, percent-encoded"}
	}
	return q
}

// take returns the value of a parameter, or "" if it is repeated. Callers refuse an empty value.
func (q *Query) take(name string) (value string, given bool) {
	if q.values == nil {
		return "", false
	}
	q.names = append(q.names, name)
	values, given := q.values[name]
	delete(q.values, name)
	if len(values) == 1 {
		value = values[0]
	}
	return value, given
}

// Func passes a parameter to parse, which reports whether it is valid. Empty and repeated parameters are
// always invalid. The rule follows the name in messages: "must be …, given once". If the parameter is
// missing, Func does nothing.
func (q *Query) Func(name, rule string, parse func(value string) bool) {
	value, given := q.take(name)
	if given && (value == "" || !parse(value)) {
		q.problems = append(q.problems, name+" "+rule)
	}
}

// String returns the value of a parameter, or "" if it is missing. See [Query.Func] for the rule.
func (q *Query) String(name, rule string) (value string) {
	q.Func(name, rule, func(given string) bool { value = given; return true })
	return value
}

// Int returns the value of a parameter, a decimal number from min to max, or the default value if it is
// missing. min and max are from 0 to 1<<31 - 1.
func (q *Query) Int(name string, value, min, max int) int {
	text, given := q.take(name)
	if !given {
		return value
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) < min || int(n) > max {
		q.problems = append(q.problems, fmt.Sprintf(
			"%s must be given once, as a whole number from %d to %d", name, min, max))
	}
	return int(n)
}

// OneOf returns the value of a parameter, which must be one of the words, or "" if it is missing.
func (q *Query) OneOf(name string, words ...string) string {
	value, given := q.take(name)
	if given && !slices.Contains(words, value) {
		q.problems = append(q.problems, name+" must be "+strings.Join(words, " or ")+", given once")
	}
	return value
}

// Err returns an [Error] with all problems of the query, or nil. Unread parameters are problems.
func (q *Query) Err() error {
	if q.problems == nil && len(q.values) == 0 {
		return nil
	}
	problems := q.problems
	if len(q.values) > 0 {
		problems = append(problems, q.unknown())
	}
	return BadRequest(strings.Join(problems, "; "))
}

// unknown returns the problem of unread parameters.
func (q *Query) unknown() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		names = append(names, fmt.Sprintf("%.60q", name))
	}
	noun := "parameter"
	if len(names) > 1 {
		noun += "s"
	}
	return fmt.Sprintf("unknown query %s %s: %s takes %s",
		noun, strings.Join(names, ", "), q.operation, cmp.Or(strings.Join(q.names, ", "), "none"))
}

// MaxBody is the maximum size of a request body in bytes, unless it holds records.
const MaxBody = 1 << 20

// WithBody returns a [Route.Handle] that checks and reads the request body and passes it to handle.
func WithBody(
	handle func(w http.ResponseWriter, r Request, body []byte) error,
) func(http.ResponseWriter, Request) error {
	return func(w http.ResponseWriter, r Request) error {
		err := checkContentHeaders(r.Header)
		if err != nil {
			return err
		}
		body, err := ReadBody(w, r, MaxBody)
		if err != nil {
			return err
		}
		return handle(w, r, body)
	}
}

// ReadBody reads the request body. If the body is larger than max bytes, the error is a 413. If it took too
// long or the connection broke off, the error is a 408, so the client may retry. Otherwise, its chunks are
// malformed, and the error is a 400.
func ReadBody(w http.ResponseWriter, r Request, max int64) ([]byte, error) {
	if r.ContentLength > max { // a client that sends Expect has not sent the body yet
		return nil, tooLarge(max)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err == nil {
		return body, nil
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge(e.Limit)
	}
	if isInterrupted(err) {
		return nil, NewError(408, "the request body was incomplete or too slow; send it again",
			"Connection", "close")
	}
	return nil, BadRequest("the chunks of the request body are malformed; send it with a Content-Length")
}

// isInterrupted reports whether a body couldn't be read because of a timeout or the end of the connection.
// net/http doesn't export its error for a connection that ends in the trailer, so this looks at the text.
func isInterrupted(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error())
}

func tooLarge(max int64) *Error {
	return NewError(413, fmt.Sprintf("the body must have at most %g MiB", float64(max)/(1<<20)))
}

// checkContentHeaders returns a 415 if the request headers announce a body other than JSON in UTF-8, or a
// compressed body (RFC 9110, sections 8.3 and 8.4).
func checkContentHeaders(h http.Header) error {
	contentType := strings.Join(h["Content-Type"], ", ")
	if contentType != "" && !isJSON(contentType) {
		return NewError(415, "Content-Type must be application/json, in UTF-8; "+
			"with curl, add -H 'Content-Type: application/json'",
			"Accept", "application/json")
	}
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return NewError(415,
			"Content-Encoding must be left out, or be identity: send the body uncompressed",
			"Accept-Encoding", "identity")
	}
	return nil
}

func isJSON(contentType string) bool {
	mediaType, params, err := mime.ParseMediaType(contentType)
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return err == nil && mediaType == "application/json"
}
