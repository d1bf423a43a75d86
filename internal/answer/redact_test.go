package answer_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/events/internal/answer"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"svc_live", "svc_live"},
		{"100%, svc-live-0123456789abcdef", "100%, svc-live-0123456789abcdef"},
		{"svc_live_", "svc_live_"},
		{"svc_live_abcd", "…"},
		{"svc_live_abcdef", "…ef"},
		{"svc_live_0123456789abcdef", "…cdef"},
		{"svc_live_svc_live_0123456789abcdef", "…cdef"},
		{"the key svc_live_0123456789.abcdef, and svc_live_9876543210!", "the key …cdef, and …210!"},
		{"/api/svc_live_0123456789abcdef/x", "/api/…cdef/x"},
		{"a=svc_live_0123456789abcdef&b=svc_live_abc&c=1", "a=…cdef&b=…&c=1"},
		{"k=svc_live_0123456789abcdef; j=svc_live_", "k=…cdef; j=svc_live_"},
		{`{"key":"svc_live_0123456789abcdef","n":1}`, `{"key":"…cdef","n":1}`},
		{`"{\"key\":\"svc_live_0123456789abcdef\"}"`, `"{\"key\":\"…cdef\"}"`},
		{"<b>svc_live_0123456789abcdef</b>", "<b>…cdef</b>"},
		{"svc_live_0123456789abcdef\nsvc_live_0123456789ABCDEF", "…cdef\n…CDEF"},
		// Percent-encoded and escaped, in any way.
		{"k=svc%5Flive%5F0123456789abcdef&b", "k=…cdef&b"},
		{"k=svc%5flive_0123456789abcdef", "k=…cdef"},
		{"/%73vc_live_0123456789abcdef/x", "/…cdef/x"},
		{"%73%76%63%5F%6C%69%76%65%5F%30%31%32%33%34%35", "…4%35"},
		{"next=%2Fa%3Fk%3Dsvc%255Flive%25255f0123456789abcdef", "next=%2Fa%3Fk%3D…cdef"},
		{`{"key":"\u0073vc\u005Flive_0123456789abcdef"}`, `{"key":"…cdef"}`},
		{`\\\\%5Clive_%5F`, `\\\\%5Clive_%5F`},
	} {
		if got := answer.Redact(tt.text); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestRedactHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, value, want string }{
		{"X-Service-Api-Key", "svc_live_0123456789abcdef", "…cdef"},
		{"X-Service-Api-Key", "abc", "…"},
		{"X-Service-Api-Key", "abcdef", "…ef"},
		{"X-Service-Api-Key", "svc_live_0123456789abcdef junk", "…junk"},
		{"X-Service-Api-Key", "svc-live-0123456789abcdef", "…cdef"},
		{"X-Service-Api-Key", "", "…"},
		{"x-service-api-key", "svc_live_0123456789abcdef", "…cdef"}, // as a handler can be called
		{"Authorization", "Bearer svc_live_0123456789abcdef x", "Bearer …ef x"},
		{"Authorization", "svc_live_0123456789abcdef junk", "…junk"},
		{"Authorization", "Bearer svc_live_0123456789abcdef", "Bearer …cdef"},
		{"Authorization", "bearer  svc_live_0123456789abcdef", "bearer …cdef"},
		{"Authorization", "svc_live_0123456789abcdef", "…cdef"},
		{"Authorization", "Bearer", "…er"},
		{"Authorization", "Basic dXNlcjpwYXNzd29yZA==", "…ZA=="},
		{"Accept", "text/plain", "text/plain"},
		{"Referer", "https://example.com/?k=svc%5Flive_0123456789abcdef", "https://example.com/?k=…cdef"},
		{"Proxy-Authorization", "Bearer svc_live_0123456789abcdef,svc_live_abc", "Bearer …_abc"},
		{"Proxy-Authorization", "Basic dXNlcjpwYXNzd29yZA==", "…ZA=="},
	} {
		h := http.Header{tt.name: {tt.value, tt.value}}
		if got := answer.RedactHeader(h)[tt.name]; got[0] != tt.want || got[1] != tt.want ||
			h[tt.name][0] != tt.value {
			t.Errorf("RedactHeader(%s: %s) = %q, want %q, and the header as it was", tt.name, tt.value, got,
				tt.want)
		}
	}
}

// A key can be the name of a field, in which net/http changes the case of letters.
func TestRedactHeaderNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"svc_live_0123456789abcdef":                           "…cdef",
		http.CanonicalHeaderKey("svc_live_0123456789aBcDeF"):  "…cdef",
		http.CanonicalHeaderKey("x-svc_live_0123456789abcde"): "X-…bcde",
		"X-A": "X-A",
	} {
		got := answer.RedactHeader(http.Header{name: {"a", "b"}})
		if len(got) != 1 || len(got[want]) != 2 {
			t.Errorf("RedactHeader with the name %s = %q, want %s", name, got, want)
		}
	}
}

// FuzzRedact: however a key is embedded and encoded, it does not come out whole.
func FuzzRedact(f *testing.F) {
	f.Add("/a?k=", uint64(0), "&b")
	f.Add(`{"k":"`, uint64(1<<3|1<<40), `"}`)
	f.Add("svc_live_", ^uint64(0), "svc_live_x")
	f.Add("svc_live_0000", ^uint64(75), "0") // a key right behind another one
	f.Fuzz(func(t *testing.T, before string, how uint64, after string) {
		const key = "svc_live_0123456789abcdefghij"
		var b strings.Builder
		for i := range len(key) { // two bits of how say how a character is written
			const hex = "0123456789ABCDEF"
			high, low := hex[key[i]>>4:][:1], hex[key[i]&15:][:1]
			forms := []string{key[i : i+1], "%" + high + low, "%25" + high + low, `\u00` + high + low}
			b.WriteString(forms[how>>(2*i)&3])
		}
		if got := answer.Redact(before + b.String() + after); strings.Contains(got, b.String()) {
			t.Errorf("Redact(%q) = %q", before+b.String()+after, got)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	body := strings.Repeat(`{"title":"Launch, 100 per cent\n"}`, 1<<10)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		answer.Redact(body)
	}
}
