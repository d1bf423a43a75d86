package testdouble_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/testdouble"
)

// These tests use the double as a test suite in another language does: over HTTP, with the control API. What
// faults do to a client is tested by package eventstest.

const (
	launch = `{"title":"Launch","start_at":"2030-03-01T18:00:00Z","end_at":"2030-03-01T20:00:00Z"}`

	seed = `[{"key":{"user_id":"usr_owner","secret":"svc_live_owner"}},
		{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com"}},
		{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}}]`
)

// service is a double with its control API on a port.
type service struct {
	t        *testing.T
	double   *testdouble.Double
	problems *testdouble.ProblemList
	url      string
}

// newDouble returns a double of the API over the seed, and its handler. Its first user has a key.
func newDouble(t *testing.T, p *testdouble.ProblemList) (*testdouble.Double, http.Handler) {
	t.Helper()
	d, err := testdouble.New(testdouble.DefaultStart, p)
	if err != nil {
		t.Fatal(err)
	}
	store := events.NewStore(&events.Config{Now: d.Now})
	handler, err := d.Wrap(events.New(store).(testdouble.API))
	if err != nil {
		t.Fatal(err)
	}
	err = store.ApplyJSON([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	return d, handler
}

func start(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, problems: &testdouble.ProblemList{}}
	d, api := newDouble(t, s.problems)
	s.double = d
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle(testdouble.ControlPath+"/", d.Control(func() error { return nil }))
	srv := httptest.NewUnstartedServer(mux)
	srv.Config = httpapi.NewServer(mux)
	srv.Start()
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// send sends a request with "Name: value" headers, and returns the status and the body of the response. It
// may be called from any goroutine.
func (s *service) send(method, path, body string, headers ...string) (status int, response string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// call sends a request to the API, and returns its status. A POST has a body.
func (s *service) call(request string) (status int) {
	s.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	body := ""
	if method == "POST" {
		body = launch
	}
	status, _ = s.send(method, events.BasePath+path, body, "x-service-api-key: svc_live_owner")
	return status
}

// control sends a request to the control API. It fails the test unless the response has the status.
func (s *service) control(request, body string, want int) (response string) {
	s.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	status, response := s.send(method, testdouble.ControlPath+path, body)
	if status != want {
		s.t.Fatalf("%s %s: got %d %s, want %d", request, body, status, response, want)
	}
	return response
}

// equal checks the response to a request.
func (s *service) equal(request, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s:\n got %s\nwant %s", request, got, want)
	}
}

func TestControlKeys(t *testing.T) {
	s := start(t)
	long, beginning := strings.Repeat("é", 255), strings.Repeat("e", 48)
	for _, tt := range []struct{ body, id, user string }{
		{`{"name":"Grace"}`, "key_grace_000001", "usr_grace"},
		{`{"name":"Grace"}`, "key_grace_2_000001", "usr_grace_2"},
		{`{"user_id":"usr_ada"}`, "key_ada_000002", "usr_ada"},
		{`{"name":"` + long + `a"}`, "key_" + beginning + "_qaxw_000001", "usr_" + beginning + "_qaxw"},
		{`{"name":"` + long + `b"}`, "key_" + beginning + "_qlkz_000001", "usr_" + beginning + "_qlkz"},
	} {
		var got struct {
			ID, Secret string
			UserID     string `json:"user_id"`
			BaseURL    string `json:"base_url"`
		}
		response := s.control("POST /keys", tt.body, 201)
		if err := json.Unmarshal([]byte(response), &got); err != nil {
			t.Fatal(err)
		}
		s.equal(tt.body+": id", got.ID, tt.id)
		s.equal(tt.body+": user_id", got.UserID, tt.user)
		s.equal(tt.body+": base_url", got.BaseURL, s.url+events.BasePath)
		status, _ := s.send("GET", events.BasePath+"/users/me", "", "x-service-api-key: "+got.Secret)
		if status != 200 {
			t.Errorf("status with the key %s: got %d, want 200", got.Secret, status)
		}
	}
	if n := strings.Count(s.control("GET /keys", "", 200), `"user_id"`); n != 7 {
		t.Errorf("GET /keys: got %d keys, want 7", n)
	}
}

func TestControlRecords(t *testing.T) {
	s := start(t)
	const records = `[{"user":{"id":"usr_ada","name":"Ada L"}},
		{"user":{"id":"usr_owner","name":"Test Owner"}}]`
	s.equal("POST /records", s.control("POST /records", records, 200), `{"applied":2,"unchanged":1}`)
	got := s.control("GET /records", "", 200)
	if !json.Valid([]byte(got)) {
		t.Errorf("GET /records: got %s, want JSON", got)
	}
	if want := `"name":"Ada L"`; !strings.Contains(got, want) {
		t.Errorf("GET /records: got %s, want %s", got, want)
	}
}

// wantFaults checks that a list has these faults. They may have more fields.
func (s *service) wantFaults(call, response string, want ...string) {
	s.t.Helper()
	var list struct{ Data []map[string]json.RawMessage }
	json.Unmarshal([]byte(response), &list)
	if len(list.Data) != len(want) {
		s.t.Fatalf("%s: got %s, want %d faults", call, response, len(want))
	}
	for i, text := range want {
		var fields map[string]json.RawMessage
		json.Unmarshal([]byte(text), &fields)
		for name, value := range fields {
			place := fmt.Sprintf("%s: %s of fault %d", call, name, i)
			s.equal(place, string(list.Data[i][name]), string(value))
		}
	}
}

func TestControlFaults(t *testing.T) {
	s := start(t)
	const (
		first = `"operation":"GET /events/{id}","status":200,"body":"[]","drop_request":false,` +
			`"drop_response":false,"cut_response":false,"skip":1,"times":2,"user_id":"usr_ada",` +
			`"path":"/events/evt_7","header":{"Date":[],"X-A":["b","c"]},"patch":null,"delay":"1ms","hits":0}`
		second = `"operation":"GET /events","status":0,"body":"","drop_request":false,` +
			`"drop_response":false,"cut_response":false,"skip":0,"times":0,"user_id":"",` +
			`"path":"","header":null,"patch":{"data":{"a":[1.50,null,true,{"b":"<"}]}},"delay":"0s","hits":0}`
	)
	added := s.control("POST /faults", `{`+first, 201) + "," +
		s.control("POST /faults", `{"id":"x",`+second, 201)
	s.wantFaults("POST", `{"data":[`+added+`]}`, `{"id":"flt_1",`+first, `{"id":"flt_2",`+second)
	s.call("GET /events")
	hit := strings.Replace(second, `"hits":0`, `"hits":1`, 1)
	all := s.control("GET /faults", "", 200)
	s.wantFaults("GET", all, `{"id":"flt_1",`+first, `{"id":"flt_2",`+hit)
	list := strings.TrimSuffix(strings.TrimPrefix(all, `{"data":`), "}")
	s.wantFaults("PUT", s.control("PUT /faults", list, 200), `{"id":"flt_3",`+first, `{"id":"flt_4",`+second)
	s.control("DELETE /faults/flt_3", "", 204)
	s.control("DELETE /faults/flt_3", "", 404)
	s.control("PUT /faults", `[{"operation":"GET /events","drop_request":true},{}]`, 400) // changes nothing
	s.wantFaults("GET", s.control("GET /faults", "", 200), `{"id":"flt_4",`+second)
	s.control("DELETE /faults", "", 204)
	s.equal("GET", s.control("GET /faults", "", 200), `{"data":[]}`)
}

// TestControlDelay tests that each way to remove a fault ends its delay.
func TestControlDelay(t *testing.T) {
	for _, removal := range []struct {
		request, body string
		status        int
	}{
		{"DELETE /faults/flt_1", "", 204},
		{"DELETE /faults", "", 204},
		{"PUT /faults", "[]", 200},
	} {
		t.Run(removal.request, func(t *testing.T) {
			s := start(t)
			s.control("POST /faults", `{"operation":"GET /events","delay":"1h"}`, 201)
			done := make(chan int, 1)
			go func() { done <- s.call("GET /events") }()
			s.control("GET /requests?count=1&wait=5s", "", 200)
			s.control(removal.request, removal.body, removal.status)
			if status := <-done; status != 200 {
				t.Errorf("status: got %d, want 200", status)
			}
		})
	}
}

// A fault that never applied is a problem, unless it was removed.
func TestControlUnusedFaults(t *testing.T) {
	const (
		fault = `{"operation":"GET /events","status":500}`
		never = "[{unused_fault fault that never applied: status 500 for GET /events"
	)
	for _, tt := range []struct {
		request, body string
		status        int
		want          string // problems
	}{
		{"GET /faults", "", 200, never + " }]"},
		{"DELETE /faults/flt_1", "", 204, "[]"},
		{"DELETE /faults", "", 204, "[]"},
		{"PUT /faults", "[]", 200, "[]"},
		{"PUT /faults", "[" + fault + "]", 200, never + " }]"},
		{"PUT /faults",
			`[{"operation":"GET /events","status":500,"user_id":"usr_ada","path":"/events","skip":2}]`, 200,
			never + " of usr_ada with path /events, skip 2 (requests so far: 0) usr_ada}]"},
		{"PUT /faults",
			`[{"operation":"GET /events/{id}","status":500,"path":"/events/svc_live_secret-key"}]`, 200,
			never + "/{id} with path /events/…-key }]"},
	} {
		t.Run(tt.request+tt.body, func(t *testing.T) {
			s := start(t)
			s.control("POST /faults", fault, 201)
			s.control(tt.request, tt.body, tt.status)
			s.double.Close()
			s.equal("problems", fmt.Sprint(s.problems.All()), tt.want)
		})
	}
}

func TestControlProblems(t *testing.T) {
	s := start(t)
	s.control("PUT /faults", `[{"operation":"GET /events","status":500},
		{"operation":"GET /users/me","status":500,"user_id":"usr_ada"}]`, 200)
	s.call("GET /event")
	s.send("GET", "/event", "", "x-service-api-key: svc_live_ada")
	s.send("GET", "/v2/events", "")
	const (
		unknown = `{"kind":"unknown_route","text":"request to an unknown route: `
		owner   = unknown + `1: GET /api/public/v1/event of usr_owner: 404: …","user_id":"usr_owner"}`
		ada     = unknown + `2: GET /event of usr_ada: 404: …","user_id":"usr_ada"}`
		nobody  = unknown + `3: GET /v2/events: 404: …","user_id":""}`

		never       = `{"kind":"unused_fault","text":"fault that never applied: status 500 for `
		unused      = never + `GET /events","user_id":""}`
		unusedByAda = never + `GET /users/me of usr_ada","user_id":"usr_ada"}`

		unsafe = `{"kind":"unsafe_retry","text":"unsafe retry: request 6 of usr_owner (no Idempotency-Key) ` +
			`created evt_owner_000002, but request 5 (no Idempotency-Key) ` +
			`had created the same event as evt_owner_000001, and its response hadn't arrived ` +
			`(drop_response, status 504): send the same Idempotency-Key with every ` +
			`attempt","user_id":"usr_owner"}`
	)
	message := regexp.MustCompile(`404: [^"]*`)
	check := func(query string, want ...string) {
		t.Helper()
		got := message.ReplaceAllString(s.control("GET /problems"+query, "", 200), "404: …")
		s.equal("GET /problems"+query, got, `{"data":[`+strings.Join(want, ",")+"]}")
	}
	check("", owner, ada, nobody, unused, unusedByAda)
	check("?user_id=usr_ada", ada, unusedByAda)
	s.call("GET /events")
	s.control("DELETE /faults/flt_2", "", 204)
	check("", owner, ada, nobody)
	s.control("POST /faults",
		`{"operation":"POST /events/create","drop_response":true,"status":504,"times":1}`, 201)
	s.call("POST /events/create")
	s.call("POST /events/create")
	check("", owner, ada, nobody, unsafe)
	s.problems.Allow(testdouble.UnusedFault)
	s.control("POST /faults", `{"operation":"GET /events","status":500}`, 201)
	check("", owner, ada, nobody, unsafe)
}

func TestControlRequests(t *testing.T) {
	s := start(t)
	s.control("POST /faults", `{"operation":"POST /events/create","status":429,"times":1}`, 201)
	s.call("POST /events/create")
	s.call("GET /events?limit=3")
	s.send("GET", events.BasePath+"/events", "", "x-service-api-key: svc_live_ada")
	for _, tt := range []struct {
		query    string
		want     string // Seq of the requests
		timedOut bool
	}{
		{"", "1 2 3", false},
		{"?operation=GET+/events", "2 3", false},
		{"?user_id=usr_ada", "3", false},
		{"?after=1&user_id=usr_owner", "2", false},
		{"?after=3", "", false},
		{"?count=3&wait=60s", "1 2 3", false},
		{"?count=0&wait=60s", "1 2 3", false},
		{"?count=3&wait=0s", "1 2 3", false},
		{"?count=2&wait=10ms&user_id=usr_ada", "3", true},
	} {
		var got struct {
			Data     []struct{ Seq int }
			TimedOut bool `json:"timed_out"`
		}
		response := s.control("GET /requests"+tt.query, "", 200)
		if err := json.Unmarshal([]byte(response), &got); err != nil {
			t.Fatal(err)
		}
		var numbers []string
		for _, r := range got.Data {
			numbers = append(numbers, fmt.Sprint(r.Seq))
		}
		s.equal("GET /requests"+tt.query, strings.Join(numbers, " "), tt.want)
		if got.TimedOut != tt.timedOut {
			t.Errorf("GET /requests%s: timed_out: got %v, want %v", tt.query, got.TimedOut, tt.timedOut)
		}
	}
	response := s.control("GET /requests?operation=POST+/events/create", "", 200)
	for _, want := range []string{
		`{"data":[{"seq":1,"time":"2030-01-01T00:00:00Z","received":"20`,
		`","method":"POST","path":"/api/public/v1/events/create","query":"","header":{`,
		`"X-Service-Api-Key":["svc_live_owner"]`,
		`},"body":"{\"title\":\"Launch\",`,
		`","operation":"POST /events/create","user_id":"usr_owner","fault":"status 429","status":429,` +
			`"response_header":{`,
		`"Retry-After":["1"]`,
		`"response":"{\"error\":{\"code\":\"rate_limited\",\"message\":\"a test fault refused`,
		`\"}}","truncated":false}],"timed_out":false}`,
	} {
		if !strings.Contains(response, want) {
			t.Errorf("GET /requests: got %s, want %s", response, want)
		}
	}
	s.control("DELETE /requests", "", 204)
	s.equal("GET /requests", s.control("GET /requests", "", 200), `{"data":[],"timed_out":false}`)
}

// TestControlGone tests that requests for a client that is gone don't pile up in memory.
func TestControlGone(t *testing.T) {
	d, api := newDouble(t, &testdouble.ProblemList{})
	for range 10 {
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", events.BasePath+"/users/me", nil))
	}
	w := &goneClient{ResponseRecorder: httptest.NewRecorder()}
	d.Control(nil).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/_control/requests", nil))
	if w.longest == 0 || w.longest > 2000 {
		t.Errorf("longest write: got %d bytes, want at most one request", w.longest)
	}
}

// goneClient is a ResponseWriter whose writes fail.
type goneClient struct {
	*httptest.ResponseRecorder
	longest int // bytes of a write
}

func (w *goneClient) Write(p []byte) (int, error) {
	w.longest = max(w.longest, len(p))
	return 0, net.ErrClosed
}

// TestControlWait tests that the longest wait outlasts the server's timeouts.
func TestControlWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, api := newDouble(t, &testdouble.ProblemList{})
		control := d.Control(nil)
		ended := make(chan time.Time, 1)
		server := httpapi.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control.ServeHTTP(w, r)
			ended <- time.Now()
		}))
		wait := func() (client net.Conn) {
			client, conn := net.Pipe()
			httpapi.ServeConn(server, conn)
			io.WriteString(client,
				"GET /_control/requests?count=2&wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
			return client
		}
		start := time.Now()
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", events.BasePath+"/users/me", nil))
		time.AfterFunc(time.Second, d.ClearRequests)
		client := wait()
		defer client.Close()
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if took := (<-ended).Sub(start).Round(time.Second); took != time.Minute {
			t.Errorf("time of the response: got %v, want 1m0s", took)
		}
		body, err := io.ReadAll(resp.Body)
		if want := `{"data":[],"timed_out":true}`; string(body) != want {
			t.Errorf("response after the journal was cleared: got %s, %v, want %s", body, err, want)
		}

		// If the client is gone, nobody waits.
		start = time.Now()
		gone := wait()
		time.AfterFunc(time.Second, func() { gone.Close() })
		if took := (<-ended).Sub(start).Round(time.Second); took != time.Second {
			t.Errorf("time of a request whose client is gone: got %v, want 1s", took)
		}
	})
}

func TestControlClock(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ request, body, want string }{
		{"GET /clock", "", "2030-01-01T00:00:00Z"},
		{"POST /clock/advance", `{"by":"1h30m"}`, "2030-01-01T01:30:00Z"},
		{"POST /clock/advance", `{"by":"0s"}`, "2030-01-01T01:30:00Z"},
		{"PUT /clock", `{"now":"2400-01-01T00:00:00.5+01:00"}`, "2399-12-31T23:00:00.5Z"},
		{"GET /clock", "", "2399-12-31T23:00:00.5Z"},
	} {
		s.equal(tt.request+tt.body, s.control(tt.request, tt.body, 200), `{"now":"`+tt.want+`"}`)
	}
}

func TestControlRefuses(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"GET /nothing", "", 404, "the routes are POST /keys, "},
		{"GET /reset", "", 405, "use POST"},
		{"GET /records?user=usr_ada", "", 400, "query parameter"},
		{"POST /reset?user=usr_ada", "", 400, "query parameter"},
		{"POST /reset", `{"user":"usr_ada"}`, 400, "POST /reset takes no body: leave it out"},
		{"DELETE /faults", `{"id":"flt_1"}`, 400, "DELETE /faults takes no body"},
		{"POST /keys", `{}`, 400, "name is required"},
		{"POST /keys", `{"name":"Ada","email":"a@example.com"}`, 400,
			"email is not known (the fields are name, user_id)"},
		{"POST /keys", `{"name":"Ada","user_id":"usr_ada"}`, 400, "can't be combined"},
		{"POST /keys", `{"user_id":"usr_x"}`, 404, "usr_x"},
		{"POST /records", `[{"user":{}}]`, 400, "record 1: user"},
		{"PUT /faults", `null`, 400, "the body is no array of faults; [] removes all: line 1"},
		{"PUT /faults", `[{"operation":"GET /events","status":500},1]`, 400, "fault 2: must be a JSON"},
		{"PUT /faults", strings.Repeat(" ", 1<<20) + "[]", 413, "at most 1 MiB"},
		{"POST /faults", `{"status":500}`, 400, `operation \"\" is not known: it must be one of `},
		{"POST /faults", `{"operation":"GET /event","status":500}`, 400, "it must be one of GET /users/me, "},
		{"POST /faults", `{"operation":"GET /events","kind":1}`, 400,
			"kind is not known (the fields are id, operation, status, "},
		{"POST /faults", `{"operation":"GET /events","status":500,"status":503}`, 400,
			"status is given more than once: send it once"},
		{"POST /faults", `{"operation":"GET /events","status":"500"}`, 400, "status must be a whole number"},
		{"POST /faults", `{"operation":"GET /events","delay":200}`, 400, "delay must be a string"},
		{"POST /faults", `{"operation":"GET /events","delay":"200"}`, 400, "delay must be a string"},
		{"POST /faults", `{"operation":"GET /events","delay":"9999999h"}`, 400,
			"delay must be a string with a duration of at most 2562047h"},
		{"POST /faults", `{"operation":"GET /events","header":[]}`, 400, "header must map"},
		{"POST /faults", `{"operation":"GET /events","header":{"X-A":"b"}}`, 400, "header must map"},
		{"POST /faults", `{"operation":"GET /events","header":{"X-A":[1]}}`, 400, "header must map"},
		{"POST /faults", `{"operation":"GET /events","header":{"X-A":[],"X-A":[]}}`, 400, "header must map"},
		{"POST /faults", `{"operation":"GET /events","patch":"{}"}`, 400, "patch must be a JSON object"},
		{"POST /faults", `{"operation":"GET /events","patch":{"a":1,"a":2}}`, 400, "with each name once"},
		{"POST /faults", `{"operation":"GET /events","status":500,"user_id":"usr_x"}`, 400, "is not known"},
		{"POST /faults", `{"operation":"GET /events","status":500,"path":"/event"}`, 400,
			`path \"/event\" must have the form /events, without /api/public/v1`},
		{"POST /faults", `{"operation":"GET /events/{id}","status":500,"path":"/events/"}`, 400,
			`path \"/events/\" must have the form /events/{id}`},
		{"GET /requests?user_id=usr_x", "", 404, "is not known"},
		{"GET /problems?user_id=svc_live_secret-key", "", 404, `user \"…-key\" is not known`},
		{"GET /problems?user_id=", "", 400, "user_id must be the ID of a user"},
		{"GET /problems?user=usr_ada", "", 400, "GET /problems takes user_id"},
		{"GET /requests?operation=GET+/event", "", 400, "is not known"},
		{"GET /requests?after=-1", "", 400, "after must be "},
		{"GET /requests?count=1001&wait=1s", "", 400, "count must be "},
		{"GET /requests?count=1&wait=61s", "", 400, "wait must be "},
		{"GET /requests?count=1&wait=-1s", "", 400, "wait must be "},
		{"GET /requests?count=1", "", 400, "count and wait go together"},
		{"GET /requests?wait=1s", "", 400, "count and wait go together"},
		{"PUT /clock", `{}`, 400, "now is required"},
		{"PUT /clock", `{"advance":"1h"}`, 400, "advance is not known (the fields are now)"},
		{"POST /clock/advance", `{}`, 400, "by is required"},
		{"POST /clock/advance", `{"by":3600}`, 400, "by must be a string with a duration"},
		{"PUT /clock", `{"now":"2031"}`, 400, "now must be a valid date-time"},
		{"PUT /clock", `{"now":"2029-01-01T00:00:00Z"}`, 400, "now is out of range: the clock goes forward"},
		{"POST /clock/advance", `{"by":"-1h"}`, 400, "by is out of range: the clock goes forward"},
	} {
		got := s.control(tt.request, tt.body, tt.status)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s %.60s: got %s, want %s", tt.request, tt.body, got, tt.want)
		}
	}
	s.equal("GET /faults", s.control("GET /faults", "", 200), `{"data":[]}`)
}

// Web pages can't use the control API, except for the inspector. A browser sends Origin with every request
// that a script or a form of a page sends, but for a GET to the page's own host. With the request for an
// image, it sends Sec-Fetch-Site.
func TestControlAccess(t *testing.T) {
	d, _ := newDouble(t, &testdouble.ProblemList{})
	control := d.Control(nil)
	for _, tt := range []struct {
		host    string
		origins []string
		want    int
	}{
		{"localhost:8080", []string{"http://localhost:8080"}, 200},
		{"localhost:8080", []string{"https://localhost:8080"}, 200},
		{"localhost:8080", []string{"http://localhost:8081"}, 403},
		{"localhost:8080", []string{"http://localhost"}, 403},
		{"localhost:8080", []string{"http://events.example"}, 403},
		{"localhost:8080", []string{"null"}, 403},
		{"localhost:8080", []string{""}, 403},
		{"localhost:8080", []string{"http://localhost:8080", "http://localhost:8080"}, 403},
		{"localhost:8080", []string{"http://events.example", "http://localhost:8080"}, 403},

		{"localhost:8080", nil, 200},
		{"localhost", nil, 200},
		{"double:8080", nil, 200}, // a service of Compose
		{"127.0.0.1", nil, 200},
		{"127.0.0.1:8080", nil, 200},
		{"[::1]", nil, 200},
		{"[::1]:8080", nil, 200},
		{"[::ffff:127.0.0.1]:8080", nil, 200},
		{"double.localhost:8080", nil, 200},
		{"host.docker.internal:8080", nil, 200},
		{"Host.Docker.INTERNAL", nil, 200},
		{"", nil, 200}, // HTTP/1.0
		{"events.example", nil, 403},
		{"events.example:8080", nil, 403},
		{"events.example:8080", []string{"http://events.example:8080"}, 403}, // DNS rebinding
		{"127.0.0.1.events.example", nil, 403},
		{"localhost.events.example:8080", nil, 403},
		{"events.example.", nil, 403},
		{"notinternal.example", nil, 403},
	} {
		t.Run(fmt.Sprint(tt.host, tt.origins), func(t *testing.T) {
			r := httptest.NewRequest("GET", testdouble.ControlPath+"/clock", nil)
			r.Host = tt.host
			if tt.origins != nil {
				r.Header["Origin"] = tt.origins
			}
			w := httptest.NewRecorder()
			control.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("status: got %d, want %d", w.Code, tt.want)
			}
			forbidden := strings.Contains(w.Body.String(), `"code":"forbidden"`)
			if forbidden != (tt.want == 403) {
				t.Errorf("body: got %s, want the code forbidden only with 403", w.Body)
			}
			if allow := w.Header().Get("Access-Control-Allow-Origin"); allow != "" {
				t.Errorf("Access-Control-Allow-Origin: got %q, want none", allow)
			}
		})
	}
	for site, want := range map[string]int{
		"none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403,
	} {
		r := httptest.NewRequest("GET", testdouble.ControlPath+"/clock", nil)
		r.Host = "localhost:8080"
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		control.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Sec-Fetch-Site: %s: status: got %d, want %d", site, w.Code, want)
		}
	}
}
