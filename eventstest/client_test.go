package eventstest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
)

// This file shows that the faults find mistakes: it has clients that are wrong on purpose.

// client creates events. The zero value is right. Each field makes one mistake.
type client struct {
	noKey      bool // sends no API key
	noRetry    bool // doesn't try again
	newKeys    bool // sends another Idempotency-Key with each attempt
	acceptHalf bool // takes a part of a response for the whole
}

func (c client) create(srv *eventstest.Server) error {
	var err error
	for attempt := range 3 {
		key := "launch"
		if c.newKeys {
			key = fmt.Sprint("launch-", attempt)
		}
		err = c.attempt(srv, key)
		if err == nil || c.noRetry {
			break
		}
	}
	return err
}

func (c client) attempt(srv *eventstest.Server, key string) error {
	r, err := http.NewRequest("POST", srv.URL+"/events/create", strings.NewReader(launch))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", key)
	if !c.noKey {
		r.Header.Set("x-service-api-key", srv.Key)
	}
	httpClient := srv.Client()
	httpClient.Timeout = 10 * time.Second
	resp, err := httpClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 201 {
		return errors.New(resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	if c.acceptHalf {
		return nil
	}
	if err == nil && !json.Valid(body) {
		err = errors.New("malformed response")
	}
	return err
}

// TestWrongClients tests that a test of a client which makes a mistake fails.
func TestWrongClients(t *testing.T) {
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
	}
	for _, tt := range []struct {
		name   string
		client client
		red    string // names of the faults that show the mistake
	}{
		{"right", client{}, ""},
		{"never tries again", client{noRetry: true},
			"error, proxy, dropped, lost, gateway, half, late, late and half, late gateway"},
		{"new keys", client{newKeys: true}, "lost, gateway, half, late, late and half, late gateway"},
		{"accepts half a response", client{acceptHalf: true}, "half"},
		{"sends no key", client{noKey: true},
			"error, proxy, dropped, lost, gateway, half, late, late and half, late gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			red := map[string]bool{}
			for name := range strings.SplitSeq(tt.red, ", ") {
				red[name] = true
			}
			for name, fault := range faults {
				synctest.Test(t, func(t *testing.T) {
					srv := eventstest.New(t, eventstest.NoListener())
					f := srv.Fail(create, fault)
					err := tt.client.create(srv)
					failed := err != nil || countEvents(srv) != 1 || f.Hits() != fault.Times
					if fault.CutResponse && fault.Delay == 0 && len(srv.Requests(create)) != 2 {
						failed = true // the client has half an event
					}
					if failed != red[name] {
						t.Errorf("fault %q: got failure %v, want %v: error %v, %d events, %d hits of %d",
							name, failed, red[name], err, countEvents(srv), f.Hits(), fault.Times)
					}
				})
			}
		})
	}
}
