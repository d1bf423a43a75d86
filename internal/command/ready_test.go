package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	t.Parallel()
	ready := Ready{{"base_url", "http://b"}, {"data", "d\x1b\u009b"}, {"ready", "curl <&>"}}
	const want = "base_url: http://b\ndata: d??\nready: curl <&>\n"
	if got := ready.String(); got != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server := func(status int) (port string) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.RequestURI != "GET /healthz" {
				t.Errorf("%s %s, want GET /healthz", r.Method, r.RequestURI)
			}
			w.WriteHeader(status)
			if status == http.StatusServiceUnavailable {
				io.WriteString(w, `{"error":{"code":"server_error","message":"the disk is full"}}`)
			}
		}))
		t.Cleanup(srv.Close)
		return srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	}
	well, ill := server(http.StatusOK), server(http.StatusServiceUnavailable)
	other := server(http.StatusNotFound)
	const nobody = "127.0.0.1:1" // tcpmux
	for _, tt := range []struct{ addr, want string }{
		{"127.0.0.1" + well, ""},
		{"localhost" + well, ""},
		{well, ""},
		{"0.0.0.0" + well, ""},
		{"[::]" + well, ""},
		{"localhost" + ill, "http://localhost" + ill + " answered 503 Service Unavailable: the disk is full"},
		{"localhost" + other, "http://localhost" + other + " answered 404 Not Found: it is another program"},
		{nobody, "no answer from http://" + nobody + ": "},
		{"a b:80", "no answer from http://a b:80: "},
	} {
		asked, err := Health(tt.addr)
		if (err == nil) != (tt.want == "") {
			t.Errorf("Health(%q) = %v, want %q", tt.addr, err, tt.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Health(%q) = %v, want %q", tt.addr, err, tt.want)
		}
		if err == nil && (!strings.HasPrefix(asked, "http://") || !strings.HasSuffix(asked, well)) {
			t.Errorf("Health(%q) asked %s, want port %s", tt.addr, asked, well)
		}
	}
}
