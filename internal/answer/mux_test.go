package answer

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMux: a second method on a path needs nothing but a second line in the list.
func TestMux(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r Request) error {
		Write(w, http.StatusOK, r.Pattern+"|"+r.PathValue("id"))
		return nil
	}
	routes := []Route{
		{Operation: "GET /events", Handle: echo},
		{Operation: "POST /events/create", Handle: echo},
		{Operation: "GET /events/{id}", Handle: echo},
		{Operation: "DELETE /events/{id}", Handle: echo},
		{Operation: "GET /events/{id}/guests", Handle: echo},
	}
	check := func(r *http.Request) (string, error) {
		if r.Header["X-Refused"] != nil {
			return "", errors.New("refused")
		}
		return "", nil
	}
	fail := func(w http.ResponseWriter, r *http.Request, err error) {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Status: http.StatusForbidden, Message: err.Error()}
		}
		e.Write(w)
	}
	service := Service{Base: "/v1", Routes: routes, Check: check, WriteError: fail}
	h := service.Handler()
	const unknown = "there is no such route below /v1/; there are GET /events, POST /events/create, " +
		"GET /events/{id}, DELETE /events/{id}, GET /events/{id}/guests"
	const methodsOfOne = "GET, HEAD, DELETE, OPTIONS"
	for _, tt := range []struct {
		method, path string
		status       int
		want         string // the answer, or the end of an error's message
		allow        string
	}{
		{"GET", "/v1/events", 200, "GET /v1/events|", ""},
		{"GET", "/v1/events/one", 200, "GET /v1/events/{id}|one", ""},
		{"HEAD", "/v1/events/one", 200, "GET /v1/events/{id}|one", ""},
		{"DELETE", "/v1/events/one", 200, "DELETE /v1/events/{id}|one", ""},
		{"GET", "/v1/events/one/guests", 200, "GET /v1/events/{id}/guests|one", ""},
		{"POST", "/v1/events/create", 200, "POST /v1/events/create|", ""},

		{"GET", "/v1/events/create", 405, "/events/create; use POST, OPTIONS", "POST, OPTIONS"},
		{"HEAD", "/v1/events/create", 405, "/events/create; use POST, OPTIONS", "POST, OPTIONS"},
		{"DELETE", "/v1/events/create", 405, "/events/create; use POST, OPTIONS", "POST, OPTIONS"},
		{"BREW", "/v1/events/create", 405, "/events/create; use POST, OPTIONS", "POST, OPTIONS"},
		{"POST", "/v1/events", 405, "/events; use GET, HEAD, OPTIONS, or POST /events/create",
			"GET, HEAD, OPTIONS"},
		{"DELETE", "/v1/events", 405, "/events; use GET, HEAD, OPTIONS, or DELETE /events/{id}",
			"GET, HEAD, OPTIONS"},
		{"PUT", "/v1/events", 405, "/events; use GET, HEAD, OPTIONS", "GET, HEAD, OPTIONS"},
		{"POST", "/v1/events/one", 405, "/events/{id}; use " + methodsOfOne, methodsOfOne},
		{"CONNECT", "/v1/events/one", 405, "/events/{id}; use " + methodsOfOne, methodsOfOne},
		{"OPTIONS", "/v1/events/one", 204, "", methodsOfOne},
		{"OPTIONS", "/v1/events/create", 204, "", "POST, OPTIONS"},

		{"GET", "/", 404, unknown, ""},
		{"GET", "/events", 404, unknown, ""},
		{"OPTIONS", "/v1", 404, unknown, ""},
		{"GET", "/v1/events/", 404, unknown, ""},
		{"GET", "/v1//events", 404, unknown, ""},
		{"GET", "/v1/./events", 404, unknown, ""},
		{"GET", "/v1/events/a%2fb", 404, unknown, ""},
		{"GET", "/v1/events/%2F", 404, unknown, ""},
		{"GET", "/v1/events/a%00", 404, unknown, ""},
		{"POST", "/v1/nothing", 404, unknown, ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
			got := w.Body.String()
			right := got == tt.want
			if tt.status >= 400 {
				right = strings.HasSuffix(got, tt.want+`"}}`)
			}
			if w.Code != tt.status || !right || w.Header().Get("Allow") != tt.allow {
				t.Errorf("%d %s, Allow %q; want %d %s, %q",
					w.Code, got, w.Header().Get("Allow"), tt.status, tt.want, tt.allow)
			}
			// The check goes before everything.
			w = httptest.NewRecorder()
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Header.Set("X-Refused", "1")
			h.ServeHTTP(w, r)
			if w.Code != 403 {
				t.Errorf("with an error of Check: %d %s, want 403", w.Code, w.Body)
			}
		})
	}
}

// TestMuxConflict: a list in which it is not clear what takes a request is refused.
func TestMuxConflict(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"GET /a/{x}", "GET /{x}/b", "POST /{x}/b"} {
		t.Run(second, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			s := Service{Routes: []Route{{Operation: "GET /a/{y}"}, {Operation: second}}}
			s.Handler()
		})
	}
}
