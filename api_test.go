// Tests of the API through its handler, in the order of what a request meets: the
// answers, the checks of a request and the errors, and at the end concurrency, fuzzing
// and benchmarks.
package events_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/testdouble"
)

const base = events.BasePath

// seed has two hosts, one of them with events in both states and guests.
const seed = `[
{"user":{"id":"usr_ada","name":"Ada Lovelace","email":"ada@example.com","timezone":"Europe/London",
	"created_at":"2026-01-01T00:00:00Z"}},
{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com","created_at":"2026-01-02T00:00:00Z"}},
{"key":{"id":"key_ada","user_id":"usr_ada","secret":"svc_live_ada"}},
{"key":{"id":"key_old","user_id":"usr_ada","secret":"svc_live_old","revoked_at":"2026-02-01T00:00:00Z"}},
{"key":{"id":"key_bob","user_id":"usr_bob","secret":"svc_live_bob"}},
{"event":{"id":"evt_1","slug":"one","host_id":"usr_ada","title":"One","start_at":"2027-03-01T10:00:00Z",
	"end_at":"2027-03-01T12:00:00Z","status":"draft","created_at":"2026-03-01T00:00:00Z"}},
{"event":{"id":"evt_2","slug":"two","host_id":"usr_ada","title":"Two","start_at":"2027-03-02T10:00:00Z",
	"end_at":"2027-03-02T12:00:00Z","created_at":"2026-03-02T00:00:00Z"}},
{"event":{"id":"evt_3","slug":"three","host_id":"usr_ada","title":"Three","start_at":"2027-03-03T10:00:00Z",
	"end_at":"2027-03-03T12:00:00Z","created_at":"2026-03-03T00:00:00.5Z"}},
{"event":{"id":"evt_bob","slug":"bobs","host_id":"usr_bob","title":"Bob's","start_at":"2027-03-01T10:00:00Z",
	"end_at":"2027-03-01T12:00:00Z","created_at":"2026-03-04T00:00:00Z"}},
{"guest":{"id":"gst_1","event_id":"evt_1","name":"Grace Hopper","email":"grace@example.com",
	"created_at":"2026-04-01T00:00:00Z"}},
{"guest":{"id":"gst_2","event_id":"evt_1","email":"alan@example.com","status":"invited",
	"created_at":"2026-04-02T00:00:00Z"}},
{"guest":{"id":"gst_3","event_id":"evt_1","name":"Kurt","status":"declined",
	"created_at":"2026-04-03T00:00:00Z"}}
]`

// newEvent is the body of a create, and onMayDay are the members that a body needs
// beside the title.
const (
	newEvent = `{"title":"Launch","start_at":"2027-05-01T18:00:00+02:00",` +
		`"end_at":"2027-05-01T20:00:00+02:00"}`
	onMayDay = `"start_at":"2027-05-01T18:00:00Z","end_at":"2027-05-01T20:00:00Z"`
)

// service is a handler with the seed, and a key for its calls.
type service struct {
	t       testing.TB
	store   *events.Store
	handler http.Handler
	key     string
}

func newService(t testing.TB, cfg *events.Config) *service {
	t.Helper()
	store := events.NewStore(cfg)
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		t.Fatalf("ApplyJSON(seed): %v", err)
	}
	return &service{t, store, events.New(store), "svc_live_ada"}
}

// intercept lets f answer the requests whose key, route and method are right.
func (s *service) intercept(f httpapi.Intercept) { s.handler.(testdouble.Server).Intercept(f) }

// as is the service with another key, or without one.
func (s *service) as(key string) *service { c := *s; c.key = key; return &c }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) String() string { return fmt.Sprintf("%d %.1000s", a.status, a.body) }

// message is the message of an answer in the error form.
func (a answer) message() string {
	var e struct {
		Error struct{ Code, Message string }
	}
	json.Unmarshal([]byte(a.body), &e)
	return e.Error.Message
}

func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var x T
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		t.Fatalf("decode %s: %v", a, err)
	}
	return x
}

type listOf[T any] struct {
	Data       []T     `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

type eventList = listOf[events.Event]

func ids(l eventList) string {
	var all []string
	for _, e := range l.Data {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

// newRequest is a request with "Name: value" headers; a header "-key" sends no key.
func (s *service) newRequest(method, target, body string, headers ...string) *http.Request {
	s.t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		s.t.Fatalf("url %q: %v", target, err)
	}
	r := &http.Request{Method: method, URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Host: "localhost", Header: http.Header{}, Body: http.NoBody, ContentLength: int64(len(body))}
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	keyed := s.key != ""
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "-key" {
			keyed = false
			continue
		}
		r.Header.Add(name, value)
	}
	if keyed {
		r.Header.Set("x-service-api-key", s.key)
	}
	return r
}

// do sends a newRequest. The answer is held against openapi.json and the headers that
// all have.
func (s *service) do(method, target, body string, headers ...string) answer {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, s.newRequest(method, target, body, headers...))
	a := answer{w.Code, w.Result().Header, w.Body.String()}
	s.checkForm(method, target, a)
	return a
}

// create is a POST /events/create.
func (s *service) create(body string, headers ...string) answer {
	s.t.Helper()
	return s.do("POST", base+"/events/create", body, headers...)
}

// checkForm holds what every answer has.
func (s *service) checkForm(method, target string, a answer) {
	s.t.Helper()
	for name, want := range map[string]string{
		"Cache-Control":               "no-store",
		"X-Content-Type-Options":      "nosniff",
		"Access-Control-Allow-Origin": "*",
		"Access-Control-Expose-Headers": "location, idempotency-replayed, retry-after, www-authenticate, " +
			"x-request-id",
		"Access-Control-Allow-Credentials": "",
	} {
		if got := strings.Join(a.header[name], ","); got != want {
			s.t.Errorf("%s %s: %s = %q, want %q", method, target, name, got, want)
		}
	}
	if a.status == 204 {
		if a.body != "" || a.header.Get("Content-Type") != "" || a.header.Get("Content-Length") != "" {
			s.t.Errorf("%s %s = %s, want 204 without content", method, target, a)
		}
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		s.t.Errorf("%s %s: Content-Type = %q, want application/json", method, target, got)
	}
	if got := a.header.Get("Content-Length"); got != fmt.Sprint(len(a.body)) {
		s.t.Errorf("%s %s: Content-Length = %s with %d bytes", method, target, got, len(a.body))
	}
	if a.status >= 400 {
		s.checkErrorForm(method, target, a)
	}
	if err := checkAnswer(method, target, a.status, a.header, []byte(a.body)); err != nil {
		s.t.Errorf("%s %s = %s: %v", method, target, a, err)
	}
}

// checkErrorForm holds what every error has: exactly a code and a message, which
// begins in lower case unless it begins with the name of a header, or of a member that a client
// made up.
func (s *service) checkErrorForm(method, target string, a answer) {
	s.t.Helper()
	var e map[string]map[string]string
	err := json.Unmarshal([]byte(a.body), &e)
	m := e["error"]["message"]
	if err != nil || len(e) != 1 || len(e["error"]) != 2 || e["error"]["code"] == "" || m == "" {
		s.t.Errorf("%s %s = %s, want the error form", method, target, a)
		return
	}
	header := strings.HasPrefix(m, "Content-") || strings.HasPrefix(m, "Idempotency-")
	first, _, _ := strings.Cut(m, ";")
	madeUp := strings.Contains(first, " is not known")
	if m[0] >= 'A' && m[0] <= 'Z' && !header && !madeUp || strings.HasSuffix(m, ".") {
		s.t.Errorf("%s %s: message %q begins in upper case or ends in a full stop", method, target, m)
	}
}

// Answers. Those that the examples of openapi.json show are held by TestGoldenExamples, and
// those of errors by TestOpenAPIAnswers.

// TestSentAndAnswered: what is answered to the members of a create, byte for byte.
func TestSentAndAnswered(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for _, tt := range []struct{ sent, answered string }{
		{`"title":"Ärger & <b>\u00e9\ud83d\ude00\/</b>",` + onMayDay, `"title":"Ärger & <b>é😀/</b>"`},
		{`"title":"x","start_at":"0001-01-01T00:00:01Z","end_at":"9999-12-31T23:59:59.999999999999Z"`,
			`"start_at":"0001-01-01T00:00:01Z","end_at":"9999-12-31T23:59:59.999999999Z"`},
		{`"title":"x","start_at":"2027-05-01t18:00:00.120-07:00","end_at":"2027-12-31T23:59:60z"`,
			`"start_at":"2027-05-02T01:00:00.12Z","end_at":"2028-01-01T00:00:00Z"`},
		{`"title":"x",` + onMayDay + `,"cover_image_url":"HTTPS://example.com/%7Ea?b#c"`,
			`"cover_image_url":"HTTPS://example.com/%7Ea?b#c"`},
	} {
		a := s.create("{" + tt.sent + "}")
		if a.status != 201 || !strings.Contains(a.body, tt.answered) {
			t.Errorf("create {%s} = %s, want %s", tt.sent, a, tt.answered)
		}
	}
}

// TestEveryProblem: one message has all the problems of a body, in the order in which
// openapi.json has the members, and then those of other members, in the order of the body.
func TestEveryProblem(t *testing.T) {
	t.Parallel()
	const dateTime = "must be a date-time such as 2027-03-01T18:00:00Z or 2027-03-01T18:00:00+02:00: " +
		"a day and time that exist, with a T between them and Z or an offset from UTC at the end"
	const zone = "must be a time zone name of the form Area/City from the IANA list in its exact case, " +
		"such as Europe/Paris, or UTC"
	const link = "must be an http or https URL with a host, such as https://example.com/x: at most 2048 " +
		"characters, no user info, and what a URL cannot hold percent-encoded, a space as %20"
	wrong := map[string]struct{ value, problem string }{
		"title":             {`" "`, "must have 1 to 255 characters, not only white space"},
		"description":       {`true`, "must be a string, not a boolean"},
		"start_at":          {`"tomorrow"`, dateTime},
		"end_at":            {`"2027-05-01T18:00:00"`, dateTime},
		"timezone":          {`"Mars/Base"`, zone},
		"location_type":     {`"moon"`, "must be in_person or virtual"},
		"location_city":     {`[]`, "must be a string, not an array"},
		"visibility":        {`"secret"`, "must be public or private"},
		"requires_approval": {`"yes"`, "must be true or false, not a string"},
		"cover_image_url":   {`5`, "must be a string, not a number"},
		"meeting_url":       {`"ftp://x"`, link},
	}
	names := newEventMembers(t)
	body := `"slug":"mine","Title":"x","tags":[]}`
	var problems []string
	for _, name := range names {
		one, listed := wrong[name]
		if !listed { // the other members are strings
			one.value = `{}`
			one.problem = "must be a string, not an object"
		}
		body = fmt.Sprintf("%q:%s,%s", name, one.value, body)
		problems = append(problems, name+" "+one.problem)
	}
	problems = append(problems, "slug is set by the server, so leave it out", "Title is not known",
		"tags is not known (the fields are "+strings.Join(names, ", ")+")")
	a := newService(t, nil).create("{" + body)
	if want := strings.Join(problems, "; "); a.status != 400 || a.message() != want {
		t.Errorf("POST {%s = %s, want %s", body, a, want)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for query, want := range map[string]string{
		"":                  "evt_3 evt_2 evt_1",
		"?status=draft":     "evt_1",
		"?status=published": "evt_3 evt_2",
		"?limit=2":          "evt_3 evt_2",
	} {
		if got := ids(decode[eventList](t, s.do("GET", base+"/events"+query, ""))); got != want {
			t.Errorf("GET /events%s = %s, want %s", query, got, want)
		}
	}
	a := s.as("svc_live_bob").do("GET", base+"/events?status=draft", "")
	if a.body != `{"data":[],"has_more":false,"next_cursor":null}` {
		t.Errorf("an empty list = %s", a)
	}

	byID := decode[listOf[events.Guest]](t, s.do("GET", base+"/events/evt_1/guests?limit=2", ""))
	rest := s.do("GET", base+"/events/one/guests?cursor="+*byID.NextCursor, "")
	var got []string
	for _, g := range append(byID.Data, decode[listOf[events.Guest]](t, rest).Data...) {
		got = append(got, g.ID)
	}
	if want := []string{"gst_3", "gst_2", "gst_1"}; len(byID.Data) != 2 || !slices.Equal(got, want) {
		t.Errorf("two pages of guests = %d, then all %s, want 2 of %s", len(byID.Data), got, want)
	}
}

// TestListsFollowStatus: an event moves between the lists when the operator changes its status.
func TestListsFollowStatus(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for _, step := range []struct{ status, drafts, published string }{
		{"draft", "evt_2 evt_1", "evt_3"},
		{"published", "evt_1", "evt_3 evt_2"},
		{"draft", "evt_2 evt_1", "evt_3"},
	} {
		err := s.store.ApplyJSON([]byte(`[{"event":{"id":"evt_2","status":"` + step.status + `"}}]`))
		if err != nil {
			t.Fatal(err)
		}
		for status, want := range map[string]string{"draft": step.drafts, "published": step.published} {
			got := ids(decode[eventList](t, s.do("GET", base+"/events?status="+status, "")))
			if got != want {
				t.Errorf("once evt_2 is %s, GET /events?status=%s = %s, want %s", step.status, status, got, want)
			}
		}
	}
}

// TestCursor: pages go on from their places while events come and go, and a cursor is a
// position in any list.
func TestCursor(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	list := func(query string) eventList {
		t.Helper()
		return decode[eventList](t, s.do("GET", base+"/events"+query, ""))
	}
	first := list("?limit=1")
	if !first.HasMore || first.NextCursor == nil || ids(first) != "evt_3" {
		t.Fatalf("first page = %+v", first)
	}
	if a := s.create(newEvent); a.status != 201 {
		t.Fatalf("create between pages = %s", a)
	}
	if err := s.store.Apply(events.Record{Delete: &events.Ref{Event: "evt_3"}}); err != nil {
		t.Fatal(err)
	}
	second := list("?limit=1&cursor=" + *first.NextCursor)
	if ids(second) != "evt_2" || !second.HasMore {
		t.Fatalf("second page, the item before it deleted = %+v", second)
	}
	third := list("?limit=100&cursor=" + *second.NextCursor)
	if ids(third) != "evt_1" || third.HasMore || third.NextCursor != nil {
		t.Fatalf("last page = %+v", third)
	}

	cursor := *first.NextCursor
	if got := ids(list("?status=published&cursor=" + cursor)); got != "evt_2" {
		t.Errorf("published events behind the cursor of all = %s, want evt_2", got)
	}
	guests := decode[listOf[events.Guest]](t, s.do("GET", base+"/events/evt_1/guests?limit=1", ""))
	if got := ids(list("?cursor=" + *guests.NextCursor)); got != "evt_2 evt_1" {
		t.Errorf("events behind the cursor of guests = %s, want evt_2 evt_1", got)
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	created, id, _ := strings.Cut(string(raw), " ")
	for _, malformed := range []string{created, created + " ", id, " " + id, " " + string(raw), "now " + id} {
		text := base64.RawURLEncoding.EncodeToString([]byte(malformed))
		if a := s.do("GET", base+"/events?cursor="+text, ""); a.status != 400 {
			t.Errorf("cursor %q = %s, want 400", malformed, a)
		}
	}
	for _, malformed := range []string{cursor + "=", cursor + "\n", "!" + cursor} {
		if a := s.do("GET", base+"/events?cursor="+url.QueryEscape(malformed), ""); a.status != 400 {
			t.Errorf("cursor %q = %s, want 400", malformed, a)
		}
	}
}

// TestPages: the limits, and that all pages together are the whole list.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	var records []events.Record
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 250 {
		title := fmt.Sprint("Event ", i)
		e := events.Event{HostID: "usr_bob", Title: title, StartAt: at, EndAt: at.Add(time.Hour)}
		g := events.Guest{EventID: "evt_bob", Name: new(fmt.Sprint("Guest ", i))}
		records = append(records, events.Record{Event: &e}, events.Record{Guest: &g})
	}
	if err := s.store.Apply(records...); err != nil {
		t.Fatal(err)
	}
	bob := s.as("svc_live_bob")
	for query, want := range map[string]int{
		"/events":                            50,
		"/events?limit=100":                  100,
		"/events/evt_bob/guests":             50,
		"/events/evt_bob/guests?limit=200":   200,
		"/events/bobs/guests?limit=00000200": 200,
	} {
		got := decode[listOf[json.RawMessage]](t, bob.do("GET", base+query, ""))
		if len(got.Data) != want || !got.HasMore {
			t.Errorf("GET %s: %d items, more %v, want %d and more", query, len(got.Data), got.HasMore, want)
		}
	}
	for _, query := range []string{"?limit=7", "?limit=50&status=published", "?limit=100"} {
		seen, pages := map[string]bool{}, 0
		for next := ""; ; pages++ {
			l := decode[eventList](t, bob.do("GET", base+"/events"+query+next, ""))
			for _, e := range l.Data {
				if seen[e.ID] {
					t.Fatalf("GET /events%s: %s comes twice", query, e.ID)
				}
				seen[e.ID] = true
			}
			if l.NextCursor == nil {
				break
			}
			next = "&cursor=" + *l.NextCursor
		}
		if len(seen) != 251 {
			t.Errorf("GET /events%s: %d events over %d pages, want 251", query, len(seen), pages+1)
		}
	}
}

func TestCreatedOrder(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	var last time.Time
	for range 200 {
		e := decode[events.Event](t, s.create(newEvent))
		if !e.CreatedAt.After(last) || e.CreatedAt.Nanosecond()%1000 != 0 {
			t.Fatalf("created_at %v after %v, want later, in whole microseconds", e.CreatedAt, last)
		}
		last = e.CreatedAt
	}
}

// Checks of a request, in their order.

func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	big := `{"title":"` + strings.Repeat("x", 1<<20) + `"}`
	const form = "Content-Type: text/plain"
	tests := []struct {
		method, target, body string
		headers              []string
		status               int
	}{
		{"POST", "/nothing?x=1", big, []string{"-key: ", form}, 401},
		{"POST", "/nothing?x=1", big, []string{form}, 404},
		{"POST", "/events?x=1", big, []string{form}, 405},
		{"POST", "/events/create?x=1", big, []string{form}, 400},
		{"GET", "/events/evt_bob/guests?limit=0", "", nil, 400},
		{"POST", "/events/create", big, []string{form, "Idempotency-Key: a b"}, 415},
		{"POST", "/events/create", big, []string{"Idempotency-Key: a b"}, 413},
		{"POST", "/events/create", "{", []string{"Idempotency-Key: a b"}, 400},
	}
	for _, tt := range tests {
		if a := s.do(tt.method, base+tt.target, tt.body, tt.headers...); a.status != tt.status {
			t.Errorf("%s %s %q = %s, want %d", tt.method, tt.target, tt.headers, a, tt.status)
		}
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	ask := func(path string, headers ...string) answer {
		return s.do("OPTIONS", path, "", append(headers, "-key: ", "Origin: https://app.example")...)
	}
	const method = "Access-Control-Request-Method: POST"
	const asked = "Access-Control-Request-Headers: x-service-api-key, traceparent"
	for _, path := range []string{"/events", "/events/create", "/nothing", "/events//x"} {
		a := ask(base+path, method, asked)
		for name, want := range map[string]string{
			"Access-Control-Allow-Methods": "GET, HEAD, POST, OPTIONS", // of all routes
			"Access-Control-Allow-Headers": "authorization, content-type, idempotency-key, " +
				"x-service-api-key, *",
			"Access-Control-Max-Age": "7200",
		} {
			if got := a.header.Get(name); a.status != 204 || got != want {
				t.Errorf("preflight of %s = %d, %s = %q, want 204 and %q", path, a.status, name, got, want)
			}
		}
	}
	if a := ask(base + "/events"); a.status != 401 {
		t.Errorf("OPTIONS without Access-Control-Request-Method = %s, want 401", a)
	}
	if a := ask("/elsewhere", method); a.status != 404 {
		t.Errorf("preflight outside the base path = %s, want 404", a)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	const good, bearer = "x-service-api-key: svc_live_ada", "Authorization: Bearer svc_live_ada"
	const wrong = "x-service-api-key: wrong"
	tests := []struct {
		name    string
		headers []string
		status  int
		message string
	}{
		{"x-service-api-key", []string{good}, 200, ""},
		{"bearer", []string{bearer}, 200, ""},
		{"bearer in lower case", []string{"Authorization: bearer svc_live_ada"}, 200, ""},
		{"bearer with more spaces", []string{"Authorization: BEARER   svc_live_ada"}, 200, ""},
		{"both", []string{good, "Authorization: Bearer wrong"}, 200, ""},
		{"both, the deciding one wrong", []string{wrong, bearer}, 401, "invalid API key"},
		{"both, the deciding one empty", []string{"x-service-api-key: ", bearer}, 401, "invalid API key: it is empty"},
		{"empty", []string{"x-service-api-key: "}, 401, "a variable may be unset"},
		{"none", nil, 401, "missing API key"},
		{"unknown", []string{"x-service-api-key: svc_live_nobody"}, 401, "invalid API key"},
		{"another case", []string{"x-service-api-key: SVC_LIVE_ADA"}, 401, "invalid API key"},
		{"revoked", []string{"x-service-api-key: svc_live_old"}, 401, "invalid API key"},
		{"twice the same", []string{good, good}, 401, "more than once"},
		{"bearer twice", []string{bearer, bearer}, 401, "more than once"},
		{"basic", []string{"Authorization: Basic c3ZjX2xpdmVfYWRhOg=="}, 401, "Bearer"},
		{"bare", []string{"Authorization: svc_live_ada"}, 401, "Bearer"},
		{"bearer without a key", []string{"Authorization: Bearer"}, 401, "a variable may be unset"},
		{"bearer and spaces", []string{"Authorization: Bearer  "}, 401, "invalid API key: it is empty"},
		{"an empty Authorization", []string{"Authorization: "}, 401, "a variable may be unset"},
		{"the digest", []string{"x-service-api-key: " + digestOfAda}, 401, "invalid API key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do("GET", base+"/users/me", "", append(tt.headers, "-key: ")...)
			if a.status != tt.status || !strings.Contains(a.message(), tt.message) {
				t.Errorf("GET /users/me with %q = %s, want %d with %q", tt.headers, a, tt.status, tt.message)
			}
			challenge := a.header.Get("WWW-Authenticate")
			told := strings.Contains(a.message(), "x-service-api-key: <API_KEY>")
			if a.status == 401 && (challenge != `Bearer realm="events"` || !told) {
				t.Errorf("GET /users/me with %q = %s, want how to send a key", tt.headers, a)
			}
		})
	}
}

// TestDeletedCaller: a caller that is deleted while its request runs makes nothing.
func TestDeletedCaller(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.intercept(func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		if err := s.store.Apply(events.Record{Delete: &events.Ref{User: r.Caller.UserID}}); err != nil {
			t.Error(err)
		}
		next(w, r.Request)
	})
	if a := s.create(newEvent); a.status != 401 || !strings.Contains(a.message(), "its user was deleted") {
		t.Errorf("create = %s", a)
	}
	if a := s.as("svc_live_bob").do("GET", base+"/users/me", ""); a.status != 401 {
		t.Errorf("GET /users/me = %s", a)
	}
	if got := dump(t, s.store); strings.Contains(got, "evt_") {
		t.Errorf("the store has %s", got)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	type test struct {
		method, path string
		status       int // with a key
		keyless      int
		allow        string
	}
	tests := []test{
		{"GET", base + "/users/me", 200, 401, ""},
		{"HEAD", base + "/users/me", 200, 401, ""},
		{"GET", base + "/openapi", 200, 401, ""},
		{"GET", base + "/events/evt_1", 200, 401, ""},
		{"GET", base + "/events/one", 200, 401, ""},
		{"GET", base + "/events/evt%5F1", 200, 401, ""},
		{"GET", base + "/events/%6Fne", 200, 401, ""},
		{"GET", base + "/events/evt_1/guests", 200, 401, ""},
		{"POST", base + "/events/evt%2F1", 404, 401, ""},
		{"GET", base + "/events/evt_0", 404, 401, ""},
		{"GET", base + "/events/evt_bob", 404, 401, ""},
		{"GET", base + "/events/bobs", 404, 401, ""},
		{"GET", base + "/events/bobs/guests", 404, 401, ""},
		{"GET", base + "/events/usr_ada", 404, 401, ""},
		{"GET", base + "/events/key_ada", 404, 401, ""},
		{"GET", base + "/events/gst_1", 404, 401, ""},
		{"GET", base + "/events/email:ada@example.com", 404, 401, ""},
		{"GET", base + "/events/guest:evt_1:grace@example.com", 404, 401, ""},
		{"POST", base + "/users/me", 405, 401, "GET, HEAD, OPTIONS"},
		{"DELETE", base + "/events", 405, 401, "GET, HEAD, OPTIONS"},
		{"PATCH", base + "/events/evt_1", 405, 401, "GET, HEAD, OPTIONS"},
		{"GET", base + "/events/create", 404, 401, ""},
		{"HEAD", base + "/events/create", 404, 401, ""},
		{"PUT", base + "/events/create", 405, 401, "POST, GET, HEAD, OPTIONS"},
		{"get", base + "/events", 405, 401, "GET, HEAD, OPTIONS"},
		{"OPTIONS", base + "/events/create", 204, 401, "POST, GET, HEAD, OPTIONS"},
		{"OPTIONS", base + "/events", 204, 401, "GET, HEAD, OPTIONS"},
		{"OPTIONS", base + "/nothing", 404, 401, ""},
		{"POST", base + "/events/create/", 404, 401, ""},
		{"GET", "/", 404, 404, ""},
		{"GET", "/healthz", 404, 404, ""},
		{"GET", "/api/public/v1x", 404, 404, ""},
		{"GET", "/api/public/v2/events", 404, 404, ""},
		{"OPTIONS", "/", 404, 404, ""},
	}
	for _, unknown := range []string{
		"", "/", "/nothing", "/Events", "/events/", "//events", "/events//evt_1", "/./events", "/users/../events",
		"/users/%2e%2e/events", "/events%2Fevt_1", "/events/evt_1%2fguests", "/events/evt_1%00",
		"/events/evt_1/guests/gst_1",
	} {
		tests = append(tests, test{"GET", base + unknown, 404, 401, ""})
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			a := s.do(tt.method, tt.path, "")
			if a.status != tt.status || a.header.Get("Allow") != tt.allow {
				t.Errorf("%s %s = %s, want %d with Allow %q", tt.method, tt.path, a, tt.status, tt.allow)
			}
			if a := s.do(tt.method, tt.path, "", "-key: "); a.status != tt.keyless {
				t.Errorf("%s %s without a key = %s, want %d", tt.method, tt.path, a, tt.keyless)
			}
		})
	}
	t.Run("no path", func(t *testing.T) {
		for _, uri := range []string{"*", ""} {
			r := httptest.NewRequest("OPTIONS", "/", nil)
			r.URL.Path, r.RequestURI = uri, uri
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if w.Code != 404 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("OPTIONS %q = %d %s, want 404 as JSON", uri, w.Code, w.Body)
			}
		}
	})
	t.Run("the likeliest mistake", func(t *testing.T) {
		a := s.do("POST", base+"/events", newEvent)
		const way = "use GET, HEAD, OPTIONS, or POST /events/create"
		if a.status != 405 || !strings.HasSuffix(a.message(), way) {
			t.Errorf("POST /events = %s, want 405 with %q", a, way)
		}
	})
}

func TestForeignIsUnknown(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	want := s.do("GET", base+"/events/evt_nowhere", "")
	for _, ref := range []string{"evt_bob", "bobs", "nowhere", "usr_bob"} {
		for _, path := range []string{"/events/" + ref, "/events/" + ref + "/guests"} {
			got := s.do("GET", base+path, "")
			sameHeaders := maps.EqualFunc(got.header, want.header, slices.Equal)
			if got.status != 404 || got.body != want.body || !sameHeaders {
				t.Errorf("GET %s = %s, want %s", path, got, want)
			}
		}
	}
}

// TestIntercept: the hook sees a request once key, route and method are known,
// before its query is read.
func TestIntercept(t *testing.T) {
	t.Parallel()
	var seen []string
	s := newService(t, nil)
	s.intercept(func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		seen = append(seen, r.Operation+" "+r.Caller.UserID)
		next(w, r.Request)
	})
	for _, target := range []string{"/events?nonsense", "/events/one", "/nothing", "/events/create"} {
		s.do("HEAD", base+target, "")
	}
	s.do("GET", base+"/events/one/guests", "", "-key: ")
	if got, want := strings.Join(seen, ", "), "GET /events usr_ada, GET /events/{id} usr_ada, GET /events/{id} usr_ada"; got != want {
		t.Errorf("Intercept saw %s, want %s", got, want)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	tests := []struct {
		target  string
		status  int
		message string // contained in an error's
	}{
		{"/events?limit=1", 200, ""},
		{"/events?status=draft&limit=2", 200, ""},
		{"/events/evt_1/guests?limit=200", 200, ""},
		{"/events?limit=0", 400, "limit must be a whole number from 1 to 100"},
		{"/events?limit=101", 400, "limit must be a whole number from 1 to 100"},
		{"/events?limit=%2B5", 400, "limit must"},
		{"/events?limit=", 400, "limit must"},
		{"/events?limit=5&limit=5", 400, "limit must be a whole number from 1 to 100, in digits, given once"},
		{"/events/evt_1/guests?limit=201", 400, "limit must be a whole number from 1 to 200"},
		{"/events?status=", 400, "status must be draft or published"},
		{"/events?status=live", 400, "status must"},
		{"/events?status=draft&status=published", 400, "status must be draft or published, given once"},
		{"/events?offset=10", 400,
			`"offset" is not a query parameter of GET /events: it takes status, limit, cursor`},
		{"/events/evt_1/guests?status=approved", 400,
			`"status" is not a query parameter of GET /events/{id}/guests: it takes limit, cursor`},
		{"/events/evt_1?x", 400, "it takes none"},
		{"/events/evt_nowhere/guests?limit=0", 400, "limit must"}, // the query comes before ownership
		{"/events?cursor=", 400, "cursor must"},
		{"/events?cursor=abc", 400, "cursor must"},
	}
	for _, tt := range tests {
		t.Run(tt.target, func(t *testing.T) {
			a := s.do("GET", base+tt.target, "")
			if a.status != tt.status || !strings.Contains(a.message(), tt.message) {
				t.Errorf("GET %s = %s, want %d with %q", tt.target, a, tt.status, tt.message)
			}
		})
	}
	if a := s.do("POST", base+"/events/create?dry=1", newEvent); a.status != 400 {
		t.Errorf("POST /events/create?dry=1 = %s, want 400", a)
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	const gzip = "Content-Encoding: gzip"
	tests := []struct {
		header string
		status int
	}{
		{"Content-Encoding: identity", 201},
		{"Content-Encoding: Identity", 201},
		{"Content-Encoding: ", 201},
		{"Content-Encoding: identity, gzip", 415},
		{gzip, 415},
		{"Content-Type: application/json", 201},
		{"Content-Type: Application/JSON", 201},
		{"Content-Type: application/json; charset=utf-8", 201},
		{`Content-Type: application/json;charset="UTF-8"`, 201},
		{"Content-Type: application/json ; charset=utf-8;", 201},
		{"Content-Type: ", 201},
		{"X-Nothing: here", 201},
		{"Content-Type: application/json; charset=latin1", 415},
		{"Content-Type: application/json; charset=utf-8; x=y", 415},
		{`Content-Type: application/json; charset="utf-8`, 415},
		{"Content-Type: application/json; profile=x", 415},
		{"Content-Type: application/jsonp", 415},
		{"Content-Type: application/x-www-form-urlencoded", 415},
		{"Content-Type: text/plain", 415},
		{"Content-Type: application/json, text/plain", 415},
		{"Content-Type: json", 415},
	}
	for _, tt := range tests {
		a := s.create(newEvent, tt.header)
		accept, coding, message := "", "", ""
		if tt.status == 415 && strings.HasPrefix(tt.header, "Content-Encoding") {
			coding, message = "identity", "Content-Encoding must be left out"
		} else if tt.status == 415 {
			accept, message = "application/json", "with curl, add -H 'Content-Type: application/json'"
		}
		if a.status != tt.status || !strings.Contains(a.message(), message) ||
			a.header.Get("Accept") != accept || a.header.Get("Accept-Encoding") != coding {
			t.Errorf("POST with %s = %s, want %d with Accept %q, Accept-Encoding %q and %q",
				tt.header, a, tt.status, accept, coding, message)
		}
	}
	if a := s.create(newEvent, "Content-Type: application/json", "Content-Type: application/json"); a.status != 415 {
		t.Errorf("POST with Content-Type twice = %s, want 415", a)
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	pad := func(n int) string { return newEvent + strings.Repeat(" ", n-len(newEvent)) }
	if a := s.create(pad(1 << 20)); a.status != 201 {
		t.Errorf("a body of 1 MiB = %s, want 201", a)
	}
	if a := s.create(pad(1<<20 + 1)); a.status != 413 {
		t.Errorf("a body of 1 MiB and a byte = %s, want 413", a)
	}
}

// TestBodies are bodies that are refused as a whole, before any member counts.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	wrap := func(title string) string { return `{"title":` + title + `,` + onMayDay + `}` }
	times := func(start, end string) string {
		return `{"title":"x","start_at":"` + start + `","end_at":"` + end + `"}`
	}
	const known = "(the fields are title, description, start_at,"
	tests := []struct {
		name, body string
		message    string
	}{
		{"empty", "", "the body is empty: send a JSON object"},
		{"array", "[" + newEvent + "]", "the body must be a JSON object, not an array"},
		{"data behind", newEvent + "x", "not a JSON object"},
		{"duplicate", wrap(`"a","title":"a"`), "title is given more than once"},
		{"case", `{"TITLE":"a",` + onMayDay + `}`, "title is required; TITLE is not known " + known},
		{"invalid UTF-8", wrap("\"a\xffb\""), "UTF-8"},
		{"lone surrogate", wrap(`"\ud800"`), "surrogate"},
		{"null for a title", wrap("null"), "title is required and must not be null"},
		{"256 characters", wrap(`"` + strings.Repeat("é", 256) + `"`),
			"title must have 1 to 255 characters, not 256"},
		{"white title", wrap(`"\u00a0\u2003"`),
			"title must have 1 to 255 characters, not only white space"},
		{"set by the server", `{"id":"evt_x","status":"draft",` + newEvent[1:],
			"id is set by the server, so leave it out; status is set by the server, so leave it out"},
		{"end before start", times("2027-05-01T18:00:00+02:00", "2027-05-01T16:00:00Z"),
			"end_at must be after start_at"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := s.create(tt.body)
			if a.status != 400 || !strings.Contains(a.message(), tt.message) {
				t.Errorf("POST %.200s = %s, want 400 with %q", tt.body, a, tt.message)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	a := s.create(newEvent)
	e := decode[events.Event](t, a)
	if a.status != 201 || a.header.Get("Location") != base+"/events/"+e.ID {
		t.Fatalf("create = %s", a)
	}
	for _, ref := range []string{e.ID, e.Slug} {
		if got := s.do("GET", base+"/events/"+ref, ""); got.body != a.body {
			t.Errorf("GET /events/%s = %s, want what create answered: %s", ref, got, a)
		}
	}
	if got := ids(decode[eventList](t, s.do("GET", base+"/events?limit=1", ""))); got != e.ID {
		t.Errorf("the newest event = %s, want %s", got, e.ID)
	}
	if a := s.as("svc_live_bob").do("GET", base+"/events/"+e.ID, ""); a.status != 404 {
		t.Errorf("another host gets it: %s", a)
	}
	if e.Timezone != "Europe/London" || e.Status != "published" || e.HostID != "usr_ada" ||
		!e.CreatedAt.Equal(e.UpdatedAt) || time.Since(e.CreatedAt) > time.Minute {
		t.Errorf("defaults = %+v", e)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newService(t, &events.Config{Now: func() time.Time { return now }})
	create := func(key, body string) answer {
		t.Helper()
		return s.create(body, "Idempotency-Key: "+key)
	}
	isNew := func(a answer) bool { return a.status == 201 && a.header.Get("Idempotency-Replayed") == "" }
	first := create("one", newEvent)
	if !isNew(first) {
		t.Fatalf("first = %s", first)
	}
	for _, key := range []string{"one", `"one"`} {
		again := create(key, newEvent)
		if again.status != 201 || again.body != first.body ||
			again.header.Get("Idempotency-Replayed") != "true" ||
			again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("again with %s = %s, want the first answer: %s", key, again, first)
		}
	}
	for _, body := range []string{newEvent + " ", "{", `{"title":5}`} {
		if a := create("one", body); a.status != 422 {
			t.Errorf("the same key with %q = %s, want 422", body, a)
		}
	}
	if a := s.as("svc_live_bob").create(newEvent, "Idempotency-Key: one"); !isNew(a) {
		t.Errorf("the same key of another owner = %s, want a new event", a)
	}

	// Only successes are kept.
	if a := create("two", "{"); a.status != 400 {
		t.Errorf("bad body = %s", a)
	}
	if a := create("two", newEvent); !isNew(a) {
		t.Errorf("good body after a bad one = %s, want a new event", a)
	}

	// A replay is the event as it is now. A key is deleted with its event.
	e := decode[events.Event](t, first)
	if err := s.store.ApplyJSON([]byte(`[{"event":{"id":"` + e.ID + `","title":"Renamed"}}]`)); err != nil {
		t.Fatal(err)
	}
	if got := decode[events.Event](t, create("one", newEvent)); got.Title != "Renamed" || got.ID != e.ID {
		t.Errorf("after a change = %+v, want the event as it is", got)
	}
	if err := s.store.Apply(events.Record{Delete: &events.Ref{Event: e.ID}}); err != nil {
		t.Fatal(err)
	}
	if a := create("one", newEvent+" "); !isNew(a) || decode[events.Event](t, a).ID == e.ID {
		t.Errorf("after a delete, with another body = %s, want a new event", a)
	}

	// Another host's event with the id of one that was deleted is not replayed.
	moved := decode[events.Event](t, create("moved", newEvent)).ID
	records := `[{"delete":{"event":"` + moved + `"}},
		{"event":{"id":"` + moved + `","host_id":"usr_bob","title":"Bob's secret",` + onMayDay + `}}]`
	if err := s.store.ApplyJSON([]byte(records)); err != nil {
		t.Fatal(err)
	}
	if a := create("moved", newEvent); !isNew(a) || decode[events.Event](t, a).HostID != "usr_ada" {
		t.Errorf("the key of an event whose id is another host's now = %s, want a new event", a)
	}

	// 24 hours.
	late := create("late", newEvent)
	now = now.Add(24*time.Hour - time.Nanosecond)
	if a := create("late", newEvent); a.body != late.body {
		t.Errorf("after almost 24 hours = %s, want the first answer", a)
	}
	now = now.Add(time.Nanosecond)
	if a := create("late", newEvent); !isNew(a) || a.body == late.body {
		t.Errorf("after 24 hours = %s, want a new event", a)
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	long := strings.Repeat("k", 255)
	for _, key := range []string{"", `"`, `""`, `"open`, `"k"k"`, `"k\k"`, `"k\n"`, `"\x6b"`, `"k\"`,
		`"k";a=1`, "a b", `"a b"`, "é", `"é"`, long + "k", `"` + long + `k"`, "tab\there"} {
		a := s.create(newEvent, "Idempotency-Key: "+key)
		if a.status != 400 || !strings.Contains(a.message(), "Idempotency-Key must be") {
			t.Errorf("Idempotency-Key %q = %s, want 400", key, a)
		}
	}
	if a := s.create(newEvent, "Idempotency-Key: a", "Idempotency-Key: a"); a.status != 400 {
		t.Errorf("the header twice = %s, want 400", a)
	}
	for _, same := range [][2]string{
		{`"\"\\k"`, `"\"\\k"`}, {`k"k'\`, `"k\"k'\\"`}, {long, `"` + long + `"`},
		{strings.Repeat(`\`, 255), `"` + strings.Repeat(`\\`, 255) + `"`},
	} {
		a := s.create(newEvent, "Idempotency-Key: "+same[0])
		b := s.create(newEvent, "Idempotency-Key: "+same[1])
		if a.status != 201 || a.body != b.body {
			t.Errorf("the keys %.20s and %.20s = %s, then %s, want one event", same[0], same[1], a, b)
		}
	}
}

func TestIdempotencyAtOnce(t *testing.T) {
	t.Parallel()
	store, err := events.Open(t.TempDir()+"/events.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		t.Fatal(err)
	}
	s := &service{t, store, events.New(store), "svc_live_ada"}
	var wg sync.WaitGroup
	answers := make([]answer, 32)
	for i := range answers {
		wg.Go(func() { answers[i] = s.create(newEvent, "Idempotency-Key: k") })
	}
	wg.Wait()
	fresh := 0
	for _, a := range answers {
		if a.status != 201 || a.body != answers[0].body {
			t.Errorf("at once = %s, want %s", a, answers[0])
		}
		if a.header.Get("Idempotency-Replayed") == "" {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of the answers are not replays, want 1", fresh)
	}
}

// Errors.

func TestServerError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newService(t, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.intercept(func(http.ResponseWriter, httpapi.Request, http.HandlerFunc) { panic("the cause") })
	for range 2 { // each of them is logged
		log.Reset()
		a := s.do("GET", base+"/events/one", "")
		id := a.header.Get("X-Request-Id")
		if a.status != 500 || id == "" || strings.Contains(a.body, "cause") {
			t.Errorf("a panic = %s, want 500 with X-Request-Id and without the cause", a)
		}
		got := log.String()
		if strings.Count(got, "level=ERROR") != 1 || strings.Contains(got, "svc_live_ada") {
			t.Errorf("log = %s, want one line without the key", got)
		}
		for _, part := range []string{id, "the cause", "/events/{id}"} {
			if !strings.Contains(got, part) {
				t.Errorf("log = %s, want %s in it", got, part)
			}
		}
	}
}

// Concurrency and fuzzing.

// TestConcurrency has writers and readers at once, for the race detector.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.create(newEvent, fmt.Sprintf("Idempotency-Key: %d-%d", i, n/2))
				s.do("GET", base+"/events?limit=100&status=published", "")
				s.do("GET", base+"/events/one/guests", "")
				records := `[{"event":{"id":"evt_1","status":"` + []string{"draft", "published"}[n%2] + `"}},
					{"guest":{"event_id":"evt_1","email":"new@example.com"}},{"delete":{"event":"evt_2"}}]`
				if err := s.store.ApplyJSON([]byte(records)); err != nil {
					t.Error(err)
				}
				if _, _, err := s.store.IssueKey("usr_bob"); err != nil {
					t.Error(err)
				}
				s.store.Records()
			}
		})
	}
	wg.Wait()
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
	if err := s.store.Apply(); !errors.Is(err, events.ErrClosed) {
		t.Errorf("Apply after Close = %v, want ErrClosed", err)
	}
}

// undo deletes the event that a create answered.
func (s *service) undo(a answer) {
	s.t.Helper()
	id := decode[events.Event](s.t, a).ID
	if err := s.store.Apply(events.Record{Delete: &events.Ref{Event: id}}); err != nil {
		s.t.Fatal(err)
	}
}

// FuzzBody: no body is answered with a 5xx, what is taken comes back as it was
// sent, and what is refused changes nothing.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		newEvent, "", "{}", "null", "[]", `{"title":"a","timezone":"","visibility":"",` + onMayDay + `}`,
		`{"title":"a","title":"b"}`, newEvent + "{}",
		`{"title":"\ud800",` + onMayDay + `}`,
		`{"title":"é\u0000\n","start_at":"2016-12-31T23:59:60Z","end_at":"2027-05-01t20:00:00.123456789z",
			"description":"x","timezone":"Europe/Paris","location_type":"virtual","location_city":"a",
			"location_country":"b","visibility":"private","requires_approval":true,
			"cover_image_url":"https://example.com","meeting_url":"http://[::1]/"}`,
	} {
		f.Add(body)
	}
	s := newService(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		before := len(s.store.Records())
		a := s.create(body)
		switch {
		case a.status == 201:
			if err := checkKept(body, a.body); err != nil {
				t.Error(err)
			}
			s.undo(a)
		case a.status != 400 && a.status != 413:
			t.Errorf("POST %q = %s, want 201, 400 or 413", body, a)
		}
		if after := len(s.store.Records()); after != before {
			t.Errorf("POST %q left %d records, want %d", body, after, before)
		}
	})
}

// FuzzTarget: no path and query is answered with anything but the documented
// form, or with what belongs to another host; and a query string is malformed
// where net/url says so.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"/events?limit=1", "/events?status=draft&cursor=MSBl", "/events/one/guests?limit=200", "/users/me?",
		"/openapi", "//events", "/events/%2e%2e/x", "/events/bobs%00", "/events/evt%5Fbob", "/events/create",
		"/events?limit=1;a=b", "/events?%zz", "/events?limit=%35&&=&%6cimit=5", "/events?status",
		"/events?a+b=+",
	} {
		f.Add("GET", target)
	}
	s := newService(f, nil)
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.NewRequest(method, "http://localhost"+base+target, nil)
		if err != nil {
			return
		}
		if _, err := url.ParseRequestURI(r.URL.RequestURI()); err != nil {
			return
		}
		r.RequestURI, r.Body = r.URL.RequestURI(), http.NoBody
		r.Header.Set("x-service-api-key", s.key)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		a := answer{w.Code, w.Result().Header, w.Body.String()}
		s.t = t
		s.checkForm(r.Method, r.URL.Path, a)
		if a.status >= 500 || a.status >= 300 && a.status < 400 || strings.Contains(a.body, "usr_bob") {
			t.Errorf("%s %s = %s", method, target, a)
		}
		if strings.Count(r.URL.RawQuery, "&") > 9_000 { // net/url has a limit
			return
		}
		_, err = url.ParseQuery(r.URL.RawQuery)
		malformed := strings.Contains(a.message(), "query string is malformed")
		if malformed && err == nil || err != nil && a.status == 200 {
			t.Errorf("%s %s = %s, but net/url says of the query: %v", method, target, a, err)
		}
	})
}

// FuzzHeaders: no header is answered with a 5xx, and only the key of a user
// opens anything.
func FuzzHeaders(f *testing.F) {
	const charset = "application/json; charset=utf-8"
	for _, h := range [][5]string{
		{"svc_live_ada", "", "", "", ""},
		{"", "Bearer svc_live_ada", "application/json", `"key"`, ""},
		{"svc_live_ada", "Bearer x", "text/plain; charset=\"", `"\"`, "gzip"},
		{"\x00", "Basic", charset, "é", "identity"},
	} {
		f.Add(h[0], h[1], h[2], h[3], h[4])
	}
	s := newService(f, nil)
	f.Fuzz(func(t *testing.T, key, authorization, contentType, idempotencyKey, contentEncoding string) {
		s.t = t
		var headers []string
		for name, value := range map[string]string{
			"x-service-api-key": key, "Authorization": authorization, "Content-Type": contentType,
			"Idempotency-Key": idempotencyKey, "Content-Encoding": contentEncoding,
		} {
			if value != "" {
				headers = append(headers, name+": "+value)
			}
		}
		a := s.as("").create(newEvent, headers...)
		sent := key
		if key == "" && len(authorization) > 7 && strings.EqualFold(authorization[:7], "Bearer ") {
			sent = strings.TrimLeft(authorization[7:], " ")
		}
		open := sent == "svc_live_ada" || sent == "svc_live_bob"
		if a.status >= 500 || open == (a.status == 401) {
			t.Errorf("%q = %s", headers, a)
		}
		if a.status == 201 {
			s.undo(a)
		}
	})
}

// Benchmarks.

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header               { return d.header }
func (d *discard) WriteHeader(status int)            { d.status = status }
func (d *discard) Write(p []byte) (int, error)       { return len(p), nil }
func (d *discard) WriteString(p string) (int, error) { return len(p), nil }

// filled is a store with n events of one host, a tenth of them drafts.
func filled(b *testing.B, store *events.Store, n int) {
	b.Helper()
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		b.Fatal(err)
	}
	at := time.Date(2027, 1, 2, 18, 0, 0, 0, time.UTC)
	records := make([]events.Record, n)
	for i := range records {
		status := "published"
		if i%10 == 0 {
			status = "draft"
		}
		records[i].Event = &events.Event{
			ID: fmt.Sprintf("evt_%012d", i), HostID: "usr_ada", Status: status,
			Title: fmt.Sprintf("Event number %d of a measurement", i), Description: new("A short text that says what it is."),
			StartAt: at, EndAt: at.Add(2 * time.Hour), Timezone: "Europe/Lisbon",
			LocationType: new("in_person"), LocationCity: new("Lisbon"), LocationCountry: new("PT"),
		}
	}
	if err := store.Apply(records...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead has reads of which each takes more steps than the one before: the key,
// the path, the query and the list, the cursor, and then longer lists.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		store := events.NewStore(nil)
		filled(b, store, n)
		s := &service{b, store, events.New(store), "svc_live_ada"}
		cursor := *decode[eventList](b, s.do("GET", base+"/events?limit=1", "")).NextCursor
		for _, read := range [][2]string{
			{"me", "/users/me"}, {"one", "/events/evt_000000000777"}, {"list1", "/events?limit=1"},
			{"cursor", "/events?limit=1&cursor=" + cursor}, {"list50", "/events?limit=50"},
			{"list100", "/events?limit=100"}, {"drafts50", "/events?limit=50&status=draft"},
		} {
			b.Run(fmt.Sprintf("%s/%d", read[0], n), func(b *testing.B) {
				b.ReportAllocs()
				r := s.newRequest("GET", base+read[1], "")
				w := &discard{header: http.Header{}}
				for b.Loop() {
					clear(w.header)
					s.handler.ServeHTTP(w, r)
				}
				if w.status != 200 {
					b.Fatalf("status %d", w.status)
				}
			})
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, kind := range []string{"memory", "file"} {
		for _, n := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				store := events.NewStore(nil)
				if kind == "file" {
					var err error
					if store, err = events.Open(b.TempDir()+"/events.json", nil); err != nil {
						b.Fatal(err)
					}
				}
				defer store.Close()
				filled(b, store, n)
				s := &service{b, store, events.New(store), "svc_live_ada"}
				b.ReportAllocs()
				b.SetParallelism(32)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					w := &discard{header: http.Header{}}
					for pb.Next() {
						clear(w.header)
						s.handler.ServeHTTP(w, s.newRequest("POST", base+"/events/create", newEvent))
						if w.status != 201 {
							b.Fatalf("status %d", w.status)
						}
					}
				})
			})
		}
	}
}

// TestGuestsOfAnother: while an operator gives an event to another host and back, the
// answer to one host never has the guests that the event has under the other.
func TestGuestsOfAnother(t *testing.T) {
	t.Parallel()
	store := events.NewStore(nil)
	apply := func(records string) {
		if err := store.ApplyJSON([]byte("[" + records + "]")); err != nil {
			t.Error(err)
		}
	}
	apply(`{"user":{"id":"usr_ada","name":"A","email":"a@example.com"}},
		{"user":{"id":"usr_bob","name":"B","email":"b@example.com"}},
		{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}}`)
	move := func(host string) {
		apply(`{"delete":{"event":"evt_1"}},{"event":{"id":"evt_1","host_id":"` + host + `","title":"T",
			"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}},
			{"guest":{"event_id":"evt_1","name":"of ` + host + `"}}`)
	}
	done := make(chan bool)
	var moving sync.WaitGroup
	moving.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				move("usr_ada")
				move("usr_bob")
			}
		}
	})
	h := events.New(store)
	for range 5000 {
		r := httptest.NewRequest("GET", events.BasePath+"/events/evt_1/guests", nil)
		r.Header.Set("X-Service-Api-Key", "svc_live_ada")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		isHers := w.Code == http.StatusOK && strings.Contains(w.Body.String(), "of usr_ada")
		if !isHers && w.Code != http.StatusNotFound {
			t.Errorf("the guests are %d %s", w.Code, w.Body)
			break
		}
	}
	close(done)
	moving.Wait()
}
