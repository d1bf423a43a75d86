// Package webui serves the two web pages: the reference of the API, and the inspector of a test double.
//
// Each page is one HTML file with its style and script inside, and loads nothing from other hosts. A browser
// runs only the style and the script whose hashes are in the page's Content-Security-Policy, so the values
// that differ between servers are outside of both.
package webui

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

var (
	//go:embed reference.html
	referenceHTML string

	//go:embed inspector.html
	inspectorHTML string
)

// Reference returns the handler of the reference. Note is a sentence about the server, in HTML. The page is
// prefilled with the key, unless the key is empty.
func Reference(note, key string) http.Handler {
	return page(referenceHTML,
		"{{note}}", note,
		"{{prefilled}}", html.EscapeString(key),
		"{{key}}", html.EscapeString(cmp.Or(key, "YOUR_API_KEY")))
}

// Inspector returns the handler of the inspector.
func Inspector() http.Handler { return page(inspectorHTML) }

// page returns the handler of a page. Values are placeholders, each followed by its HTML. The placeholder
// {{root}} becomes the URL of the server as the browser knows it.
func page(file string, values ...string) http.Handler {
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src data:; connect-src 'self'; " +
		"script-src " + hash(file, "script") + "; style-src " + hash(file, "style")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A proxy in front that speaks TLS says so in X-Forwarded-Proto. A sender that lies changes only the
		// page that it gets itself, because no response is cached.
		root := cmp.Or(r.Header.Get("X-Forwarded-Proto"), "http") + "://" + r.Host
		replacements := append([]string{"{{root}}", html.EscapeString(root)}, values...)
		text := strings.NewReplacer(replacements...).Replace(file)
		h := w.Header()
		h.Del("Access-Control-Allow-Origin") // no other site may read the page
		h.Del("Access-Control-Expose-Headers")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
	})
}

// hash returns the hash of the text inside an element, in the form of a Content-Security-Policy.
func hash(file, element string) string {
	_, text, _ := strings.Cut(file, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
