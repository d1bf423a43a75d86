package eventstest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
)

// conformanceSeed has two hosts with keys, and events in both states with
// guests. All of it is from before the clocks of all servers.
const conformanceSeed = `[
{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com","timezone":"Europe/London","created_at":"2025-01-01T00:00:00Z"}},
{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com","created_at":"2025-01-02T00:00:00Z"}},
{"key":{"id":"key_ada","user_id":"usr_ada","secret":"svc_live_ada_0123456789abcdef","created_at":"2025-01-03T00:00:00Z"}},
{"key":{"id":"key_bob","user_id":"usr_bob","secret":"svc_live_bob_0123456789abcdef","created_at":"2025-01-03T00:00:00Z"}},
{"key":{"id":"key_old","user_id":"usr_bob","secret":"svc_live_old_0123456789abcdef","created_at":"2025-01-03T00:00:00Z","revoked_at":"2025-01-04T00:00:00Z"}},
{"event":{"id":"evt_one","slug":"one","host_id":"usr_ada","title":"One","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","status":"draft","created_at":"2025-02-01T00:00:00Z"}},
{"event":{"id":"evt_two","slug":"two","host_id":"usr_ada","title":"Two","start_at":"2027-03-02T10:00:00Z","end_at":"2027-03-02T12:00:00Z","created_at":"2025-02-02T00:00:00Z"}},
{"guest":{"id":"gst_kurt","event_id":"evt_one","name":"Kurt","status":"declined","created_at":"2025-03-01T00:00:00Z"}},
{"guest":{"id":"gst_emmy","event_id":"evt_one","email":"emmy@example.com","created_at":"2025-03-02T00:00:00Z"}}
]`

const ada, bob, fresh = "svc_live_ada_0123456789abcdef", "svc_live_bob_0123456789abcdef", "{fresh}"

// step is one request of the suite. In its path, {name} is what an earlier
// answer had.
type step struct {
	key, method, path, body string
	headers                 []string
	status                  int
	keep                    string // name=member of the answer to be kept
}

var conformance = []step{
	{"", "GET", "/users/me", "", nil, 401, ""},
	{"svc_live_old_0123456789abcdef", "GET", "/users/me", "", nil, 401, ""},
	{"", "GET", "/users/me", "", []string{"Authorization: bearer " + ada}, 200, ""},
	{ada, "GET", "/users/me", "", nil, 200, ""},
	{ada, "HEAD", "/users/me", "", nil, 200, ""},
	{ada, "GET", "/users/me?x=1", "", nil, 400, ""},
	{fresh, "GET", "/users/me", "", nil, 200, ""},
	{fresh, "GET", "/events", "", nil, 200, ""},
	{ada, "GET", "/events", "", nil, 200, ""},
	{ada, "GET", "/events?status=draft", "", nil, 200, ""},
	{ada, "GET", "/events?status=gone", "", nil, 400, ""},
	{ada, "GET", "/events?limit=1", "", nil, 200, "cursor=next_cursor"},
	{ada, "GET", "/events?limit=1&cursor={cursor}", "", nil, 200, ""},
	{bob, "GET", "/events?limit=1&cursor={cursor}", "", nil, 200, ""},
	{ada, "GET", "/events?limit=101", "", nil, 400, ""},
	{ada, "GET", "/events?limit=1&limit=2", "", nil, 400, ""},
	{ada, "GET", "/events/evt_one", "", nil, 200, ""},
	{ada, "GET", "/events/one", "", nil, 200, ""},
	{bob, "GET", "/events/evt_one", "", nil, 404, ""},
	{bob, "GET", "/events/evt_none", "", nil, 404, ""},
	{ada, "GET", "/events/evt_one/guests", "", nil, 200, ""},
	{ada, "GET", "/events/one/guests?limit=1", "", nil, 200, ""},
	{bob, "GET", "/events/one/guests", "", nil, 404, ""},
	{fresh, "POST", "/events/create", launch, nil, 201, "event=id"},
	{fresh, "GET", "/events/{event}", "", nil, 200, "slug=slug"},
	{fresh, "GET", "/events/{slug}", "", nil, 200, ""},
	{bob, "GET", "/events/{slug}", "", nil, 404, ""},
	{fresh, "POST", "/events/create", launch, []string{"Idempotency-Key: a",
		"Content-Type: application/json; charset=UTF-8"}, 201, "second=id"},
	{fresh, "POST", "/events/create", launch, []string{`Idempotency-Key: "a"`}, 201, "other=slug"},
	{fresh, "POST", "/events/create", launch + " ", []string{"Idempotency-Key: a"}, 422, ""},
	{fresh, "POST", "/events/create", launch, []string{"Idempotency-Key: "}, 400, ""},
	{fresh, "POST", "/events/create",
		`{"title":"Salon","description":"<b>\u00e9</b>","start_at":"2030-06-21t18:00:00.5+02:00","end_at":"2030-06-21T22:00:00Z","timezone":"Europe/Paris","location_type":"in_person","location_city":"Paris","location_country":"FR","visibility":"private","requires_approval":true,"cover_image_url":"https://example.com/a.png","meeting_url":null}`, nil, 201, "third=id"},
	{fresh, "GET", "/events/{third}", "", nil, 200, "salon=slug"},
	{fresh, "GET", "/events", "", nil, 200, ""},
	{fresh, "GET", "/events?limit=2", "", nil, 200, "more=next_cursor"},
	{fresh, "GET", "/events?limit=2&cursor={more}", "", nil, 200, ""},
	{ada, "POST", "/events/create", "", nil, 400, ""},
	{ada, "POST", "/events/create", `[]`, nil, 400, ""},
	{ada, "POST", "/events/create",
		`{"title":" ","start_at":"2030-01-01","end_at":5,"visibility":"secret","slug":"x","nope":1}`, nil,
		400, ""},
	{ada, "POST", "/events/create",
		`{"title":"x","start_at":"2030-01-02T00:00:00Z","end_at":"2030-01-01T00:00:00Z"}`, nil, 400, ""},
	{ada, "POST", "/events/create", launch, []string{"Content-Type: text/plain"}, 415, ""},
	{ada, "POST", "/events/create", strings.Repeat(" ", 1<<20) + launch, []string{"Expect: 100-continue"},
		413, ""},
	{ada, "GET", "/events/create", "", nil, 404, ""},
	{ada, "DELETE", "/events/evt_one", "", nil, 405, ""},
	{ada, "GET", "/nothing", "", nil, 404, ""},
	{ada, "GET", "/events/", "", nil, 404, ""},
	{ada, "GET", "/events/a%2Fb", "", nil, 404, ""},
	{ada, "OPTIONS", "/events", "", nil, 204, ""},
	{"", "OPTIONS", "/events/create", "", []string{"Origin: https://example.com",
		"Access-Control-Request-Method: POST"}, 204, ""},
	{ada, "GET", "/openapi", "", nil, 200, ""},
	{ada, "GET", "/events", "", []string{"X-Pad: " + strings.Repeat("a", 40<<10)}, 431, ""},
}

// server is one of those that the suite runs against.
type server struct {
	base   string
	newKey func(t testing.TB, name string) string
}

// The same requests have the same answers: byte for byte in the double in this
// process and in one of its own, and on a durable server but for what it makes
// at random or by its clock.
func TestConformance(t *testing.T) {
	t.Parallel()
	seed := filepath.Join(t.TempDir(), "seed.json")
	if err := os.WriteFile(seed, []byte(conformanceSeed), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "events.json")

	double := eventstest.New(t, eventstest.SeedJSON([]byte(conformanceSeed)), eventstest.AllowUnknownRoutes())
	process := eventsd(t, "double", "-seed", seed)
	durable := eventsd(t, "serve", "-addr", "127.0.0.1:0", "-data", data, "-seed", seed)
	if process.lines["api_key"] != double.Key {
		t.Errorf("api_key: %s in a process, %s in Go", process.lines["api_key"], double.Key)
	}
	servers := map[string]server{
		"in Go": {double.URL, func(t testing.TB, name string) string {
			key,
				_ := double.NewKey(name)
			return key
		}},
		"process": {process.lines["base_url"], func(t testing.TB, name string) string {
			a := process.control(t, "POST", "/keys", fmt.Sprintf(`{"name":%q}`, name))
			return member(t, a.body, "key")
		}},
		"durable": {durable.lines["base_url"], func(t testing.TB, name string) string {
			var out strings.Builder
			args := []string{"key", "issue", "-data", data, "-name", name, "-email", name + "@double.example"}
			if code := events.Run(t.Context(), args, nil, nil, &out,
				t.Output()); code != 0 {
				t.Fatalf("key issue: exit status %d", code)
			}
			return strings.TrimSpace(out.String())
		}},
	}
	exact, alike := map[string][]string{}, map[string][]string{}
	for name, s := range servers {
		exact[name], alike[name] = s.run(t, name)
	}
	for i, st := range conformance {
		if a, b := exact["in Go"][i], exact["process"][i]; a != b {
			t.Errorf("step %d, %s %s, in Go:\n%s\nin a process:\n%s", i, st.method, st.path, a, b)
		}
		if a, b := alike["in Go"][i], alike["durable"][i]; a != b {
			t.Errorf("step %d, %s %s, of the double:\n%s\non the durable server:\n%s", i, st.method, st.path,
				a, b)
		}
	}
}

// madeByServer is what differs between a double and another server, beside the
// ids and slugs that the suite keeps.
var madeByServer = []*regexp.Regexp{
	regexp.MustCompile(`"(created_at|updated_at)":"20(2[6-9]|30)-[^"]*"`),
	regexp.MustCompile(`usr_(grace|[a-z2-7]{26})`),
	regexp.MustCompile(`content-length: .*`),
}

// run sends the suite and returns each answer as it came, and with what a
// server makes replaced by names.
func (s server) run(t testing.TB, name string) (exact, alike []string) {
	vars := map[string]string{"{fresh}": s.newKey(t, "grace")}
	for i, st := range conformance {
		path := st.path
		for name, value := range vars {
			path = strings.ReplaceAll(path, name, value)
		}
		headers := st.headers
		if st.key != "" {
			headers = append([]string{"x-service-api-key: " + cmp.Or(vars[st.key], st.key)}, headers...)
		}
		a := send(t, http.DefaultClient, st.method, s.base+path, st.body, headers...)
		if a.status != st.status {
			t.Errorf("%s, step %d: %s %s = %d %s %v, want %d", name, i, st.method, st.path, a.status, a.body,
				a.err, st.status)
		}
		if keep, of, found := strings.Cut(st.keep, "="); found {
			vars["{"+keep+"}"] = member(t, a.body, of)
		}
		var text strings.Builder
		fmt.Fprintln(&text, a.status)
		for _, h := range slices.Sorted(maps.Keys(a.header)) {
			if h != "Date" {
				fmt.Fprintf(&text, "%s: %s\n", strings.ToLower(h), strings.Join(a.header[h], "|"))
			}
		}
		exact = append(exact, text.String()+a.body)
	}
	for _, text := range exact {
		for name, value := range vars {
			text = strings.ReplaceAll(text, value, name)
		}
		for _, made := range madeByServer {
			text = made.ReplaceAllString(text, "…")
		}
		alike = append(alike, text)
	}
	return exact, alike
}

func member(t testing.TB, body, name string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	value, ok := object[name].(string)
	if !ok {
		t.Fatalf("%s has no %s", body, name)
	}
	return value
}
