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

// Caller identifies the sender of a request. Fields may be empty.
type Caller struct{ UserID, KeyID string }

// Request is a request with a known caller and route.
type Request struct {
	*http.Request
	Caller    Caller
	Operation string // such as "GET /events", also for HEAD
}

// Route is an operation with its handler.
type Route struct {
	// Operation is a method and a path below the base path, with [http.ServeMux] wildcards, such as
	// "GET /events/{id}". A GET route also serves HEAD.
	Operation string
	// Query reports whether Handle reads the query with [ReadQuery]. If not, the Mux refuses all query
	// parameters.
	Query bool
	// Handle writes the response, or returns an error for the Mux to write.
	Handle func(http.ResponseWriter, Request) error
}

// Intercept serves a request in place of its handler. It may call next once to run the handler.
type Intercept func(w http.ResponseWriter, r Request, next http.HandlerFunc)

// Mux serves a list of routes. Set its fields before serving. It sets the Pattern of a request to the method
// and whole path of its route, or to "" if there is none.
//
// Checks run in this order: caller, path, method, query, and then Handle. An unknown path returns 404. So
// does a path with //, ., .., %2F, %00 or a slash at the end, because a Mux never redirects. A wrong method
// returns 405 with Allow, and OPTIONS returns 204 with Allow. A panic in a handler returns 500. If a handler
// fails after the response has started, the connection is closed.
type Mux struct {
	// Authenticate returns the caller of a request, or an error that refuses it. By default, it accepts all
	// requests.
	Authenticate func(*http.Request) (Caller, error)
	// Intercept, if not nil, is called in place of the handler for a request with a valid caller, path and
	// method.
	Intercept Intercept
	// ToError converts errors that don't wrap an [*Error]. If it returns nil, the Mux logs the error and
	// responds with a 500. By default, it does so with all of them.
	ToError func(error) *Error
	// Logger receives the causes of these 500 responses with their X-Request-Id. By default, nothing is
	// logged.
	Logger *slog.Logger

	base   string
	routes []Route
	mux    *http.ServeMux
}

// NewMux creates a Mux for routes below a base path, which may be empty. It panics if routes conflict.
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
	if !isCanonical(r.URL) {
		m.serveUnknown(w, r, "")
		return
	}
	m.mux.ServeHTTP(w, r)
}

// isCanonical reports whether a path has only one meaning: [http.ServeMux] wouldn't redirect it, and it
// contains no escaped slash or NUL.
func isCanonical(u *url.URL) bool {
	return strings.HasPrefix(u.Path, "/") &&
		path.Clean(u.Path) == u.Path &&
		!strings.Contains(u.Path, "\x00") &&
		!strings.Contains(strings.ToUpper(u.RawPath), "%2F")
}

func (m *Mux) handler(route *Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := m.Authenticate(r)
		SetCaller(w, caller)
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

// serveUnknown serves a request that no route matches. allow is the Allow header for its path, or "".
func (m *Mux) serveUnknown(w http.ResponseWriter, r *http.Request, allow string) {
	r.Pattern = ""
	routes := "; the routes are " + strings.Join(m.Operations(), ", ")
	caller, err := m.Authenticate(r)
	SetCaller(w, caller)
	switch {
	case err != nil:
	case allow == "":
		err = NotFound("no such route below " + m.base + "/" + routes)
	case r.Method == "OPTIONS":
		w.Header().Set("Allow", allow)
		w.WriteHeader(204)
		return
	default:
		err = NewError(405, "this method is not allowed here; use "+allow+routes, "Allow", allow)
	}
	m.writeError(w, r, err)
}

// Find returns the operation of a request with a method and URL, or "" if there is none.
func (m *Mux) Find(method string, u *url.URL) (operation string) {
	if !isCanonical(u) {
		return ""
	}
	_, pattern := m.mux.Handler(&http.Request{Method: method, URL: u})
	method, path, found := strings.Cut(pattern, " "+m.base)
	if !found {
		return ""
	}
	return method + " " + path
}

// allowed returns the Allow header for the path of a request, or "" if no route has that path. It asks which
// operation an imaginary request with each method would have.
func (m *Mux) allowed(r *http.Request) string {
	var methods []string
	for _, operation := range m.Operations() {
		method, _, _ := strings.Cut(operation, " ")
		if m.Find(method, r.URL) != operation {
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

// writeError responds with an error. If another response has started, it closes the connection.
func (m *Mux) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = m.ToError(err)
	}
	if e == nil {
		id := rand.Text()
		m.Logger.Error("request failed", "id", id, "route", r.Pattern, "error", err)
		e = NewError(500, "something went wrong on the server; try again, and give the operator the "+
			"X-Request-Id if it happens again", "X-Request-Id", id)
	}
	if responseStarted(w) {
		panic(http.ErrAbortHandler)
	}
	e.Write(w)
}

// recoverPanic turns a panic into a 500. It passes on [http.ErrAbortHandler], which makes net/http close the
// connection.
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
