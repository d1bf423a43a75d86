package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
)

// Caller identifies the sender of a request. Its fields may be empty.
type Caller struct{ UserID, KeyID string }

// Request is a request whose caller and route are known.
type Request struct {
	*http.Request
	Caller    Caller
	Operation string // operation of the route; the same for GET and HEAD
}

// Route is an operation with its handler.
type Route struct {
	// Operation is a method and a path below the base path of the [Mux], with the wildcards of
	// [http.ServeMux]: "GET /events/{id}". A GET route also serves HEAD.
	Operation string
	// Query is true if Handle reads the query with [ReadQuery]. Otherwise the Mux refuses any query
	// parameter.
	Query bool
	// Handle writes the response or returns an error, which the Mux writes.
	Handle func(http.ResponseWriter, Request) error
}

// Intercept serves a request instead of its handler. It may call next once to run the handler.
type Intercept func(w http.ResponseWriter, r Request, next http.HandlerFunc)

// Mux serves a list of routes. Its fields must be set before it serves. It sets the Pattern of a
// request to the method and the whole path of the route, or to "" if there is no such route.
//
// A request is served in this order: the caller, the path, the method, the query, and then Handle.
// If no route matches the method, the response is a 405 with Allow, or a 204 with Allow for
// OPTIONS. If no route matches the path, it is a 404, also for a path with //, ., .., a slash at
// the end, %2F or %00: a Mux never redirects. A panic in a handler is a 500. If a handler panics
// or fails after the response started, the connection is closed.
type Mux struct {
	// Authenticate returns the caller of a request, or the error that refuses it. By default, every
	// request is accepted.
	Authenticate func(*http.Request) (Caller, error)
	// Intercept, if not nil, is called instead of the handler of a request whose caller, path and
	// method are right.
	Intercept Intercept
	// ToError returns the response to an error that doesn't wrap an [*Error], or nil if its cause
	// is to be logged and hidden behind a 500. By default, all these causes are.
	ToError func(error) *Error
	// Logger receives each hidden cause, with the X-Request-Id of the response. By default, nothing is
	// logged.
	Logger *slog.Logger

	base   string
	routes []Route
	mux    *http.ServeMux
}

// NewMux returns a Mux that serves routes below a base path, which may be empty. It panics if two
// routes conflict.
func NewMux(base string, routes []Route) *Mux {
	m := &Mux{
		Authenticate: func(*http.Request) (Caller, error) { return Caller{}, nil },
		ToError:      func(error) *Error { return nil },
		Logger:       slog.New(slog.DiscardHandler),
		base:         base,
		routes:       routes,
		mux:          http.NewServeMux(),
	}
	for i := range routes {
		method, path, _ := strings.Cut(routes[i].Operation, " ")
		m.mux.HandleFunc(method+" "+base+path, m.handler(&routes[i]))
	}
	m.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.serveUnknown(w, r, m.allowed(r))
	})
	return m
}

// Base returns the base path of the routes.
func (m *Mux) Base() string { return m.base }

// Operations returns the operations of the routes.
func (m *Mux) Operations() []string {
	var operations []string
	for _, route := range m.routes {
		operations = append(operations, route.Operation)
	}
	return operations
}

func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer m.recoverPanic(w, r)
	SetSecurityHeaders(w.Header())
	if !isCanonical(r.URL) {
		m.serveUnknown(w, r, "")
		return
	}
	m.mux.ServeHTTP(w, r)
}

// isCanonical reports whether a path has one meaning: [http.ServeMux] wouldn't redirect it, and it
// has no escaped slash or NUL.
func isCanonical(u *url.URL) bool {
	return strings.HasPrefix(u.Path, "/") &&
		path.Clean(u.Path) == u.Path &&
		!strings.Contains(u.Path, "\x00") &&
		!strings.Contains(strings.ToUpper(u.RawPath), "%2F")
}

func (m *Mux) handler(route *Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := m.Authenticate(r)
		request := Request{r, caller, route.Operation}
		switch {
		case err != nil:
			m.writeError(w, r, err)
		case m.Intercept == nil:
			m.serve(w, request, route)
		default:
			m.Intercept(w, request, func(w http.ResponseWriter, r *http.Request) {
				m.serve(w, Request{r, caller, route.Operation}, route)
			})
		}
	}
}

func (m *Mux) serve(w http.ResponseWriter, r Request, route *Route) {
	var err error
	if !route.Query {
		q := ReadQuery(r)
		err = q.Err()
	}
	if err == nil {
		err = route.Handle(w, r)
	}
	if err != nil {
		m.writeError(w, r.Request, err)
	}
}

// serveUnknown serves a request that no route matches. The methods of the routes that match its path are
// the value of an Allow header, or "" if there are none.
func (m *Mux) serveUnknown(w http.ResponseWriter, r *http.Request, allow string) {
	r.Pattern = ""
	routes := "; the routes are " + strings.Join(m.Operations(), ", ")
	_, err := m.Authenticate(r)
	switch {
	case err != nil:
	case allow == "":
		err = NotFound("there is no such route below " + m.base + "/" + routes)
	case r.Method == "OPTIONS":
		w.Header().Set("Allow", allow)
		w.WriteHeader(204)
		return
	default:
		err = NewError(405, "this method is not allowed here; use "+allow+routes, "Allow", allow)
	}
	m.writeError(w, r, err)
}

// allowed returns the methods of all routes that match the path of a request, as the value of an Allow
// header. It returns "" if there are none.
func (m *Mux) allowed(r *http.Request) string {
	var methods []string
	for _, operation := range m.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		_, pattern := m.mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL})
		if pattern != method+" "+m.base+path {
			continue
		}
		methods = append(methods, method)
		if method == "GET" {
			methods = append(methods, "HEAD")
		}
	}
	if methods == nil {
		return ""
	}
	return strings.Join(append(methods, "OPTIONS"), ", ")
}

// writeError writes the response to an error, or closes the connection if another response has
// started.
func (m *Mux) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = m.ToError(err)
	}
	if e == nil {
		id := rand.Text()
		m.Logger.Error("request failed", "id", id, "route", r.Pattern, "error", err)
		e = NewError(500, "something went wrong on our side; try again, and give the operator the "+
			"X-Request-Id if it happens again", "X-Request-Id", id)
	}
	if responseStarted(w) {
		panic(http.ErrAbortHandler)
	}
	e.Write(w)
}

// recoverPanic handles a panic of a handler. [http.ErrAbortHandler] passes, because net/http then
// closes the connection.
func (m *Mux) recoverPanic(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	m.writeError(w, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
}
