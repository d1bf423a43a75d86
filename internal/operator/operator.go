// Package operator is what the operator of a service does with keys and
// records: a table of routes over a store, the handler that serves them, and the
// subcommands that a person types (commands.go). A subcommand sends its requests
// to the running server through a Unix socket (client.go). If no server runs, it
// calls the same routes on a store that it has opened itself.
//
//	POST   /keys       {"name","email"} or {"user_id"} -> 201 {"id","key","user","base_url"}
//	GET    /keys       -> {"data":[…]}
//	DELETE /keys/{id}  -> 204, the key is revoked
//	GET    /records    -> an array of records
//	POST   /records    an array of records, all or none -> {"applied":n,"unchanged":n}
//
// Errors have the form of the API.
package operator

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// Store is what an operator works on, in raw JSON. It is safe for concurrent use.
type Store interface {
	// IssueKey makes a key from {"user_id"}, or from {"name","email"} for the
	// user with that email, who is made if there is none. It returns
	// {"id","key","user"}, the key being the secret.
	IssueKey(request []byte) (issued []byte, err error)
	// Keys returns an array of keys without secrets.
	Keys() []byte
	// RevokeKey ends the key with an id, for good.
	RevokeKey(id string) error
	// WriteRecords writes an array of the records of the user with this id or email, of
	// its keys and events, and of their guests: an empty array if there is no such user,
	// and of everything in the store for "". The error is the writer's.
	WriteRecords(w io.Writer, user string) error
	// ApplyRecords applies an array of records, all or none. It counts them, and those of
	// them that changed nothing.
	ApplyRecords(records []byte) (applied, unchanged int, err error)
}

// Route is what one method of one path does. Its answer is a JSON text, or empty
// for a 204.
type Route struct {
	Status  int                                 // of its success
	MaxBody int64                               // bytes of the body that it takes; 0: none
	Query   map[string]func(value string) error // the query parameters that it takes, each with its check
	Do      func(Request) (answer []byte, err error)
}

// Request is what a route works on.
type Request struct {
	ID    string     // the {id} of its path
	Host  string     // the host and port that it was sent to
	Query url.Values // only what [Route.Query] has, checked, each at most once
	Body  []byte
}

// Routes are what a handler serves, by path and method.
type Routes map[string]map[string]Route

const (
	maxBody    = 1 << 20  // bytes, of a key
	maxRecords = 64 << 20 // bytes, of an array of records: a whole store may come back
)

// StoreRoutes are the operator's routes. A new key is answered with the base URL
// of the API, which may depend on the host that the request was sent to.
func StoreRoutes(store Store, baseURL func(host string) string) Routes {
	return Routes{
		"/keys": {
			"GET": {Status: http.StatusOK, Do: func(Request) ([]byte, error) {
				return fmt.Appendf(nil, `{"data":%s}`, store.Keys()), nil
			}},
			"POST": {Status: http.StatusCreated, MaxBody: maxBody, Do: func(r Request) ([]byte, error) {
				key, err := store.IssueKey(r.Body)
				key = bytes.TrimSuffix(key, []byte("}"))
				return fmt.Appendf(key, `,"base_url":%q}`, baseURL(r.Host)), err
			}},
		},
		"/keys/{id}": {
			"DELETE": {Do: func(r Request) ([]byte, error) { return nil, store.RevokeKey(r.ID) }},
		},
		"/records": {
			"GET": {Status: http.StatusOK, Do: func(Request) ([]byte, error) {
				var records bytes.Buffer
				err := store.WriteRecords(&records, "")
				return records.Bytes(), err
			}},
			"POST": {Status: http.StatusOK, MaxBody: maxRecords, Do: func(r Request) ([]byte, error) {
				applied, unchanged, err := store.ApplyRecords(r.Body)
				return fmt.Appendf(nil, `{"applied":%d,"unchanged":%d}`, applied, unchanged), err
			}},
		},
	}
}

// Handler serves routes under a path. Fail answers errors: an [answer.Error],
// or what the store returned.
func Handler(base string, routes Routes, fail answer.Fail) http.Handler {
	mux := http.NewServeMux()
	for path, methods := range routes {
		mux.HandleFunc(base+path, func(w http.ResponseWriter, r *http.Request) {
			route, found := methods[r.Method]
			if !found {
				allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
				fail(w, r, answer.Method(base+path, allow))
				return
			}
			switch body, err := route.serve(w, r); {
			case err != nil:
				fail(w, r, err)
			case body == nil:
				w.WriteHeader(http.StatusNoContent)
			default:
				answer.Start(w, route.Status, len(body))
				_, _ = w.Write(body) // the client may have gone
			}
		})
	}
	known := strings.Join(slices.Sorted(maps.Keys(routes)), ", ")
	unknown := func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, answer.NotFound("there is no such route; there are "+known))
	}
	mux.HandleFunc("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.Begin(w.Header())
		defer answer.Recover(w, r, fail)
		if path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect it
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serve checks the query and the body of a request and does what it asks for.
func (rt Route) serve(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	request := Request{ID: r.PathValue("id"), Host: r.Host}
	takes := cmp.Or(strings.Join(slices.Sorted(maps.Keys(rt.Query)), " and "), "nothing")
	errQuery := answer.BadRequest("the query takes " + takes + ": each at most once, with a value, encoded")
	if request.Query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, errQuery
	}
	for name, values := range request.Query {
		check := rt.Query[name]
		if check == nil || len(values) > 1 || values[0] == "" {
			return nil, answer.BadRequest(fmt.Sprintf("%s; see %.60q", errQuery.Message, name))
		}
		if err := check(values[0]); err != nil {
			return nil, err
		}
	}
	request.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, max(rt.MaxBody, 1)))
	switch {
	case rt.MaxBody == 0 && (err != nil || len(request.Body) > 0):
		return nil, answer.BadRequest("the body must be empty; the query takes " + takes)
	case err != nil:
		const message = "the body must arrive whole and have at most %d MiB; send it in parts"
		return nil, answer.TooLarge(fmt.Sprintf(message, rt.MaxBody>>20))
	}
	// The work may take longer than an answer may; a writer without deadlines needs none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	return rt.Do(request)
}
