package operator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/events/internal/answer"
)

// store answers all the same, or with its error, and notes what it was asked.
type store struct {
	asked   string
	revoked string // when its key was, in JSON; "" if it was not
	err     error
	closed  bool
}

func (s *store) do(answer, what string) ([]byte, error) {
	s.asked = what
	return []byte(answer), s.err
}

func (s *store) IssueKeyJSON(request []byte) (map[string]string, error) {
	_, err := s.do("", "issue "+string(request))
	return map[string]string{"id": "key_1", "key": "secret", "user": "usr_1"}, err
}

func (s *store) Keys() ([]byte, error) {
	return s.do(`[{"id":"key_1","revoked_at":`+cmp.Or(s.revoked, "null")+`}]`, "keys")
}

func (s *store) UserRecords(userID string) (func(io.Writer) error, error) {
	s.asked = "records of " + userID
	return func(w io.Writer) error {
		_, err := io.WriteString(w, "[\n2]\n")
		return err
	}, s.err
}

func (s *store) WriteRecords(w io.Writer) error {
	records, err := s.do("[\n1,\n2]\n", "records")
	if err == nil {
		_, err = w.Write(records)
	}
	return err
}

func (s *store) RevokeKey(id string) error {
	_, err := s.do("", "revoke "+id)
	return err
}

func (s *store) ApplyRecords(records []byte) (map[string]int, map[string][]string, error) {
	_, err := s.do("", "apply "+string(records))
	count := map[string]int{"applied": 3, "unchanged": 1, "user": 2, "delete": 1}
	return count, map[string][]string{"user": {"usr_1", "usr_2"}, "delete": {"evt_1"}}, err
}

func (s *store) Close() error { s.closed = true; return nil }

func everyone(*http.Request) error { return nil }

func noReport(string, ...any) {}

const issued = `{"base_url":"http://example.com/v1","id":"key_1","key":"secret","user":"usr_1"}`

// allRoutes are the routes of the operator's socket.
func allRoutes(s Store, report Report, basePath string) []answer.Route {
	return append(StoreRoutes(s, report, basePath), RevokeRoute(s, report))
}

// fail answers what is no [answer.Error] as the API does.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	e, ok := errors.AsType[*answer.Error](err)
	if !ok {
		header := http.Header{"X-Request-Id": {"id_1"}}
		e = &answer.Error{Status: 500, Message: "something went wrong", Header: header}
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

// deadlineWriter keeps the time by which an answer has to be written.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *deadlineWriter) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

// What an operator asks for may take longer than a server allows for an answer.
func TestRoutesTakeTheirTime(t *testing.T) {
	t.Parallel()
	routes := allRoutes(&store{}, noReport, "")
	h := Handler("/base", routes, everyone, fail)
	for _, route := range routes {
		method, path, _ := strings.Cut(strings.ReplaceAll(route.Operation, "{id}", "key_1"), " ")
		body := ""
		if route.MaxBody > 0 {
			body = "[]"
		}
		w := &deadlineWriter{httptest.NewRecorder(), time.Now()}
		h.ServeHTTP(w, httptest.NewRequest(method, "/base"+path, strings.NewReader(body)))
		if w.Code > 299 || !w.deadline.IsZero() {
			t.Errorf("%s = %d %s, to be written by %v; want success, without a deadline",
				route.Operation, w.Code, w.Body, w.deadline)
		}
	}
}

func TestStoreRoutes(t *testing.T) {
	t.Parallel()
	s := &store{}
	h := Handler("/base", allRoutes(s, noReport, "/v1"), everyone, fail)
	longest := strings.Repeat(" ", 1<<20)
	routes := "there is no such route below /base/; there are GET /keys, POST /keys, GET /records, "
	for _, tt := range []struct {
		request, body string
		status        int
		want          string // the answer, or the beginning of an error's message
		asked         string
	}{
		{"GET /keys", "", 200, `{"data":[{"id":"key_1","revoked_at":null}]}`, "keys"},
		{"GET /keys?", "", 200, `{"data":[{"id":"key_1","revoked_at":null}]}`, "keys"},
		{"POST /keys", `{"name":"Ada"}`, 201, issued, `issue {"name":"Ada"}`},
		{"POST /keys", longest, 201, issued, "issue " + longest},
		{"DELETE /keys/key_1", "", 204, "", "revoke key_1"},
		{"DELETE /keys/.a%20%3Fb", "", 204, "", "revoke .a ?b"},
		{"DELETE /keys/%7Bid%7D", "", 204, "", "revoke {id}"},
		{"GET /records", "", 200, "[\n1,\n2]\n", "records"},
		{"POST /records", "[1, [2]]", 200, `{"applied":3,"unchanged":1}`, "apply [1, [2]]"},

		{"GET ", "", 404, routes, ""},
		{"GET /", "", 404, routes, ""},
		{"GET /key", "", 404, routes, ""},
		{"DELETE /keys/", "", 404, routes, ""},
		{"DELETE /keys/.", "", 404, routes, ""},
		{"DELETE /keys/..", "", 404, routes, ""},
		{"DELETE /keys/a/b", "", 404, routes, ""},
		{"PUT /keys", "", 405, "this method is not allowed on /keys; use GET, HEAD, POST, OPTIONS", ""},
		{"DELETE /records?x", "x", 405, "this method is not allowed on /records; use GET, HEAD, POST, OPTIONS", ""},
		{"PUT /keys/key_1", "", 405, "this method is not allowed on /keys/{id}; use DELETE, OPTIONS", ""},
		{"GET /keys?limit=1", "", 400, `\"limit\" is not a query parameter of GET /keys: it takes none"`, ""},
		{"POST /keys?user=", "{}", 400, `\"user\" is not a query parameter of POST /keys: it takes none"`, ""},
		{"GET /records?%zz", "", 400, "the query string is malformed; ", ""},
		{"GET /keys", "{}", 200, `{"data":[{"id":"key_1","revoked_at":null}]}`, "keys"},
		{"DELETE /keys/key_1", " ", 400, "the body must be empty", ""},
		{"POST /keys", longest + "{", 413, "the body must have at most 1 MiB (1,048,576 bytes)\"", ""},
	} {
		s.asked = ""
		w := send(h, tt.request, tt.body)
		got, header := w.Body.String(), w.Header()
		same := got == tt.want || tt.status >= 400 && strings.Contains(got, `"message":"`+tt.want)
		if w.Code != tt.status || !same || s.asked != tt.asked {
			t.Errorf("%s %.40q = %d %s, asked %.40q; want %d %s, %.40q",
				tt.request, tt.body, w.Code, got, s.asked, tt.status, tt.want, tt.asked)
		}
		_, allow, _ := strings.Cut(tt.want, "; use ")
		if header.Get("Allow") != allow || header.Get("Cache-Control") != "no-store" ||
			got != "" && header.Get("Content-Type") != "application/json" ||
			(header.Get("Connection") == "close") != strings.HasPrefix(tt.want, "the body must") {
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
	routes := allRoutes(s, noReport, "")
	h := Handler("/base", routes, everyone, func(_ http.ResponseWriter, _ *http.Request, err error) {
		failed = err
	})
	for _, request := range []string{
		"POST /keys", "DELETE /keys/key_1", "POST /records",
	} {
		failed = nil
		if w := send(h, request, ""); failed != s.err || w.Body.Len() > 0 {
			t.Errorf("%s failed with %v and answered %q, want %v and nothing", request, failed, w.Body, s.err)
		}
	}
}

// TestReport: each change is a line of the log with the ids of what was changed.
func TestReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ request, want string }{
		{"POST /keys", "issued a key [key key_1 user usr_1]"},
		{"DELETE /keys/key_1", "revoked a key [key key_1]"},
		{"POST /records", "applied records [users 2 user_ids usr_1 usr_2 keys 0 events 0 guests 0 " +
			"deletes 1 delete_ids evt_1 unchanged 1]"},
		{"GET /keys", ""},
		{"GET /records", ""},
	} {
		got := ""
		report := func(message string, args ...any) { got += message + " " + fmt.Sprintf("%v", args) }
		send(Handler("/base", allRoutes(&store{}, report, ""), everyone, fail), tt.request, "")
		if got != tt.want {
			t.Errorf("%s logs %q, want %q", tt.request, got, tt.want)
		}
	}
	got := ""
	report := func(message string, _ ...any) { got += message }
	h := Handler("/base", allRoutes(&store{revoked: `"2027-01-01T00:00:00Z"`}, report, ""), everyone, fail)
	if w := send(h, "DELETE /keys/key_1", ""); w.Code != 204 || got != "" {
		t.Errorf("a second revoke = %d and logs %q, want 204 and nothing", w.Code, got)
	}
}

// TestPanic: a panic is told to fail, once.
func TestPanic(t *testing.T) {
	t.Parallel()
	var failed []string
	oh := Reply(200, func(answer.Request) (any, error) { panic("oh") })
	routes := []answer.Route{{Operation: "GET /x", Handle: oh}}
	h := Handler("/base", routes, everyone, func(_ http.ResponseWriter, _ *http.Request, err error) {
		failed = append(failed, err.Error())
	})
	if send(h, "GET /x", ""); len(failed) != 1 || !strings.HasPrefix(failed[0], "panic: oh\n") {
		t.Errorf("fail was told %q", failed)
	}
}
