package eventstest

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/events/internal/double"
)

// withKey adds an API key to requests that have none.
type withKey struct {
	key  string
	next http.RoundTripper
}

func (t withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	for name, values := range r.Header { // some clients keep the case of a name
		own := strings.EqualFold(name, "X-Service-Api-Key") || strings.EqualFold(name, "Authorization")
		if own && len(values) > 0 {
			return t.next.RoundTrip(r)
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("x-service-api-key", t.key)
	return t.next.RoundTrip(r)
}

// network sends each request over a connection of its own while a fault is set
// that closes connections. Over one that was used before, Go's transport sends a
// GET, or a request with an Idempotency-Key, again by itself where the connection
// is closed without an answer; then a fault would not count the same each time.
type network struct {
	double      *double.Double
	kept, fresh *http.Transport
}

func (t network) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.double.Breaks() {
		return t.fresh.RoundTrip(r)
	}
	return t.kept.RoundTrip(r)
}

// direct calls a handler in the goroutine of the client.
type direct struct{ handler http.Handler }

func (t direct) RoundTrip(sent *http.Request) (resp *http.Response, err error) {
	if sent.Body != nil {
		defer sent.Body.Close()
	}
	if err := sent.Context().Err(); err != nil {
		return nil, err
	}
	r := sent.Clone(sent.Context())
	r.Header = http.Header{}
	for name, values := range sent.Header { // names have no case on a connection
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
	r.Method = cmp.Or(r.Method, http.MethodGet)
	r.RequestURI = r.URL.RequestURI()
	r.Host = cmp.Or(r.Host, r.URL.Host)
	r.RemoteAddr = "192.0.2.1:1234" // as httptest has it
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		r.Body, r.ContentLength = http.NoBody, 0
	case r.ContentLength <= 0:
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			resp, err = nil, cmp.Or(sent.Context().Err(), io.EOF)
		default:
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	resp = w.Result()
	resp.Request = sent
	if r.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp, nil
}
