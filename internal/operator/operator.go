// Package operator is what the operator of a service does with keys and
// records: a table of routes over a store, the handler that serves them, and the
// subcommands that a person types (commands.go). A subcommand works on the store of
// the running server, to which it sends requests through a Unix socket (client.go). If no
// server runs, it works on a store that it has opened itself.
//
//	POST   /keys       {"name","email"} or {"user_id"} -> 201 {"id","key","user"}
//	GET    /keys       -> {"data":[…]}
//	DELETE /keys/{id}  -> 204, the key is revoked
//	GET    /records    -> an array of records, with ?user=ID those of one user
//	POST   /records    an array of records, all or none -> {"applied":n,"unchanged":n}
//
// Errors have the form of the API. This package opens no data file and parses no records: both
// are left to what its [Files] and its [Store] are.
package operator

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"

	"example.com/events/internal/answer"
	"example.com/events/internal/strict"
)

// Store is what an operator works on, in raw JSON: the one of this process, or the client of
// a running server. The first is safe for concurrent use.
type Store interface {
	// IssueKeyJSON makes a key from {"user_id"}, or from {"name","email"} for the
	// user with that email, who is made if there is none. It returns the key's id as
	// "id", its secret as "key" and the id of its user as "user".
	IssueKeyJSON(request []byte) (issued map[string]string, err error)
	// Keys returns an array of all keys, without their secrets.
	Keys() ([]byte, error)
	// RevokeKey ends the key with an id, for good.
	RevokeKey(id string) error
	// WriteRecords writes an array of all records. The error is the writer's.
	WriteRecords(w io.Writer) error
	// UserRecords returns what writes the records of one user: the user, its keys, its events and
	// their guests. The error is that there is no such user.
	UserRecords(userID string) (write func(io.Writer) error, err error)
	// ApplyRecords applies an array of records, all or none. It counts them as "applied",
	// those of them that changed nothing as "unchanged", and those of each kind. By kind, it
	// returns the ids of those that changed something: the first ten, and then how many more.
	ApplyRecords(records []byte) (count map[string]int, ids map[string][]string, err error)
	// Close releases the data file, or ends the connection.
	Close() error
}

const maxBody = 1 << 20 // bytes of the request for a key

// Report logs a change that an operator made: a message, and names with their values. It gets
// no secret.
type Report func(message string, args ...any)

// StoreRoutes are the operator's routes. If basePath is not "", a new key is answered with
// the base URL of an API below it, on the host that the request was sent to.
func StoreRoutes(store Store, report Report, basePath string) []answer.Route {
	issueKey := func(r answer.Request) (any, error) {
		issued, err := store.IssueKeyJSON(r.Body)
		if err != nil {
			return nil, err
		}
		report("issued a key", "key", issued["id"], "user", issued["user"])
		if basePath != "" {
			issued["base_url"] = "http://" + r.Host + basePath
		}
		return issued, nil
	}
	listKeys := func(answer.Request) (any, error) {
		keys, err := store.Keys()
		return map[string]json.RawMessage{"data": keys}, err
	}
	applyRecords := func(r answer.Request) (any, error) {
		count, ids, err := store.ApplyRecords(r.Body)
		if err != nil {
			return nil, err
		}
		var line []any
		for _, kind := range []string{"user", "key", "event", "guest", "delete"} {
			line = append(line, kind+"s", count[kind])
			if ids[kind] != nil {
				line = append(line, kind+"_ids", strings.Join(ids[kind], " "))
			}
		}
		report("applied records", append(line, "unchanged", count["unchanged"])...)
		return map[string]int{"applied": count["applied"], "unchanged": count["unchanged"]}, nil
	}
	user := &answer.Param[string]{
		Name: "user",
		Rule: "must be the id of a user, given once; leave it out for all records",
		Read: func(id string) (string, bool) { return id, id != "" },
	}
	writeRecords := func(w http.ResponseWriter, r answer.Request) error {
		answer.NoTimeouts(w)
		write := store.WriteRecords
		if id := user.In(r); id != "" {
			var err error
			write, err = store.UserRecords(id)
			if err != nil {
				return err
			}
		}
		answer.Stream(w, write)
		return nil
	}
	return []answer.Route{
		{Operation: "GET /keys", Handle: Reply(200, listKeys)},
		{Operation: "POST /keys", MaxBody: maxBody, Handle: Reply(201, issueKey)},
		{Operation: "GET /records", Params: []answer.Parameter{user}, Handle: writeRecords},
		{Operation: "POST /records", MaxBody: math.MaxInt64, Handle: Reply(200, applyRecords)},
	}
}

// RevokeRoute is the route that revokes a key of a store.
func RevokeRoute(store Store, report Report) answer.Route {
	revoke := func(r answer.Request) (any, error) {
		id := r.PathValue("id")
		before, err := findKey(store, id)
		if err == nil {
			err = store.RevokeKey(id)
		}
		if err == nil && before["revoked_at"] == "" {
			report("revoked a key", "key", id)
		}
		return nil, err
	}
	return answer.Route{Operation: "DELETE /keys/{id}", Handle: Reply(204, revoke)}
}

// Reply is a handler that answers with a status and what do returns, in the form of
// [strict.Encode]. With the status 204 that is nothing. What do works on may take as long as it
// likes.
func Reply(status int, do func(answer.Request) (any, error)) answer.Handle {
	return func(w http.ResponseWriter, r answer.Request) error {
		answer.NoTimeouts(w)
		result, err := do(r)
		switch {
		case err != nil:
			return err
		case status == 204:
			w.WriteHeader(204)
		default:
			answer.Write(w, status, string(strict.Encode(result)))
		}
		return nil
	}
}

// Handler serves routes under a path, if check has no error for the request. WriteError
// answers errors: those of check, an [answer.Error], or what the store returned.
func Handler(
	base string, routes []answer.Route, check func(*http.Request) error, writeError answer.WriteError,
) http.Handler {
	service := answer.Service{
		Base:       base,
		Routes:     routes,
		Check:      func(r *http.Request) (string, error) { return "", check(r) },
		WriteError: writeError,
	}
	serve := service.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.SetHeaders(w.Header())
		serve.ServeHTTP(w, r)
	})
}
