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
	Serve     http.HandlerFunc
}

// Mux returns a handler that sends each request to the route for its method and path. The
// paths of the routes are below base. A route for GET takes HEAD, too. The Pattern of a
// request is then the method and the whole path of its route.
//
// A path that is written out is more specific than one with a wildcard, and keeps its
// methods to itself: if there are POST /events/create and GET /events/{id}, then no route
// takes GET /events/create. Mux panics if two routes take the same requests and neither
// is more specific.
//
// What no route takes is answered in one place, once check has returned no error: OPTIONS
// with the methods that the path has, other methods of such a path with a 405, and other
// paths with a 404. WriteError answers errors, also those of check, and panics, whose errors
// have the stack.
func Mux(
	base string, routes []Route, check func(*http.Request) error, writeError WriteError,
) http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	known := map[string]bool{}       // the methods of all paths
	var operations []string
	for _, route := range routes {
		method, path, _ := strings.Cut(route.Operation, " ")
		mux.HandleFunc(method+" "+base+path, route.Serve)
		methods[path] = append(methods[path], method)
		known[method] = true
		operations = append(operations, route.Operation)
	}
	noRoute := NotFound("there is no such route below " + base + "/; there are " +
		strings.Join(operations, ", "))
	// refuse answers what no route takes. Allow is empty if there is no such path.
	refuse := func(path, allow string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			err := check(r)
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
			writeError(w, r, err)
		}
	}
	unknown := refuse("", "")
	paths := http.NewServeMux() // it knows the paths alone, and takes what no route takes
	paths.HandleFunc("/", unknown)
	mux.Handle("/", paths)
	for path, own := range methods {
		allow := strings.Join(own, ", ") + ", OPTIONS"
		allow = strings.Replace(allow, "GET", "GET, HEAD", 1)
		paths.HandleFunc(base+path, refuse(path, allow))
		// A method that the path lacks must not reach another path with a wildcard.
		for method := range known {
			if !slices.Contains(own, method) {
				mux.Handle(method+" "+base+path, paths)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == http.ErrAbortHandler {
				panic(cause) // by it net/http closes the connection without an answer
			}
			if cause != nil {
				writeError(w, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
			}
		}()
		if !isPlain(r.URL) {
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

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
