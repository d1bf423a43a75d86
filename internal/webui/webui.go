// Package webui serves the two web pages: the API reference and the inspector of a test double.
//
// Each page is one HTML file with its style and script. It loads nothing from other hosts. A browser runs
// only the style and script whose hashes are in the Content-Security-Policy, so values that differ between
// servers are in neither.
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

// Reference returns the handler of the reference. The note is HTML about the server. A key that isn't empty
// is filled in.
func Reference(note, key string) http.Handler {
	return page(referenceHTML,
		"{{note}}", note,
		"{{prefilled}}", html.EscapeString(key),
		"{{key}}", html.EscapeString(cmp.Or(key, "YOUR_API_KEY")))
}

// Inspector returns the handler of the inspector.
func Inspector() http.Handler { return page(inspectorHTML) }

// page returns the handler of a page. Values are placeholders, each followed by its HTML. {{root}} becomes
// the server's URL in the browser.
func page(file string, values ...string) http.Handler {
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"img-src data:; connect-src 'self'; " +
		"script-src " + hash(file, "script") + "; style-src " + hash(file, "style")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A TLS proxy sets X-Forwarded-Proto. A false value only affects its sender, because responses aren't
		// cached.
		root := cmp.Or(r.Header.Get("X-Forwarded-Proto"), "http") + "://" + r.Host
		replacements := append([]string{"{{root}}", html.EscapeString(root)}, values...)
		text := strings.NewReplacer(replacements...).Replace(file)
		h := w.Header()
		h.Del("Access-Control-Allow-Origin") // other sites may not read the page
		h.Del("Access-Control-Expose-Headers")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
	})
}

// hash returns the hash of an element's text for a Content-Security-Policy.
func hash(file, element string) string {
	_, text, _ := strings.Cut(file, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
