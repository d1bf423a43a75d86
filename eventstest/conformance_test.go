package eventstest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
	"example.com/events/internal/apitest"
	"example.com/events/internal/testdouble"
)

// This file sends one conversation to a server in memory, to one on a file and to a test double, and compares
// their responses.

// conformanceSeed has three hosts. Its times are before the clock of every server.
const conformanceSeed = `[
{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com","timezone":"Europe/London",
	"created_at":"2025-01-01T00:00:00Z"}},
{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com","created_at":"2025-01-02T00:00:00Z"}},
{"user":{"id":"usr_new","name":"New","email":"new@example.com","created_at":"2025-01-03T00:00:00Z"}},
{"key":{"user_id":"usr_ada","secret":"svc_live_ada"}},
{"key":{"user_id":"usr_bob","secret":"svc_live_bob"}},
{"key":{"user_id":"usr_bob","secret":"svc_live_old","revoked_at":"2026-01-04T00:00:00Z",
	"created_at":"2025-01-03T00:00:00Z"}},
{"key":{"user_id":"usr_new","secret":"svc_live_new"}},
{"event":{"id":"evt_one","slug":"one","host_id":"usr_ada","title":"One","status":"draft",
	"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","created_at":"2025-02-01T00:00:00Z"}},
{"event":{"id":"evt_two","slug":"two","host_id":"usr_ada","title":"Two",
	"start_at":"2027-03-02T10:00:00Z","end_at":"2027-03-02T12:00:00Z","created_at":"2025-02-02T00:00:00Z"}},
{"guest":{"id":"gst_kurt","event_id":"evt_one","name":"Kurt","status":"declined",
	"created_at":"2025-03-01T00:00:00Z"}},
{"guest":{"id":"gst_emmy","event_id":"evt_one","email":"emmy@example.com",
	"created_at":"2025-03-02T00:00:00Z"}}
]`

// step is a request of the conversation. In its request and body, {NAME} is a value that an earlier
// step has kept.
type step struct {
	key     string // without svc_live_; empty: none
	request string // method and path below the base path
	headers string // lines
	body    string
	missing int // number of bytes of the body that are announced and not sent
	status  int
	code    string // of an error
	keep    string // "NAME=FIELD" keeps a field of the response
}

var salon = strings.Join(strings.Fields(`{"title":"Salon","description":"<b>\u00e9</b>",
	"start_at":"2030-06-21t18:00:00.5+02:00","end_at":"2030-06-21T22:00Z","timezone":"Europe/Paris",
	"location_type":"in_person","location_city":"Paris","location_country":"FR","visibility":"private",
	"requires_approval":true,"cover_image_url":"https://example.com/a.png","meeting_url":null}`), " ")

var conversation = []step{
	{key: "ada", request: "GET /users/me", status: 200},
	{key: "ada", request: "HEAD /users/me", status: 200},
	{request: "GET /users/me", headers: "Authorization: bearer svc_live_ada", status: 200},
	{request: "GET /users/me", status: 401, code: "unauthorized"},
	{key: "old", request: "GET /users/me", status: 401, code: "unauthorized"},
	{request: "GET /nothing", status: 401, code: "unauthorized"},
	{key: "ada", request: "GET /nothing", status: 404, code: "not_found"},
	{key: "ada", request: "GET /events/", status: 404, code: "not_found"},
	{key: "ada", request: "GET /events/a%2Fb", status: 404, code: "not_found"},
	{key: "ada", request: "DELETE /events/evt_one", status: 405, code: "method_not_allowed"},
	{key: "ada", request: "PUT /events/create", status: 405, code: "method_not_allowed"},
	{key: "ada", request: "OPTIONS /events", status: 204},
	{request: "OPTIONS /events", headers: "Origin: https://example.com\nAccess-Control-Request-Method: POST",
		status: 204},
	{key: "ada", request: "GET /users/me?x=1", status: 400, code: "bad_request"},

	{key: "ada", request: "GET /events", status: 200},
	{key: "new", request: "GET /events", status: 200},
	{key: "ada", request: "GET /events?status=draft", status: 200},
	{key: "ada", request: "GET /events?status=gone&limit=101&x=1", status: 400, code: "bad_request"},
	{key: "ada", request: "GET /events?limit=1", status: 200, keep: "cursor=next_cursor"},
	{key: "ada", request: "GET /events?limit=1&cursor={cursor}", status: 200},
	{key: "bob", request: "GET /events?limit=1&cursor={cursor}", status: 200},
	{key: "ada", request: "GET /events?cursor=x", status: 400, code: "bad_request"},
	{key: "ada", request: "GET /events/evt_one", status: 200},
	{key: "ada", request: "GET /events/one", status: 200},
	{key: "bob", request: "GET /events/evt_one", status: 404, code: "not_found"},
	{key: "bob", request: "GET /events/evt_none", status: 404, code: "not_found"},
	{key: "ada", request: "GET /events/create", status: 404, code: "not_found"},
	{key: "ada", request: "GET /events/evt_one/guests", status: 200},
	{key: "ada", request: "GET /events/one/guests?limit=1", status: 200, keep: "cursor=next_cursor"},
	{key: "ada", request: "GET /events/one/guests?limit=1&cursor={cursor}", status: 200},
	{key: "bob", request: "GET /events/one/guests", status: 404, code: "not_found"},
	{key: "ada", request: "GET /openapi", status: 200},

	{key: "new", request: "POST /events/create", body: launch, status: 201, keep: "first=id"},
	{key: "new", request: "GET /events/{first}", status: 200, keep: "slug=slug"},
	{key: "new", request: "GET /events/{slug}", status: 200},
	{key: "bob", request: "GET /events/{slug}", status: 404, code: "not_found"},
	{key: "new", request: "POST /events/create", body: salon,
		headers: "Content-Type: application/json; charset=UTF-8", status: 201, keep: "salon=id"},
	{key: "new", request: "GET /events/{salon}", status: 200, keep: "other=slug"},
	{key: "new", request: "POST /events/create", body: launch, headers: "Idempotency-Key: a", status: 201,
		keep: "again=id"},
	{key: "new", request: "POST /events/create", body: launch, headers: `Idempotency-Key: "a"`, status: 201,
		keep: "third=slug"},
	{key: "new", request: "POST /events/create", body: launch + " ", headers: "Idempotency-Key: a",
		status: 422, code: "idempotency_mismatch"},
	{key: "new", request: "POST /events/create", body: launch, headers: "Idempotency-Key: ", status: 400,
		code: "bad_request"},
	{key: "new", request: "GET /events", status: 200},
	{key: "new", request: "GET /events?limit=2", status: 200, keep: "more=next_cursor"},
	{key: "new", request: "GET /events?limit=2&cursor={more}", status: 200},

	{key: "ada", request: "POST /events/create", status: 400, code: "bad_request"},
	{key: "ada", request: "POST /events/create", body: "[]", status: 400, code: "bad_request"},
	{key: "ada", request: "POST /events/create", status: 400, code: "bad_request",
		body: `{"title":" ","start_at":"2030-01-01","end_at":5,"slug":"x","y":1}`},
	{key: "ada", request: "POST /events/create", body: launch, headers: "Content-Type: text/plain",
		status: 415, code: "unsupported_media_type"},
	{key: "ada", request: "POST /events/create", body: launch, headers: "Content-Encoding: gzip", status: 415,
		code: "unsupported_media_type"},
	{key: "ada", request: "POST /events/create", body: strings.Repeat(" ", 1<<20+1), status: 413,
		code: "payload_too_large"},
	{key: "ada", request: "POST /events/create", body: launch, missing: 10, status: 408,
		code: "request_timeout"},
	{key: "ada", request: "GET /events", headers: "X-Pad: " + strings.Repeat("a", 40<<10), status: 431},
}

// afterClose is sent after the store was closed.
var afterClose = step{key: "ada", request: "POST /events/create", body: launch, status: 503,
	code: "server_error"}

// errorCodes are the codes of the API. Two more come from faults and from the control API only:
// rate_limited and forbidden.
var errorCodes = []string{"bad_request", "idempotency_mismatch", "method_not_allowed", "not_found",
	"payload_too_large", "request_timeout", "server_error", "unauthorized", "unsupported_media_type"}

// TestConformance tests that a server in memory, one on a file and a test double have the same
// responses, except for IDs, slugs and times.
func TestConformance(t *testing.T) {
	memory := events.NewStore(nil)
	file, err := events.Open(filepath.Join(t.TempDir(), "events.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for _, store := range []*events.Store{memory, file} {
		if err := store.ApplyJSON([]byte(conformanceSeed)); err != nil {
			t.Fatal(err)
		}
	}
	seed := eventstest.SeedJSON([]byte(conformanceSeed))
	double := eventstest.New(t, seed, eventstest.AllowUnknownRoutes())
	transcripts := map[string][]string{
		"memory": converse(t, apitest.Listen(t, events.New(memory)), memory),
		"file":   converse(t, apitest.Listen(t, events.New(file)), file),
		"double": converse(t, strings.Split(double.URL, "/")[2], double.Store),
	}
	for i, step := range append(conversation, afterClose) {
		for _, name := range []string{"file", "double"} {
			got, want := transcripts[name][i], transcripts["memory"][i]
			if got != want {
				t.Errorf("step %d, %s, %s: got\n%s\nwant, as in memory:\n%s",
					i, step.request, name, got, want)
			}
		}
	}
}

// TestConformanceComplete tests that the conversation has a success of each operation, and each error.
func TestConformanceComplete(t *testing.T) {
	seed := eventstest.SeedJSON([]byte(conformanceSeed))
	srv := eventstest.New(t, seed, eventstest.AllowUnknownRoutes())
	converse(t, strings.Split(srv.URL, "/")[2], srv.Store)
	succeeded := map[string]bool{}
	for _, r := range srv.Requests("") {
		if r.Status < 300 {
			succeeded[r.Operation] = true
		}
	}
	for _, operation := range events.New(events.NewStore(nil)).(testdouble.Server).Mux().Operations() {
		if !succeeded[operation] {
			t.Errorf("%s: got no success in the conversation, want one", operation)
		}
	}
	codes := map[string]bool{afterClose.code: true}
	for _, step := range conversation {
		codes[step.code] = true
	}
	delete(codes, "")
	if got := slices.Sorted(maps.Keys(codes)); !slices.Equal(got, errorCodes) {
		t.Errorf("errors of the conversation: got %q, want %q", got, errorCodes)
	}
}

// different matches the values that differ between servers, except for those that steps keep.
var different = regexp.MustCompile(`"(created_at|updated_at)":"20(2[6-9]|30)-[^"]*"|` +
	`(Content-Length|X-Request-Id): .*`)

// converse sends the conversation to a server, closes its store, and returns its responses without the
// values that differ between servers.
func converse(t *testing.T, address string, store *events.Store) (responses []string) {
	t.Helper()
	kept := map[string]string{}
	exchange := func(i int, s step) {
		t.Helper()
		for name, value := range kept {
			s.request = strings.ReplaceAll(s.request, name, value)
		}
		resp, body := s.send(t, address)
		if resp.StatusCode != s.status {
			t.Errorf("step %d, %s: got status %d %s, want %d", i, s.request, resp.StatusCode, body, s.status)
		}
		if got := errorCode(body); got != s.code {
			t.Errorf("step %d, %s: got error code %q in %s, want %q", i, s.request, got, body, s.code)
		}
		if name, field, ok := strings.Cut(s.keep, "="); ok {
			kept["{"+name+"}"] = stringField(t, body, field)
		}
		text := fmt.Sprintln(resp.StatusCode)
		resp.Header.Del("Date")
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			text += fmt.Sprintf("%s: %s\n", name, strings.Join(resp.Header[name], " | "))
		}
		responses = append(responses, text+body)
	}
	for i, s := range conversation {
		exchange(i, s)
	}
	store.Close()
	exchange(len(conversation), afterClose)
	for i, text := range responses {
		for name, value := range kept {
			text = strings.ReplaceAll(text, value, name)
		}
		responses[i] = different.ReplaceAllString(text, "…")
	}
	return responses
}

// send sends a step on a connection of its own.
func (s step) send(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	method, path, _ := strings.Cut(s.request, " ")
	head := method + " " + events.BasePath + path + " HTTP/1.1\nHost: example.com\nConnection: close\n"
	if s.key != "" {
		head += "x-service-api-key: svc_live_" + s.key + "\n"
	}
	if s.headers != "" {
		head += s.headers + "\n"
	}
	if method == "POST" {
		head += fmt.Sprintf("Content-Length: %d\n", len(s.body)+s.missing)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(sendTimeout))
	go func() { // a server may respond before it has read everything
		io.WriteString(conn, strings.ReplaceAll(head+"\n", "\n", "\r\n")+s.body)
		if s.missing > 0 {
			conn.(*net.TCPConn).CloseWrite()
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: got %v, want a response", s.request, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: got %v, want a response", s.request, err)
	}
	return resp, string(body)
}

// errorCode returns the code of an error, or "" if a response is no error.
func errorCode(body string) string {
	var response struct {
		Error struct{ Code string }
	}
	json.Unmarshal([]byte(body), &response) // other bodies have no code
	return response.Error.Code
}

// stringField returns a field of a JSON object.
func stringField(t *testing.T, object, name string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatalf("%s: got %v, want a JSON object", object, err)
	}
	value, ok := fields[name].(string)
	if !ok {
		t.Fatalf("got %s, want a string %s in it", object, name)
	}
	return value
}
