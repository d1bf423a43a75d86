package events_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/events"
)

// FuzzBody: no body is answered with a 5xx, what is taken comes back as it was
// sent, and what is refused changes nothing.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		newEvent, "", "{}", "null", "[]", `{"title":"a","title":"b"}`, newEvent + "{}",
		`{"title":"\ud800","start_at":"2027-05-01T18:00:00Z","end_at":"2027-05-01T20:00:00Z"}`,
		`{"title":"é\u0000\n","start_at":"2016-12-31T23:59:60Z","end_at":"2027-05-01t20:00:00.123456789z","description":"x","timezone":"Europe/Paris","location_type":"virtual","location_city":"a","location_country":"b","visibility":"private","requires_approval":true,"cover_image_url":"https://example.com","meeting_url":"http://[::1]/"}`,
	} {
		f.Add(body)
	}
	s := newService(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		before := len(s.store.Records())
		a := s.do("POST", base+"/events/create", body)
		switch {
		case a.status == 201:
			var sent, got map[string]any
			if err := json.Unmarshal([]byte(body), &sent); err != nil {
				t.Fatalf("%q was taken and is not JSON: %v", body, err)
			}
			json.Unmarshal([]byte(a.body), &got)
			for name, value := range sent {
				if value != nil && name != "start_at" && name != "end_at" && got[name] != value {
					t.Errorf("%s = %q came back as %q", name, value, got[name])
				}
			}
			if err := s.store.Apply(events.Record{Delete: &events.Ref{Event: decode[events.Event](t, a).ID}}); err != nil {
				t.Fatal(err)
			}
		case a.status != 400 && a.status != 413:
			t.Errorf("POST %q = %s, want 201, 400 or 413", body, a)
		}
		if after := len(s.store.Records()); after != before {
			t.Errorf("POST %q left %d records, want %d", body, after, before)
		}
	})
}

// FuzzTarget: no path and query is answered with anything but the documented
// form, or with what belongs to another host.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"/events?limit=1", "/events?status=draft&cursor=MSBl", "/events/one/guests?limit=200", "/users/me?", "/openapi",
		"//events", "/events/%2e%2e/x", "/events/bobs%00", "/events/evt%5Fbob", "/events/create", "/events?limit=1;a=b", "/events?%zz",
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
	})
}

// FuzzHeaders: no header is answered with a 5xx, and only the key of a user
// opens anything.
func FuzzHeaders(f *testing.F) {
	for _, h := range [][5]string{
		{"svc_live_ada", "", "", "", ""}, {"", "Bearer svc_live_ada", "application/json", `"key"`, ""}, {"svc_live_ada", "Bearer x", "text/plain; charset=\"", `"\"`, "gzip"},
		{"\x00", "Basic", "application/json; charset=utf-8", "é", "identity"},
	} {
		f.Add(h[0], h[1], h[2], h[3], h[4])
	}
	s := newService(f, nil)
	f.Fuzz(func(t *testing.T, key, authorization, contentType, idempotencyKey, contentEncoding string) {
		s.t = t
		var headers []string
		for name, value := range map[string]string{"x-service-api-key": key, "Authorization": authorization, "Content-Type": contentType, "Idempotency-Key": idempotencyKey, "Content-Encoding": contentEncoding} {
			if value != "" {
				headers = append(headers, name+": "+value)
			}
		}
		a := s.as("").do("POST", base+"/events/create", newEvent, headers...)
		sent := key
		if key == "" && len(authorization) > 7 && strings.EqualFold(authorization[:7], "Bearer ") {
			sent = strings.TrimLeft(authorization[7:], " ")
		}
		open := sent == "svc_live_ada" || sent == "svc_live_bob"
		if a.status >= 500 || open == (a.status == 401) {
			t.Errorf("%q = %s", headers, a)
		}
		if a.status == 201 {
			s.store.Apply(events.Record{Delete: &events.Ref{Event: decode[events.Event](t, a).ID}})
		}
	})
}

// FuzzRecords: no array of records panics or half applies; what is taken, taken
// again changes nothing, and its dump makes the same store.
func FuzzRecords(f *testing.F) {
	f.Add(seed)
	for _, records := range []string{
		"[]", "[{}]", `[{"delete":{"user":"usr_ada"}}]`, `[{"event":{"id":"evt_1","status":"published","title":null}}]`,
		`[{"key":{"id":"key_ada","revoked_at":"2027-01-01T00:00:00Z"}},{"guest":{"id":"gst_1","status":"invited"}}]`,
		`[{"user":{"id":"usr_x","name":"x","email":"x@example.com"}},{"event":{"id":"evt_x","host_id":"usr_x","title":"x","start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z","slug":"x"}},{"delete":{"user":"usr_x"}},{"user":{"name":"y","email":"x@example.com"}}]`,
	} {
		f.Add(records)
	}
	f.Fuzz(func(t *testing.T, records string) {
		s := newService(t, nil)
		before := dump(t, s.store)
		if err := s.store.ApplyJSON([]byte(records)); err != nil {
			if got := dump(t, s.store); got != before {
				t.Fatalf("refused with %v, but changed the store to %s", err, got)
			}
			if !utf8.ValidString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error is not one line: %q", err)
			}
			return
		}
		all := dump(t, s.store)
		copied := events.NewStore(nil)
		if err := copied.ApplyJSON([]byte(all)); err != nil {
			t.Fatalf("the dump %s is refused: %v", all, err)
		}
		if got := dump(t, copied); got != all {
			t.Fatalf("the dump makes %s, want %s", got, all)
		}
	})
}
