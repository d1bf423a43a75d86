package answer

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
)

// Route is a line of a list of routes: what answers one operation, which is a method and a
// path. The path may have wildcards of [http.ServeMux], such as {id} in GET /events/{id}.
type Route struct {
	Operation string
	Params    []Parameter // of its query
	MaxBody   int64       // bytes of its body; 0 if it takes none
	Handle    Handle
}

// Handle answers a request that was read, or returns an error, which [Service.WriteError]
// answers.
type Handle func(w http.ResponseWriter, r Request) error

// Service is a list of routes, and what is the same for all of them.
type Service struct {
	Base   string // begins the path of every route
	Routes []Route

	// Check returns the id of the user who sends a request, which may be "", or why the sender
	// is refused. It goes before everything else.
	Check func(*http.Request) (caller string, err error)
	// Intercept, if it is not nil, is called when the sender, the route and the method are known
	// to be right, and may answer in place of the route. It is set before the service serves.
	Intercept Intercept
	// Admit, if it is not nil, returns why a request is refused whose query is right and whose
	// body comes next.
	Admit func(Request) error
	// WriteError answers errors: of Check and Admit, of a query or a body, of the routes.
	WriteError WriteError
}

// Intercept answers the request for an operation ("GET /events/{id}", also if the method is
// HEAD) by a user, or calls next, which answers as usual. Calls run concurrently.
type Intercept func(operation, userID string, w http.ResponseWriter, r *http.Request, next http.HandlerFunc)

// Operations are those of the routes.
func (s *Service) Operations() (all []string) {
	for _, route := range s.Routes {
		all = append(all, route.Operation)
	}
	return all
}

// Methods are those that there are on any path, as the header Allow has those of one.
func (s *Service) Methods() string {
	var methods []string
	for _, route := range s.Routes {
		method, _, _ := strings.Cut(route.Operation, " ")
		if !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
	}
	return allowed(methods)
}

// allowed are methods of routes and those that need no route, as the header Allow has them.
func allowed(methods []string) string {
	return strings.Replace(strings.Join(methods, ", "), "GET", "GET, HEAD", 1) + ", OPTIONS"
}

// Handler returns a handler that sends each request to the route for its method and path. A
// route for GET takes HEAD, too. The Pattern of a request is then the method and the whole path
// of its route.
//
// A path that is written out is more specific than one with a wildcard, and keeps its
// methods to itself: if there are POST /events/create and GET /events/{id}, then no route
// takes GET /events/create. Handler panics if two routes take the same requests and neither
// is more specific.
//
// What no route takes is answered in one place, once Check has returned no error: OPTIONS
// with the methods that the path has, other methods of such a path with a 405, and other
// paths with a 404. A panic is an error with the stack. If the answer had begun, its
// connection is closed, so that no client takes a part for the whole.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	known := map[string]bool{}       // the methods of all paths
	operations := s.Operations()
	for i, operation := range operations {
		method, path, _ := strings.Cut(operation, " ")
		mux.HandleFunc(method+" "+s.Base+path, s.serve(&s.Routes[i]))
		methods[path] = append(methods[path], method)
		known[method] = true
	}
	noRoute := NotFound("there is no such route below " + s.Base + "/; there are " +
		strings.Join(operations, ", "))
	// refuse answers what no route takes. Allow is empty if there is no such path.
	refuse := func(path, allow string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, err := s.Check(r)
			switch {
			case err != nil:
			case allow == "":
				err = noRoute
			case r.Method == "OPTIONS":
				w.Header()["Allow"] = []string{allow}
				w.WriteHeader(204)
				return
			default:
				err = notAllowed(r.Method, path, allow, operations)
			}
			s.WriteError(w, r, err)
		}
	}
	unknown := refuse("", "")
	paths := http.NewServeMux() // it knows the paths alone, and takes what no route takes
	paths.HandleFunc("/", unknown)
	mux.Handle("/", paths)
	for path, own := range methods {
		allow := allowed(own)
		paths.HandleFunc(s.Base+path, refuse(path, allow))
		// A method that the path lacks must not reach another path with a wildcard.
		for method := range known {
			if !slices.Contains(own, method) {
				mux.Handle(method+" "+s.Base+path, paths)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause != nil {
				s.afterPanic(w, r, cause)
			}
		}()
		if !isPlain(r.URL) {
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serve returns what checks the sender of a request and lets the route answer it.
func (s *Service) serve(route *Route) http.HandlerFunc {
	serve := func(w http.ResponseWriter, r *http.Request, caller string) {
		err := s.answer(w, Request{Request: r, Caller: caller}, route)
		if err != nil {
			s.WriteError(w, r, err)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.Check(r)
		switch {
		case err != nil:
			s.WriteError(w, r, err)
		case s.Intercept == nil:
			serve(w, r, caller)
		default:
			s.Intercept(route.Operation, caller, w, r, func(w http.ResponseWriter, r *http.Request) {
				serve(w, r, caller)
			})
		}
	}
}

// answer reads the query and the body of a request and lets the route answer it. A body is
// refused where it has no meaning, but for that of a GET, which is ignored (RFC 9110, 9.3.1).
func (s *Service) answer(w http.ResponseWriter, r Request, route *Route) error {
	err := route.readQuery(&r)
	if err != nil {
		return err
	}
	if route.MaxBody == 0 && (r.Method == "GET" || r.Method == "HEAD") {
		return route.Handle(w, r)
	}
	if s.Admit != nil {
		if err := s.Admit(r); err != nil {
			return err
		}
	}
	r.Body, err = readBody(w, r.Request, route.MaxBody)
	if err != nil {
		return err
	}
	return route.Handle(w, r)
}

// afterPanic answers a request whose handler has panicked. If the answer has begun, it logs the
// cause, by an answer that nobody gets, and closes the connection. An answer that has begun
// shows by its Content-Type, which [WriteHead] and [Stream] set as they begin it.
func (s *Service) afterPanic(w http.ResponseWriter, r *http.Request, cause any) {
	if cause == http.ErrAbortHandler { // by it net/http closes the connection without an answer
		panic(cause)
	}
	err := fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
	if w.Header()["Content-Type"] == nil {
		s.WriteError(w, r, err)
		return
	}
	s.WriteError(nowhere{}, r, err)
	panic(http.ErrAbortHandler)
}

// nowhere is a ResponseWriter that drops the answer.
type nowhere struct{}

func (nowhere) Header() http.Header            { return http.Header{} }
func (nowhere) Write(part []byte) (int, error) { return len(part), nil }
func (nowhere) WriteHeader(int)                {}

// notAllowed is a 405. It names the operations below the path that have the method, as
// POST /events is most likely to mean POST /events/create.
func notAllowed(method, path, allow string, operations []string) *Error {
	problem := Method(path, allow)
	for _, operation := range operations {
		if strings.HasPrefix(operation, method+" "+path+"/") {
			problem.Message += ", or " + operation
		}
	}
	return problem
}

// isPlain reports whether a path means one thing only: nothing in it would be cleaned
// away, for which [http.ServeMux] redirects, and no slash or NUL is written as a
// percent-escape.
func isPlain(u *url.URL) bool {
	return path.Clean(u.Path) == u.Path &&
		!strings.Contains(u.Path, "\x00") &&
		!strings.Contains(strings.ToUpper(u.RawPath), "%2F")
}
