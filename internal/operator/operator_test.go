package operator_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/events/internal/answer"
	"example.com/events/internal/operator"
)

// store answers all the same, or with its error, and notes what it was asked.
type store struct {
	asked string
	err   error
}

func (s *store) do(answer, what string) ([]byte, error) {
	s.asked = what
	return []byte(answer), s.err
}

func (s *store) IssueKeyJSON(request []byte) ([]byte, error) {
	return s.do(`{"id":"key_1","key":"secret","user":"usr_1"}`, "issue "+string(request))
}
func (s *store) KeysJSON() ([]byte, error)    { return s.do(`[{"id":"key_1"}]`, "keys") }
func (s *store) RecordsJSON() ([]byte, error) { return s.do("[\n1,\n2]\n", "records") }

func (s *store) RevokeKey(id string) error {
	_, err := s.do("", "revoke "+id)
	return err
}

func (s *store) ApplyJSON(records []byte) error {
	_, err := s.do("", "apply "+string(records))
	return err
}

const issued = `{"id":"key_1","key":"secret","user":"usr_1","base_url":"http://example.com"}`

// fail answers what is no [answer.Error] as the API does.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	e, ok := errors.AsType[*answer.Error](err)
	if !ok {
		e = &answer.Error{Status: 500, Code: "server_error", Message: "something went wrong", Header: "X-Request-Id", Value: "id_1"}
	}
	e.Write(w)
}

// send sends "METHOD /path" below /base.
func send(h http.Handler, request, body string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/base"+path, strings.NewReader(body)))
	return w
}

func TestStoreRoutes(t *testing.T) {
	t.Parallel()
	s := &store{}
	base := func(host string) string { return "http://" + host }
	h := operator.Handler("/base", operator.StoreRoutes(s, base), fail)
	longest := strings.Repeat(" ", 1<<20)
	const routes = "there is no such route; there are /keys, /keys/{id}, /records"
	for _, tt := range []struct {
		request, body string
		status        int
		want          string // the answer, or the beginning of an error's message
		asked         string
	}{
		{"GET /keys", "", 200, `{"data":[{"id":"key_1"}]}`, "keys"},
		{"GET /keys?", "", 200, `{"data":[{"id":"key_1"}]}`, "keys"},
		{"POST /keys", `{"name":"Ada"}`, 201, issued, `issue {"name":"Ada"}`},
		{"POST /keys", longest, 201, issued, "issue " + longest},
		{"DELETE /keys/key_1", "", 204, "", "revoke key_1"},
		{"DELETE /keys/.a%20%3Fb", "", 204, "", "revoke .a ?b"},
		{"DELETE /keys/%7Bid%7D", "", 204, "", "revoke {id}"},
		{"GET /records", "", 200, "[\n1,\n2]\n", "records"},
		{"POST /records", "[1, [2]]", 200, `{"applied":2}`, "apply [1, [2]]"},
		{"POST /records", "[]", 200, `{"applied":0}`, "apply []"},

		{"GET ", "", 404, routes, ""},
		{"GET /", "", 404, routes, ""},
		{"GET /key", "", 404, routes, ""},
		{"DELETE /keys/", "", 404, routes, ""},
		{"DELETE /keys/.", "", 404, routes, ""},
		{"DELETE /keys/..", "", 404, routes, ""},
		{"DELETE /keys/a/b", "", 404, routes, ""},
		{"PUT /keys", "", 405, "this method is not allowed on /base/keys; use GET, POST", ""},
		{"DELETE /records?x", "x", 405, "this method is not allowed on /base/records; use GET, POST", ""},
		{"GET /keys/key_1", "", 405, "this method is not allowed on /base/keys/{id}; use DELETE", ""},
		{"GET /keys?limit=1", "", 400, `the query must be empty"`, ""},
		{"GET /keys?user=usr_1", "", 400, `the query must be empty"`, ""},
		{"POST /keys?user=", "{}", 400, `the query must be empty"`, ""},
		{"GET /records?%zz", "", 400, `the query is malformed"`, ""},
		{"GET /keys", "{}", 400, `the body must be empty on this route"`, ""},
		{"DELETE /keys/key_1", " ", 400, `the body must be empty on this route"`, ""},
		{"POST /keys", longest + "{", 413, "the body must arrive whole and have at most 1 MiB", ""},
	} {
		s.asked = ""
		w := send(h, tt.request, tt.body)
		got, header := w.Body.String(), w.Header()
		if w.Code != tt.status || got != tt.want && (tt.status < 400 || !strings.Contains(got, `"message":"`+tt.want)) || s.asked != tt.asked {
			t.Errorf("%s %.40q = %d %s, asked %.40q; want %d %s, %.40q", tt.request, tt.body, w.Code, got, s.asked, tt.status, tt.want, tt.asked)
		}
		if _, allow, _ := strings.Cut(tt.want, "; use "); header.Get("Allow") != allow || header.Get("Cache-Control") != "no-store" ||
			got != "" && header.Get("Content-Type") != "application/json" || (header.Get("Connection") == "close") != (tt.status == 413) {
			t.Errorf("%s = %d with %v, want Allow %q", tt.request, w.Code, header, allow)
		}
	}
}

// TestErrors: what the store says comes to fail as it is, and nothing else is
// answered.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := &store{err: errors.New("the disk is full")}
	var failed error
	h := operator.Handler("/base", operator.StoreRoutes(s, func(host string) string { return "http://" + host }), func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err })
	for _, request := range []string{"GET /keys", "POST /keys", "DELETE /keys/key_1", "GET /records", "POST /records"} {
		failed = nil
		if w := send(h, request, ""); failed != s.err || w.Body.Len() > 0 {
			t.Errorf("%s failed with %v and answered %q, want %v and nothing", request, failed, w.Body, s.err)
		}
	}
}

// TestPanic: a panic is told to fail, once.
func TestPanic(t *testing.T) {
	t.Parallel()
	var failed []string
	routes := operator.Routes{"/x": {"GET": {Do: func(operator.Request) ([]byte, error) { panic("oh") }}}}
	h := operator.Handler("/base", routes, func(_ http.ResponseWriter, _ *http.Request, err error) { failed = append(failed, err.Error()) })
	if send(h, "GET /x", ""); len(failed) != 1 || !strings.HasPrefix(failed[0], "panic: oh\n") {
		t.Errorf("fail was told %q", failed)
	}
}

// TestQuery: a route has the query parameters that it names, and checks each.
func TestQuery(t *testing.T) {
	t.Parallel()
	user := func(id string) error {
		if id == "usr_1" {
			return nil
		}
		return answer.NotFound("user " + id + " is not known")
	}
	do := func(r operator.Request) ([]byte, error) {
		return fmt.Appendf(nil, "%s %s %s", r.ID, r.Query.Get("user"), r.Body), nil
	}
	query := map[string]func(string) error{"user": user, "any": func(string) error { return nil }}
	h := operator.Handler("/base", operator.Routes{
		"/faults":      {"GET": {Status: 202, Query: query, Do: do}},
		"/faults/{id}": {"PUT": {Status: 203, Query: query, MaxBody: 2, Do: do}},
	}, fail)
	const scope = "; the query takes any and user, each once and not empty"
	for _, tt := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"GET /faults", "", 202, "  "},
		{"GET /faults?user=usr_1", "", 202, " usr_1 "},
		{"PUT /faults/1?user=usr%5f1", "{}", 203, "1 usr_1 {}"},
		{"GET /faults?any=x&user=usr_1", "", 202, " usr_1 "},
		{"GET /faults?%zz", "", 400, "the query is malformed" + scope},
		{"GET /faults?user=", "", 400, "the query must be empty" + scope},
		{"GET /faults?user", "", 400, "the query must be empty" + scope},
		{"GET /faults?user=usr_1&user=usr_1", "", 400, "the query must be empty" + scope},
		{"GET /faults?user=usr_1&user=", "", 400, "the query must be empty" + scope},
		{"GET /faults?user=usr_1&x=1", "", 400, "the query must be empty" + scope},
		{"GET /faults?x=1", "", 400, "the query must be empty" + scope},
		{"GET /faults?user=usr_2", "{}", 404, "user usr_2 is not known"},
		{"GET /faults", `{"user":"usr_1"}`, 400, "the body must be empty on this route" + scope},
		{"PUT /faults/1", "{ }", 413, "the body must arrive whole"},
	} {
		if w := send(h, tt.request, tt.body); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s = %d %q, want %d %q", tt.request, tt.body, w.Code, w.Body, tt.status, tt.want)
		}
	}
}

// shortDir is a folder whose sockets have a path that is short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("neither sockets nor symbolic links")
	}
	dir, err := os.MkdirTemp("", "o")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dial returns the store behind a handler on a socket.
func dial(t *testing.T, h http.Handler) operator.Store {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	socket := filepath.Join(shortDir(t), "s")
	var err error
	if srv.Listener, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	client, err := operator.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// methods are the calls of a store, and what it is asked by them.
var methods = []struct {
	call        func(operator.Store) ([]byte, error)
	asked, want string
}{
	{func(s operator.Store) ([]byte, error) { return s.IssueKeyJSON([]byte(`{"name":"Ada"}`)) }, `issue {"name":"Ada"}`, issued},
	{operator.Store.KeysJSON, "keys", `[{"id":"key_1"}]`},
	{func(s operator.Store) ([]byte, error) { return nil, s.RevokeKey("key 1?%2F#") }, "revoke key 1?%2F#", ""},
	{operator.Store.RecordsJSON, "records", "[\n1,\n2]\n"},
	{func(s operator.Store) ([]byte, error) { return nil, s.ApplyJSON([]byte("[1]")) }, "apply [1]", ""},
}

func TestClient(t *testing.T) {
	t.Parallel()
	s := &store{}
	base := func(string) string { return "http://example.com" } // whatever the host is on a socket
	client := dial(t, operator.Handler("", operator.StoreRoutes(s, base), fail))
	for _, m := range methods {
		if got, err := m.call(client); string(got) != m.want || s.asked != m.asked || err != nil {
			t.Errorf("asked %q, answered %q, %v; want %q, %q", s.asked, got, err, m.asked, m.want)
		}
	}
	for _, err := range []error{answer.NotFound(`key "1": not found`), errors.New("the disk is full")} {
		s.err = err
		_, refused := errors.AsType[*answer.Error](err)
		for _, m := range methods {
			got, err := m.call(client)
			failed, isFailure := errors.AsType[*operator.ServerError](err)
			switch {
			case got != nil || isFailure == refused:
				t.Errorf("%s = %q, %v where the store says %v", m.asked, got, err, s.err)
			case refused && err.Error() != s.err.Error():
				t.Errorf("%s = %v, want %v", m.asked, err, s.err)
			case isFailure && (*failed != operator.ServerError{Message: "something went wrong", ID: "id_1"} || !strings.Contains(err.Error(), "under the id id_1")):
				t.Errorf("%s = %+v", m.asked, failed)
			}
		}
	}
}

// TestClientOfOthers: what is not the operator's handler is told.
func TestClientOfOthers(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]http.HandlerFunc{
		"the running server answered 502 Bad Gateway: no upstream": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no upstream", http.StatusBadGateway) },
		"the running server answered 404 Not Found: {}":            func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", 404) },
		"the running server did not answer: ":                      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"the running server broke off its answer: ": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "[")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		client := dial(t, h)
		for _, m := range methods {
			if got, err := m.call(client); got != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s = %q, %v, want %s", m.asked, got, err, want)
			}
		}
	}
}

func TestDialNobody(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	dead, err := net.Listen("unix", filepath.Join(dir, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	for _, name := range []string{"dead", "none"} {
		if client, err := operator.Dial(filepath.Join(dir, name)); client != nil || err == nil {
			t.Errorf("Dial(%s) = %v, %v, want an error", name, client, err)
		}
	}
}
