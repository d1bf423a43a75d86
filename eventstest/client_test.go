package eventstest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

// This file shows that faults find mistakes: it has clients that are wrong on purpose, and their tests fail.

// client creates and lists events. The zero value is right. Each field makes one mistake.
type client struct {
	noKey      bool // sends no API key
	noRetry    bool // doesn't try again
	newKeys    bool // sends another Idempotency-Key with each attempt
	acceptHalf bool // takes a part of a response for the whole
	firstPage  bool // takes the first page of a list for the whole
}

func (c client) create(srv *eventstest.Server) error {
	key := ""
	_, err := c.retry(srv, "POST /events/create", func(attempt int) string {
		if attempt == 0 || c.newKeys {
			key = fmt.Sprint("launch-", attempt)
		}
		return key
	})
	return err
}

// list returns the number of events.
func (c client) list(srv *eventstest.Server) (n int, err error) {
	var page struct {
		Data   []any
		Cursor string `json:"next_cursor"`
	}
	for query := "?limit=2"; query != ""; {
		body, err := c.retry(srv, "GET /events"+query, nil)
		if err != nil {
			return 0, err
		}
		page.Cursor = ""
		json.Unmarshal(body, &page)
		n += len(page.Data)
		query = ""
		if page.Cursor != "" && !c.firstPage {
			query = "?limit=2&cursor=" + page.Cursor
		}
	}
	return n, nil
}

// retry sends a request up to three times. idempotencyKey returns the key of each attempt.
func (c client) retry(
	srv *eventstest.Server, operation string, idempotencyKey func(attempt int) string,
) (body []byte, err error) {
	for attempt := range 3 {
		key := ""
		if idempotencyKey != nil {
			key = idempotencyKey(attempt)
		}
		body, err = c.attempt(srv, operation, key)
		if err == nil || c.noRetry {
			break
		}
	}
	return body, err
}

func (c client) attempt(srv *eventstest.Server, operation, idempotencyKey string) ([]byte, error) {
	method, path, _ := strings.Cut(operation, " ")
	r, err := http.NewRequest(method, srv.URL+path, strings.NewReader(launch))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Idempotency-Key", idempotencyKey)
	if !c.noKey {
		r.Header.Set("x-service-api-key", srv.Key)
	}
	httpClient := srv.Client()
	httpClient.Timeout = 10 * time.Second
	resp, err := httpClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, errors.New(resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	if c.acceptHalf {
		return body, nil
	}
	if err == nil && !json.Valid(body) {
		err = errors.New("malformed response")
	}
	return body, err
}

// TestFaultsCatchClientBugs tests that a test of a client which makes a mistake fails.
func TestFaultsCatchClientBugs(t *testing.T) {
	faults := map[string]eventstest.Fault{
		"error":         {Status: 503, Times: 2},
		"proxy":         {Status: 502, Body: "<html>", Times: 1},
		"dropped":       {DropRequest: true, Times: 1},
		"lost":          {DropResponse: true, Times: 1},
		"gateway":       {DropResponse: true, Status: 504, Times: 1},
		"half":          {CutResponse: true, Times: 1},
		"late":          {Delay: time.Minute, Times: 1},
		"late and half": {Delay: time.Minute, CutResponse: true, Times: 1},
		"late gateway":  {Delay: time.Minute, DropResponse: true, Status: 504, Times: 1},
		"nothing":       {Header: http.Header{"X-A": {"b"}}},
	}
	const faulty = "error, proxy, dropped, lost, gateway, half, late, late and half, late gateway"
	for _, tt := range []struct {
		name   string
		client client
		red    string // names of the faults that show the mistake
	}{
		{"right", client{}, ""},
		{"sends no key", client{noKey: true}, faulty + ", nothing"},
		{"never tries again", client{noRetry: true}, faulty},
		{"new keys", client{newKeys: true}, "lost, gateway, half, late, late and half, late gateway"},
		{"accepts half a response", client{acceptHalf: true}, "half"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			red := map[string]bool{}
			for name := range strings.SplitSeq(tt.red, ", ") {
				red[name] = true
			}
			for name, fault := range faults {
				synctest.Test(t, func(t *testing.T) {
					fake := runTest(t, func(t *fakeT) { testCreate(t, tt.client, fault) })
					if fake.Failed() != red[name] {
						t.Errorf("fault %q: got failure %v, want %v: %q",
							name, fake.Failed(), red[name], fake.errors)
					}
				})
			}
		})
	}
}

// testCreate is the test of a client that creates an event.
func testCreate(t *fakeT, c client, fault eventstest.Fault) {
	srv := eventstest.New(t, eventstest.NoListener())
	srv.Fail(create, fault)
	if err := c.create(srv); err != nil {
		t.Errorf("create: got %v, want no error", err)
	}
	if n := countEvents(srv); n != 1 {
		t.Errorf("events: got %d, want 1", n)
	}
	if fault.CutResponse && fault.Delay == 0 && len(srv.Requests(create)) != 2 {
		t.Errorf("requests: got %v, want 2: the client has half an event", srv.Requests(create))
	}
}

// A client that takes the first page for the whole list never meets a fault of the second page. Its test
// fails although it doesn't look at the events.
func TestFirstPageOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		client client
		opts   []eventstest.Option
		events int
		errors []string
	}{
		"right": {client: client{}, events: 3},
		"first page only": {client: client{firstPage: true}, events: 2, errors: []string{
			"eventstest: fault that never applied: " +
				"status 503 for GET /events, skip 1 (requests so far: 1); " +
				"use eventstest.AllowUnusedFaults if that is intended"}},
		"allowed": {client: client{firstPage: true}, events: 2,
			opts: []eventstest.Option{eventstest.AllowUnusedFaults()}},
	} {
		t.Run(name, func(t *testing.T) {
			fake := runTest(t, func(inner *fakeT) {
				srv := eventstest.New(inner, append(tt.opts, eventstest.NoListener())...)
				for range 3 {
					send(srv, create)
				}
				srv.Fail(list, eventstest.Fault{Status: 503, Skip: 1, Times: 1})
				n, err := tt.client.list(srv)
				if err != nil {
					t.Errorf("list: got %v, want no error", err)
				}
				if n != tt.events {
					t.Errorf("list: got %d events, want %d", n, tt.events)
				}
			})
			if !slices.Equal(fake.errors, tt.errors) {
				t.Errorf("errors: got %q, want %q", fake.errors, tt.errors)
			}
		})
	}
}
