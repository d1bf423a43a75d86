package double

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var operations = []string{"GET /users/me", "GET /events", "POST /events/create", "GET /events/{id}", "GET /events/{id}/guests"}

func TestNewID(t *testing.T) {
	t.Parallel()
	d := New("/api", operations, Start)
	long := "usr_" + strings.Repeat("x", 64)
	for _, tt := range []struct{ kind, owner, want string }{
		{"usr", "Grace Hopper", "grace_hopper"},
		{"usr", "grace-hopper", "grace_hopper_2"},
		{"usr", "", "user"},
		{"evt", "usr_grace", "grace_000001"},
		{"evt", "usr_grace", "grace_000002"},
		{"gst", "usr_grace", "grace_000001"},
		{"key", "usr_grace", "grace_000001"},
		{"evt", "usr_grace_000001", "grace_000001_000001"},
		{"slug", "usr_grace", "z4bhif4k"},
		{"slug", "usr_ada", "3igrbofr"},
	} {
		if got := d.NewID(tt.kind, tt.owner); got != tt.want {
			t.Errorf("NewID(%q, %q) = %q, want %q", tt.kind, tt.owner, got, tt.want)
		}
	}
	if a, b := d.NewID("evt", long+"a"), d.NewID("evt", long+"b"); len(a) != 64 || a == b {
		t.Errorf("ids of long owners: %q, %q", a, b)
	}
	if a, b := d.NewID("secret", "usr_grace"), d.NewID("secret", "usr_grace"); len(a) != 26 || a == b {
		t.Errorf("secrets: %q, %q", a, b)
	}
}

func TestOperation(t *testing.T) {
	t.Parallel()
	d := New("/api", operations, Start)
	for _, tt := range []struct{ method, target, want, nearest string }{
		{"GET", "/api/events", "GET /events", ""},
		{"HEAD", "/api/events?x=1", "GET /events", ""},
		{"GET", "/api/%65vents", "GET /events", ""},
		{"POST", "/api/events/create", "POST /events/create", ""},
		{"GET", "/api/events/create", "", "POST /events/create"},
		{"GET", "/api/events/evt_1", "GET /events/{id}", ""},
		{"GET", "/api/events/a%2Fb", "", "GET /events/{id}"},
		{"GET", "/api/events/a%2Fguests", "", "GET /events/{id}/guests"},
		{"GET", "/api/events/", "", "GET /events"},
		{"GET", "/api//events", "", "GET /events"},
		{"GET", "/api/events/./x", "", "GET /events/{id}"},
		{"GET", "/events", "", "GET /events"},
		{"GET", "/api", "", "GET /events"},
		{"DELETE", "/api/events/evt_1/guests", "", "GET /events/{id}/guests"},
		{"GET", "/api/event/evt_1/guests", "", "GET /events/{id}/guests"},
		{"GET", "/api/user/me", "", "GET /users/me"},
		{"POST", "/api/events/new", "", "GET /events/{id}"},
		{"POST", "/api/events", "", "POST /events/create"},
		{"PUT", "/api/events", "", "GET /events"},
		{"GET", "/api/events/a%00b", "", "GET /events/{id}"},
	} {
		r := httptest.NewRequest(tt.method, tt.target, nil)
		if got := d.operation(r); got != tt.want {
			t.Errorf("operation of %s %s = %q, want %q", tt.method, tt.target, got, tt.want)
		}
		if got := d.Nearest(tt.method + " " + strings.TrimPrefix(r.URL.Path, "/api")); tt.nearest != "" && got != tt.nearest {
			t.Errorf("Nearest of %s %s = %q, want %q", tt.method, tt.target, got, tt.nearest)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, value, want string }{
		{"X-Service-Api-Key", "svc_live_0123456789abcdef", "…cdef"},
		{"X-Service-Api-Key", "abc", "…"},
		{"X-Service-Api-Key", "abcdef", "…ef"},
		{"X-Service-Api-Key", "svc_live_0123456789abcdef junk", "…junk"},
		{"Authorization", "Bearer svc_live_0123456789abcdef x", "Bearer …ef x"},
		{"Authorization", "svc_live_0123456789abcdef junk", "…junk"},
		{"X-Service-Api-Key", "", "…"},
		{"Authorization", "Bearer svc_live_0123456789abcdef", "Bearer …cdef"},
		{"Authorization", "bearer  svc_live_0123456789abcdef", "bearer …cdef"},
		{"Authorization", "svc_live_0123456789abcdef", "…cdef"},
		{"Authorization", "Bearer", "Bearer …"},
		{"Accept", "text/plain", "text/plain"},
		{"x-service-api-key", "svc_live_0123456789abcdef", "…cdef"}, // as a handler can be called
		{"Cookie", "k=svc_live_0123456789abcdef; j=svc_live_", "k=…cdef; j=…"},
		{"Proxy-Authorization", "Bearer svc_live_0123456789abcdef,svc_live_abc", "Bearer …cdef,…"},
	} {
		h := http.Header{tt.name: {tt.value, tt.value}}
		if got := redacted(h)[tt.name]; got[0] != tt.want || got[1] != tt.want || h[tt.name][0] != tt.value {
			t.Errorf("redacted(%s: %s) = %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestMaskedEverywhere(t *testing.T) {
	t.Parallel()
	const key = "svc_live_0123456789.abcdef"
	d := New("/api", operations, Start)
	r := httptest.NewRequest("GET", "/api/"+key+"/x?a="+key+"&b="+key, nil)
	d.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	if got := d.Requests("", "")[0]; got.Path != "/api/…cdef/x" || got.Query != "a=…cdef&b=…cdef" {
		t.Errorf("the journal has %q and %q", got.Path, got.Query)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"event", "events", 1}, {"ab", "ba", 2}} {
		if got := edits(tt.a, tt.b); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
