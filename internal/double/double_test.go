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

// The journal keeps 64 KiB of a body, and the newest 64 MiB of all headers and bodies.
func TestJournalBodies(t *testing.T) {
	t.Parallel()
	d := newDouble()
	read := d.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	body := strings.Repeat("x", maxBody+1)
	ask := func(n int) {
		for i := range n {
			r := httptest.NewRequest("POST", "/api/events/create", strings.NewReader(body))
			r.Header.Set("User", "usr_"+string(rune('a'+i%3)))
			read.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	const all = 1100
	const fit = maxTexts / (maxBody + len("User") + len("usr_a") + lineCost)
	ask(all)
	for i, r := range d.Requests(t.Context(), Query{}).Requests {
		want := Request{Body: body[:maxBody], Header: http.Header{"User": {r.User}}}
		if i < all-fit {
			want = Request{Body: dropped, Header: http.Header{"(dropped)": {dropped}}}
		}
		if r.Seq != i+1 || r.Body != want.Body || !maps.EqualFunc(r.Header, want.Header, slices.Equal) {
			t.Fatalf("request %d has the number %d, the header %v and a body of %d bytes: %.60s",
				i+1, r.Seq, r.Header, len(r.Body), r.Body)
		}
	}
	// A body that is dropped while it still arrives stays dropped.
	pipe, w := io.Pipe()
	done := make(chan bool)
	go func() {
		read.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/api/events/create", pipe))
		close(done)
	}()
	io.WriteString(w, "be") // it is recorded before the next piece is read
	io.WriteString(w, "gun")
	ask(1024)
	size := d.journal.size
	io.WriteString(w, "ended")
	w.Close()
	<-done
	last := d.Requests(t.Context(), Query{Users: []string{""}}).Requests[0]
	if last.Body != dropped || d.journal.size != size {
		t.Errorf("a body that was dropped while it arrived is %q; the texts take %d bytes, want %d",
			last.Body, d.journal.size, size)
	}
}

// The journal keeps 8 KiB and 100 lines of a header, and says how many lines it does not.
func TestJournalHeaders(t *testing.T) {
	t.Parallel()
	d := newDouble()
	serve := d.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(header http.Header) http.Header {
		r := httptest.NewRequest("GET", "/api/events", nil)
		r.Header = header
		serve.ServeHTTP(httptest.NewRecorder(), r)
		all := d.Requests(t.Context(), Query{}).Requests
		return all[len(all)-1].Header
	}
	got := ask(http.Header{"Cookie": {strings.Repeat("c", maxHeader)}, "Idempotency-Key": {"a"}, "X-A": {"b", "c"}})
	want := http.Header{"Idempotency-Key": {"a"}, "X-A": {"b", "c"},
		"(dropped)": {"(1 lines were dropped: the journal keeps 8 KiB and 100 lines of a header)"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("of a long header the journal has %q, want %q", got, want)
	}
	got = ask(http.Header{"X-A": make([]string, 3250)})
	if len(got["X-A"]) != maxHeaderLines || !strings.HasPrefix(got.Get("(dropped)"), "") || len(got["(dropped)"]) != 1 {
		t.Errorf("of a header of 3250 lines the journal has %d: %q", len(got["X-A"]), got["(dropped)"])
	}
	if d.journal.size > 2*maxHeaderLines*(lineCost+10) {
		t.Errorf("the headers count %d bytes", d.journal.size)
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
