package double

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a fault does is told in one order, whatever it has.
func TestFaultString(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Fault{
		"":                      {Times: 1, After: 1, User: "usr_a", Path: "/events"},
		"status 503":            {Status: 503, Body: "x"},
		"lose, status 504":      {Status: 504, Lose: true},
		"drop":                  {Drop: true},
		"lose":                  {Lose: true},
		"delay 200ms":           {Delay: 200 * time.Millisecond},
		"cut, header, delay 1s": {Cut: true, Header: http.Header{"A": nil}, Delay: time.Second},
		"patch, header":         {Patch: "{}", Header: http.Header{"A": nil}},
	} {
		if got := f.String(); got != want {
			t.Errorf("%#v does %q, want %q", f, got, want)
		}
	}
}

// The outcomes of a fault exclude each other, but for lose with status: all pairs of members.
func TestMembersTogether(t *testing.T) {
	t.Parallel()
	given := map[string]func(*Fault){
		"lose":   func(f *Fault) { f.Lose = true },
		"status": func(f *Fault) { f.Status = 503 },
		"patch":  func(f *Fault) { f.Patch = "{}" },
		"drop":   func(f *Fault) { f.Drop = true },
		"cut":    func(f *Fault) { f.Cut = true },
		"header": func(f *Fault) { f.Header = http.Header{"X-A": {"b"}} },
		"delay":  func(f *Fault) { f.Delay = 1 },
		"body":   func(f *Fault) { f.Body = "x" },
		"after":  func(f *Fault) { f.After = 1 },
		"times":  func(f *Fault) { f.Times = 1 },
		"user":   func(f *Fault) { f.User = "usr_a" },
		"path":   func(f *Fault) { f.Path = "/events" },
	}
	good := map[string]string{ // what each goes with, beside what says which requests, and how many
		"lose":   "lose status delay",
		"status": "lose status header delay body",
		"patch":  "patch header delay",
		"drop":   "drop delay",
		"cut":    "cut header delay",
		"header": "status patch cut header delay",
		"delay":  "lose status patch drop cut header delay",
	}
	for _, m := range members {
		if given[m.name] == nil {
			t.Fatalf("this test does not know the member %s: say how it is given, and what it goes with", m.name)
		}
	}
	for _, m := range members {
		var f Fault
		if m.given(&f) {
			t.Errorf("a fault without members has %s", m.name)
		}
		given[m.name](&f)
		if !m.given(&f) {
			t.Errorf("a fault that has %s has not", m.name)
		}
	}
	goes := func(a, b string) bool { return slices.Contains(strings.Fields(good[a]), b) }
	for _, a := range members {
		for _, b := range members {
			var f Fault
			given[a.name](&f)
			given[b.name](&f)
			want := goes(a.name, b.name) || goes(b.name, a.name) ||
				hasRole(count, match)(a) && goes(b.name, b.name) ||
				hasRole(count, match)(b) && goes(a.name, a.name)
			if got := f.problems(); (got == nil) != want {
				t.Errorf("%s with %s: %q, want that it is good: %v", a.name, b.name, got, want)
			}
		}
	}
}

// Every member that is an amount is refused if it is negative, all in one sentence.
func TestNegativeMembers(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Fault{
		"delay must not be negative":                  {Status: 503, Delay: -1},
		"after must not be negative":                  {Status: 503, After: -1},
		"times must not be negative":                  {Status: 503, Times: -1},
		"delay, after and times must not be negative": {Status: 503, Delay: -1, After: -1, Times: -1},
	} {
		if got := f.problems(); !slices.Equal(got, []string{want}) {
			t.Errorf("%+v: problems %q, want %q", f, got, want)
		}
	}
}

// The members of an answer keep their order and their bytes.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, patch, want string }{
		{`{"c":1.50,"a":"\u00e9<","b":[]}`, `{"a":null}`, `{"c":1.50,"a":null,"b":[]}`},
		{`{"b":1}`, `{"z":1,"b":{"c":null},"a":2}`, `{"b":{"c":null},"z":1,"a":2}`},
		{`{"data":[{"b":1,"a":2},{"b":3}],"n":null}`, `{"data":{"a":{"x":1}}}`,
			`{"data":[{"b":1,"a":{"x":1}},{"b":3,"a":{"x":1}}],"n":null}`},
		{`{"data":[{"b":1}]}`, ` { "data" : [ ] } `, `{"data":[]}`},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"d":"\ud83d\ude00"}}}`, `{"a":{"b":{"c":1,"d":"\ud83d\ude00"}}}`},
		{`[{"a":1},2]`, `{"b":1}`, `[{"a":1,"b":1},{"b":1}]`},
		{`{"\"":1,"":2}`, `{"":3,"\"":4}`, `{"\"":4,"":3}`},
		{`7`, `{"a":1}`, `{"a":1}`},
	} {
		if got := string(merge([]byte(tt.text), []byte(tt.patch))); got != tt.want {
			t.Errorf("merge(%s, %s) = %s, want %s", tt.text, tt.patch, got, tt.want)
		}
	}
}

// The journal knows how many of what is asked for it no longer has.
func TestDropped(t *testing.T) {
	t.Parallel()
	d := newDouble()
	ask := func(user, operation string) {
		e := &entry{Request: Request{User: user, Operation: operation}}
		d.journal.add(e)
	}
	for i := range 1500 {
		ask("usr_a", fmt.Sprint("GET /", i%2))
		ask("usr_b", "GET /0")
	}
	for _, tt := range []struct {
		q    Query
		want int
	}{
		{Query{}, 1000},
		{Query{Users: []string{"usr_a"}}, 500},
		{Query{Users: []string{"usr_a"}, Operation: "GET /0"}, 250},
		{Query{Users: []string{"usr_a", "usr_c"}, Operation: "GET /2"}, 0},
		{Query{After: 1000}, 0},
		{Query{After: 998}, 2},
		{Query{After: 990, Users: []string{"usr_a"}}, 5},
	} {
		if got := d.Requests(t.Context(), tt.q); got.Dropped != tt.want || len(got.Requests) > 2000 {
			t.Errorf("%+v: %d are dropped, %d are there, want %d dropped", tt.q, got.Dropped, len(got.Requests), tt.want)
		}
	}
	for range maxEvictions {
		ask("usr_a", "GET /0")
	}
	own := d.journal.users["usr_a"]
	if len(own.evictions) != maxEvictions || own.countEvictions(Query{}) != 500+maxEvictions {
		t.Errorf("of %d requests that had to go, %d are known, %d by their number", 500+maxEvictions, own.countEvictions(Query{}), len(own.evictions))
	}
	d.ClearRequests()
	if got := d.Requests(t.Context(), Query{}).Dropped; got != 0 {
		t.Errorf("after the requests were cleared, %d are dropped, want 0", got)
	}
}
