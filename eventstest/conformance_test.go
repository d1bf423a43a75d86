package eventstest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"example.com/events"
	"example.com/events/eventstest"
	"example.com/events/internal/apitest"
)

// varying matches the values that differ between servers.
var varying = regexp.MustCompile(
	`evt_\w{10,}|launch-\w{8}|"20(2[6-9]|30)-\d\d-\d\dT[\d:.]+Z"|Content-Length:\[\d+\]`)

// A double responds as a server does, header by header. Package apitest compares more responses of both with
// openapi.json.
func TestConformance(t *testing.T) {
	store := events.NewStore(nil)
	if err := store.ApplyJSON([]byte(apitest.Seed)); err != nil {
		t.Fatal(err)
	}
	server := "http://" + apitest.Listen(t, events.New(store)) + events.BasePath
	seed := eventstest.SeedJSON([]byte(apitest.Seed))
	double := eventstest.New(t, seed, eventstest.Allow(eventstest.UnknownRoute)).URL
	for _, request := range []string{
		"GET /users/me", "HEAD /events", "GET /events?limit=1", "GET /events/two", "GET /events/evt_1/guests",
		"POST /events/create", "GET /openapi", "OPTIONS /events", "GET /nothing", "PUT /events",
		"GET /events?limit=0",
	} {
		for _, key := range []string{"svc_live_ada", "svc_live_bob", "svc_live_wrong"} {
			var responses []string
			for _, url := range []string{server, double} {
				method, path, _ := strings.Cut(request, " ")
				r, err := apitest.Fetch(http.DefaultClient, method, url+path, launch,
					"x-service-api-key: "+key, "Idempotency-Key: 1")
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Del("Date")
				text := fmt.Sprint(r.Status, r.Header, r.Body)
				responses = append(responses, varying.ReplaceAllString(text, "…"))
			}
			if responses[0] != responses[1] {
				t.Errorf("%s with %s: got\n%s\nwant, as from a server,\n%s",
					request, key, responses[1], responses[0])
			}
		}
	}
}
