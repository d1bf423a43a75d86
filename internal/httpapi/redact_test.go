package httpapi

import (
	"net/http"
	"slices"
	"testing"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ s, want string }{
		{"", ""},
		{"svc_live", "svc_live"},
		{"svc-live-0123456789abcdef", "svc-live-0123456789abcdef"},
		{"svc_live_", "svc_live_"},
		{"svc_live_abcd", "…"},
		{"svc_live_abcdef", "…ef"},
		{"svc_live_0123456789abcdef", "…cdef"},
		{"svc_live_svc_live_0123456789abcdef", "…cdef"},
		{"the key svc_live_0123456789.abcdef, and svc_live_9876543210!", "the key …cdef, and …3210!"},
		{"/api/svc_live_0123456789abcdef/x", "/api/…cdef/x"},
		{"a=svc_live_0123456789abcdef&b=svc_live_abc&c=1", "a=…cdef&b=…&c=1"},
		{`{"key":"svc_live_0123456789abcdef","n":1}`, `{"key":"…cdef","n":1}`},
		{"svc_live_0123456789abcdef\nsvc_live_0123456789ABCDEF", "…cdef\n…CDEF"},
	} {
		if got := Redact(tt.s); got != tt.want {
			t.Errorf("Redact(%q): got %q, want %q", tt.s, got, tt.want)
		}
	}
}

func TestRedactHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, value, want string }{
		{"X-Service-Api-Key", "svc_live_0123456789abcdef", "…cdef"},
		{"X-Service-Api-Key", "abc", "…"},
		{"X-Service-Api-Key", "svc-live-0123456789abcdef", "…cdef"},
		{"X-Service-Api-Key", "svc_live_0123456789abcdef junk", "…junk"},
		{"X-Service-Api-Key", "", "…"},
		{"Authorization", "Bearer svc_live_0123456789abcdef", "Bearer …cdef"},
		{"Authorization", "bearer  svc_live_0123456789abcdef", "bearer …cdef"},
		{"Authorization", "svc_live_0123456789abcdef", "…cdef"},
		{"Authorization", "Bearer", "…er"},
		{"Authorization", "Basic dXNlcjpwYXNzd29yZA==", "…ZA=="},
		{"Accept", "text/plain", "text/plain"},
		{"Referer", "https://example.com/?k=svc_live_0123456789abcdef", "https://example.com/?k=…cdef"},
	} {
		h := http.Header{tt.name: {tt.value, tt.value}}
		got := RedactHeader(h)[tt.name]
		if !slices.Equal(got, []string{tt.want, tt.want}) {
			t.Errorf("RedactHeader(%s: %s): got %q, want %q twice", tt.name, tt.value, got, tt.want)
		}
		if h[tt.name][0] != tt.value {
			t.Errorf("argument of RedactHeader: got %s, want %s", h[tt.name][0], tt.value)
		}
	}
}
