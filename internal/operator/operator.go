// Package operator is what the operator of a service does with keys and
// records, the same on an open store and, through a Unix socket, on that of a
// running server: one interface, one handler, one client.
//
//	POST   /keys       {"name","email"} or {"user_id"} -> 201 {"id","key","user","base_url"}
//	GET    /keys       -> {"data":[…]}
//	DELETE /keys/{id}  -> 204, the key is revoked
//	GET    /records    -> an array of records
//	POST   /records    an array of records, all or none -> {"applied":n}
//
// Errors have the form of the API.
package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/answer"
)

// Store is what an operator works on, in raw JSON. It is safe for concurrent use.
type Store interface {
	// IssueKeyJSON makes a key from {"user_id"}, or from {"name","email"} for the
	// user with that email, who is made where there is none. It returns
	// {"id","key","user"}, the key being the secret.
	IssueKeyJSON(request []byte) ([]byte, error)
	// KeysJSON returns an array of keys without secrets.
	KeysJSON() ([]byte, error)
	RevokeKey(id string) error
	// RecordsJSON returns an array of records, ApplyJSON takes one.
	RecordsJSON() ([]byte, error)
	ApplyJSON(records []byte) error
}

// Route is what one method of one path does. Its answer is a JSON text, or empty
// for a 204.
type Route struct {
	Status  int                   // of its success
	MaxBody int64                 // bytes of the body that it takes; 0: none
	User    func(id string) error // checks ?user=ID; nil: it takes no query
	Do      func(Request) (answer []byte, err error)
}

// Request is what a route works on: the {id} of its path, the user that it is
// limited to, or "", and its body.
type Request struct {
	ID, User string
	Body     []byte
}

// Routes are what a handler serves, by path and method.
type Routes map[string]map[string]Route

const (
	maxBody    = 1 << 20  // bytes, of a key
	maxRecords = 64 << 20 // bytes, of an array of records: a whole store may come back
)

// StoreRoutes are the operator's routes. A new key is answered with the base
// URL.
func StoreRoutes(store Store, baseURL string) Routes {
	return Routes{
		"/keys": {
			"GET": {Status: http.StatusOK, Do: func(Request) ([]byte, error) {
				keys, err := store.KeysJSON()
				return fmt.Appendf(nil, `{"data":%s}`, keys), err
			}},
			"POST": {Status: http.StatusCreated, MaxBody: maxBody, Do: func(r Request) ([]byte, error) {
				key, err := store.IssueKeyJSON(r.Body)
				return fmt.Appendf(bytes.TrimSuffix(key, []byte("}")), `,"base_url":%q}`, baseURL), err
			}},
		},
		"/keys/{id}": {
			"DELETE": {Do: func(r Request) ([]byte, error) { return nil, store.RevokeKey(r.ID) }},
		},
		"/records": {
			"GET": {Status: http.StatusOK, Do: func(Request) ([]byte, error) { return store.RecordsJSON() }},
			"POST": {Status: http.StatusOK, MaxBody: maxRecords, Do: func(r Request) ([]byte, error) {
				if err := store.ApplyJSON(r.Body); err != nil {
					return nil, err
				}
				var records []json.RawMessage
				err := json.Unmarshal(r.Body, &records) // the store has taken it: it is an array
				return fmt.Appendf(nil, `{"applied":%d}`, len(records)), err
			}},
		},
	}
}

// Handler serves routes under a path. Fail answers errors: an [answer.Error],
// or what the store said.
func Handler(base string, routes Routes, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer.Begin(w.Header())
		defer func() {
			if p := recover(); p != nil {
				fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		status, body, err := routes.do(w, r, base)
		switch {
		case err != nil:
			fail(w, r, err)
		case body == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			answer.Write(w, status, body)
		}
	})
}

func (routes Routes) do(w http.ResponseWriter, r *http.Request, base string) (status int, body []byte, err error) {
	var request Request
	path := strings.TrimPrefix(r.URL.Path, base)
	i := strings.LastIndexByte(path, '/') + 1
	if pattern := path[:i] + "{id}"; routes[pattern] != nil && strings.Trim(path[i:], ".") != "" {
		path, request.ID = pattern, path[i:]
	}
	methods := routes[path]
	r.Pattern = base + path // for the log
	route, allowed := methods[r.Method]
	query, err := url.ParseQuery(r.URL.RawQuery)
	users := query["user"]
	request.User = strings.Join(users, "")
	switch {
	case methods == nil:
		return 0, nil, answer.NotFound("there is no such route; there are " + strings.Join(slices.Sorted(maps.Keys(routes)), ", "))
	case !allowed:
		return 0, nil, answer.Method(r.Pattern, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	case err != nil || len(query) > len(users) || len(users) > 1 || users != nil && (route.User == nil || request.User == ""):
		return 0, nil, answer.BadRequest("the query must be empty" + route.scope())
	}
	if request.User != "" {
		if err := route.User(request.User); err != nil {
			return 0, nil, err
		}
	}
	request.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, max(route.MaxBody, 1)))
	switch {
	case route.MaxBody == 0 && (err != nil || len(request.Body) > 0):
		return 0, nil, answer.BadRequest("the body must be empty on this route" + route.scope())
	case err != nil:
		return 0, nil, answer.TooLarge(fmt.Sprintf("the body must arrive whole and have at most %d MiB; send it in parts", route.MaxBody>>20))
	}
	// The work may take longer than an answer may; a writer without deadlines needs none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	body, err = route.Do(request)
	return route.Status, body, err
}

// scope is how a request names a user.
func (r Route) scope() string {
	if r.User == nil {
		return ""
	}
	return "; a user is named as ?user=ID"
}

// Dial returns the store of the server that listens on a Unix socket, or an
// error where none answers.
func Dial(socket string) (Store, error) {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return client{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}}, nil
}

// A ServerError is a failure of the running server, not of what it was asked.
type ServerError struct {
	Message string
	ID      string // of the request in the server's log, or ""
}

func (e *ServerError) Error() string {
	if e.ID == "" {
		return "the running server " + e.Message
	}
	return "the running server failed: its log has the cause under the id " + e.ID
}

type client struct{ http *http.Client }

func (c client) do(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, "http://operator"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &ServerError{Message: "did not answer: " + err.Error()}
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	b.Grow(int(max(0, resp.ContentLength)) + bytes.MinRead) // a dump may be large
	_, err = b.ReadFrom(resp.Body)
	body = b.Bytes()
	if err != nil {
		return nil, &ServerError{Message: "broke off its answer: " + err.Error()}
	}
	if resp.StatusCode >= 300 {
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
			return nil, &ServerError{Message: "answered " + resp.Status + ": " + strings.TrimSpace(string(body))}
		}
		if resp.StatusCode >= 500 {
			return nil, &ServerError{e.Error.Message, resp.Header.Get("X-Request-Id")}
		}
		return nil, errors.New(e.Error.Message)
	}
	return body, nil
}

func (c client) IssueKeyJSON(request []byte) ([]byte, error) { return c.do("POST", "/keys", request) }

func (c client) KeysJSON() ([]byte, error) {
	keys, err := c.do("GET", "/keys", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Data json.RawMessage }
	err = json.Unmarshal(keys, &list)
	return list.Data, err
}

func (c client) RevokeKey(id string) error {
	_, err := c.do("DELETE", "/keys/"+url.PathEscape(id), nil)
	return err
}

func (c client) RecordsJSON() ([]byte, error) { return c.do("GET", "/records", nil) }

func (c client) ApplyJSON(records []byte) error {
	_, err := c.do("POST", "/records", records)
	return err
}
