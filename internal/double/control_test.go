package double_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/answer"
	"example.com/events/internal/double"
)

func noReport(string, ...any) {}

// besideReset is a store in which something else happens right before and right after
// the change that a reset makes.
type besideReset struct {
	double.Server
	do func()
}

func (s *besideReset) Replace(records []byte, then func()) error {
	s.do()
	err := s.Server.Replace(records, then)
	s.do()
	return err
}

const launch = `{"title":"Launch","start_at":"2030-03-01T18:00:00Z","end_at":"2030-03-01T20:00:00Z"}`

// A create that comes with a reset is done before it, and deleted, or after it, with the clock and
// the counters as they were at the start.
func TestCreateBesideReset(t *testing.T) {
	t.Parallel()
	beside := &besideReset{}
	s := newService(t, beside)
	create := func() {
		if status := s.call(s.key, "POST /events/create", launch); status != 201 {
			t.Errorf("a create beside a reset = %d", status)
		}
	}
	create()
	beside.do = create
	for range 2 {
		if err := s.double.SetClock(nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.double.Reset(); err != nil {
			t.Fatal(err)
		}
		got := s.steer("GET /records", "").Body.String()
		if n := strings.Count(got, `{"event":`); n != 1 {
			t.Errorf("after a reset between two creates there are %d events, want the second", n)
		}
		if !strings.Contains(got, `"evt_owner_000001"`) {
			t.Errorf("after a reset, the first event is not the first of its host: %s", got)
		}
		if at := `"created_at":"2030-01-01T00:00:00Z"`; strings.Count(got, at) != strings.Count(got, "created_at") {
			t.Errorf("after a reset, not everything is from %s: %s", at, got)
		}
	}
}

// A reset takes everything back to the start, and releases requests that a fault delays.
func TestReset(t *testing.T) {
	t.Parallel()
	s := newService(t)
	start := s.steer("GET /records", "").Body.String()
	work := func() (transcript string) {
		transcript = s.steer("POST /keys", `{"name":"Grace"}`).Body.String()
		s.call(s.key, "POST /events/create", launch)
		s.steer("POST /records", `[{"user":{"id":"usr_ada","name":"Changed"}}]`)
		return transcript + s.steer("GET /records", "").Body.String()
	}
	first := work()
	s.steer("PUT /clock", `{"advance":"1h"}`)
	s.steer("POST /faults", `{"operation":"GET /users/me","delay":"1h"}`)
	held := make(chan int)
	go func() { held <- s.call(s.key, "GET /users/me", "") }()
	s.steer("GET /requests?operation=GET+/users/me&count=1&wait=60s", "")
	if w := s.steer("POST /reset", ""); w.Code != 204 {
		t.Fatalf("POST /reset = %d %s", w.Code, w.Body)
	}
	if got := <-held; got != 200 {
		t.Errorf("a request that was delayed when a reset came = %d, want 200", got)
	}
	for request, want := range map[string]string{
		"GET /records":  start,
		"GET /faults":   "[]",
		"GET /requests": `{"data":[],"timed_out":false}`,
		"GET /clock":    `{"now":"2030-01-01T00:00:00Z"}`,
	} {
		if got := s.steer(request, "").Body.String(); got != want {
			t.Errorf("after a reset, %s = %s, want %s", request, got, want)
		}
	}
	if again := work(); again != first {
		t.Errorf("after a reset:\n%s\nwant\n%s", again, first)
	}
}

// service is a double with its control API, without a port.
type service struct {
	t       testing.TB
	server  double.Server
	double  *double.Double
	api     http.Handler
	control http.Handler
	key     string
}

// issue makes a key for a user.
func issue(t testing.TB, store *events.Store, user string) (key string) {
	t.Helper()
	key, _, err := store.IssueKey(user)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newService starts a double. If beside is given, it is put between it and its server.
func newService(t testing.TB, beside ...*besideReset) *service {
	d := double.New(events.BasePath)
	store := events.NewStore(&events.Config{Now: d.Now, NewID: d.NewID})
	server := events.New(store).(double.Server)
	for _, b := range beside {
		b.Server, server = server, b
	}
	var key string
	err := d.Begin(server, func() (err error) {
		err = store.ApplyJSON([]byte(`[{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com"}},{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}}]`))
		key = issue(t, store, "usr_owner")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fail := func(w http.ResponseWriter, _ *http.Request, err error) {
		if e, ok := errors.AsType[*answer.Error](err); ok {
			e.Write(w)
			return
		}
		http.Error(w, fmt.Sprintf(`{"error":{"code":"store","message":%q}}`, err), 400)
	}
	return &service{t, server, d, d.Handler(server), d.Control("token", noReport, fail), key}
}

// steer sends "METHOD /path" with a body to the control API.
func (s *service) steer(request, body string, headers ...string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, double.ControlPath+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer token")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	s.control.ServeHTTP(w, r)
	if h := w.Result().Header; h.Get("Cache-Control") != "no-store" ||
		h.Get("Access-Control-Allow-Origin") != "" {
		s.t.Errorf("%s: headers %v", request, h)
	}
	if w.Code != http.StatusNoContent && !json.Valid(w.Body.Bytes()) {
		s.t.Errorf("%s: not JSON: %s", request, w.Body)
	}
	return w
}

// call is the status of a request to the API.
func (s *service) call(key, request, body string) (status int) {
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, events.BasePath+path, strings.NewReader(body))
	r.Header.Set("x-service-api-key", key)
	w := httptest.NewRecorder()
	defer func() {
		if recover() == http.ErrAbortHandler {
			status = 0
		}
	}()
	s.api.ServeHTTP(w, r)
	return w.Code
}

// A page in a browser may use the control API only if it is the inspector, at an address that
// nobody else can let point to this machine.
func TestControlOrigin(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, tt := range []struct {
		host    string
		origins []string
		status  int
	}{
		{"events.example", nil, 200}, // no browser
		{"127.0.0.1:8080", []string{"http://127.0.0.1:8080"}, 200},
		{"[::1]:8080", []string{"http://[::1]:8080"}, 200},
		{"localhost", []string{"http://localhost"}, 200},
		{"double:8080", []string{"http://double:8080"}, 200},
		{"127.0.0.1:8080", []string{"http://127.0.0.1:8081"}, 403},
		{"127.0.0.1:8080", []string{"https://127.0.0.1:8080"}, 403},
		{"127.0.0.1:8080", []string{"http://events.example"}, 403},
		{"127.0.0.1:8080", []string{"http://localhost:8080"}, 403},
		{"127.0.0.1:8080", []string{"null"}, 403},
		{"127.0.0.1:8080", []string{""}, 403},
		{"127.0.0.1:8080", []string{}, 403},
		{"127.0.0.1:8080", []string{"http://127.0.0.1:8080", "http://events.example"}, 403},
		{"events.example:8080", []string{"http://events.example:8080"}, 403},
		{"127.0.0.1.example", []string{"http://127.0.0.1.example"}, 403},
		{"localhost.example", []string{"http://localhost.example"}, 403},
		{"localhost.", []string{"http://localhost."}, 403},
		{"[events.example]", []string{"http://[events.example]"}, 403},
	} {
		r := httptest.NewRequest("GET", double.ControlPath+"/clock", nil)
		r.Host = tt.host
		r.Header.Set("Authorization", "Bearer token")
		if tt.origins != nil {
			r.Header["Origin"] = tt.origins
		}
		w := httptest.NewRecorder()
		s.control.ServeHTTP(w, r)
		if w.Code != tt.status || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("with Host %s and Origin %q: %d %s, want %d", tt.host, tt.origins, w.Code, w.Body, tt.status)
		}
	}
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	operations := strings.Join(s.server.Operations(), ", ")
	for _, tt := range []struct {
		request, body, header string
		status                int
		want                  string
	}{
		{"GET /clock", "", "Authorization: ", 401, "unauthorized"},
		{"GET /clock", "", "Authorization: Bearer other", 401, "unauthorized"},
		{"GET /clock", "", "Authorization: Basic token", 401, "unauthorized"},
		{"GET /clock", "", "Authorization: token", 401, "unauthorized"},
		{"GET /nothing", "", "Authorization: ", 401, "unauthorized"},
		{"GET /clock", "", "Origin: null", 403, "forbidden"},
		{"OPTIONS /clock", "", "Origin: http://localhost", 403, "forbidden"},
		{"GET /nothing", "", "", 404, "/requests"},
		{"GET ", "", "", 404, "not_found"},
		{"GET /", "", "", 404, "not_found"},
		{"GET /clock/", "", "", 404, "not_found"},
		{"DELETE /keys/key_1", "", "", 404, "not_found"},
		{"POST /clock", "", "", 405, "use GET, HEAD, PUT, OPTIONS"},
		{"GET /reset", "", "", 405, "use POST, OPTIONS"},
		{"PATCH /faults", "", "", 405, "use GET, HEAD, PUT, POST, DELETE, OPTIONS"},
		{"GET /keys?user=usr_ada", "", "", 400, "query"},
		{"GET /records?user=usr_ada", "", "", 400, "query"},
		{"POST /reset?user=usr_ada", "", "", 400, "query"},
		{"GET /faults?user=usr_ada", "", "", 400, "query"},
		{"DELETE /requests?user=usr_ada", "", "", 400, "query"},
		{"GET /requests?user=", "", "", 400, "user must be the id of a user, given once"},
		{"GET /requests?user=usr_ada&user=usr_owner", "", "", 400, "user must be the id of a user, given once"},
		{"GET /requests?user=%zz", "", "", 400, "query"},
		{"GET /requests?user=ada", "", "", 404, "is not known"},
		{"GET /requests?operation=GET+/event", "", "", 400,
			`operation \"GET /event\" is not known: it must be one of ` + operations},
		{"GET /requests?operation=", "", "", 400, "operation must be an operation of the API"},
		{"POST /reset", `{"user":"usr_ada"}`, "", 400, "must be empty"},
		{"DELETE /faults", `[]`, "", 400, "must be empty"},
		{"PUT /clock", "", "", 400, "the body is empty"},
		{"PUT /clock", `{}`, "", 400, "one member"},
		{"PUT /clock", `[]`, "", 400, "must be a JSON object"},
		{"PUT /clock", `{"now":"2031-01-01T00:00:00Z","advance":"1h"}`, "", 400, "one member"},
		{"PUT /clock", `{"now":"2031-01-01"}`, "", 400, "now must be"},
		{"PUT /clock", `{"now":"2029-01-01T00:00:00Z"}`, "", 400, "goes forward only"},
		{"PUT /clock", `{"advance":"-1h"}`, "", 400, "goes forward only"},
		{"PUT /clock", `{"now":"0001-01-01T00:00:00Z"}`, "", 400, "goes forward only"},
		{"PUT /clock", `{"now":null}`, "", 400, "one member"},
		{"GET /requests?user=owner@double.example", "", "", 404, "is not known"},
		{"PUT /clock", `{"advance":3600}`, "", 400, "advance must be a string"},
		{"PUT /clock", `{"advance":"1 hour"}`, "", 400, "advance must be a string"},
		{"PUT /clock", `{"advence":"1h"}`, "", 400, "advence is not known"},
		{"PUT /faults", `{}`, "", 400, "JSON array"},
		{"PUT /faults", `[{}]`, "", 400, "fault 1: operation is required"},
		{"PUT /faults", `[{"operation":"GET /events","status":500},{"operation":"GET /event","status":500}]`,
			"", 400, `fault 2: operation \"GET /event\" is not known: it must be one of ` + operations},
		{"PUT /faults", `[{"operation":"GET /events","status":500,"kind":1,"drop":"yes"}]`, "", 400,
			"drop must be true or false, not a string; kind is not known"},
		{"PUT /faults", `[{"operation":"GET /events","delay":200}]`, "", 400, "delay must be a string"},
		{"PUT /faults", `[{"operation":"GET /events","header":{"X-A":"b"}}]`, "", 400,
			`fault 1: header must have a list of strings for each name: {\"X-A\":[\"b\"]}`},
		{"PUT /faults", `[{"operation":"GET /events","patch":"{}"}]`, "", 400, "patch must be a JSON object"},
		{"PUT /faults", `[{"operation":"GET /events","cut":true,"path":"/event"}]`, "", 400,
			`path \"/event\" must be of the form /events, without /api/public/v1`},
		{"PUT /faults", `[1]`, "", 400, "fault 1: must be a JSON object, not a number"},
		{"POST /faults", `{`, "", 400, "not a JSON object: line 1"},
		{"POST /faults", `{"operation":"GET /events","status":99}`, "", 400, "status must be from 400 to 599"},
		{"POST /faults", `{"operation":"GET /events","status":500,"user":"usr_nobody"}`, "", 400, "is not known"},
		{"DELETE /faults/flt_1", "", "", 404, `fault \"flt_1\" is not set`},
		{"PUT /faults", strings.Repeat(" ", 1<<20) + "[]", "", 413, "payload_too_large"},
		{"POST /keys", `{"name":""}`, "", 400, "name is required"},
		{"POST /keys", `{}`, "", 400, "name is required"},
		{"POST /keys", `{"name":1}`, "", 400, "name must be a string"},
		{"POST /keys", `{"name":"A","email":"a@example.com"}`, "", 400, "email is not known"},
		{"POST /keys", `{`, "", 400, "line 1"},
		{"POST /records", `[{"user":{}}]`, "", 400, "record 1: user"},
	} {
		w := s.steer(tt.request, tt.body, tt.header)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) ||
			!strings.HasPrefix(w.Body.String(), `{"error":{"code":`) {
			t.Errorf("%s %.80s (%s) = %d %s, want %d with %q", tt.request, tt.body, tt.header, w.Code, w.Body,
				tt.status, tt.want)
		}
		if allow := w.Header().Get("Allow"); (allow != "") != (tt.status == 405) ||
			(w.Header().Get("WWW-Authenticate") != "") != (tt.status == 401) {
			t.Errorf("%s = %d %v", tt.request, w.Code, w.Header())
		}
	}
	if got := s.steer("GET /faults", "").Body.String(); got != "[]" {
		t.Errorf("a refused list was set: %s", got)
	}
}

// No array removes no fault.
func TestPutNoFaults(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.steer("POST /faults", `{"operation":"GET /events","status":500}`)
	w := s.steer("PUT /faults", "null")
	const want = "faults must be a JSON array of objects; [] removes all"
	if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("PUT /faults of null = %d %s, want 400 with %q", w.Code, w.Body, want)
	}
	if got := s.steer("GET /faults", "").Body.String(); !strings.Contains(got, `"status":500`) {
		t.Errorf("after a PUT of null: %s", got)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	s := newService(t)
	adaFault := faultText(`"id":"flt_3"`, `"operation":"GET /users/me"`, `"status":429`, `"user":"usr_ada"`)
	for i, tt := range []struct {
		request, body string // of the control API; of the API where it begins with a key
		status        int
		want          string // the answer, with … for anything
	}{
		{"POST /keys", `{"name":"Grace"}`, 201,
			`{"base_url":"http://example.com/api/public/v1","id":"key_grace_000001","key":"svc_live_…","user":"usr_grace"}`},
		{"POST /keys", `{"name":"Grace"}`, 201,
			`{"base_url":"http://example.com/api/public/v1","id":"key_grace_2_000001",…"user":"usr_grace_2"}`},
		{"POST /keys", `{"user_id":"usr_ada"}`, 201, `{"base_url":…,"id":"key_ada_000002",…}`},
		{"GET /keys", "", 200, `{"data":[…]}`},
		{"GET /records", "", 200, "[\n{\"user\":{\"id\":\"usr_ada\",…]\n"},
		{"POST /records",
			`[{"user":{"id":"usr_ada","name":"Ada L"}},{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com"}}]`, 200, `{"applied":2,"unchanged":0}`},
		{"POST /records",
			`[{"user":{"id":"usr_ada","name":"Ada L"}},{"user":{"id":"usr_bob","name":"Bob B"}},{"delete":{"event":"evt_none"}}]`, 200, `{"applied":3,"unchanged":2}`},
		{"PUT /faults",
			`[{"operation":"POST /events/create","status":500,"times":2,"delay":"1ms","drop":false,"lose":false,"user":"usr_ada"},{"operation":"POST /events/create","drop":true,"times":1,"status":null}]`, 200,
			"[" + faultText(`"id":"flt_1"`, `"operation":"POST /events/create"`, `"status":500`, `"times":2`,
				`"user":"usr_ada"`, `"delay":"1ms"`) + "," +
				faultText(`"id":"flt_2"`, `"operation":"POST /events/create"`, `"drop":true`, `"times":1`) + "]"},
		{"svc_live_ada POST /events/create", launch, 500, ""},
		{"owner POST /events/create", launch, 0, ""},
		{"owner POST /events/create", launch, 201, ""},
		{"GET /faults", "", 200, `[…"user":"usr_ada",…"hits":1,…"user":"",…"hits":1,…]`},
		{"PUT /faults", `[{"operation":"GET /users/me","status":429,"user":"usr_ada"}]`, 200, "[" + adaFault + "]"},
		{"owner GET /users/me", "", 200, ""},
		{"svc_live_ada GET /users/me", "", 429, ""},
		{"DELETE /faults", "", 204, ""},
		{"svc_live_ada GET /users/me", "", 200, ""},
		{"GET /requests?user=usr_owner", "", 200,
			`{"data":[{"seq":2,"time":"2030-01-01T00:00:00Z","received":"20…Z","method":"POST","path":"/api/public/v1/events/create","query":"","header":{…},"operation":"POST /events/create","status":0,"user":"usr_owner","body":"{\"title\":…}","fault":"drop","error":""},{…"status":201,"user":"usr_owner",…"fault":"","error":""},{…}],"timed_out":false}`},
		{"GET /requests?operation=GET%20/users/me&user=usr_ada", "", 200,
			`{"data":[{…"operation":"GET /users/me","status":429,"user":"usr_ada","body":"","fault":"status 429","error":"nothing was done, as a test wants it"},{…"status":200,…"fault":"","error":""}],"timed_out":false}`},
		{"GET /requests?operation=GET+/openapi", "", 200, `{"data":[],"timed_out":false}`},
		{"DELETE /requests", "", 204, ""},
		{"GET /requests", "", 200, `{"data":[],"timed_out":false}`},
		{"PUT /faults",
			`[{"operation":"GET /users/me","status":503,"body":"<html>","after":1,"delay":"1ms"}]`, 200,
			`[{"id":"flt_4","operation":"GET /users/me","status":503,"body":"<html>",…"after":1,…"delay":"1ms"}]`},
		{"owner GET /users/me", "", 200, ""},
		{"owner GET /users/me", "", 503, ""},
		{"GET /requests", "", 200, `{"data":[{…"fault":"",…},{…"fault":"status 503, delay 1ms","error":""}],…}`},
		{"PUT /faults", "[]", 200, "[]"},
		{"PUT /clock", `{"advance":"1h30m"}`, 200, `{"now":"2030-01-01T01:30:00Z"}`},
		{"PUT /clock", `{"advance":"0s"}`, 200, `{"now":"2030-01-01T01:30:00Z"}`},
		{"PUT /clock", `{"now":"2400-01-01T00:00:00.5+01:00"}`, 200, `{"now":"2399-12-31T23:00:00.5Z"}`},
		{"GET /clock", "", 200, `{"now":"2399-12-31T23:00:00.5Z"}`},
		{"svc_live_ada POST /events/create", launch, 201, ""},
		{"POST /reset", "", 204, ""},
		{"owner GET /events/evt_owner_000001", "", 404, ""},
	} {
		if key, request, _ := strings.Cut(tt.request, " "); strings.HasPrefix(request, "GET ") ||
			strings.HasPrefix(request, "POST ") {
			if key == "owner" {
				key = s.key
			}
			if got := s.call(key, request, tt.body); got != tt.status {
				t.Fatalf("step %d: %s = %d, want %d", i, tt.request, got, tt.status)
			}
			continue
		}
		w := s.steer(tt.request, tt.body)
		want := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(tt.want), "…", ".*") + "$")
		if w.Code != tt.status || !want.MatchString(w.Body.String()) {
			t.Fatalf("step %d: %s %s = %d %s, want %d %s", i, tt.request, tt.body, w.Code, w.Body, tt.status,
				tt.want)
		}
	}
}

// faultText is a fault as the control API has it: one without any member but these.
func faultText(members ...string) string {
	text := `{"id":"","operation":"","status":0,"body":"","header":null,"drop":false,"lose":false,"cut":false,` +
		`"after":0,"times":0,"user":"","path":"","patch":null,` +
		`"hits":0,"delay":"0s"}`
	for _, m := range members {
		name, _, _ := strings.Cut(m, ":")
		text = regexp.MustCompile(name+`:[^,}]*`).ReplaceAllLiteralString(text, m)
	}
	return text
}

// A single fault is added and removed without the others, and what GET returns can be put
// back.
func TestControlFaults(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const full = `{"operation":"GET /events/{id}","status":200,"body":"[]","header":{"X-A":["b","c"],"Date":[]},` +
		`"delay":"1ms","after":1,"times":2,"user":"usr_ada","path":"/events/evt_7"}`
	const patch = `{"operation":"GET /events","patch":{"data":{"a":[1.50,null,{"b":"<"}]}},"cut":null,"id":"mine","hits":7}`
	added := s.steer("POST /faults", full)
	want := faultText(`"id":"flt_1"`, `"operation":"GET /events/{id}"`, `"status":200`, `"body":"[]"`,
		`"header":{"Date":[],"X-A":["b","c"]}`, `"after":1`, `"times":2`, `"user":"usr_ada"`,
		`"path":"/events/evt_7"`, `"delay":"1ms"`)
	if added.Code != 201 || added.Body.String() != want {
		t.Errorf("POST /faults = %d %s, want %s", added.Code, added.Body, want)
	}
	added = s.steer("POST /faults", patch)
	if got := added.Body.String(); !strings.Contains(got, `{"id":"flt_2",`) ||
		!strings.Contains(got, `"patch":{"data":{"a":[1.50,null,{"b":"<"}]}},`) || !strings.Contains(got, `"hits":0,`) {
		t.Errorf("POST /faults = %d %s", added.Code, got)
	}
	s.call(s.key, "GET /events", "")
	before := s.steer("GET /faults", "").Body.String()
	if !strings.Contains(before, `"hits":1,`) {
		t.Errorf("GET /faults: %s", before)
	}
	put := s.steer("PUT /faults", before)
	after := strings.NewReplacer("flt_1", "flt_3", "flt_2", "flt_4", `"hits":1`, `"hits":0`).Replace(before)
	if put.Code != 200 || put.Body.String() != after {
		t.Errorf("PUT of what GET returned = %d %s, want %s", put.Code, put.Body, after)
	}
	for _, tt := range []struct {
		request string
		status  int
	}{{"DELETE /faults/flt_2", 404}, {"DELETE /faults/flt_3", 204}, {"DELETE /faults/flt_3", 404}} {
		if w := s.steer(tt.request, ""); w.Code != tt.status {
			t.Errorf("%s = %d %s, want %d", tt.request, w.Code, w.Body, tt.status)
		}
	}
	if got := s.steer("GET /faults", "").Body.String(); !strings.HasPrefix(got, `[{"id":"flt_4",`) ||
		strings.Contains(got, "flt_3") {
		t.Errorf("after DELETE of flt_3: %s", got)
	}
	s.steer("POST /reset", "")
	if got := s.steer("POST /faults", patch).Body.String(); !strings.Contains(got, `{"id":"flt_5",`) {
		t.Errorf("after a reset, an id comes again: %s", got)
	}
}

// A reset is one step: no request that came before it is in the journal after it.
func TestResetBesideRequests(t *testing.T) {
	t.Parallel()
	s := newService(t)
	stop := make(chan struct{})
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.call("svc_live_ada", "GET /users/me", "")
				}
			}
		})
	}
	for range 300 {
		if err := s.double.Reset(); err != nil {
			t.Fatal(err)
		}
		for i, r := range s.double.Requests(t.Context(), double.Query{}).Requests {
			if r.Seq != i+1 {
				t.Errorf("after a reset, request %d of the journal is number %d", i+1, r.Seq)
				break
			}
		}
	}
	close(stop)
	calling.Wait()
}

// GET /requests waits for as many as it is asked for, and no longer than it is told to.
func TestWaitForRequests(t *testing.T) {
	t.Parallel()
	s := newService(t)
	requests := func(query string) (n int, found struct {
		Data []struct {
			Seq, Status int
			Fault       string
		}
		TimedOut *bool `json:"timed_out"`
	}) {
		t.Helper()
		w := s.steer("GET /requests"+query, "")
		err := json.Unmarshal(w.Body.Bytes(), &found)
		if err != nil || w.Code != 200 || found.TimedOut == nil {
			t.Fatalf("GET /requests%s = %d %s", query, w.Code, w.Body)
		}
		return len(found.Data), found
	}
	for range 3 {
		go s.call(s.key, "GET /users/me", "")
	}
	n, found := requests("?count=3&wait=60s&operation=GET+/users/me&user=usr_owner")
	if n != 3 || *found.TimedOut {
		t.Errorf("with count=3: %+v", found)
	}
	n, found = requests("?count=4&wait=30ms")
	if n != 3 || !*found.TimedOut {
		t.Errorf("with count=4 and a short wait: %d requests, timed out: %v", n, *found.TimedOut)
	}
	// What comes after a mark.
	mark := fmt.Sprint("?after=", found.Data[2].Seq)
	n, found = requests(mark + "&count=1&wait=1ms")
	if n != 0 || !*found.TimedOut {
		t.Errorf("after the newest: %d requests, timed out: %v", n, *found.TimedOut)
	}
	go func() {
		s.call("svc_live_ada", "GET /users/me", "")
		s.call(s.key, "GET /users/me", "")
	}()
	n, found = requests(mark + "&count=1&wait=60s&user=usr_owner")
	if n != 1 || found.Data[0].Seq != 5 || *found.TimedOut {
		t.Errorf("after the newest, of a user: %+v", found)
	}
	n, _ = requests("?after=4")
	if n != 1 {
		t.Errorf("after=4 has %d requests", n)
	}
	if n, found = requests("?count=0&wait=60s"); n != 5 || *found.TimedOut {
		t.Errorf("with count=0: %d requests", n)
	}
	// What a fault holds has come, and is not answered.
	s.steer("POST /faults", `{"operation":"GET /users/me","delay":"1h","status":503}`)
	ended := make(chan int)
	go func() { ended <- s.call(s.key, "GET /users/me", "") }()
	n, found = requests("?after=5&count=1&wait=60s")
	if n != 1 || found.Data[0].Status != 0 || found.Data[0].Fault != "status 503, delay 1h0m0s" {
		t.Errorf("a request that is held: %+v", found)
	}
	s.steer("DELETE /faults", "")
	if status := <-ended; status != 503 {
		t.Errorf("a request that was held = %d, want 503", status)
	}
	_, found = requests("?after=5")
	if found.Data[0].Status != 503 {
		t.Errorf("the journal has the status %d, want 503", found.Data[0].Status)
	}
	for _, query := range []string{"count=1", "wait=1s"} {
		w := s.steer("GET /requests?"+query, "")
		if w.Code != 400 || !strings.Contains(w.Body.String(), "count and wait go together") {
			t.Errorf("GET /requests?%s = %d %s", query, w.Code, w.Body)
		}
	}
	for _, query := range []string{"count=x", "count=-1", "count=1001", "wait=61s", "wait=5", "count=1&wait=-1s",
		"after=-1", "after=x"} {
		w := s.steer("GET /requests?"+query, "")
		name, _, _ := strings.Cut(query[strings.LastIndex(query, "&")+1:], "=")
		if w.Code != 400 || !strings.Contains(w.Body.String(), name+" must be ") {
			t.Errorf("GET /requests?%s = %d %s", query, w.Code, w.Body)
		}
	}
}

// PUT /faults is one step: either array is set whole, and nothing meets a part of one.
func TestPutFaultsAtOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	array := func(status int) string {
		one := fmt.Sprintf(`{"operation":"GET /users/me","status":%d,"after":%d}`, status, 1<<30)
		return "[" + one + "," + fmt.Sprintf(`{"operation":"GET /users/me","status":%d}`, status) + "]"
	}
	s.steer("PUT /faults", array(500))
	var putting sync.WaitGroup
	for _, status := range []int{500, 503} {
		putting.Go(func() {
			for range 300 {
				s.steer("PUT /faults", array(status))
			}
		})
	}
	done := make(chan struct{})
	go func() { putting.Wait(); close(done) }()
	for isOver := false; !isOver; {
		select {
		case <-done:
			isOver = true
		default:
		}
		var faults []struct{ Status int }
		json.Unmarshal(s.steer("GET /faults", "").Body.Bytes(), &faults)
		if len(faults) != 2 || faults[0] != faults[1] {
			t.Fatalf("amid two PUTs the faults are %v", faults)
		}
		if got := s.call(s.key, "GET /users/me", ""); got != 500 && got != 503 {
			t.Fatalf("amid two PUTs a request meets no fault: %d", got)
		}
	}
}
