package webui

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// .ci/pages.mjs tests the pages in a browser.

func get(h http.Handler, host string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://"+host+"/", nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// element returns the text of the only element with a name.
func element(t *testing.T, page, name string) string {
	t.Helper()
	if n := strings.Count(page, "<"+name); n != 1 {
		t.Fatalf("elements %s: got %d, want 1", name, n)
	}
	_, text, _ := strings.Cut(page, "<"+name+">")
	text, _, found := strings.Cut(text, "</"+name+">")
	if !found {
		t.Fatalf("element %s: got attributes or no end, want neither", name)
	}
	return text
}

var handlers = map[string]http.Handler{
	"reference": Reference("A <b>note</b>.", "svc_live_1"),
	"inspector": Inspector(),
}

func TestHeaders(t *testing.T) {
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			w := get(h, "localhost:8080", nil)
			hash := func(name string) string {
				sum := sha256.Sum256([]byte(element(t, w.Body.String(), name)))
				return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			}
			for name, want := range map[string]string{
				"Content-Type":   "text/html; charset=utf-8",
				"Content-Length": strconv.Itoa(w.Body.Len()),
				"Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; " +
					"frame-ancestors 'none'; img-src data:; connect-src 'self'; " +
					"script-src " + hash("script") + "; style-src " + hash("style"),
				"Referrer-Policy": "no-referrer",
				"X-Frame-Options": "DENY",
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: got %s\nwant %s", name, got, want)
				}
			}
		})
	}
}

// A page may contain a key, so other origins must not read it.
func TestNoCORS(t *testing.T) {
	for name, h := range handlers {
		w := httptest.NewRecorder()
		names := []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"}
		for _, header := range names { // which the server sets on every response
			w.Header().Set(header, "*")
		}
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		for _, header := range names {
			if got := w.Header().Get(header); got != "" {
				t.Errorf("%s, %s: got %s, want none", name, header, got)
			}
		}
	}
}

func TestReference(t *testing.T) {
	for key, want := range map[string]string{
		"svc_live_1": `<input id="key" value="svc_live_1"`,
		"":           `<input id="key" value=""`,
	} {
		page := get(Reference("A <b>note</b>.", key), "localhost:8080", nil).Body.String()
		for _, want := range []string{want, "A <b>note</b>.", "http://localhost:8080/api/public/v1"} {
			if !strings.Contains(page, want) {
				t.Errorf("reference with the key %q: got no %s, want it", key, want)
			}
		}
	}
}

// No placeholder remains in a page, and its script does nothing unsafe.
func TestContent(t *testing.T) {
	// These turn text into HTML, store a key, load something from another host or violate the policy.
	unsafe := regexp.MustCompile(`(inner|outer)HTML|insertAdjacent|document\.write|eval\(|Storage|cookie|` +
		`https://| src=| style=| on[a-z]+=|\{\{`)
	for name, h := range handlers {
		if found := unsafe.FindString(get(h, "localhost", nil).Body.String()); found != "" {
			t.Errorf("%s: got %q, want no such text", name, found)
		}
	}
}

// Host and X-Forwarded-Proto become text in the page, never HTML.
func TestEscape(t *testing.T) {
	header := http.Header{"X-Forwarded-Proto": {`"><script>alert(1)</script>{{key}}`}}
	for name, h := range handlers {
		page := get(h, "a'&b", header).Body.String()
		element(t, page, "script") // there must be only one
		const want = "&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{key}}://a&#39;&amp;b"
		if !strings.Contains(page, want) {
			t.Errorf("%s: got no %s, want it", name, want)
		}
	}
}
