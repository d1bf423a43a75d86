package double

import (
	"context"
	"io"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	maxJournal = 1000     // requests
	maxNoted   = 64 << 10 // bytes of a request's body
)

// Request is what was called, as package eventstest documents it.
type Request struct {
	Time      time.Time   `json:"time"`
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Query     string      `json:"query"`
	Header    http.Header `json:"header"`
	Operation string      `json:"operation"`
	Status    int         `json:"status"`
	User      string      `json:"user"`
	Body      string      `json:"body"`
}

// noted is the key of the *Request in the context of a request.
type noted struct{}

// Handler serves next and notes each request in the journal.
func (d *Double) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &Request{Time: d.Now(), Method: r.Method, Path: masked(r.URL.EscapedPath()), Query: masked(r.URL.RawQuery),
			Header: redacted(r.Header), Operation: d.operation(r)}
		d.mu.Lock()
		if d.journal = append(d.journal, e); len(d.journal) > maxJournal {
			d.journal = d.journal[1:]
		}
		d.mu.Unlock()
		if e.Operation == "" && r.Method != http.MethodOptions && d.Unknown != nil {
			d.Unknown(e.Method, e.Path, d.Nearest(e.Method+" "+strings.TrimPrefix(e.Path, d.base)))
		}
		r = r.WithContext(context.WithValue(r.Context(), noted{}, e))
		if r.ContentLength != 0 {
			r.Body = &bodyNote{r.Body, d, e}
		}
		next.ServeHTTP(&statusNote{w, d, e}, r)
	})
}

// bodyNote notes a body as the server reads it, statusNote a status before the
// client can see it.
type (
	bodyNote struct {
		io.ReadCloser
		d *Double
		e *Request
	}
	statusNote struct {
		http.ResponseWriter
		d *Double
		e *Request
	}
)

func (b *bodyNote) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	b.e.Body += string(p[:min(n, maxNoted-len(b.e.Body))])
	return n, err
}

func (s *statusNote) WriteHeader(status int) {
	s.d.mu.Lock()
	s.e.Status = status
	s.d.mu.Unlock()
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusNote) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// redacted is a copy of headers with only the last four characters of keys.
func redacted(h http.Header) http.Header {
	h = h.Clone()
	for name, values := range h {
		for i, value := range values {
			scheme := ""
			switch {
			case strings.EqualFold(name, "Authorization"):
				if bearer, rest, _ := strings.Cut(value, " "); strings.EqualFold(bearer, "Bearer") {
					scheme, value = bearer+" ", rest
				}
				fallthrough
			case strings.EqualFold(name, "X-Service-Api-Key"):
				values[i] = scheme + "…" + tail(value)
			default:
				values[i] = masked(value)
			}
		}
	}
	return h
}

// masked is a text with only the last four characters of what begins as keys do.
func masked(text string) string {
	parts := strings.Split(text, "svc_live_")
	for i, rest := range parts[1:] {
		key := rest
		if end := strings.IndexAny(rest, " \t\"'&;,/"); end >= 0 {
			key = rest[:end]
		}
		parts[i+1] = "…" + tail(key) + rest[len(key):]
	}
	return strings.Join(parts, "")
}

// tail is the last four characters of a key, fewer where it is short.
func tail(key string) string { return key[min(len(key), max(4, len(key)-4)):] }

// Requests returns a copy of those of the newest 1,000 requests that are of an
// operation and a user, or of all where it is "": oldest first.
func (d *Double) Requests(operation, userID string) []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []Request{}
	for _, r := range d.journal {
		if (operation == "" || operation == r.Operation) && (userID == "" || userID == r.User) {
			all = append(all, *r)
			all[len(all)-1].Header = r.Header.Clone()
		}
	}
	return all
}

// ClearRequests empties the journal, or takes those of a user out of it.
func (d *Double) ClearRequests(userID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.journal = slices.DeleteFunc(d.journal, func(r *Request) bool { return userID == "" || r.User == userID })
}

// operation is the one that a request belongs to, or "".
func (d *Double) operation(r *http.Request) string {
	rest, under := strings.CutPrefix(r.URL.Path, d.base)
	if !under || path.Clean(rest) != rest || strings.IndexByte(rest, 0) >= 0 || strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
		return ""
	}
	for _, operation := range d.operations {
		method, pattern, _ := strings.Cut(operation, " ")
		if fit(rest, pattern) != pattern {
			continue
		}
		if method == r.Method || method == "GET" && r.Method == "HEAD" {
			return operation
		}
		return ""
	}
	return ""
}

// Has reports whether there is this operation.
func (d *Double) Has(operation string) bool { return slices.Contains(d.operations, operation) }

// Nearest is the operation that "METHOD /path" takes the fewest edits to become,
// or the one below its path that has its method.
func (d *Double) Nearest(request string) (nearest string) {
	method, path, _ := strings.Cut(request, " ")
	least := math.MaxInt
	for _, operation := range d.operations {
		_, pattern, _ := strings.Cut(operation, " ")
		if path == pattern {
			below := slices.IndexFunc(d.operations, func(other string) bool { return strings.HasPrefix(other, request+"/") })
			if operation != request && below >= 0 {
				return d.operations[below]
			}
			return operation
		}
		if n := edits(method+" "+fit(path, pattern), operation); n < least {
			nearest, least = operation, n
		}
	}
	return nearest
}

// fit is a path with the parameters of a pattern in their places.
func fit(path, pattern string) string {
	have, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	for i := range min(len(have), len(want)) {
		if strings.HasPrefix(want[i], "{") && have[i] != "" {
			have[i] = want[i]
		}
	}
	return strings.Join(have, "/")
}

// edits is the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			n := before
			if a[i] != b[j] {
				n = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], n
		}
	}
	return row[len(b)]
}
