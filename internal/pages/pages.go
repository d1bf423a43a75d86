// Package pages is the two pages for people: the reference of the API, and the inspector of
// a test double. Each is one HTML file with its style and its script inside, and loads
// nothing from any other host. It does not know what the server answers: the scripts ask for
// that, by the API and by the control API.
//
// A browser runs the style and the script of a page, which it knows by their hashes, and
// nothing else. So what differs from server to server is put in outside of them, in the place
// of {{root}} and other placeholders.
package pages

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
)

//go:embed reference.html
var referenceHTML string

//go:embed inspector.html
var inspectorHTML string

// Values are what the pages of one server show.
type Values struct {
	// Note is HTML: a sentence about this server.
	Note string
	// Key is the API key that stands in the page which a browser asks for under a host; ""
	// leaves its field empty.
	Key func(host string) string
}

// Reference returns the handler of the reference.
func Reference(v Values) http.HandlerFunc { return page(referenceHTML, v) }

// Inspector returns the handler of the inspector.
func Inspector(v Values) http.HandlerFunc { return page(inspectorHTML, v) }

// page returns the handler of a page. The URLs in the page are those of the host under which
// it was asked for.
func page(file string, v Values) http.HandlerFunc {
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src data:; connect-src 'self'; " +
		"script-src " + hashInside(file, "script") + "; style-src " + hashInside(file, "style")
	return func(w http.ResponseWriter, r *http.Request) {
		key := v.Key(r.Host)
		root := cmp.Or(r.Header.Get("X-Forwarded-Proto"), "http") + "://" + r.Host
		text := strings.NewReplacer(
			"{{note}}", v.Note,
			"{{root}}", html.EscapeString(root),
			"{{prefilled}}", html.EscapeString(key),
			"{{key}}", html.EscapeString(cmp.Or(key, "YOUR_API_KEY")),
		).Replace(file)
		h := w.Header()
		h.Del("Access-Control-Allow-Origin") // a page is for this server's own pages alone
		h.Del("Access-Control-Expose-Headers")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(200)
		io.WriteString(w, text) // if that fails, the client has gone
	}
}

// hashInside is the hash of the text inside a tag, as a policy names what a browser may run.
func hashInside(file, tag string) string {
	_, text, _ := strings.Cut(file, "<"+tag+">")
	text, _, _ = strings.Cut(text, "</"+tag+">")
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}
