package double

import (
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
