package double_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
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
		{"GET /nothing", "", "Authorization: ", 401, "unauthorized"},
		{"GET /clock", "", "Origin: null", 403, "forbidden"},
		{"OPTIONS /clock", "", "Origin: http://localhost", 403, "forbidden"},
		{"GET /nothing", "", "", 404, "/requests"},
		{"DELETE /keys/key_1", "", "", 404, "not_found"},
		{"GET /reset", "", "", 405, "use POST, OPTIONS"},
		{"GET /keys?user=usr_ada", "", "", 400, "query"},
		{"GET /records?user=usr_ada", "", "", 400, "query"},
		{"POST /reset?user=usr_ada", "", "", 400, "query"},
		{"GET /faults?user=usr_ada", "", "", 400, "query"},
		{"DELETE /requests?user=usr_ada", "", "", 400, "query"},
		{"GET /requests?user=", "", "", 400, "user must be the id of a user, given once"},
		{"GET /requests?user=ada", "", "", 404, "is not known"},
		{"GET /requests?operation=GET+/event", "", "", 400,
			`operation \"GET /event\" is not known: it must be one of ` + operations},
		{"POST /reset", `{"user":"usr_ada"}`, "", 400, "must be empty"},
		{"PUT /clock", `{}`, "", 400, "one member"},
		{"PUT /clock", `{"now":"2031-01-01T00:00:00Z","advance":"1h"}`, "", 400, "one member"},
		{"PUT /clock", `{"now":"2029-01-01T00:00:00Z"}`, "", 400, "goes forward only"},
		{"PUT /clock", `{"advance":"-1h"}`, "", 400, "goes forward only"},
		{"GET /requests?user=owner@double.example", "", "", 404, "is not known"},
		{"PUT /clock", `{"advance":3600}`, "", 400, "advance must be a string"},
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
		{"POST /faults", `{"operation":"GET /events","status":99}`, "", 400, "status must be from 400 to 599"},
		{"POST /faults", `{"operation":"GET /events","status":500,"user":"usr_nobody"}`, "", 400, "is not known"},
		{"DELETE /faults/flt_1", "", "", 404, `fault \"flt_1\" is not set`},
		{"PUT /faults", strings.Repeat(" ", 1<<20) + "[]", "", 413, "payload_too_large"},
		{"POST /keys", `{"name":""}`, "", 400, "name is required"},
		{"POST /keys", `{"name":"A","email":"a@example.com"}`, "", 400, "email is not known"},
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

// expect sends a request to the control API, and compares the answer, in which "…" stands for any text.
func (s *service) expect(request, body string, status int, answer string) {
	s.t.Helper()
	w := s.steer(request, body)
	if w.Code != status {
		s.t.Errorf("%s %s = %d %s, want %d", request, body, w.Code, w.Body, status)
	}
	want := strings.ReplaceAll(regexp.QuoteMeta(answer), "…", ".*")
	if !regexp.MustCompile("(?s)^" + want + "$").MatchString(w.Body.String()) {
		s.t.Errorf("%s %s = %s, want %s", request, body, w.Body, answer)
	}
}

func TestControlKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const grace, ada = `{"name":"Grace"}`, `{"user_id":"usr_ada"}`
	s.expect("POST /keys", grace, 201, `{"base_url":"http://example.com/api/public/v1",`+
		`"id":"key_grace_000001","key":"svc_live_…","user":"usr_grace"}`)
	s.expect("POST /keys", grace, 201, `{"base_url":…,"id":"key_grace_2_000001",…"user":"usr_grace_2"}`)
	s.expect("POST /keys", ada, 201, `{"base_url":…,"id":"key_ada_000002",…"user":"usr_ada"}`)
	s.expect("GET /keys", "", 200, `{"data":[{"id":"key_…"user_id":"usr_ada"…}]}`)
}

func TestControlRecords(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const ada, bob = `{"user":{"id":"usr_ada","name":"Ada L"}}`, `{"user":{"id":"usr_bob","name":"Bob","email":"b@x.org"}}`
	s.expect("POST /records", "["+ada+","+bob+"]", 200, `{"applied":2,"unchanged":0}`)
	s.expect("POST /records", "["+ada+`,{"delete":{"user":"usr_bob"}}]`, 200, `{"applied":2,"unchanged":1}`)
	s.expect("GET /records", "", 200, "[\n{\"user\":{\"id\":\"usr_ada\",\"name\":\"Ada L\",…}\n]\n")
}

func TestControlClock(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.expect("PUT /clock", `{"advance":"1h30m"}`, 200, `{"now":"2030-01-01T01:30:00Z"}`)
	s.expect("PUT /clock", `{"now":"2400-01-01T00:00:00.5+01:00"}`, 200, `{"now":"2399-12-31T23:00:00.5Z"}`)
	s.expect("GET /clock", "", 200, `{"now":"2399-12-31T23:00:00.5Z"}`)
}

// A fault is added and removed without the others, and what GET returns can be put back.
func TestControlFaults(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const first = `"operation":"GET /events/{id}","status":200,"body":"[]","header":{"Date":[],"X-A":["b","c"]},` +
		`"drop":false,"lose":false,"cut":false,"after":1,"times":2,"user":"usr_ada","path":"/events/evt_7",` +
		`"patch":null,"hits":0,"delay":"1ms"}`
	const second = `"operation":"GET /events","status":0,"body":"","header":null,` +
		`"drop":false,"lose":false,"cut":false,"after":0,"times":0,"user":"","path":"",` +
		`"patch":{"data":{"a":[1.50,null,{"b":"<"}]}},"hits":0,"delay":"0s"}`
	s.expect("POST /faults", `{`+first, 201, `{"id":"flt_1",`+first)
	s.expect("POST /faults", `{"id":"mine",`+second, 201, `{"id":"flt_2",`+second)
	s.call(s.key, "GET /events", "")
	hit := strings.Replace(second, `"hits":0`, `"hits":1`, 1)
	s.expect("GET /faults", "", 200, `[{"id":"flt_1",`+first+`,{"id":"flt_2",`+hit+"]")
	s.expect("PUT /faults", s.steer("GET /faults", "").Body.String(), 200,
		`[{"id":"flt_3",`+first+`,{"id":"flt_4",`+second+"]")
	s.expect("DELETE /faults/flt_2", "", 404, "…")
	s.expect("DELETE /faults/flt_3", "", 204, "")
	s.expect("GET /faults", "", 200, `[{"id":"flt_4",`+second+"]")
	s.expect("DELETE /faults", "", 204, "")
	s.expect("GET /faults", "", 200, "[]")
}

func TestControlRequests(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.steer("POST /faults", `{"operation":"POST /events/create","drop":true,"times":1}`)
	s.steer("POST /faults", `{"operation":"GET /users/me","status":429,"user":"usr_ada"}`)
	s.call(s.key, "POST /events/create", launch)
	s.call(s.key, "GET /users/me", "")
	s.call("svc_live_ada", "GET /users/me", "")
	const first = `{"seq":1,"time":"2030-01-01T00:00:00Z","received":"20…Z","method":"POST",` +
		`"path":"/api/public/v1/events/create","query":"","header":{…},"operation":"POST /events/create",` +
		`"status":0,"user":"usr_owner","body":"{\"title\":…}","fault":"drop","error":""}`
	const second = `{"seq":2,…"status":200,"user":"usr_owner","body":"","fault":"","error":""}`
	const third = `{"seq":3,…"operation":"GET /users/me","status":429,"user":"usr_ada","body":"",` +
		`"fault":"status 429","error":"nothing was done, as a test wants it"}`
	for query, want := range map[string]string{
		"":                          first + "," + second + "," + third,
		"?user=usr_ada":             third,
		"?operation=GET+/users/me":  second + "," + third,
		"?operation=GET%20/openapi": "",
		"?after=1&user=usr_owner":   second,
	} {
		s.expect("GET /requests"+query, "", 200, `{"data":[`+want+`],"timed_out":false}`)
	}
	s.expect("DELETE /requests", "", 204, "")
	s.expect("GET /requests", "", 200, `{"data":[],"timed_out":false}`)
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
