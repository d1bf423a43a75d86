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
	d.Server = noServer{}
	return d
}

// noServer is a server without a store, to which the header User says whose a request is.
type noServer struct{ Server }

func (noServer) KeyOwner(r *http.Request) string { return r.Header.Get("User") }
func (noServer) Profile(string) string           { return "{}" }
func (noServer) Operations() []string            { return nil }

func TestNewID(t *testing.T) {
	t.Parallel()
	d := newDouble()
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

func TestJournalRedacted(t *testing.T) {
	t.Parallel()
	const key = "svc_live_0123456789.abcdef"
	d := newDouble()
	body := strings.NewReader(`{"a":"svc%5Flive_0123456789.abcdef","b":"` + key + `"}`)
	r := httptest.NewRequest("POST", "/api/"+key+"/x?a="+key+"&b=%73vc_live_0123456789.abcdef", body)
	r.Header = http.Header{"Cookie": {"k=" + key}, "Authorization": {"Bearer " + key},
		"X-Service-Api-Key": {key + " x"}}
	read := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.ReadAll(iotest.OneByteReader(r.Body)) // a key comes in pieces
	})
	d.Handler(read).ServeHTTP(httptest.NewRecorder(), r)
	got := d.Requests(t.Context(), 0, "", nil)[0]
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

// The journal keeps 64 KiB of a body, and the newest 64 MiB of all bodies.
func TestJournalBodies(t *testing.T) {
	t.Parallel()
	d := newDouble()
	read := d.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	body := strings.Repeat("x", 64<<10+1)
	ask := func(n int) {
		for i := range n {
			r := httptest.NewRequest("POST", "/api/events/create", strings.NewReader(body))
			r.Header.Set("User", "usr_"+string(rune('a'+i%3)))
			read.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	ask(1100)
	for i, r := range d.Requests(t.Context(), 0, "", nil) {
		want := body[:64<<10]
		if i < 1100-1024 {
			want = "(dropped: the journal keeps the newest 64 MiB of bodies)"
		}
		if r.Seq != i+1 || r.Body != want {
			t.Fatalf("request %d has the number %d and a body of %d bytes: %.60s", i+1, r.Seq, len(r.Body), r.Body)
		}
	}
	d.ClearRequests("usr_a")
	ask(3)
	all := d.Requests(t.Context(), 0, "", nil)
	if len(all) != 736 || all[0].User != "usr_b" || all[735].Body != body[:64<<10] || all[0].Body == body[:64<<10] {
		t.Errorf("then there are %d requests, from %s", len(all), all[0])
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
	size := d.size
	io.WriteString(w, "ended")
	w.Close()
	<-done
	last := d.Requests(t.Context(), 0, "", []string{""})[0]
	if last.Body != dropped || d.size != size {
		t.Errorf("a body that was dropped while it arrived is %q; the bodies take %d bytes, want %d",
			last.Body, d.size, size)
	}
}
