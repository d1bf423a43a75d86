package double

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// newDouble is a double of a server without operations.
func newDouble() *Double {
	d := New("/api")
	d.server = noServer{}
	return d
}

// noServer is a server without a store, to which the header User says whose a request is.
type noServer struct{ Server }

func (noServer) RequestUser(r *http.Request) string { return r.Header.Get("User") }
func (noServer) Profile(string) string              { return "{}" }
func (noServer) Operations() []string               { return nil }

func TestNewID(t *testing.T) {
	t.Parallel()
	d := newDouble()
	long := "usr_" + strings.Repeat("x", 64)
	for _, tt := range []struct{ kind, owner, want string }{
		{"usr", "Grace", "grace"},
		{"usr", "grace", "grace_2"},
		{"usr", "Grace Hopper", "grace_hopper_ylbw"},
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

func TestJournalRedacted(t *testing.T) {
	t.Parallel()
	const key = "svc_live_0123456789.abcdef"
	d := newDouble()
	body := strings.NewReader(`{"a":"` + key + `","b":"` + key + `"}`)
	r := httptest.NewRequest("POST", "/api/"+key+"/x?a="+key+"&b="+key, body)
	r.Header = http.Header{"Cookie": {"k=" + key}, "Authorization": {"Bearer " + key},
		"X-Service-Api-Key": {key + " x"}}
	read := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.ReadAll(iotest.OneByteReader(r.Body)) // a key comes in pieces
	})
	d.Handler(read).ServeHTTP(httptest.NewRecorder(), r)
	got := d.Requests(t.Context(), Query{}).Requests[0]
	if got.Path != "/api/…cdef/x" || got.Query != "a=…cdef&b=…cdef" ||
		got.Body != `{"a":"…cdef","b":"…cdef"}` {
		t.Errorf("the journal has the path %q, the query %q and the body %s", got.Path, got.Query, got.Body)
	}
	want := http.Header{"Cookie": {"k=…cdef"}, "Authorization": {"Bearer …cdef"},
		"X-Service-Api-Key": {"…ef x"}}
	if !maps.EqualFunc(got.Header, want, slices.Equal) {
		t.Errorf("the journal has the headers %q, want %q", got.Header, want)
	}
}

// Who logs a request finds the route in it, as with the server itself.
func TestRouteOfRequest(t *testing.T) {
	t.Parallel()
	const pattern = "GET /api/public/v1/events"
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { r.Pattern = pattern })
	r := httptest.NewRequest("GET", "/api/public/v1/events", nil)
	newDouble().Handler(next).ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != pattern {
		t.Errorf("the request has the route %q, want %q", r.Pattern, pattern)
	}
}
