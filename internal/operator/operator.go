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
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
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

// MaxBody is the most bytes of a request: an array of records is larger than
// what the API takes.
const MaxBody = 64 << 20

// Handler serves store. A key is answered with the base URL, where it is not
// empty. Fail answers the errors of the store.
func Handler(store Store, baseURL string, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	mux := http.NewServeMux()
	// Each path has its methods here, so that ours is the answer to any other.
	handle := func(path string, methods map[string]action) {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			do, ok := methods[r.Method]
			if !ok {
				w.Header().Set("Allow", allow)
				Refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "this method is not allowed on "+path+"; use "+allow)
				return
			}
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
			if err != nil {
				Refuse(w, http.StatusRequestEntityTooLarge, "payload_too_large", "the body must have at most 64 MiB and arrive whole")
				return
			}
			answer, err := do.run(r, body)
			if err != nil {
				fail(w, r, err)
				return
			}
			Reply(w, do.status, answer)
		})
	}
	handle("/keys", map[string]action{
		"POST": {http.StatusCreated, func(_ *http.Request, body []byte) ([]byte, error) {
			key, err := store.IssueKeyJSON(body)
			if err == nil && baseURL != "" {
				key = fmt.Appendf(bytes.TrimSuffix(key, []byte("}")), `,"base_url":%q}`, baseURL)
			}
			return key, err
		}},
		"GET": {http.StatusOK, func(*http.Request, []byte) ([]byte, error) {
			keys, err := store.KeysJSON()
			return fmt.Appendf(nil, `{"data":%s}`, keys), err
		}},
	})
	handle("/keys/{id}", map[string]action{
		"DELETE": {http.StatusNoContent, func(r *http.Request, _ []byte) ([]byte, error) {
			return nil, store.RevokeKey(r.PathValue("id"))
		}},
	})
	handle("/records", map[string]action{
		"GET": {http.StatusOK, func(*http.Request, []byte) ([]byte, error) {
			return store.RecordsJSON()
		}},
		"POST": {http.StatusOK, func(_ *http.Request, body []byte) ([]byte, error) {
			if err := store.ApplyJSON(body); err != nil {
				return nil, err
			}
			var records []json.RawMessage
			err := json.Unmarshal(body, &records) // the store has taken it: it is an array
			return fmt.Appendf(nil, `{"applied":%d}`, len(records)), err
		}},
	})
	unknown := func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, http.StatusNotFound, "not_found", "there is no such endpoint; there are /keys, /keys/{id} and /records")
	}
	mux.HandleFunc("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect it
			unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// action is what one method of one path does, and the status of its success.
type action struct {
	status int
	run    func(r *http.Request, body []byte) ([]byte, error)
}

// Reply answers with JSON, or with nothing where the answer is nil.
func Reply(w http.ResponseWriter, status int, answer []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if answer != nil {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(answer)))
	}
	w.WriteHeader(status)
	w.Write(answer)
}

// Refuse answers in the error form of the API. The words need no escapes.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	Reply(w, status, fmt.Appendf(nil, `{"error":{"code":%q,"message":%q}}`, code, message))
}

// Dial returns the store of the server that listens on a Unix socket, or an
// error where none answers.
func Dial(socket string) (Store, error) {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return client{&http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}}, nil
}

// A ServerError is a failure of the running server, not of what it was asked.
type ServerError struct {
	Message string
	ID      string // of the request in the server's log
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("the running server failed; its log has the cause under id %s: %s", e.ID, e.Message)
}

type client struct{ http *http.Client }

func (c client) do(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, "http://operator"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the running server did not answer: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("the running server broke off its answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(answer, &e) != nil || e.Error.Message == "" {
			return nil, fmt.Errorf("the running server answered %s: %s", resp.Status, strings.TrimSpace(string(answer)))
		}
		if resp.StatusCode >= 500 {
			return nil, &ServerError{e.Error.Message, resp.Header.Get("X-Request-Id")}
		}
		return nil, errors.New(e.Error.Message)
	}
	return answer, nil
}

func (c client) IssueKeyJSON(request []byte) ([]byte, error) { return c.do("POST", "/keys", request) }

func (c client) KeysJSON() ([]byte, error) {
	answer, err := c.do("GET", "/keys", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Data json.RawMessage }
	err = json.Unmarshal(answer, &list)
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
