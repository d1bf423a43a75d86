// Package operator is what the operator of a service does with keys and
// records: a table of routes over a store, the handler that serves them, and the
// subcommands that a person types (commands.go). A subcommand works on the store of
// the running server, to which it sends requests through a Unix socket (client.go). If no
// server runs, it works on a store that it has opened itself.
//
//	POST   /keys       {"name","email"} or {"user_id"} -> 201 {"id","key","user"}
//	GET    /keys       -> {"data":[…]}
//	DELETE /keys/{id}  -> 204, the key is revoked
//	GET    /records    -> an array of records
//	POST   /records    an array of records, all or none -> {"applied":n,"unchanged":n}
//
// Errors have the form of the API.
package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
	"example.com/events/internal/strict"
)

// Store is what an operator works on, in raw JSON: the one of this process, or the client of
// a running server. The first is safe for concurrent use.
type Store interface {
	// IssueKey makes a key from {"user_id"}, or from {"name","email"} for the
	// user with that email, who is made if there is none. It returns the key's id as
	// "id", its secret as "key" and the id of its user as "user".
	IssueKey(request []byte) (issued map[string]string, err error)
	// Keys returns an array of keys without secrets.
	Keys() ([]byte, error)
	// RevokeKey ends the key with an id, for good.
	RevokeKey(id string) error
	// WriteRecords writes an array of all records. The error is the writer's.
	WriteRecords(w io.Writer) error
	// ApplyRecords applies an array of records, all or none. It counts them as "applied",
	// those of them that changed nothing as "unchanged", and those of each kind.
	ApplyRecords(records []byte) (count map[string]int, err error)
	// Close releases the data file, or ends the connection.
	Close() error
}

// Route is what answers an operation, which is a method and a path.
type Route struct {
	Operation string
	Status    int                                 // of its success, if that is not 200 or 204
	MaxBody   int64                               // bytes of the body that it takes; 0: none
	Query     map[string]func(value string) error // the query parameters that it takes, with their checks

	// Do does what is asked for. Its answer is what [strict.Encode] takes, or nil for a 204.
	Do func(Request) (answer any, err error)
	// Stream, in place of Do, writes an answer that may be very long. It fails only if w does.
	Stream func(w io.Writer) error
}

// Request is what a route works on. Its context is done when the client has gone away.
type Request struct {
	*http.Request            // whose body has been read
	ID            string     // the {id} of its path
	Query         url.Values // only what [Route.Query] has, checked, each at most once
	Body          []byte
}

// Routes are what a handler serves.
type Routes []Route

const (
	maxBody    = 1 << 20  // bytes, of a key
	maxRecords = 64 << 20 // bytes, of an array of records: a whole store may come back
)

// Report logs a change that an operator made: a message, and names with their values. It gets
// no secret.
type Report func(message string, args ...any)

// StoreRoutes are the operator's routes. If basePath is not "", a new key is answered with
// the base URL of an API below it, on the host that the request was sent to.
func StoreRoutes(store Store, report Report, basePath string) Routes {
	issueKey := func(r Request) (any, error) {
		issued, err := store.IssueKey(r.Body)
		if err != nil {
			return nil, err
		}
		report("issued a key", "key", issued["id"], "user", issued["user"])
		if basePath != "" {
			issued["base_url"] = "http://" + r.Host + basePath
		}
		return issued, nil
	}
	listKeys := func(Request) (any, error) {
		keys, err := store.Keys()
		return map[string]json.RawMessage{"data": keys}, err
	}
	revokeKey := func(r Request) (any, error) {
		err := store.RevokeKey(r.ID)
		if err == nil {
			report("revoked a key", "key", r.ID)
		}
		return nil, err
	}
	applyRecords := func(r Request) (any, error) {
		defer command.SaveMemory(len(r.Body))()
		count, err := store.ApplyRecords(r.Body)
		if err != nil {
			return nil, err
		}
		report("applied records",
			"users", count["user"],
			"keys", count["key"],
			"events", count["event"],
			"guests", count["guest"],
			"deletes", count["delete"],
			"unchanged", count["unchanged"])
		return map[string]int{"applied": count["applied"], "unchanged": count["unchanged"]}, nil
	}
	return Routes{
		{Operation: "GET /keys", Do: listKeys},
		{Operation: "POST /keys", Do: issueKey, Status: 201, MaxBody: maxBody},
		{Operation: "DELETE /keys/{id}", Do: revokeKey},
		{Operation: "GET /records", Stream: store.WriteRecords},
		{Operation: "POST /records", Do: applyRecords, MaxBody: maxRecords},
	}
}

// Handler serves routes under a path, if check has no error for the request. WriteError
// answers errors: those of check, an [answer.Error], or what the store returned.
func Handler(
	base string, routes Routes, check func(*http.Request) error, writeError answer.WriteError,
) http.Handler {
	var list []answer.Route
	for _, route := range routes {
		list = append(list, answer.Route{
			Operation: route.Operation,
			Serve: func(w http.ResponseWriter, r *http.Request) {
				err := check(r)
				if err == nil {
					err = route.serve(w, r)
				}
				if err != nil {
					writeError(w, r, err)
				}
			},
		})
	}
	mux := answer.Mux(base, list, check, writeError)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.Begin(w.Header())
		mux.ServeHTTP(w, r)
	})
}

// serve answers a request.
func (rt Route) serve(w http.ResponseWriter, r *http.Request) error {
	request := Request{Request: r, ID: r.PathValue("id")}
	err := rt.read(&request, w)
	if err != nil {
		return err
	}
	answer.NoTimeouts(w)
	if rt.Stream != nil {
		answer.Stream(w, rt.Stream)
		return nil
	}
	result, err := rt.Do(request)
	switch {
	case err != nil:
		return err
	case result == nil:
		w.WriteHeader(204)
	default:
		answer.Write(w, cmp.Or(rt.Status, 200), string(strict.Encode(result)))
	}
	return nil
}

// read checks the query and the body of a request.
func (rt Route) read(r *Request, w http.ResponseWriter) (err error) {
	names := slices.Sorted(maps.Keys(rt.Query))
	takes := cmp.Or(strings.Join(names, " and "), "nothing")
	problem := "the query takes " + takes + ": each at most once, with a value, encoded"
	r.Query, err = url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return answer.BadRequest(problem)
	}
	for name, values := range r.Query {
		check := rt.Query[name]
		if check == nil || len(values) > 1 || values[0] == "" {
			return answer.BadRequest(fmt.Sprintf("%s; see %.60q", problem, name))
		}
		err = check(values[0])
		if err != nil {
			return err
		}
	}
	r.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Request.Body, rt.MaxBody))
	switch {
	case err == nil:
		return nil
	case rt.MaxBody == 0:
		return answer.BadRequest("the body must be empty; the query takes " + takes)
	default:
		return answer.TooLarge(fmt.Sprintf("the body must arrive whole and have at most %d MiB; "+
			"send it in parts", rt.MaxBody>>20))
	}
}
