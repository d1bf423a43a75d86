package httpapi

import (
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
