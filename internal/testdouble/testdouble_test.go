package testdouble

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// These tests need no server: IDs, the check of a fault, and patches.

// Tests of other programs contain these IDs and keys, so they never change.
func TestIDs(t *testing.T) {
	long := "usr_" + strings.Repeat("x", 64)
	ids := counters{}
	for _, tt := range []struct{ kind, owner, want string }{
		{"usr", "Grace", "grace"},
		{"usr", "grace", "grace_2"},
		{"usr", "Grace Hopper", "grace_hopper_ylbw"},
		{"usr", "日本", "vu3g"},
		{"usr", "Zoë Åström", "zoe_astrom_ackb"},
		{"usr", "Zoe Astrom", "zoe_astrom_vpli"},
		{"usr", "Łukasz O'Brien-Straße", "lukasz_o_brien_strasse_kivk"},
		{"usr", "عائشة", "t4nk"},
		{"usr", "Anna Мария 7", "anna_7_mt3q"},
		{"usr", "user_2", "user_2_eoyk"},
		{"usr", "user_12", "user_12_z3y6"},
		{"usr", strings.Repeat("p", 48), strings.Repeat("p", 48)},
		{"usr", strings.Repeat("p", 49), strings.Repeat("p", 48) + "_k2pk"},
		{"usr", "TestCreate/with_a_key#01", "testcreate_with_a_key_01_w7sh"},
		{"usr", strings.Repeat("Long Name ", 25), "long_name_long_name_long_name_long_name_long_nam_k2qb"},
		{"usr", strings.Repeat("plain", 20), "plainplainplainplainplainplainplainplainplainpla_fggu"},
		{"evt", "usr_grace", "grace_000001"},
		{"evt", "usr_ada", "ada_000001"},
		{"evt", "usr_grace", "grace_000002"},
		{"gst", "usr_grace", "grace_000001"},
		{"key", "usr_grace", "grace_000001"},
		{"evt", long + "a", strings.Repeat("x", 48) + "_zvoguhpt_000001"},
		{"evt", long + "b", strings.Repeat("x", 48) + "_in6p5s4e_000001"},
		{"slug", "usr_grace", "z4bhif4k"},
		{"slug", "usr_ada", "3igrbofr"},
		{"secret", "usr_grace", "o3vbjwcmjpz4rkylrhjlhcilwv"},
		{"secret", "usr_grace", "hjm4qzirnmnhteoyzkl35hl473"},
		{"secret", "usr_grace_hopper_ylbw", "kcx7zivfrl3np4uwsowjbegkim"},
		{"secret", "usr_vu3g", "whimvgaglnfkwc26nehsjuqjpd"},
	} {
		got := ids.next(tt.kind, tt.owner)
		if got != tt.want {
			t.Errorf("next(%q, %q): got %q, want %q", tt.kind, tt.owner, got, tt.want)
		}
	}
	latin := ""
	for r := rune(0xC0); r < 0x1F00; r++ {
		if unicode.Is(unicode.Latin, r) {
			latin += idFromName("x "+string(r)) + "\n"
		}
	}
	if got, want := digest("", latin, 0)[:8], "ld4t6w2b"; got != want {
		t.Errorf("digest of the IDs with each Latin letter: got %s, want %s", got, want)
	}
}

func TestFaultProblems(t *testing.T) {
	header := http.Header{"X-A": {"b"}}
	const (
		nothing   = "the fault does nothing: set patch, drop_request, "
		exclusive = "can't be combined: set only one of patch, drop_request, drop_response, cut_response, " +
			"status, or drop_response with status"
		response = "header and delay need a response"
		status   = "status must be 200 to 599"
		negative = "delay, skip and times must not be negative"
	)
	for _, tt := range []struct {
		name  string
		fault Fault
		want  []string // prefixes of the problems
	}{
		{"status", Fault{Status: 503}, nil},
		{"status, header, delay", Fault{Status: 599, Header: header, Delay: 1}, nil},
		{"status, body", Fault{Status: 200, Body: "x"}, nil},
		{"204", Fault{Status: 204}, nil},
		{"patch, header, delay", Fault{Patch: "{}", Header: header, Delay: 1}, nil},
		{"drop_request", Fault{DropRequest: true}, nil},
		{"drop_response", Fault{DropResponse: true}, nil},
		{"drop_response, status, header, delay",
			Fault{DropResponse: true, Status: 504, Header: header, Delay: 1}, nil},
		{"cut_response, header, delay", Fault{CutResponse: true, Header: header, Delay: 1}, nil},
		{"header", Fault{Header: header}, nil},
		{"header to remove", Fault{Header: http.Header{"Date": nil}}, nil},
		{"delay", Fault{Delay: 1, Skip: 1, Times: 1, UserID: "usr_a", Path: "/events"}, nil},

		{"nothing", Fault{}, []string{nothing}},
		{"only limits", Fault{Skip: 1, Times: 1, UserID: "usr_a", Path: "/events"}, []string{nothing}},
		{"status, patch", Fault{Status: 503, Patch: "{}"}, []string{"patch and status " + exclusive}},
		{"drop_request, cut_response", Fault{DropRequest: true, CutResponse: true},
			[]string{"drop_request and cut_response " + exclusive}},
		{"drop_response, patch", Fault{DropResponse: true, Patch: "{}"},
			[]string{"patch and drop_response " + exclusive}},
		{"drop_response, status, cut_response", Fault{DropResponse: true, Status: 503, CutResponse: true},
			[]string{"drop_response and cut_response and status " + exclusive}},
		{"drop_request, header", Fault{DropRequest: true, Header: header}, []string{response}},
		{"drop_response, delay", Fault{DropResponse: true, Delay: 1}, []string{response}},
		{"199", Fault{Status: 199}, []string{status}},
		{"600", Fault{Status: 600}, []string{status}},
		{"drop_response, 400", Fault{DropResponse: true, Status: 400}, nil},
		{"drop_response, 200", Fault{DropResponse: true, Status: 200},
			[]string{"status must be 400 to 599 with drop_response"}},
		{"drop_response, 399", Fault{DropResponse: true, Status: 399},
			[]string{"status must be 400 to 599 with drop_response"}},
		{"204 with body", Fault{Status: 204, Body: "x"}, []string{"body can't be sent with status 204"}},
		{"body", Fault{CutResponse: true, Body: "x"}, []string{"body needs status"}},
		{"list as patch", Fault{Patch: "[]"}, []string{"patch must be a JSON object"}},
		{"broken patch", Fault{Patch: "{"}, []string{"patch must be a JSON object"}},
		{"name twice", Fault{Patch: `{"a":[{"b":1,"b":2}]}`}, []string{"patch must be a JSON object"}},
		{"trailer", Fault{Header: http.Header{"Trailer": {"X-A"}}}, []string{`header "Trailer" frames`}},
		{"framing", Fault{Header: http.Header{"content-length": {"1"}}},
			[]string{`header "content-length" frames the message`}},
		{"malformed name", Fault{Header: http.Header{"A B": {"1"}}}, []string{`header "A B: 1"`}},
		{"malformed value", Fault{Header: http.Header{"A": {"1\n"}}}, []string{`header "A: 1\n"`}},
		{"colon in a name", Fault{Header: http.Header{"A:": {"1"}}}, []string{`header "A:: 1"`}},
		{"name in two cases", Fault{Header: http.Header{"A-b": {"1"}, "a-B": {"1"}}},
			[]string{`header "a-B" is given twice`}},
		{"negative delay", Fault{Delay: -1}, []string{negative}},
		{"negative skip", Fault{DropRequest: true, Skip: -1}, []string{negative}},
		{"negative times", Fault{DropRequest: true, Times: -1}, []string{negative}},
		{"several", Fault{Status: 1, DropRequest: true, Times: -1},
			[]string{"drop_request and status " + exclusive, status, negative}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.fault.problems()
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("problems(): got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLimits tests that the newest problems are kept.
func TestLimits(t *testing.T) {
	d := &Double{problems: &ProblemList{}}
	for i := range maxProblems + 2 {
		d.reportLocked(Problem{Text: fmt.Sprint(i)})
	}
	for list, problems := range map[string][]Problem{"double": d.found, "run": d.problems.All()} {
		if n := len(problems); n != maxProblems {
			t.Errorf("problems of the %s: got %d, want %d", list, n, maxProblems)
		}
		if oldest := problems[0].Text; oldest != "2" {
			t.Errorf("oldest problem of the %s: got %s, want 2", list, oldest)
		}
	}
}

// A fault may be removed between the journal entry of a request, for which a test waits, and its delay.
func TestRemovedBeforeDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Double{}
		delays := map[*exchange]context.CancelFunc{}
		f := &InjectedFault{Fault: Fault{Delay: time.Hour}, double: d, delays: delays}
		d.replaceFaults(noFaults, f)
		f.Clear()
		d.checkCreateLocked(&Request{}, &exchange{event: "evt_1", fault: f})
		if n := len(d.open); n != 0 {
			t.Errorf("open creates: got %d, want 0", n)
		}
		start := time.Now()
		d.wait(&exchange{fault: f}, httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if took := time.Since(start); took != 0 {
			t.Errorf("wait: got a delay of %v, want none", took)
		}
		if n := len(delays); n != 0 {
			t.Errorf("delays after wait: got %d, want 0", n)
		}
	})
}

func TestRequestString(t *testing.T) {
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	const path = "/api/public/v1/events/create"
	key := http.Header{"Idempotency-Key": {"a", "b"}}
	refused := `{"error":{"code":"rate_limited","message":"slow down"}}`
	for _, tt := range []struct {
		request Request
		want    string
	}{
		{Request{Seq: 1, Method: "GET", Path: "/x", Status: 200, Response: refused}, "1: GET /x: 200"},
		{Request{Seq: 2, Method: "GET", Path: "/x", Query: "y=1", UserID: "usr_a", Status: 429,
			Response: refused, ResponseHeader: http.Header{"Retry-After": {"20"}}, Fault: "status 429",
			previous: at, Received: at.Add(1949 * time.Millisecond)},
			"2: +1.9s GET /x?y=1 of usr_a: 429, Retry-After 20: slow down (status 429)"},
		{Request{Seq: 3, Method: "POST", Path: path, Operation: createOperation, UserID: "usr_a", Status: 201,
			previous: at, Received: at.Add(-time.Second)},
			"3: +0.0s POST " + path + " of usr_a, no Idempotency-Key: 201"},
		{Request{Seq: 4, Method: "POST", Path: path, Operation: createOperation, Header: key, Status: 401},
			"4: POST " + path + ", Idempotency-Key a, b: 401"},
		{Request{Seq: 5, Method: "GET", Path: "/svc_live_secret-key", Query: "a=svc_live_secret-key"},
			"5: GET /…-key?a=…-key: 0"},
		{Request{Seq: 5, Method: "GET", Path: "/%73vc_live_secret-key", Query: "a=svc_live_%73ecret-key"},
			"5: GET /…-key?a=…-key: 0"},
		{Request{Seq: 5, Method: "GET", Path: "/a%2Fb", Query: "a=%"}, "5: GET /a%2Fb?a=%: 0"},
		{Request{Seq: 6, Method: "GET", Path: "/x", Status: 500, Fault: "status 500",
			Response: `{"error":{"message":"line 1\r\nline 2"}}`},
			"6: GET /x: 500: line 1 line 2 (status 500)"},
	} {
		if got := tt.request.String(); got != tt.want {
			t.Errorf("String(): got %s, want %s", got, tt.want)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ name, text, patch, want string }{
		{"null", `{"a":1,"b":2}`, `{"a":null}`, `{"a":null,"b":2}`},
		{"new field", `{"a":1}`, `{"b":{"c":2}}`, `{"a":1,"b":{"c":2}}`},
		{"nested", `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"d":3}}}`, `{"a":{"b":{"c":1,"d":3}}}`},
		{"elements", `{"data":[{"a":1},{"a":2}]}`, `{"data":{"a":7}}`, `{"data":[{"a":7},{"a":7}]}`},
		{"list", `{"data":[{"a":1}]}`, `{"data":[]}`, `{"data":[]}`},
		{"object for a string", `{"a":"b"}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{"numbers and markup", `{"a":12345678901234567890,"b":"<é>"}`, `{"c":1.50}`,
			`{"a":12345678901234567890,"b":"<é>","c":1.50}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := string(merge([]byte(tt.text), tt.patch))
			if got != tt.want {
				t.Errorf("merge(%s, %s): got %s, want %s", tt.text, tt.patch, got, tt.want)
			}
		})
	}
}
