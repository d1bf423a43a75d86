package eventstest_test

import (
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
	"example.com/events/internal/apitest"
)

// These tests show which requests the journal has, and how a test waits for them.

// dial opens a connection to a server that is closed when the test ends, and sends a text.
func dial(t testing.TB, srv *eventstest.Server, text string) net.Conn {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(srv.URL, "http://"), events.BasePath)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestRequests(t *testing.T) {
	srv := eventstest.New(t)
	srv.Advance(time.Minute)
	srv.Fail(create, eventstest.Fault{Status: 503, Delay: time.Nanosecond, Times: 1})
	before := time.Now()
	var responses []result
	for range 2 {
		responses = append(responses, send(srv, create, "X-A: b"))
	}
	after := time.Now()
	got := srv.Requests(create)
	if len(got) != 2 {
		t.Fatalf("requests: got %d, want 2", len(got))
	}
	for i, r := range got {
		if r.Received.Before(before) {
			t.Errorf("request %d: Received: got %v, want at least %v", i, r.Received, before)
		}
		if r.Received.After(after) {
			t.Errorf("request %d: Received: got %v, want at most %v", i, r.Received, after)
		}
		if a := r.Header.Get("X-A"); a != "b" {
			t.Errorf("request %d: header X-A: got %q, want b", i, a)
		}
		if got := r.ResponseHeader.Get("Content-Type"); got != "application/json" {
			t.Errorf("request %d: header Content-Type of the response: got %q, want application/json", i, got)
		}
		want := eventstest.Request{
			Seq:            i + 1,
			Time:           srv.Now(),
			Received:       r.Received,
			Method:         "POST",
			Path:           events.BasePath + "/events/create",
			Header:         r.Header,
			Body:           launch,
			Operation:      create,
			UserID:         "usr_owner",
			Fault:          []string{"status 503, delay 1ns", ""}[i],
			Status:         []int{503, 201}[i],
			ResponseHeader: r.ResponseHeader,
			Response:       responses[i].Body,
		}
		gotFields, wantFields := reflect.ValueOf(r), reflect.ValueOf(want)
		for field := range gotFields.Type().Fields() {
			if !field.IsExported() {
				continue
			}
			got := gotFields.FieldByIndex(field.Index).Interface()
			want := wantFields.FieldByIndex(field.Index).Interface()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("request %d: %s: got %v, want %v", i, field.Name, got, want)
			}
		}
	}
	got[0].Header.Set("X-A", "changed")
	got[0].ResponseHeader.Set("Retry-After", "changed")
	again := srv.Requests(create)[0]
	if a := again.Header.Get("X-A"); a != "b" {
		t.Errorf("header X-A: got %q after the caller changed a copy, want b", a)
	}
	if after := again.ResponseHeader.Get("Retry-After"); after != "1" {
		t.Errorf("header Retry-After: got %q after the caller changed a copy, want 1", after)
	}
}

// TestRequestsOf tests the selection of requests, and which of them have an operation and a user.
func TestRequestsOf(t *testing.T) {
	revoked := &events.Key{UserID: "usr_owner", Secret: "svc_live_revoked", RevokedAt: new(time.Now())}
	srv := eventstest.New(t, eventstest.Allow(eventstest.UnknownRoute),
		eventstest.Seed(events.Record{Key: revoked}))
	grace, owner := srv.NewKey("Grace")
	send(srv, getMe)
	send(srv, "HEAD /users/me", "x-service-api-key: "+grace)
	send(srv, list+"?limit=3", "x-service-api-key: "+grace)
	send(srv, list, "x-service-api-key: svc_live_revoked")
	send(srv, "GET /event")
	send(srv, "DELETE /events")
	send(srv, "OPTIONS /events")
	send(srv, "GET /event", "x-service-api-key: svc_live_wrong")
	for _, tt := range []struct {
		name string
		got  []eventstest.Request
		want []string
	}{
		{"all", srv.Requests(""), []string{
			"1: GET /users/me usr_owner 200",
			"2: GET /users/me usr_grace 200",
			"3: GET /events usr_grace 200",
			"4: GET /events  401",
			"5:  usr_owner 404",
			"6:  usr_owner 405",
			"7:  usr_owner 204",
			"8:   401",
		}},
		{"operation", srv.Requests(list), []string{"3: GET /events usr_grace 200", "4: GET /events  401"}},
		{"user", srv.Requests("", owner.ID), []string{"2: GET /users/me usr_grace 200",
			"3: GET /events usr_grace 200"}},
		{"users", srv.Requests(getMe, owner.ID, "usr_owner"), []string{"1: GET /users/me usr_owner 200",
			"2: GET /users/me usr_grace 200"}},
	} {
		var got []string
		for _, r := range tt.got {
			got = append(got, fmt.Sprintf("%d: %s %s %d", r.Seq, r.Operation, r.UserID, r.Status))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if query := srv.Requests(list)[0].Query; query != "limit=3" {
		t.Errorf("Query: got %q, want limit=3", query)
	}
	srv.ClearRequests()
	send(srv, getMe)
	const want = "[9: GET /api/public/v1/users/me of usr_owner: 200]"
	if got := fmt.Sprint(srv.Requests("")); got != want {
		t.Errorf("after ClearRequests and a request: got %s, want %s", got, want)
	}
}

// The journal has the response that was decided, whether or not the client got it.
func TestResponseInJournal(t *testing.T) {
	const created = `{"id":"evt_owner_000001",`
	for _, tt := range []struct {
		name     string
		request  string
		fault    eventstest.Fault
		status   int
		response string // a part of it
		header   string // a header that the response must have
	}{
		{"nothing", create, eventstest.Fault{Header: http.Header{"X-A": {"b"}}}, 201, created, "X-A"},
		{"lost", create, eventstest.Fault{DropResponse: true}, 201, created, "Location"},
		{"half", create, eventstest.Fault{CutResponse: true}, 201, created, "Location"},
		{"gateway", create, eventstest.Fault{DropResponse: true, Status: 504, Body: "late"}, 504, "late",
			"Content-Type"},
		{"patch", create, eventstest.Fault{Patch: `{"id":0}`}, 201, `"id":0,`, "Location"},
		{"dropped", create, eventstest.Fault{DropRequest: true}, 0, "", ""},
		{"HEAD", "HEAD /events", eventstest.Fault{Delay: 1}, 200, "", "Content-Type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := eventstest.New(t)
			srv.Fail(strings.Replace(tt.request, "HEAD", "GET", 1), tt.fault)
			send(srv, tt.request)
			got := srv.Requests("")[0]
			if got.Status != tt.status {
				t.Errorf("Status: got %d, want %d", got.Status, tt.status)
			}
			if !strings.Contains(got.Response, tt.response) {
				t.Errorf("Response: got %q, want %q in it", got.Response, tt.response)
			}
			if tt.response == "" && got.Response != "" {
				t.Errorf("Response: got %q, want none", got.Response)
			}
			if tt.header != "" && got.ResponseHeader.Get(tt.header) == "" {
				t.Errorf("ResponseHeader: got %v, want %s in it", got.ResponseHeader, tt.header)
			}
			if tt.header == "" && len(got.ResponseHeader) != 0 {
				t.Errorf("ResponseHeader: got %v, want none", got.ResponseHeader)
			}
		})
	}
}

func TestJournalLimits(t *testing.T) {
	srv := eventstest.New(t, eventstest.NoListener())
	for i := range 1001 {
		send(srv, getMe+"?x="+fmt.Sprint(i))
	}
	got := srv.Requests("")
	if len(got) != 1000 {
		t.Fatalf("requests: got %d, want 1000", len(got))
	}
	if got[0].Query != "x=1" {
		t.Errorf("query of the oldest request: got %s, want x=1", got[0].Query)
	}
	for _, tt := range []struct {
		sent, received int // bytes
		truncated      bool
	}{
		{64 << 10, 64 << 10, false},
		{64<<10 + 1, 1, true},
		{1, 64<<10 + 1, true},
	} {
		f := srv.Fail(create, eventstest.Fault{Status: 500, Body: strings.Repeat("x", tt.received)})
		_, err := apitest.Fetch(srv.Client(), "POST", srv.URL+"/events/create",
			strings.Repeat("x", tt.sent), keyHeader+srv.Key)
		if err != nil {
			t.Fatal(err)
		}
		f.Clear()
		requests := srv.Requests(create)
		last := requests[len(requests)-1]
		if n, want := len(last.Body), min(tt.sent, 64<<10); n != want {
			t.Errorf("bytes of a body of %d in the journal: got %d, want %d", tt.sent, n, want)
		}
		if n, want := len(last.Response), min(tt.received, 64<<10); n != want {
			t.Errorf("bytes of a response of %d in the journal: got %d, want %d", tt.received, n, want)
		}
		if last.Truncated != tt.truncated {
			t.Errorf("Truncated after %d and %d bytes: got %v, want %v",
				tt.sent, tt.received, last.Truncated, tt.truncated)
		}
	}
}

// The journal has whole keys, so that a test sees which one its client sent.
func TestJournalHasKeys(t *testing.T) {
	srv := eventstest.New(t)
	send(srv, "GET /users/me", "x-service-api-key: "+srv.Key)
	if got := srv.Requests("")[0].Header.Get("x-service-api-key"); got != srv.Key {
		t.Errorf("x-service-api-key: got %q, want %q", got, srv.Key)
	}
}

// TestBodyMissing tests a request whose body doesn't arrive.
func TestBodyMissing(t *testing.T) {
	srv := eventstest.New(t)
	conn := dial(t, srv, "POST "+events.BasePath+"/events/create HTTP/1.1\r\nHost: x\r\n"+
		"x-service-api-key: "+srv.Key+"\r\nContent-Length: 100\r\n\r\n{")
	conn.Close()
	got := srv.Await(1, create)
	if got[0].Status != 408 {
		t.Errorf("Status: got %d, want 408", got[0].Status)
	}
	if got[0].Body != "{" {
		t.Errorf("Body: got %q, want {", got[0].Body)
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := eventstest.New(t, eventstest.NoListener())
		grace, owner := srv.NewKey("Grace")
		send(srv, create)
		srv.Fail(create, eventstest.Fault{Delay: time.Minute})
		done := make(chan result)
		go func() {
			time.Sleep(time.Second)
			done <- send(srv, create, "x-service-api-key: "+grace)
		}()
		start := time.Now()
		const want = "[2: +1.0s POST /api/public/v1/events/create of usr_grace, no Idempotency-Key: 201 " +
			"(delay 1m0s)]"
		if got := fmt.Sprint(srv.Await(1, create, owner.ID)); got != want {
			t.Errorf("Await(1): got %s, want %s", got, want)
		}
		if took := time.Since(start).Round(time.Second); took != time.Second {
			t.Errorf("time of Await(1): got %v, want 1s", took)
		}
		if n := len(srv.Await(2, "")); n != 2 {
			t.Errorf("Await(2): got %d requests, want 2", n)
		}
		if got := <-done; got.Status != 201 {
			t.Errorf("status: got %d, want 201", got.Status)
		}
	})
}

func TestAwaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		fake := runTest(t, func(t *fakeT) {
			srv := eventstest.New(t, eventstest.NoListener())
			go func() {
				time.Sleep(time.Second)
				send(srv, getMe)
			}()
			srv.Await(2, getMe)
		})
		const want = "Await: 1 of 2 requests arrived in 10s:" +
			"\n  1: GET /api/public/v1/users/me of usr_owner: 200"
		if !strings.HasSuffix(fake.fatal, want) {
			t.Errorf("fatal error: got %q, want %q", fake.fatal, want)
		}
		if took := time.Since(start).Round(time.Second); took != 10*time.Second {
			t.Errorf("time of Await: got %v, want 10s", took)
		}
	})
}
