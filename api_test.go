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
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/httpapi"
)

// Whole responses are checked by TestGoldenExamples, and openapi.json by every request of a service.

func TestCreate(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		s := newService(t, mode, nil)
		created := s.create(newEvent)
		wantStatus(t, created, 201)
		e := decode[events.Event](t, created)
		wantHeader(t, created, "Location", base+"/events/"+e.ID)
		for _, ref := range []string{e.ID, e.Slug} {
			got := s.get("/events/" + ref)
			if got.body != created.body {
				t.Errorf("%s, want the response to the create: %s", got, created)
			}
		}
		wantIDs(t, s.get("/events?limit=1"), e.ID)
		wantStatus(t, s.get("/events/"+e.ID, asBob), 404)

		if e.HostID != "usr_ada" {
			t.Errorf("host_id = %s, want usr_ada", e.HostID)
		}
		if e.Status != "published" {
			t.Errorf("status = %s, want published", e.Status)
		}
		if e.Timezone != "Europe/London" {
			t.Errorf("timezone = %s, want the host's", e.Timezone)
		}
		if !e.UpdatedAt.Equal(e.CreatedAt) {
			t.Errorf("updated_at = %v, want created_at, %v", e.UpdatedAt, e.CreatedAt)
		}
		if time.Since(e.CreatedAt) > time.Minute {
			t.Errorf("created_at = %v, want the current time", e.CreatedAt)
		}
		if !strings.HasPrefix(e.Slug, "launch-") {
			t.Errorf("slug = %s, want launch- at the beginning", e.Slug)
		}
		bobs := decode[events.Event](t, s.create(newEvent, asBob))
		if bobs.Timezone != "UTC" {
			t.Errorf("timezone = %s, want UTC for a host without one", bobs.Timezone)
		}
	})
}

func TestNewEventStatus(t *testing.T) {
	t.Parallel()
	for configured, want := range map[string]string{
		"":          "published",
		"published": "published",
		"draft":     "draft",
		"publisehd": "draft", // a typing mistake publishes nothing
	} {
		s := newService(t, inMemory, &events.Config{NewEventStatus: configured})
		got := decode[events.Event](t, s.create(newEvent)).Status
		if got != want {
			t.Errorf("status of a new event with NewEventStatus %q = %s, want %s", configured, got, want)
		}
	}
}

// Strings come back as they were sent, and times in UTC.
func TestCreateKeepsValues(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		s := newService(t, mode, nil)
		for _, tt := range []struct{ sent, want string }{
			{`"title":"Ärger & <b>\u00e9\ud83d\ude00\/</b>",` + onMayDay, `"title":"Ärger & <b>é😀/</b>"`},
			{`"title":"}},{\"event\":{\"","description":"\u0000\u2028\\",` + onMayDay,
				`"title":"}},{\"event\":{\"","description":"\u0000\u2028\\"`},
			{`"title":"x","start_at":"0001-01-01T00:00:01Z","end_at":"9999-12-31T23:59:59.999999999999Z"`,
				`"start_at":"0001-01-01T00:00:01Z","end_at":"9999-12-31T23:59:59.999999999Z"`},
			{`"title":"x","start_at":"2027-05-01t18:00:00.120-07:00","end_at":"2027-12-31T23:59:60z"`,
				`"start_at":"2027-05-02T01:00:00.12Z","end_at":"2028-01-01T00:00:00Z"`},
			{`"title":"x",` + onMayDay + `,"cover_image_url":"HTTPS://example.com/%7Ea?b#c"`,
				`"cover_image_url":"HTTPS://example.com/%7Ea?b#c"`},
			{`"title":"x",` + onMayDay + `,"location_city":"","meeting_url":"","visibility":null`,
				`"location_city":"","location_country":null,"visibility":"public"`},
		} {
			r := s.create("{" + tt.sent + "}")
			wantStatus(t, r, 201)
			if !strings.Contains(r.body, tt.want) {
				t.Errorf("create {%s}: %s, want %s", tt.sent, r, tt.want)
			}
			if got := s.get("/events/" + r.id()); got.body != r.body {
				t.Errorf("%s, want %s", got, r.body)
			}
		}
	})
}

// One message has all problems of a body: of the fields in the order of openapi.json, and then of other fields
// in the order of the body.
func TestEveryProblem(t *testing.T) {
	t.Parallel()
	const dateTime = "must be a date-time such as 2027-03-01T18:00:00Z or 2027-03-01T18:00:00+02:00: " +
		"a day and time that exist, with a T between them and Z or an offset from UTC at the end"
	const zone = "must be a time zone name of the form Area/City from the IANA list in its exact case, " +
		"such as Europe/Paris, or UTC"
	const link = "must be an http or https URL with a host, such as https://example.com/x: at most 2048 " +
		"characters, no user info, and what a URL cannot hold percent-encoded, a space as %20"
	body, want := "", ""
	for _, field := range []struct{ name, value, problem string }{
		{"title", `" "`, "must have 1 to 255 characters, not only white space"},
		{"description", `true`, "must be a string, not a boolean"},
		{"start_at", `"tomorrow"`, dateTime},
		{"end_at", `"2027-05-01T18:00:00"`, dateTime},
		{"timezone", `"Mars/Base"`, zone},
		{"location_type", `"moon"`, "must be in_person or virtual"},
		{"location_city", `[]`, "must be a string, not an array"},
		{"location_country", `{}`, "must be a string, not an object"},
		{"visibility", `"secret"`, "must be public or private"},
		{"requires_approval", `"yes"`, "must be true or false, not a string"},
		{"cover_image_url", `5`, "must be a string, not a number"},
		{"meeting_url", `"ftp://x"`, link},
	} {
		body = fmt.Sprintf("%q:%s,%s", field.name, field.value, body) // the last field comes first
		want += field.name + " " + field.problem + "; "
	}
	body = "{" + body + `"slug":"mine","Title":"x","tags":[]}`
	want += "slug is set by the server, so leave it out; Title is not known; tags is not known " +
		"(the fields are title, description, start_at, end_at, timezone, location_type, location_city, " +
		"location_country, visibility, requires_approval, cover_image_url, meeting_url)"
	r := newService(t, inMemory, nil).create(body)
	wantStatus(t, r, 400)
	if got := r.message(); got != want {
		t.Errorf("POST %s:\n got %s\nwant %s", body, got, want)
	}
}

func TestBodiesRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	before := s.dump()
	withTitle := func(title string) string { return `{"title":` + title + `,` + onMayDay + `}` }
	for _, tt := range []struct{ name, body, want string }{
		{"empty", "", "the body is empty: send a JSON object"},
		{"array", "[" + newEvent + "]", "the body must be a JSON object, not an array"},
		{"data after it", newEvent + "x", "the body is not a JSON object: line 1"},
		{"invalid UTF-8", withTitle("\"a\xffb\""), "UTF-8"},
		{"lone surrogate", withTitle(`"\ud800"`), "surrogate"},
		{"duplicate", withTitle(`"a","title":"a"`), "title is given more than once"},
		{"null", withTitle("null"), "title is required and must not be null"},
		{"256 characters", withTitle(`"` + strings.Repeat("é", 256) + `"`),
			"title must have 1 to 255 characters, not 256"},
		{"set by the server", `{"id":"evt_x","status":"draft",` + newEvent[1:],
			"id is set by the server, so leave it out; status is set by the server, so leave it out"},
		{"end before start", `{"title":"x","start_at":"2027-05-01T18:00:00+02:00","end_at":"2027-05-01T16:00:00Z"}`,
			"end_at must be after start_at"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantError(t, s.create(tt.body), 400, tt.want) })
	}
	if got := s.dump(); got != before {
		t.Errorf("records = %s, want %s", got, before)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		s := newService(t, mode, nil)
		wantIDs(t, s.get("/events"), "evt_3 evt_2 evt_1")
		wantIDs(t, s.get("/events?status=draft"), "evt_1")
		wantIDs(t, s.get("/events?status=published"), "evt_3 evt_2")
		wantIDs(t, s.get("/events?limit=2"), "evt_3 evt_2")
		wantIDs(t, s.get("/events?status=published&limit=1"), "evt_3")

		s.apply(`[{"event":{"id":"evt_2","status":"draft"}}]`)
		wantIDs(t, s.get("/events?status=draft"), "evt_2 evt_1")
		wantIDs(t, s.get("/events?status=published"), "evt_3")

		empty := s.get("/events?status=draft", asBob)
		if empty.body != `{"data":[],"has_more":false,"next_cursor":null}` {
			t.Errorf("an empty list: %s", empty)
		}

		guests := s.get("/events/evt_1/guests?limit=2")
		wantIDs(t, guests, "gst_3 gst_2")
		wantIDs(t, s.get("/events/one/guests?"+guests.next()), "gst_1")
	})
}

// A page continues from its position while events are created and deleted.
func TestCursor(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		s := newService(t, mode, nil)
		first := s.get("/events?limit=1")
		wantIDs(t, first, "evt_3")
		wantStatus(t, s.create(newEvent), 201)
		s.apply(`[{"delete":{"event":"evt_3"}}]`)
		second := s.get("/events?limit=1&" + first.next())
		wantIDs(t, second, "evt_2")
		third := s.get("/events?limit=1&" + second.next())
		wantIDs(t, third, "evt_1")
		if third.next() != "" {
			t.Errorf("%s, want no next page", third)
		}

		// It is a position in any list.
		wantIDs(t, s.get("/events?status=published&"+first.next()), "evt_2")
		wantIDs(t, s.get("/events?"+s.get("/events/evt_1/guests?limit=1").next()), "evt_2 evt_1")
	})
}

func TestCursorRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	cursor := strings.TrimPrefix(s.get("/events?limit=1").next(), "cursor=")
	position, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	created, id, _ := strings.Cut(string(position), " ")
	encode := base64.RawURLEncoding.EncodeToString
	for name, malformed := range map[string]string{
		"empty":           "",
		"not base64":      "!" + cursor,
		"padded":          cursor + "=",
		"line feed":       cursor + "\n",
		"no ID":           encode([]byte(created)),
		"empty ID":        encode([]byte(created + " ")),
		"no time":         encode([]byte(" " + id)),
		"not a time":      encode([]byte("now " + id)),
		"space before it": encode([]byte(" " + string(position))),
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, s.get("/events?cursor="+url.QueryEscape(malformed)), 400, "cursor must be")
		})
	}
}

// All pages together are the whole list.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	var records strings.Builder
	for i := range 250 {
		fmt.Fprintf(&records, `{"event":{"host_id":"usr_bob","title":"Event %d",%s}},`, i, onMayDay)
		fmt.Fprintf(&records, `{"guest":{"event_id":"evt_bob","name":"Guest %d"}},`, i)
	}
	s.apply("[" + strings.TrimSuffix(records.String(), ",") + "]")
	for path, want := range map[string]int{
		"/events":                          50,
		"/events?limit=100":                100,
		"/events/evt_bob/guests":           50,
		"/events/evt_bob/guests?limit=200": 200,
	} {
		r := s.get(path, asBob)
		if got := len(strings.Fields(r.ids())); got != want {
			t.Errorf("GET %s has %d items, want %d", path, got, want)
		}
		if r.next() == "" {
			t.Errorf("GET %s has no next page", path)
		}
	}
	for _, path := range []string{"/events?limit=7", "/events?limit=50&status=published", "/events?limit=100"} {
		seen := map[string]bool{}
		page := s.get(path, asBob)
		for {
			for id := range strings.FieldsSeq(page.ids()) {
				if seen[id] {
					t.Fatalf("GET %s: %s is on two pages", path, id)
				}
				seen[id] = true
			}
			if page.next() == "" {
				break
			}
			page = s.get(path+"&"+page.next(), asBob)
		}
		if len(seen) != 251 {
			t.Errorf("GET %s: %d events on all pages, want 251", path, len(seen))
		}
	}
}

func TestCreatedAtIncreases(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		s := newService(t, mode, nil)
		var last time.Time
		for range 20 {
			created := decode[events.Event](t, s.create(newEvent)).CreatedAt
			if !created.After(last) {
				t.Fatalf("created_at = %v, want a time after %v", created, last)
			}
			if !created.Equal(created.Truncate(time.Microsecond)) {
				t.Fatalf("created_at = %v, want whole microseconds", created)
			}
			last = created
		}
	})
}

// The first check that fails decides the response.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	large := `{"title":"` + strings.Repeat("x", 1<<20) + `"}`
	const text = "Content-Type: text/plain"
	const badKey = "Idempotency-Key: a b"
	for _, tt := range []struct {
		name               string
		method, path, body string
		headers            []string
		status             int
	}{
		{"key", "POST", "/nothing?x=1", large, []string{keyless, text}, 401},
		{"route", "POST", "/nothing?x=1", large, []string{text}, 404},
		{"method", "POST", "/events?x=1", large, []string{text}, 405},
		{"query", "POST", "/events/create?x=1", large, []string{text}, 400},
		{"query before ownership", "GET", "/events/evt_bob/guests?limit=0", "", nil, 400},
		{"ownership", "GET", "/events/evt_bob/guests?limit=1", "", nil, 404},
		{"media type", "POST", "/events/create", large, []string{text, badKey}, 415},
		{"size", "POST", "/events/create", large, []string{badKey}, 413},
		{"body", "POST", "/events/create", "{", nil, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantStatus(t, s.do(tt.method, tt.path, tt.body, tt.headers...), tt.status)
		})
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	const origin, method = "Origin: https://app.example", "Access-Control-Request-Method: POST"
	const headers = "Access-Control-Request-Headers: x-service-api-key, traceparent"
	for _, path := range []string{"/events", "/events/create", "/nothing", "/events//x"} {
		r := s.do("OPTIONS", path, "", keyless, origin, method, headers)
		wantStatus(t, r, 204)
		wantHeader(t, r, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
		wantHeader(t, r, "Access-Control-Allow-Headers",
			"authorization, content-type, idempotency-key, x-service-api-key, *")
		wantHeader(t, r, "Access-Control-Max-Age", "7200")
	}
	wantStatus(t, s.do("OPTIONS", "/events", "", keyless, origin), 401)
	wantStatus(t, s.do("OPTIONS", "/events", "", keyless, method), 401)
	wantStatus(t, s.send("OPTIONS", "/elsewhere", nil, keyless, origin, method), 404)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	const ada, bearer = "x-service-api-key: svc_live_ada", "Authorization: Bearer svc_live_ada"
	const wrong = "x-service-api-key: wrong"
	for _, tt := range []struct {
		name    string
		headers []string
		status  int
		message string
	}{
		{"x-service-api-key", []string{ada}, 200, ""},
		{"bearer", []string{keyless, bearer}, 200, ""},
		{"bearer in lower case", []string{keyless, "Authorization: bearer svc_live_ada"}, 200, ""},
		{"bearer with more spaces", []string{keyless, "Authorization: BEARER   svc_live_ada"}, 200, ""},
		{"both", []string{ada, "Authorization: Bearer wrong"}, 200, ""},
		{"both, the first wrong", []string{wrong, bearer}, 401, "invalid API key"},
		{"both, the first empty", []string{"x-service-api-key: ", bearer}, 401, "it is empty"},
		{"empty", []string{"x-service-api-key: "}, 401, "a variable may be unset"},
		{"none", []string{keyless}, 401, "missing API key"},
		{"unknown", []string{"x-service-api-key: svc_live_nobody"}, 401, "invalid API key"},
		{"another case", []string{"x-service-api-key: SVC_LIVE_ADA"}, 401, "invalid API key"},
		{"too long", []string{ada + strings.Repeat("a", 300)}, 401, "invalid API key"},
		{"revoked", []string{"x-service-api-key: svc_live_old"}, 401, "invalid API key"},
		{"sent twice", []string{ada, ada}, 401, "more than once"},
		{"bearer sent twice", []string{keyless, bearer, bearer}, 401, "more than once"},
		{"basic", []string{keyless, "Authorization: Basic c3ZjX2xpdmVfYWRhOg=="}, 401, "Bearer"},
		{"no scheme", []string{keyless, "Authorization: svc_live_ada"}, 401, "Bearer"},
		{"bearer without a key", []string{keyless, "Authorization: Bearer"}, 401, "it is empty"},
		{"bearer and spaces", []string{keyless, "Authorization: Bearer  "}, 401, "it is empty"},
		{"an empty Authorization", []string{keyless, "Authorization: "}, 401, "it is empty"},
		{"digest", []string{"x-service-api-key: " + digestOfAda}, 401, "invalid API key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eachMode(t, func(t *testing.T, mode string) {
				r := newService(t, mode, nil).get("/users/me", tt.headers...)
				wantStatus(t, r, tt.status)
				if tt.status == 200 {
					return
				}
				wantError(t, r, 401, tt.message)
				wantError(t, r, 401, "; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>")
				wantHeader(t, r, "WWW-Authenticate", `Bearer realm="events"`)
			})
		})
	}
}

// A caller may be deleted while its request is served.
func TestDeletedCaller(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	s.handler.Mux().Intercept = func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		s.apply(`[{"delete":{"user":"` + r.Caller.UserID + `"}}]`)
		next(w, r.Request)
	}
	wantError(t, s.create(newEvent), 401, "its user was deleted")
	wantError(t, s.get("/users/me", asBob), 401, "its user was deleted")
	if got := s.dump(); strings.Contains(got, "evt_") {
		t.Errorf("records = %s, want no event", got)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	const read, create = "GET, HEAD, OPTIONS", "POST, GET, HEAD, OPTIONS"
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/users/me", 200, ""},
		{"HEAD", "/users/me", 200, ""},
		{"GET", "/openapi", 200, ""},
		{"GET", "/events/evt_1", 200, ""},
		{"GET", "/events/one", 200, ""},
		{"GET", "/events/evt%5F1", 200, ""},
		{"GET", "/events/%6Fne", 200, ""},
		{"GET", "/events/evt_1/guests", 200, ""},
		{"GET", "/events/create", 404, ""}, // the event create
		{"POST", "/users/me", 405, read},
		{"DELETE", "/events", 405, read},
		{"PATCH", "/events/evt_1", 405, read},
		{"PUT", "/events/create", 405, create},
		{"get", "/events", 405, read},
		{"OPTIONS", "/events", 204, read},
		{"OPTIONS", "/events/create", 204, create},
		{"OPTIONS", "/nothing", 404, ""},
		{"POST", "/events/create/", 404, ""},
		{"GET", "", 404, ""},
		{"GET", "/", 404, ""},
		{"GET", "/nothing", 404, ""},
		{"GET", "/Events", 404, ""},
		{"GET", "/events/", 404, ""},
		{"GET", "//events", 404, ""},
		{"GET", "/users/../events", 404, ""},
		{"GET", "/events%2Fevt_1", 404, ""},
		{"GET", "/events/evt_1%00", 404, ""},
		{"GET", "/events/evt_1/guests/gst_1", 404, ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r := s.do(tt.method, tt.path, "")
			wantStatus(t, r, tt.status)
			wantHeader(t, r, "Allow", tt.allow)
			wantStatus(t, s.do(tt.method, tt.path, "", keyless), 401)
		})
	}
	for _, path := range []string{"/", "/healthz", "/api/public/v1x", "/api/public/v2/events"} {
		wantError(t, s.send("GET", path, nil, keyless), 404, "the API is under "+base)
	}
	wantError(t, s.do("POST", "/events", newEvent), 405, "use GET, HEAD, OPTIONS; the routes are ")
}

// Another host's event, and anything else that has a key in the database, looks like a missing event.
func TestOthersEventsAreMissing(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	wantStatus(t, s.create(newEvent, "Idempotency-Key: k"), 201)
	missing := s.get("/events/evt_nowhere")
	wantStatus(t, missing, 404)
	for _, ref := range []string{
		"evt_bob", "bobs", "usr_ada", "key_ada", "gst_1", "key:" + digestOfAda,
		"email:ada@example.com", "guest:evt_1:grace@example.com", "usr_ada%00k",
	} {
		for _, path := range []string{"/events/" + ref, "/events/" + ref + "/guests"} {
			r := s.get(path)
			if strings.Contains(ref, "%00") { // not even a route
				wantStatus(t, r, 404)
				continue
			}
			if r.body != missing.body {
				t.Errorf("%s, want %s", r, missing)
			}
			if !maps.EqualFunc(r.header, missing.header, slices.Equal) {
				t.Errorf("GET %s: header = %v, want %v", path, r.header, missing.header)
			}
		}
	}
}

// An intercepted request has a valid key, a route and its method, but perhaps a bad query.
func TestIntercept(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	var seen []string
	s.handler.Mux().Intercept = func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		seen = append(seen, r.Operation+" "+r.Caller.UserID)
		next(w, r.Request)
	}
	for _, path := range []string{"/events?nonsense", "/events/one", "/nothing"} {
		s.do("HEAD", path, "")
	}
	s.get("/events/one/guests", keyless)
	s.do("POST", "/events", "")
	want := []string{"GET /events usr_ada", "GET /events/{id} usr_ada"}
	if !slices.Equal(seen, want) {
		t.Errorf("intercepted = %q, want %q", seen, want)
	}
}

func TestQueriesRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	for _, tt := range []struct{ path, want string }{
		{"/events?limit=0", "limit must be a whole number from 1 to 100, in digits, given once"},
		{"/events?limit=101", "limit must be a whole number from 1 to 100"},
		{"/events?limit=%2B5", "limit must be"},
		{"/events?limit=", "limit must be"},
		{"/events?limit=5&limit=5", "limit must be"},
		{"/events/evt_1/guests?limit=201", "limit must be a whole number from 1 to 200"},
		{"/events?status=", "status must be draft or published, given once"},
		{"/events?status=live", "status must be"},
		{"/events?status=draft&status=draft", "status must be"},
		{"/events?cursor=abc", "cursor must be the next_cursor of a page, unchanged and given once"},
		{"/events?cursor=a&limit=0&status=b&x=", "status must be draft or published, given once; " +
			"limit must be a whole number from 1 to 100, in digits, given once; cursor must be"},
		{"/events?offset=10", `"offset" is not a query parameter of GET /events: it takes status, limit, cursor`},
		{"/events/evt_1/guests?status=approved",
			`"status" is not a query parameter of GET /events/{id}/guests: it takes limit, cursor`},
		{"/events/evt_1?x", "it takes none"},
	} {
		t.Run(tt.path, func(t *testing.T) { wantError(t, s.get(tt.path), 400, tt.want) })
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	pad := func(size int) string { return newEvent + strings.Repeat(" ", size-len(newEvent)) }
	wantStatus(t, s.create(pad(1<<20)), 201)
	wantError(t, s.create(pad(1<<20+1)), 413, "the body must have at most 1 MiB")
}

func wantCreated(t *testing.T, r response) {
	t.Helper()
	wantStatus(t, r, 201)
	wantHeader(t, r, "Idempotency-Replayed", "")
}

func wantReplay(t *testing.T, r, first response) {
	t.Helper()
	wantStatus(t, r, 201)
	wantHeader(t, r, "Idempotency-Replayed", "true")
	wantHeader(t, r, "Location", first.header.Get("Location"))
	if r.body != first.body {
		t.Errorf("%s, want the first response: %s", r, first)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		s := newService(t, mode, &events.Config{Now: func() time.Time { return now }})
		first := s.create(newEvent, "Idempotency-Key: one")
		wantCreated(t, first)
		wantReplay(t, s.create(newEvent, "Idempotency-Key: one"), first)
		wantReplay(t, s.create(newEvent, `Idempotency-Key: "one"`), first)
		for _, body := range []string{newEvent + " ", "{", `{"title":5}`} { // valid or not
			wantStatus(t, s.create(body, "Idempotency-Key: one"), 422)
		}
		wantCreated(t, s.create(newEvent, "Idempotency-Key: one", asBob))

		// Only successes are kept.
		wantStatus(t, s.create("{", "Idempotency-Key: two"), 400)
		wantCreated(t, s.create(newEvent, "Idempotency-Key: two"))

		// A replay is the event as it is now.
		s.apply(`[{"event":{"id":"` + first.id() + `","title":"Renamed"}}]`)
		renamed := s.get("/events/" + first.id())
		renamed.header = first.header
		wantReplay(t, s.create(newEvent, "Idempotency-Key: one"), renamed)

		// Deleting the event frees the key, even if another host has an event with its ID.
		s.apply(`[{"delete":{"event":"` + first.id() + `"}},
			{"event":{"id":"` + first.id() + `","host_id":"usr_bob","title":"Bob's",` + onMayDay + `}}]`)
		wantCreated(t, s.create(newEvent+" ", "Idempotency-Key: one"))

		late := s.create(newEvent, "Idempotency-Key: late")
		now = now.Add(24*time.Hour - time.Nanosecond)
		wantReplay(t, s.create(newEvent, "Idempotency-Key: late"), late)
		now = now.Add(time.Nanosecond)
		wantCreated(t, s.create(newEvent, "Idempotency-Key: late"))
	})
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	long := strings.Repeat("k", 255)
	for _, key := range []string{
		"", `"`, `""`, `"open`, `"k"k"`, `"k\k"`, `"k\n"`, `"k\"`, `"k";a=1`, "a b", `"a b"`, "é", `"é"`,
		long + "k", `"` + long + `k"`, "tab\there",
	} {
		wantError(t, s.create(newEvent, "Idempotency-Key: "+key), 400, "Idempotency-Key must be")
	}
	wantStatus(t, s.create(newEvent, "Idempotency-Key: a", "Idempotency-Key: a"), 400)
	for _, tt := range []struct{ bare, quoted string }{
		{`k"k'\`, `"k\"k'\\"`},
		{long, `"` + long + `"`},
		{strings.Repeat(`\`, 255), `"` + strings.Repeat(`\\`, 255) + `"`},
	} {
		first := s.create(newEvent, "Idempotency-Key: "+tt.bare)
		wantCreated(t, first)
		wantReplay(t, s.create(newEvent, "Idempotency-Key: "+tt.quoted), first)
	}
}

func TestIdempotencyConcurrent(t *testing.T) {
	t.Parallel()
	s := newService(t, onFile, nil)
	var wg sync.WaitGroup
	responses := make([]response, 32)
	for i := range responses {
		wg.Go(func() { responses[i] = s.create(newEvent, "Idempotency-Key: k") })
	}
	wg.Wait()
	created := 0
	for _, r := range responses {
		if r.body != responses[0].body {
			t.Errorf("%s, want %s", r, responses[0])
		}
		if r.header.Get("Idempotency-Replayed") == "" {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d of the responses are not replays, want 1", created)
	}
}

// The cause of a 500 is logged with the ID that the response has.
func TestServerError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newService(t, inMemory, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.handler.Mux().Intercept = func(http.ResponseWriter, httpapi.Request, http.HandlerFunc) {
		panic("the cause")
	}
	log.Reset()
	r := s.get("/events/one")
	wantStatus(t, r, 500)
	if strings.Contains(r.body, "the cause") {
		t.Errorf("%s, want no cause", r)
	}
	id := r.header.Get("X-Request-Id")
	for _, want := range []string{"level=ERROR", "id=" + id, "the cause", "/events/{id}"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log = %s, want %s", &log, want)
		}
	}
	if strings.Contains(log.String(), "svc_live_ada") {
		t.Errorf("log = %s, want no key", &log)
	}
}

// A failed write is logged once, by the database.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newService(t, onFile, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	before := s.dump()
	err := os.Remove(s.path)
	if err != nil {
		t.Fatal(err)
	}
	log.Reset()
	for range 2 {
		r := s.create(newEvent)
		wantError(t, r, 500, "can't write at present")
		if r.header.Get("X-Request-Id") == "" {
			t.Errorf("%s, want an X-Request-Id", r)
		}
	}
	wantError(t, operate(s.handler, "POST", "/keys", `{"user_id":"usr_ada"}`), 500, "removed, replaced")
	if got := strings.Count(log.String(), "level=ERROR"); got != 1 {
		t.Errorf("%d errors in the log, want 1: %s", got, &log)
	}
	wantStatus(t, s.get("/events/evt_1"), 200)
	if got := s.dump(); got != before {
		t.Errorf("records = %s, want %s", got, before)
	}
	err = s.store.Err()
	if err == nil {
		t.Error("Err = nil, want why nothing can be written")
	}
}

// Writers and readers run at once, for the race detector.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.create(newEvent, fmt.Sprintf("Idempotency-Key: %d-%d", i, n/2))
				s.get("/events?limit=100&status=published")
				s.get("/events/one/guests")
				s.apply(`[{"event":{"id":"evt_1","status":"` + []string{"draft", "published"}[n%2] + `"}},
					{"guest":{"event_id":"evt_1","email":"new@example.com"}},{"delete":{"event":"evt_2"}}]`)
				operate(s.handler, "POST", "/keys", `{"user_id":"usr_bob"}`)
				s.dump()
			}
		})
	}
	wg.Wait()
}

// While an operator gives an event to another host and back, no response to one host has the guests that the
// event has under the other.
func TestGuestsOfOtherHost(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	give := func(host string) {
		s.apply(`[{"delete":{"event":"evt_1"}},
			{"event":{"id":"evt_1","host_id":"` + host + `","title":"T",` + onMayDay + `}},
			{"guest":{"event_id":"evt_1","name":"of ` + host + `"}}]`)
	}
	give("usr_ada")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			give("usr_ada")
			give("usr_bob")
		}
	})
	for range 1000 {
		r := s.get("/events/evt_1/guests")
		if r.status == 200 && !strings.Contains(r.body, "of usr_ada") {
			t.Errorf("%s, want guests of usr_ada or 404", r)
			break
		}
	}
	cancel()
	wg.Wait()
}

// The operator's routes are also tested by their clients, the subcommands and the control API.
func TestOperatorRoutes(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode string) {
		var log bytes.Buffer
		s := newService(t, mode, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		send := func(method, target, body string, status int) response {
			t.Helper()
			log.Reset()
			r := operate(s.handler, method, target, body)
			wantStatus(t, r, status)
			return r
		}
		wantLog := func(want string) {
			t.Helper()
			_, got, _ := strings.Cut(strings.TrimSpace(log.String()), "level=INFO ")
			if got != want {
				t.Errorf("log = %q, want %q", got, want)
			}
		}
		type issued struct{ ID, Key, User string }

		r := send("POST", "/keys", `{"name":"Eve","email":"eve@example.com"}`, 201)
		first := decode[issued](t, r)
		wantLog(`msg="key issued" key=` + first.ID + " user=" + first.User)
		wantStatus(t, s.get("/users/me", "x-service-api-key: "+first.Key), 200)
		r = send("POST", "/keys", `{"email":"Eve@example.com"}`, 201)
		second := decode[issued](t, r)
		if second.User != first.User {
			t.Errorf("user = %s, want %s because of the email", second.User, first.User)
		}

		send("DELETE", "/keys/"+first.ID, "", 204)
		wantLog(`msg="key revoked" key=` + first.ID)
		wantStatus(t, s.get("/users/me", "x-service-api-key: "+first.Key), 401)
		send("DELETE", "/keys/"+first.ID, "", 204)
		wantLog("")
		send("DELETE", "/keys/key_none", "", 404)

		type key struct {
			ID, Name, Email string
			RevokedAt       *time.Time `json:"revoked_at"`
		}
		keys := decode[struct{ Data []key }](t, send("GET", "/keys", "", 200)).Data
		if len(keys) != 5 {
			t.Fatalf("%d keys, want 5", len(keys))
		}
		if last := keys[4]; last != (key{second.ID, "Eve", "eve@example.com", nil}) {
			t.Errorf("last key = %+v, want %s", last, second.ID)
		}
		if keys[3].RevokedAt == nil {
			t.Errorf("%s has no revoked_at", keys[3].ID)
		}

		r = send("POST", "/records", `[{"user":{"id":"usr_ada"}},{"event":{"id":"evt_1","title":"Uno"}},
			{"guest":{"id":"gst_9","event_id":"evt_1","name":"G"}},{"delete":{"guest":"gst_1"}}]`, 200)
		if r.body != `{"applied":4,"unchanged":1}` {
			t.Errorf("%s, want 4 applied and 1 unchanged", r)
		}
		wantLog(`msg="records applied" records=4 unchanged=1 events=evt_1 guests=gst_9 deletes=gst_1`)
		wantError(t, send("POST", "/records", `[{"user":{"id":"usr_bob"}},{"user":{}}]`, 400), 400,
			"record 2: user: name is required; email is required")
		wantLog("")

		var many strings.Builder
		for i := range 12 {
			fmt.Fprintf(&many, `,{"delete":{"user":"usr_none"}},{"user":{"id":"usr_%d","name":"N","email":"%[1]d@x"}}`, i)
		}
		send("POST", "/records", "["+many.String()[1:]+"]", 200)
		wantLog(`msg="records applied" records=24 unchanged=12 ` +
			`users="usr_0 usr_1 usr_2 usr_3 usr_4 usr_5 usr_6 usr_7 usr_8 usr_9 and 2 more"`)

		records := send("GET", "/records?user=usr_bob", "", 200).body
		var kinds []map[string]json.RawMessage
		err := json.Unmarshal([]byte(records), &kinds)
		if err != nil {
			t.Errorf("GET /records: %v", err)
		}
		if len(kinds) != 3 {
			t.Errorf("GET /records?user=usr_bob = %s, want a user, a key and an event", records)
		}
		send("GET", "/records?user=usr_none", "", 404)
		send("GET", "/records?user=", "", 400)
		send("POST", "/status", "", 405)
		send("GET", "//keys", "", 404)
	})
}

// An operator sees the cause of a 500, and the log has it as well.
func TestOperatorError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Now()
	s := newService(t, inMemory, &events.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Now:    func() time.Time { return now },
	})
	now = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	log.Reset()
	wantError(t, operate(s.handler, "POST", "/keys", `{"user_id":"usr_ada"}`), 500, "year outside of range")
	if !strings.Contains(log.String(), `msg="operator request failed" error="panic: `) {
		t.Errorf("log = %s, want the cause", &log)
	}
}

// brokenWriter is the response to a client that is gone.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A client may close the connection while records are sent, as dump | head -1 does. That isn't logged.
func TestRecordsWithoutClient(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newService(t, inMemory, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	log.Reset()
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("panic: %v, want ErrAbortHandler", got)
		}
		if log.Len() > 0 {
			t.Errorf("log = %s, want nothing", &log)
		}
	}()
	w := brokenWriter{httptest.NewRecorder()}
	s.handler.Operator().ServeHTTP(w, httptest.NewRequest("GET", "/records", nil))
}

func TestKeyRequestsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, inMemory, nil)
	for _, tt := range []struct {
		request string
		status  int
		want    string
	}{
		{`{}`, 400, "key: user_id is required, or email"},
		{`{"user_id":""}`, 400, "user_id is required"},
		{`{"user_id":"usr_ada","name":"Ada"}`, 400, "user_id excludes name and email"},
		{`{"user_id":"usr_ada","email":"ada@example.com"}`, 400, "user_id excludes name and email"},
		{`{"user_id":"usr_none"}`, 404, `user "usr_none": not found`},
		{`{"user_id":"evt_1"}`, 404, "not found"},
		{`{"email":"new@example.com"}`, 400, "user: name is required"},
		{`{"id":"key_1"}`, 400, "id is not known"},
		{`[]`, 400, "must be a JSON object"},
		{`{`, 400, "line 1"},
	} {
		t.Run(tt.request, func(t *testing.T) {
			wantError(t, operate(s.handler, "POST", "/keys", tt.request), tt.status, tt.want)
		})
	}
}

// checkKept returns how the event that was created differs from its body.
func checkKept(body, created string) error {
	var sent, got map[string]any
	err := errors.Join(json.Unmarshal([]byte(body), &sent), json.Unmarshal([]byte(created), &got))
	if err != nil {
		return err
	}
	for name, value := range sent {
		unset := value == nil || value == "" && slices.Contains(emptyIsNull, name)
		instant := name == "start_at" || name == "end_at" // comes back in UTC
		if !unset && !instant && got[name] != value {
			return fmt.Errorf("%s = %#v, want %#v", name, got[name], value)
		}
	}
	return nil
}

// emptyIsNull are the fields of a create in which an empty string means null.
var emptyIsNull = []string{"timezone", "location_type", "visibility", "cover_image_url", "meeting_url"}

// No body causes a 5xx. An accepted body is kept, and a refused one changes nothing.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		newEvent, "", "{}", "null", "[]", `{"title":"a","timezone":"","visibility":"",` + onMayDay + `}`,
		`{"title":"a","title":"b"}`, newEvent + "{}", `{"title":"\ud800",` + onMayDay + `}`,
		`{"title":"é\u0000\n","start_at":"2016-12-31T23:59:60Z","end_at":"2027-05-01t20:00:00.123456789z",
			"description":"x","timezone":"Europe/Paris","location_type":"virtual","location_city":"a",
			"location_country":"b","visibility":"private","requires_approval":true,
			"cover_image_url":"https://example.com","meeting_url":"http://[::1]/"}`,
	} {
		f.Add(body)
	}
	shared := newService(f, inMemory, nil)
	f.Fuzz(func(t *testing.T, body string) {
		s := &service{t, shared.testStore}
		before := s.dump()
		r := s.create(body)
		switch r.status {
		case 201:
			err := checkKept(body, r.body)
			if err != nil {
				t.Errorf("POST %q: %v", body, err)
			}
			s.apply(`[{"delete":{"event":"` + r.id() + `"}}]`)
		case 400, 413:
		default:
			t.Errorf("POST %q: %s, want 201, 400 or 413", body, r)
		}
		if got := s.dump(); got != before {
			t.Errorf("POST %q: records = %s, want %s", body, got, before)
		}
	})
}

// No path or query causes a 3xx or 5xx, or shows anything of another host.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"/events?limit=1", "/events?status=draft&cursor=MSBl", "/events/one/guests?limit=200", "/users/me?",
		"/openapi", "//events", "/events/%2e%2e/x", "/events/bobs%00", "/events/evt%5Fbob", "/events/create",
		"/events?limit=1;a=b", "/events?%zz", "/events?limit=%35&&=&%6cimit=5", "/events?status",
	} {
		f.Add("GET", target)
	}
	shared := newService(f, inMemory, nil)
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.NewRequest(method, "http://localhost"+base+target, nil)
		if err != nil {
			return
		}
		r.RequestURI, r.Body = r.URL.RequestURI(), http.NoBody
		r.Header.Set("x-service-api-key", "svc_live_ada")
		w := httptest.NewRecorder()
		shared.handler.ServeHTTP(w, r)
		got := response{r.Method + " " + r.RequestURI, w.Code, w.Result().Header, w.Body.String()}
		for _, problem := range describe(r.Method, r.URL.Path, got) {
			t.Errorf("%s: %s", got, problem)
		}
		if got.status >= 500 || got.status >= 300 && got.status < 400 {
			t.Errorf("%s, want no redirect or failure", got)
		}
		if strings.Contains(got.body, "usr_bob") {
			t.Errorf("%s, want nothing of Bob", got)
		}
	})
}

// No header causes a 5xx, and only the key of a user is accepted.
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
	shared := newService(f, inMemory, nil)
	f.Fuzz(func(t *testing.T, key, authorization, contentType, idempotencyKey, contentEncoding string) {
		s := &service{t, shared.testStore}
		headers := []string{keyless}
		for name, value := range map[string]string{
			"x-service-api-key": key, "Authorization": authorization, "Content-Type": contentType,
			"Idempotency-Key": idempotencyKey, "Content-Encoding": contentEncoding,
		} {
			if value != "" {
				headers = append(headers, name+": "+value)
			}
		}
		r := s.create(newEvent, headers...)
		sent := key
		if key == "" && len(authorization) > 7 && strings.EqualFold(authorization[:7], "Bearer ") {
			sent = strings.TrimLeft(authorization[7:], " ")
		}
		valid := sent == "svc_live_ada" || sent == "svc_live_bob"
		if valid == (r.status == 401) {
			t.Errorf("%q: %s, want the key to be valid: %v", headers, r, valid)
		}
		if r.status >= 500 {
			t.Errorf("%q: %s, want no failure", headers, r)
		}
		if r.status == 201 {
			s.apply(`[{"delete":{"event":"` + r.id() + `"}}]`)
		}
	})
}
