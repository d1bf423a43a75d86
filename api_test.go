package events_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
	"example.com/events/internal/httpapi"
)

const (
	base     = events.BasePath
	newEvent = apitest.NewEvent
	onMayDay = apitest.EventTimes
	asBob    = apitest.AsBob
	keyless  = apitest.Keyless
)

// Whole responses are checked in tests/openapi, and every request of a service compares the response with
// openapi.json.

func TestCreate(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		created := s.Create(newEvent)
		created.WantStatus(t, 201)
		e := apitest.Decode[events.Event](t, created)
		created.WantHeader(t, "Location", base+"/events/"+e.ID)
		for _, ref := range []string{e.ID, e.Slug} {
			s.Get("/events/"+ref).WantBody(t, created.Body)
		}
		s.Get("/events?limit=1").WantIDs(t, e.ID)
		s.Get("/events/"+e.ID, asBob).WantStatus(t, 404)

		if e.HostID != "usr_ada" {
			t.Errorf("host_id: got %s, want usr_ada", e.HostID)
		}
		if e.Status != "published" {
			t.Errorf("status: got %s, want published", e.Status)
		}
		if e.Timezone != "Europe/London" {
			t.Errorf("timezone: got %s, want the host's", e.Timezone)
		}
		if !e.UpdatedAt.Equal(e.CreatedAt) {
			t.Errorf("updated_at: got %v, want created_at, %v", e.UpdatedAt, e.CreatedAt)
		}
		if time.Since(e.CreatedAt) > time.Minute {
			t.Errorf("created_at: got %v, want the current time", e.CreatedAt)
		}
		if !strings.HasPrefix(e.Slug, "launch-") {
			t.Errorf("slug: got %s, want launch- at the beginning", e.Slug)
		}
		bobs := apitest.Decode[events.Event](t, s.Create(newEvent, asBob))
		if bobs.Timezone != "UTC" {
			t.Errorf("timezone: got %s, want UTC for a host without one", bobs.Timezone)
		}
	})
}

func TestNewEventStatus(t *testing.T) {
	t.Parallel()
	for configured, want := range map[string]string{
		"":          "published",
		"published": "published",
		"draft":     "draft",
	} {
		s := apitest.New(t, apitest.Memory, &events.Config{NewEventStatus: configured})
		got := apitest.Decode[events.Event](t, s.Create(newEvent)).Status
		if got != want {
			t.Errorf("status of a new event with NewEventStatus %q: got %s, want %s", configured, got, want)
		}
	}
}

// Strings come back as they were sent, and times in UTC. A title without usable letters also has a slug.
func TestCreateKeepsValues(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		for _, tt := range []struct{ sent, want string }{
			{`"title":"Ärger & <b>\u00e9\ud83d\ude00\/</b>",` + onMayDay, `"title":"Ärger & <b>é😀/</b>"`},
			{`"title":"}},{\"event\":{\"","description":"\u0000\u2028\\",` + onMayDay,
				`"title":"}},{\"event\":{\"","description":"\u0000\u2028\\"`},
			{`"title":"🎉",` + onMayDay, `"slug":"event-`},
			{`"title":"x","start_at":"2027-05-01t18:00:00.120-07:00","end_at":"2027-12-31T23:59:60z"`,
				`"start_at":"2027-05-02T01:00:00.12Z","end_at":"2028-01-01T00:00:00Z"`},
			{`"title":"x",` + onMayDay + `,"location_city":"","meeting_url":"","visibility":null`,
				`"location_city":"","location_country":null,"visibility":"public"`},
		} {
			r := s.Create("{" + tt.sent + "}")
			r.WantStatus(t, 201)
			if !strings.Contains(r.Body, tt.want) {
				t.Errorf("create {%s}: %s, want %s", tt.sent, r, tt.want)
			}
			s.Get("/events/"+r.ID()).WantBody(t, r.Body)
		}
	})
}

// One message has all problems of a body: of the fields in the order of openapi.json, and then of other
// fields in the order of the body.
func TestEveryProblem(t *testing.T) {
	t.Parallel()
	const dateTime = "must be a valid date-time such as 2027-03-01T18:00:00Z or " +
		"2027-03-01T18:00:00+02:00, with Z or an offset"
	const zone = "must be an IANA time zone name such as Europe/Paris, with the exact capitalization, or UTC"
	const link = "must be an http or https URL such as https://example.com/x, percent-encoded, without " +
		"user info and at most 2048 characters long"
	body, want := "", ""
	var names []string
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
		names = append(names, field.name)
	}
	body = "{" + body + `"slug":"mine","Title":"x","tags":[]}`
	want += "slug is set by the server, so leave it out; Title is not known; tags is not known " +
		"(the fields are " + strings.Join(names, ", ") + ")"
	r := apitest.New(t, apitest.Memory, nil).Create(body)
	r.WantStatus(t, 400)
	if got := r.Message(); got != want {
		t.Errorf("POST %s:\n got %s\nwant %s", body, got, want)
	}
}

// The rules of a body are tested in packages strict and schema.
func TestBodiesRefused(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		before := s.Dump()
		s.Create("").WantError(t, 400, "the body is empty: send a JSON object")
		s.Create(newEvent+"x").WantError(t, 400, "the body is not a JSON object: line 1")
		s.Create(`{"title":"x","start_at":"2027-05-01T18:00:00+02:00","end_at":"2027-05-01T16:00:00Z"}`).
			WantError(t, 400, "end_at must be after start_at")
		s.WantDump("refused creates", before)
	})
}

func TestLists(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		s.Get("/events").WantIDs(t, "evt_3 evt_2 evt_1")
		s.Get("/events?status=draft").WantIDs(t, "evt_1")
		s.Get("/events?status=published").WantIDs(t, "evt_3 evt_2")
		s.Get("/events?limit=2").WantIDs(t, "evt_3 evt_2")
		s.Get("/events?status=published&limit=1").WantIDs(t, "evt_3")

		s.Apply(`[{"event":{"id":"evt_2","status":"draft"}}]`)
		s.Get("/events?status=draft").WantIDs(t, "evt_2 evt_1")
		s.Get("/events?status=published").WantIDs(t, "evt_3")

		s.Get("/events?status=draft", asBob).WantBody(t, `{"data":[],"has_more":false,"next_cursor":null}`)

		guests := s.Get("/events/evt_1/guests?limit=2")
		guests.WantIDs(t, "gst_3 gst_2")
		s.Get("/events/one/guests?"+guests.Next()).WantIDs(t, "gst_1")
	})
}

// A page continues from its position while events are created and deleted.
func TestCursor(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		first := s.Get("/events?limit=1")
		first.WantIDs(t, "evt_3")
		s.Create(newEvent).WantStatus(t, 201)
		s.Apply(`[{"delete":{"event":"evt_3"}}]`)
		second := s.Get("/events?limit=1&" + first.Next())
		second.WantIDs(t, "evt_2")
		third := s.Get("/events?limit=1&" + second.Next())
		third.WantIDs(t, "evt_1")
		if third.Next() != "" {
			t.Errorf("%s, want no next page", third)
		}
	})
}

func TestCursorRefused(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	cursor := strings.TrimPrefix(s.Get("/events?limit=1").Next(), "cursor=")
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
			s.Get("/events?cursor="+url.QueryEscape(malformed)).WantError(t, 400, "cursor must be")
		})
	}
}

func TestCreatedAtIncreases(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		var last time.Time
		for range 20 {
			created := apitest.Decode[events.Event](t, s.Create(newEvent)).CreatedAt
			if !created.After(last) {
				t.Fatalf("created_at: got %v, want a time after %v", created, last)
			}
			if !created.Equal(created.Truncate(time.Microsecond)) {
				t.Fatalf("created_at: got %v, want whole microseconds", created)
			}
			last = created
		}
	}, apitest.Memory, apitest.Reopened) // the clock of a double doesn't move
}

// The first check that fails decides the response.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	large := `{"title":"` + strings.Repeat("x", 1<<20) + `"}`
	const text = "Content-Type: text/plain"
	const badKey = "Idempotency-Key: a b"
	for _, tt := range []struct {
		name, request string
		body          string // too large, unless it is given
		headers       []string
		status        int
	}{
		{name: "key", request: "POST /nothing?x=1", headers: []string{keyless, text}, status: 401},
		{name: "route", request: "POST /nothing?x=1", headers: []string{text}, status: 404},
		{name: "method", request: "POST /events?x=1", headers: []string{text}, status: 405},
		{name: "query", request: "POST /events/create?x=1", headers: []string{text}, status: 400},
		{name: "query before ownership", request: "GET /events/evt_bob/guests?limit=0", status: 400},
		{name: "ownership", request: "GET /events/evt_bob/guests?limit=1", status: 404},
		{name: "type", request: "POST /events/create", headers: []string{text, badKey}, status: 415},
		{name: "size", request: "POST /events/create", headers: []string{badKey}, status: 413},
		{name: "body", request: "POST /events/create", body: "{", status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method, path, _ := strings.Cut(tt.request, " ")
			s.Do(method, path, cmp.Or(tt.body, large), tt.headers...).WantStatus(t, tt.status)
		})
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	const origin, method = "Origin: https://app.example", "Access-Control-Request-Method: POST"
	const headers = "Access-Control-Request-Headers: x-service-api-key, traceparent"
	for _, path := range []string{"/events", "/events/create", "/nothing", "/events//x"} {
		r := s.Do("OPTIONS", path, "", keyless, origin, method, headers)
		r.WantStatus(t, 204)
		r.WantHeader(t, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
		r.WantHeader(t, "Access-Control-Allow-Headers",
			"authorization, content-type, idempotency-key, x-service-api-key, *")
		r.WantHeader(t, "Access-Control-Max-Age", "7200")
	}
	s.Do("OPTIONS", "/events", "", keyless, origin).WantStatus(t, 401)
	s.Do("OPTIONS", "/events", "", keyless, method).WantStatus(t, 401)
	s.Send("OPTIONS", "/elsewhere", nil, keyless, origin, method).WantStatus(t, 404)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	const ada, bearer = "x-service-api-key: svc_live_ada", "Authorization: Bearer svc_live_ada"
	const wrong = "x-service-api-key: wrong"
	const send = "; send it as x-service-api-key: <API_KEY> or Authorization: Bearer <API_KEY>"
	const (
		missing = "missing API key" + send
		empty   = "invalid API key: it is empty (is an environment variable unset?)" + send
		twice   = "invalid API key: the header was sent more than once" + send
		form    = "invalid API key: Authorization is not of the form Bearer <API_KEY>" + send
		unknown = "invalid API key: unknown or revoked; ask the operator for a new one"
	)
	s := apitest.New(t, apitest.Memory, nil)
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
		{"both, the first wrong", []string{wrong, bearer}, 401, unknown},
		{"both, the first empty", []string{"x-service-api-key: ", bearer}, 401, empty},
		{"empty", []string{"x-service-api-key: "}, 401, empty},
		{"none", []string{keyless}, 401, missing},
		{"unknown", []string{"x-service-api-key: svc_live_nobody"}, 401, unknown},
		{"another case", []string{"x-service-api-key: SVC_LIVE_ADA"}, 401, unknown},
		{"too long", []string{ada + strings.Repeat("a", 300)}, 401, unknown},
		{"revoked", []string{"x-service-api-key: svc_live_old"}, 401, unknown},
		{"sent twice", []string{ada, ada}, 401, twice},
		{"bearer sent twice", []string{keyless, bearer, bearer}, 401, twice},
		{"basic", []string{keyless, "Authorization: Basic c3ZjX2xpdmVfYWRhOg=="}, 401, form},
		{"no scheme", []string{keyless, "Authorization: svc_live_ada"}, 401, form},
		{"bearer without a key", []string{keyless, "Authorization: Bearer"}, 401, empty},
		{"bearer and spaces", []string{keyless, "Authorization: Bearer  "}, 401, empty},
		{"an empty Authorization", []string{keyless, "Authorization: "}, 401, empty},
		{"digest", []string{"x-service-api-key: " + digestOfAda}, 401, unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.Get("/users/me", tt.headers...)
			r.WantStatus(t, tt.status)
			if got := r.Message(); got != tt.message {
				t.Errorf("%s, want the message %q", r, tt.message)
			}
			if tt.status == 401 {
				r.WantHeader(t, "WWW-Authenticate", `Bearer realm="events"`)
			}
		})
	}
}

// A caller may be deleted while its request is served.
func TestDeletedCaller(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	s.Intercept(func(w http.ResponseWriter, r httpapi.Request, next http.HandlerFunc) {
		s.Apply(`[{"delete":{"user":"` + r.Caller.UserID + `"}}]`)
		next(w, r.Request)
	})
	s.Create(newEvent).WantError(t, 401, "its user was deleted")
	s.Get("/users/me", asBob).WantError(t, 401, "its user was deleted")
	if got := s.Dump(); strings.Contains(got, "evt_") {
		t.Errorf("records: got %s, want no event", got)
	}
}

// Which requests have a route, and the header Allow, are tested in package httpapi.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	for _, operation := range apitest.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		path = apitest.Paths(t, path)[0].Text
		s.Do(method, path, newEvent, keyless).WantStatus(t, 401)
		preflight := s.Do("OPTIONS", path, "", keyless,
			"Origin: https://app.example", "Access-Control-Request-Method: "+method)
		methods := preflight.Header.Get("Access-Control-Allow-Methods")
		if !slices.Contains(strings.Split(methods, ", "), method) {
			t.Errorf("preflight of %s: got methods %q, want %s too", operation, methods, method)
		}
	}
	s.Get("/events/evt%5F1").WantStatus(t, 200)
	s.Get("/events/create").WantError(t, 404, "you host no event with this id") // the event create
	s.Get("/nothing").WantError(t, 404, "the routes are GET /users/me, ")
	s.Get("/nothing", keyless).WantStatus(t, 401)
	s.Do("POST", "/events", newEvent).WantError(t, 405, "use GET, HEAD, OPTIONS; the routes are ")
	s.Do("OPTIONS", "/events", "").WantHeader(t, "Allow", "GET, HEAD, OPTIONS")
	for _, path := range []string{"/", "/healthz", "/api/public/v1x", "/api/public/v2/events"} {
		s.Send("GET", path, nil, keyless).WantError(t, 404, "the API is under "+base)
	}
}

// In any place of a path, the ID of another host's or event's object, or any other key of the database, looks
// like one that doesn't exist.
func TestOthersEventsAreMissing(t *testing.T) {
	t.Parallel()
	for _, operation := range apitest.Operations() {
		s := apitest.New(t, apitest.Memory, nil)
		method, path, _ := strings.Cut(operation, " ")
		paths := apitest.Paths(t, path)
		for _, path := range paths[1:] {
			r, missing := s.Do(method, path.Text, ""), s.Do(method, path.Missing, "")
			r.WantStatus(t, 404)
			r.WantBody(t, missing.Body)
			if !maps.EqualFunc(r.Header, missing.Header, slices.Equal) {
				t.Errorf("%s: header: got %v, want %v", r.Request, r.Header, missing.Header)
			}
		}
		if r := s.Do(method, paths[0].Text, ""); r.Status == 404 {
			t.Errorf("%s, want Ada's to exist", r)
		}
	}
}

// The form of a query is tested in package httpapi, and the examples of openapi.json in tests/openapi.
func TestQueriesRefused(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	for _, tt := range []struct{ path, want string }{
		{"/events?cursor=a&limit=0&status=b&x=", "status must be draft or published, given once; " +
			"limit must be given once, as a whole number from 1 to 100; " +
			"cursor must be the next_cursor of a page, unchanged and given once; " +
			"leave it out to get the first page; " +
			`unknown query parameter "x": GET /events takes status, limit, cursor`},
		{"/events/evt_1/guests?limit=201&status=approved",
			"limit must be given once, as a whole number from 1 to 200; " +
				`unknown query parameter "status": GET /events/{id}/guests takes limit, cursor`},
		{"/events/evt_1?x", `unknown query parameter "x": GET /events/{id} takes none`},
	} {
		t.Run(tt.path, func(t *testing.T) { s.Get(tt.path).WantError(t, 400, tt.want) })
	}
}

func wantCreated(t *testing.T, r apitest.Response) {
	t.Helper()
	r.WantStatus(t, 201)
	r.WantHeader(t, "Idempotency-Replayed", "")
}

func wantReplay(t *testing.T, r, first apitest.Response) {
	t.Helper()
	r.WantStatus(t, 201)
	r.WantHeader(t, "Idempotency-Replayed", "true")
	r.WantHeader(t, "Location", first.Header.Get("Location"))
	r.WantBody(t, first.Body)
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		s := apitest.New(t, mode, nil)
		first := s.Create(newEvent, "Idempotency-Key: one")
		wantCreated(t, first)
		wantReplay(t, s.Create(newEvent, "Idempotency-Key: one"), first)
		wantReplay(t, s.Create(newEvent, `Idempotency-Key: "one"`), first)
		for _, body := range []string{newEvent + " ", "{", `{"title":5}`} { // valid or not
			s.Create(body, "Idempotency-Key: one").WantStatus(t, 422)
		}
		wantCreated(t, s.Create(newEvent, "Idempotency-Key: one", asBob))

		// Only successes are kept.
		s.Create("{", "Idempotency-Key: two").WantStatus(t, 400)
		wantCreated(t, s.Create(newEvent, "Idempotency-Key: two"))

		// A replay is the event as it is now.
		s.Apply(`[{"event":{"id":"` + first.ID() + `","title":"Renamed"}}]`)
		renamed := s.Get("/events/" + first.ID())
		renamed.Header = first.Header
		wantReplay(t, s.Create(newEvent, "Idempotency-Key: one"), renamed)

		// Deleting the event frees the key, even if there is an event with its ID again.
		s.Apply(`[{"delete":{"event":"` + first.ID() + `"}},
			{"event":{"id":"` + first.ID() + `","host_id":"usr_ada","title":"New",` + onMayDay + `}}]`)
		wantCreated(t, s.Create(newEvent+" ", "Idempotency-Key: one"))
	})
}

// An idempotency key is used again after it expired, after its event was deleted, and after the clock was set
// back. All of it survives whatever happens to the data file after each step.
func TestIdempotencyKeyIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(s *apitest.Service){
		"nothing": func(*apitest.Service) {},
		"restart": (*apitest.Service).Reopen,
		"kill": func(s *apitest.Service) {
			file, err := os.ReadFile(s.Path)
			if err != nil {
				t.Fatal(err)
			}
			s.Store.Close()
			err = os.WriteFile(s.Path, file, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			s.Reopen()
		},
		"rewrite": func(s *apitest.Service) {
			event := `{"event":{"host_id":"usr_bob","title":"T","description":"` +
				strings.Repeat("x", 50_000) + `",` + onMayDay + `}}`
			s.Apply("[" + strings.Repeat(event+",", 90) + event + "]") // doesn't fit into a line
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
			s := apitest.New(t, apitest.File, &events.Config{Now: func() time.Time { return now }})
			var last apitest.Response
			remove := func() { s.Apply(`[{"delete":{"event":"` + last.ID() + `"}}]`) }
			again := func(host string) string {
				return `{"event":{"id":"` + last.ID() + `","host_id":"` + host + `","title":"T",` +
					onMayDay + `}}`
			}
			replace := func() {
				s.Apply(`[{"delete":{"event":"` + last.ID() + `"}},` + again("usr_ada") + `]`)
			}
			ada := s.Dump()
			for _, step := range []struct {
				name string
				do   func()
				used bool
			}{
				{"the first time", func() {}, false},
				{"just before it expires", func() { now = now.Add(24*time.Hour - 1) }, true},
				{"when it has expired", func() { now = now.Add(1) }, false},
				{"after its event was deleted", remove, false},
				{"when its event was put again", func() {
					remove()
					after(s)
					s.Apply("[" + again("usr_ada") + "]")
				}, false},
				{"when its event was replaced in one array", replace, false},
				{"when another host has the event's ID", func() {
					remove()
					s.Apply("[" + again("usr_bob") + "]")
				}, false},
				{"when its user and event were put again", func() {
					s.Apply(`[{"delete":{"user":"usr_ada"}}]`)
					after(s)
					s.Apply(ada)
					s.Apply("[" + again("usr_ada") + "]")
				}, false},
				{"after the clock was set back", func() { now = now.AddDate(-1, 0, 0) }, true},
				{"when its event was replaced then", replace, false},
				{"after the clock was set forward", func() { now = now.AddDate(2, 0, 0) }, false},
				{"when its event was replaced while it was expired", func() {
					now = now.AddDate(1, 0, 0)
					after(s)
					replace()
					now = now.AddDate(-1, 0, 0)
				}, false},
			} {
				step.do()
				after(s)
				r := s.Create(newEvent, "Idempotency-Key: k")
				r.WantStatus(t, 201)
				if got := r.Header.Get("Idempotency-Replayed") != ""; got != step.used {
					t.Fatalf("create %s: got a replay: %t, want %t", step.name, got, step.used)
				}
				if step.used {
					wantReplay(t, r, last)
				}
				last = r
				after(s)
				wantReplay(t, s.Create(newEvent, "Idempotency-Key: k"), last)
			}
		})
	}
}

// Earlier versions kept the request of a deleted event. If another host then got an event with its ID, the
// rewritten file has both, and the request must not show that event.
func TestIdempotencyKeyOfAnotherHostsEvent(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.File, nil)
	wantCreated(t, s.Create(newEvent, "Idempotency-Key: k"))
	s.Store.Close()
	file, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	_, salt, _ := strings.Cut(string(file), `"salt":"`)
	lines := strings.SplitAfter(string(file), "\n")
	for i, line := range lines {
		line = strings.ReplaceAll(line, `"host_id":"usr_ada"`, `"host_id":"usr_bob"`)
		if before, summed, found := strings.Cut(line, `","n":`); found && i > 1 { // see package commitlog
			summed = `"n":` + strings.TrimSuffix(summed, "\n")
			sum := crc32.Checksum([]byte(salt[:16]+summed), crc32.MakeTable(crc32.Castagnoli))
			line = fmt.Sprintf("%s%08x\",%s\n", strings.TrimRight(before, "0123456789abcdef"), sum, summed)
		}
		lines[i] = line
	}
	err = os.WriteFile(s.Path, []byte(strings.Join(lines, "")), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.Reopen()
	wantCreated(t, s.Create(newEvent, "Idempotency-Key: k"))
}

// An event is created with a key every hour. A file that is rewritten has the requests of one day.
func TestExpiredRequestsLeaveTheFile(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	s := apitest.New(t, apitest.File, &events.Config{Now: func() time.Time { return now }})
	for n := range 72 {
		s.Create(newEvent, fmt.Sprint("Idempotency-Key: ", n)).WantStatus(t, 201)
		now = now.Add(time.Hour)
	}
	s.Apply(`[{"delete":{"event":"` + s.Create(newEvent, "Idempotency-Key: 72").ID() + `"}}]`)
	s.Reopen()
	file, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(file, []byte(`{"request":`)); got != 23 {
		t.Errorf("requests in the file: got %d, want those of the last 23 hours", got)
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	long := strings.Repeat("k", 255)
	for _, key := range []string{
		"", `"`, `""`, `"open`, `"k"k"`, `"k\k"`, `"k\n"`, `"k\"`, `"k";a=1`, "a b", `"a b"`, "é", `"é"`,
		long + "k", `"` + long + `k"`, "tab\there",
	} {
		s.Create(newEvent, "Idempotency-Key: "+key).WantError(t, 400, "Idempotency-Key must be")
	}
	s.Create(newEvent, "Idempotency-Key: a", "Idempotency-Key: a").WantStatus(t, 400)
	for _, tt := range []struct{ bare, quoted string }{
		{`k"k'\`, `"k\"k'\\"`},
		{long, `"` + long + `"`},
		{strings.Repeat(`\`, 255), `"` + strings.Repeat(`\\`, 255) + `"`},
	} {
		first := s.Create(newEvent, "Idempotency-Key: "+tt.bare)
		wantCreated(t, first)
		wantReplay(t, s.Create(newEvent, "Idempotency-Key: "+tt.quoted), first)
	}
}

func TestIdempotencyConcurrent(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.File, nil)
	var wg sync.WaitGroup
	responses := make([]apitest.Response, 32)
	for i := range responses {
		wg.Go(func() { responses[i] = s.Create(newEvent, "Idempotency-Key: k") })
	}
	wg.Wait()
	created := 0
	for _, r := range responses {
		r.WantBody(t, responses[0].Body)
		if r.Header.Get("Idempotency-Replayed") == "" {
			created++
		}
	}
	if created != 1 {
		t.Errorf("responses that are not replays: got %d, want 1", created)
	}
}

// A failed write is logged once, by the database.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := apitest.New(t, apitest.File, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	before := s.Dump()
	err := os.Remove(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	log.Reset()
	for range 2 {
		r := s.Create(newEvent)
		r.WantError(t, 500, "can't save changes now")
		if r.Header["X-Request-Id"] != nil {
			t.Errorf("%s, want no X-Request-Id, which the log doesn't have", r)
		}
	}
	s.Operate("POST", "/keys", `{"user_id":"usr_ada"}`).WantError(t, 500, "removed, replaced")
	if got := strings.Count(log.String(), "level=ERROR"); got != 1 {
		t.Errorf("errors in the log: got %d, want 1: %s", got, &log)
	}
	s.Get("/events/evt_1").WantStatus(t, 200)
	s.WantDump("failed writes", before)
	err = s.Store.Err()
	if err == nil {
		t.Error("Err: got nil, want why nothing can be written")
	}
}

// A client can tell the operator which line of the log has the cause of its 500. A clock beyond the year 9999
// is one.
func TestCauseIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2027, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600))
	s := apitest.New(t, apitest.Memory, &events.Config{
		Now:    func() time.Time { return now },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	created := s.Create(newEvent)
	if want := `"created_at":"2027-01-01T00:00:00Z"`; !strings.Contains(created.Body, want) {
		t.Errorf("%s, want %s, in UTC", created, want)
	}
	now = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	failed := s.Create(newEvent)
	failed.WantError(t, 500, "give the operator the X-Request-Id")
	if want := "id=" + failed.Header.Get("X-Request-Id"); !strings.Contains(log.String(), want) {
		t.Errorf("log: got %s, want %s", &log, want)
	}
}

// Writers and readers run at once, for the race detector.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.Create(newEvent, fmt.Sprintf("Idempotency-Key: %d-%d", i, n/2))
				s.Get("/events?limit=100&status=published")
				s.Get("/events/one/guests")
				s.Apply(`[{"event":{"id":"evt_1","status":"` + []string{"draft", "published"}[n%2] + `"}},
					{"guest":{"event_id":"evt_1","email":"new@example.com"}},{"delete":{"event":"evt_2"}}]`)
				s.Operate("POST", "/keys", `{"user_id":"usr_bob"}`)
				s.Dump()
			}
		})
	}
	wg.Wait()
}

// While an operator gives an event to another host and back, no response to one host has the guests that the
// event has under the other.
func TestGuestsOfOtherHost(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	give := func(host string) {
		s.Apply(`[{"delete":{"event":"evt_1"}},
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
		r := s.Get("/events/evt_1/guests")
		if r.Status == 404 {
			continue
		}
		if !strings.Contains(r.Body, "of usr_ada") {
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
	apitest.Run(t, func(t *testing.T, mode apitest.Mode) {
		var log bytes.Buffer
		s := apitest.New(t, mode, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		send := func(method, target, body string, status int) apitest.Response {
			t.Helper()
			log.Reset()
			r := s.Operate(method, target, body)
			r.WantStatus(t, status)
			return r
		}
		wantLog := func(want string) {
			t.Helper()
			_, got, _ := strings.Cut(strings.TrimSpace(log.String()), "level=INFO ")
			if got != want {
				t.Errorf("log: got %q, want %q", got, want)
			}
		}
		type issued struct {
			ID, Secret string
			User       string `json:"user_id"`
		}

		r := send("POST", "/keys", `{"name":"Eve","email":"eve@example.com"}`, 201)
		first := apitest.Decode[issued](t, r)
		wantLog(`msg="key issued" key=` + first.ID + " user=" + first.User)
		s.Get("/users/me", "x-service-api-key: "+first.Secret).WantStatus(t, 200)
		r = send("POST", "/keys", `{"email":"Eve@example.com"}`, 201)
		second := apitest.Decode[issued](t, r)
		if second.User != first.User {
			t.Errorf("user: got %s, want %s because of the email", second.User, first.User)
		}

		send("DELETE", "/keys/"+first.ID, "", 204)
		wantLog(`msg="key revoked" key=` + first.ID + " user=" + first.User)
		s.Get("/users/me", "x-service-api-key: "+first.Secret).WantStatus(t, 401)
		send("DELETE", "/keys/"+first.ID, "", 204)
		wantLog("")
		send("DELETE", "/keys/key_none", "", 404)

		type key struct {
			ID, Name, Email string
			RevokedAt       *time.Time `json:"revoked_at"`
		}
		keys := apitest.Decode[struct{ Data []key }](t, send("GET", "/keys", "", 200)).Data
		if len(keys) != 5 {
			t.Fatalf("keys: got %d, want 5", len(keys))
		}
		if last := keys[4]; last != (key{second.ID, "Eve", "eve@example.com", nil}) {
			t.Errorf("last key: got %+v, want %s", last, second.ID)
		}
		if keys[3].RevokedAt == nil {
			t.Errorf("revoked_at of %s: got null, want a time", keys[3].ID)
		}

		r = send("POST", "/records", `[{"user":{"id":"usr_ada"}},{"event":{"id":"evt_1","title":"Uno"}},
			{"guest":{"id":"gst_9","event_id":"evt_1","name":"G"}},{"delete":{"guest":"gst_1"}}]`, 200)
		r.WantBody(t, `{"applied":4,"unchanged":1}`)
		wantLog(`msg="records applied" records=4 unchanged=1`)
		send("POST", "/records", `[{"user":{"id":"usr_bob"}},{"user":{}}]`, 400).WantError(t, 400,
			"record 2: user: name is required; email is required")
		wantLog("")

		r = send("GET", "/records?user_id=usr_bob", "", 200)
		if records := apitest.Decode[[]events.Record](t, r); len(records) != 4 {
			t.Errorf("%s, want a user, a key, an event and a guest", r)
		}
		send("GET", "/records?user_id=usr_none", "", 404)
		send("GET", "/records?user_id=", "", 400)
		send("POST", "/status", "", 405)
		send("GET", "//keys", "", 404)
	}, apitest.Memory, apitest.Reopened) // a double has a control API instead
}

// An operator sees the cause of a 500, and the log has it as well.
func TestOperatorError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Now()
	s := apitest.New(t, apitest.Memory, &events.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Now:    func() time.Time { return now },
	})
	now = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	log.Reset()
	s.Operate("POST", "/keys", `{"user_id":"usr_ada"}`).WantError(t, 500, "year outside of range")
	if !strings.Contains(log.String(), `msg="operator request failed" error="panic: `) {
		t.Errorf("log: got %s, want the cause", &log)
	}
}

// slowReader returns nothing for a minute, and then a text.
type slowReader struct{ text io.Reader }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Minute)
	return r.text.Read(p)
}

// The operator's requests and responses may take longer than others.
func TestOperatorTimeouts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, target string
		body           io.Reader
	}{
		{"POST", "/records", slowReader{strings.NewReader("[]")}},
		{"GET", "/records", nil},
	} {
		t.Run(tt.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := apitest.New(t, apitest.Memory, nil)
				client, server := net.Pipe()
				defer client.Close()
				client.SetDeadline(time.Now().Add(time.Hour)) // a failure doesn't block the bubble
				httpapi.ServeConn(httpapi.NewServer(s.Operator()), server)
				r := httptest.NewRequest(tt.method, tt.target, tt.body)
				err := r.Write(client)
				if err != nil {
					t.Fatalf("request that takes a minute: got %v, want no error", err)
				}
				time.Sleep(time.Minute) // while the response waits
				response, err := http.ReadResponse(bufio.NewReader(client), r)
				if err != nil {
					t.Fatalf("response after a minute: got %v, want no error", err)
				}
				if response.StatusCode != 200 {
					t.Errorf("status: got %s, want 200", response.Status)
				}
			})
		})
	}
}

// A create gets its response even if its commit takes longer than the server's WriteTimeout.
func TestSlowCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		now := func() time.Time { // called by the transaction
			time.Sleep(wait)
			return time.Now()
		}
		s := apitest.New(t, apitest.Memory, &events.Config{Now: now})
		wait = time.Minute
		client, server := net.Pipe()
		defer client.Close()
		client.SetDeadline(time.Now().Add(time.Hour)) // a failure doesn't block the bubble
		httpapi.ServeConn(httpapi.NewServer(s.Handler), server)
		r := apitest.NewRequest("POST", base+"/events/create", strings.NewReader(newEvent))
		err := r.Write(client)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(client), r)
		if err != nil {
			t.Fatalf("response to a create that takes a minute: got %v, want no error", err)
		}
		if response.StatusCode != 201 {
			t.Errorf("status: got %s, want 201", response.Status)
		}
	})
}

// brokenWriter is the response to a client that is gone.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A client may close the connection while records are sent, as dump | head -1 does. That isn't logged.
func TestDumpClientGone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := apitest.New(t, apitest.Memory, &events.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	log.Reset()
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("panic: got %v, want ErrAbortHandler", got)
		}
		if log.Len() > 0 {
			t.Errorf("log: got %s, want nothing", &log)
		}
	}()
	w := brokenWriter{httptest.NewRecorder()}
	s.Operator().ServeHTTP(w, httptest.NewRequest("GET", "/records", nil))
}

func TestKeyRequestsRefused(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Memory, nil)
	for _, tt := range []struct {
		request string
		status  int
		want    string
	}{
		{`{}`, 400, "key: user_id or email is required"},
		{`{"user_id":""}`, 400, "user_id or email is required"},
		{`{"user_id":"usr_ada","name":"Ada"}`, 400, "user_id can't be combined with name or email"},
		{`{"user_id":"usr_ada","email":"ada@example.com"}`, 400, "user_id can't be combined with"},
		{`{"user_id":"usr_none"}`, 404, `user "usr_none": not found; eventsd dump shows`},
		{`{"user_id":"evt_1"}`, 404, "not found"},
		{`{"email":"new@example.com"}`, 400, "no user has the email new@example.com: check it"},
		{`{"id":"key_1"}`, 400, "id is not known"},
		{`[]`, 400, "must be a JSON object"},
		{`{`, 400, "line 1"},
	} {
		t.Run(tt.request, func(t *testing.T) {
			s.Operate("POST", "/keys", tt.request).WantError(t, tt.status, tt.want)
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
		unset := value == nil || value == "" && slices.Contains(apitest.EmptyIsNull, name)
		instant := name == "start_at" || name == "end_at" // comes back in UTC
		if unset || instant {
			continue
		}
		if got[name] != value {
			return fmt.Errorf("%s: got %#v, want %#v", name, got[name], value)
		}
	}
	return nil
}

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
	shared := apitest.New(f, apitest.Memory, nil)
	f.Fuzz(func(t *testing.T, body string) {
		s := shared.WithTB(t)
		before := s.Dump()
		r := s.Create(body)
		switch r.Status {
		case 201:
			err := checkKept(body, r.Body)
			if err != nil {
				t.Errorf("POST %q: got %v, want the fields as they were sent", body, err)
			}
			s.Apply(`[{"delete":{"event":"` + r.ID() + `"}}]`)
		case 400, 413:
		default:
			t.Errorf("POST %q: %s, want 201, 400 or 413", body, r)
		}
		s.WantDump(fmt.Sprintf("POST %q", body), before)
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
	shared := apitest.New(f, apitest.Memory, nil)
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.NewRequest(method, "http://localhost"+base+target, nil)
		if err != nil {
			return
		}
		r.RequestURI, r.Body = r.URL.RequestURI(), http.NoBody
		r.Header.Set("x-service-api-key", "svc_live_ada")
		got := shared.WithTB(t).Serve(r)
		if got.Status >= 500 {
			t.Errorf("%s, want no failure", got)
		}
		if got.Status/100 == 3 {
			t.Errorf("%s, want no redirect", got)
		}
		if strings.Contains(got.Body, "usr_bob") {
			t.Errorf("%s, want nothing of Bob", got)
		}
	})
}

// No header causes a 5xx, and only the key of a user is accepted.
func FuzzHeaders(f *testing.F) {
	f.Add("svc_live_ada", "", "", "", "")
	f.Add("", "Bearer svc_live_ada", "application/json", `"key"`, "")
	f.Add("svc_live_ada", "Bearer x", `text/plain; charset="`, `"\"`, "gzip")
	f.Add("\x00", "Basic", "application/json; charset=utf-8", "é", "identity")
	shared := apitest.New(f, apitest.Memory, nil)
	f.Fuzz(func(t *testing.T, key, authorization, contentType, idempotencyKey, contentEncoding string) {
		s := shared.WithTB(t)
		headers := []string{keyless}
		for name, value := range map[string]string{
			"x-service-api-key": key, "Authorization": authorization, "Content-Type": contentType,
			"Idempotency-Key": idempotencyKey, "Content-Encoding": contentEncoding,
		} {
			if value != "" {
				headers = append(headers, name+": "+value)
			}
		}
		r := s.Create(newEvent, headers...)
		sent := key
		if key == "" && len(authorization) > 7 && strings.EqualFold(authorization[:7], "Bearer ") {
			sent = strings.TrimLeft(authorization[7:], " ")
		}
		valid := sent == "svc_live_ada" || sent == "svc_live_bob"
		if valid == (r.Status == 401) {
			t.Errorf("%q: %s, want the key to be valid: %v", headers, r, valid)
		}
		if r.Status >= 500 {
			t.Errorf("%q: %s, want no failure", headers, r)
		}
		if r.Status == 201 {
			s.Apply(`[{"delete":{"event":"` + r.ID() + `"}}]`)
		}
	})
}
