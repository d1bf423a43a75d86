package eventstest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
)

// exampleT replaces the *testing.T of a test.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (t *exampleT) Helper()          {}
func (t *exampleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Failed() bool     { return false }
func (t *exampleT) Skipped() bool    { return false }
func (t *exampleT) Errorf(format string, args ...any) {
	problem, _, _ := strings.Cut(fmt.Sprintf(format, args...), " below") // without the rest
	fmt.Println(problem)
}
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *exampleT) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// createLaunch is the client under test. It creates an event and retries after a failure.
func createLaunch(client *http.Client, baseURL, key string) (status int, body string) {
	for range 10 {
		r, _ := http.NewRequest("POST", baseURL+"/events/create", strings.NewReader(
			`{"title":"Launch","start_at":"2030-03-01T18:00:00Z","end_at":"2030-03-01T20:00:00Z"}`))
		r.Header.Set("x-service-api-key", key)
		r.Header.Set("Idempotency-Key", "launch")
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode >= 500 {
			continue
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	return 0, ""
}

// In your test, use its *testing.T. You don't have to close anything.
func ExampleNew() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t)
	status, body := createLaunch(http.DefaultClient, srv.URL, srv.Key)
	fmt.Println(status)
	fmt.Println(body[:46])
	// Output:
	// 201
	// {"id":"evt_owner_000001","host_id":"usr_owner"
}

// Two requests fail. The third one is handled, but its response gets lost. All attempts have the same
// Idempotency-Key, so they create one event.
func ExampleServer_Fail() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t)
	srv.Fail("POST /events/create", eventstest.Fault{Status: 503, Times: 2})
	lost := srv.Fail("POST /events/create", eventstest.Fault{DropResponse: true, Times: 1})

	status, _ := createLaunch(srv.Client(), srv.URL, srv.Key)
	fmt.Println(status, "after", len(srv.Requests("POST /events/create")), "attempts,", lost.Hits(), "lost")
	// Output: 201 after 4 attempts, 1 lost
}

// Create users with keys of their own.
func ExampleServer_NewKey() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t)
	for _, name := range []string{"Grace", "Ada"} {
		key, owner := srv.NewKey(name)
		_, body := createLaunch(srv.Client(), srv.URL, key)
		fmt.Println(owner.ID, body[:23])
	}
	// Output:
	// usr_grace {"id":"evt_grace_000001
	// usr_ada {"id":"evt_ada_000001",
}

// Check what the client sent.
func ExampleServer_Requests() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t)
	createLaunch(srv.Client(), srv.URL, srv.Key)
	for _, r := range srv.Requests("") {
		fmt.Println(r.Operation, r.Status, r.UserID, r.Header.Get("Idempotency-Key"))
	}
	// Output: POST /events/create 201 usr_owner launch
}

// Fill the store before the test, and read it afterwards.
func ExampleSeed() {
	t := &exampleT{}
	defer t.end()

	start := time.Date(2030, 3, 1, 18, 0, 0, 0, time.UTC)
	srv := eventstest.New(t, eventstest.Seed(events.Record{Event: &events.Event{
		HostID: "usr_owner", Title: "Seeded", StartAt: start, EndAt: start.Add(time.Hour), Status: "draft"}}))
	createLaunch(srv.Client(), srv.URL, srv.Key)
	for r := range srv.Store.Records() {
		if r.Event != nil {
			fmt.Println(r.Event.ID, r.Event.Title, r.Event.Status)
		}
	}
	// Output:
	// evt_owner_000001 Seeded draft
	// evt_owner_000002 Launch published
}

// Move the clock.
func ExampleServer_Advance() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t)
	srv.Advance(36 * time.Hour)
	fmt.Println(srv.Now())
	// Output: 2030-01-02 12:00:00 +0000 UTC
}

// A request to an unknown route fails the test.
func ExampleAllow() {
	t := &exampleT{}
	defer t.end()

	srv := eventstest.New(t, eventstest.NoListener())
	r, _ := http.NewRequest("GET", srv.URL+"/event/1", nil)
	r.Header.Set("x-service-api-key", srv.Key)
	srv.Client().Do(r)
	// Output:
	// eventstest: request to an unknown route: 1: GET /api/public/v1/event/1 of usr_owner: 404: no such route
}
