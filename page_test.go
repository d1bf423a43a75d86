package events_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages are tested in a browser by .ci/browser.go. Here is what needs none: how they are
// sent, what stands in them, and that nothing from outside becomes a part of them.

// getPage gets a page of a host from the server of a process.
func (p *process) getPage(method, path, host string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(p.lines["base_url"], base)+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if req.Host = host; header != nil {
		req.Header = header
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, string(body)
}

// inside is the text between a tag, which a page has once, and its end.
func inside(t *testing.T, page, tag string) string {
	t.Helper()
	if n := strings.Count(page, "<"+tag); n != 1 {
		t.Fatalf("the page has %d tags <%s, want 1", n, tag)
	}
	_, text, _ := strings.Cut(page, "<"+tag+">")
	text, _, found := strings.Cut(text, "</"+tag+">")
	if !found {
		t.Fatalf("the page has no <%s> with an end", tag)
	}
	return text
}

// A page is sent with a policy that lets its own script and style run and nothing else,
// and it has no secret but a key that is public.
func TestPageSent(t *testing.T) {
	t.Parallel()
	const chosen, token = "svc_live_chosen_0123456789", "a_token_of_the_test"
	const noKey, inspectorLink = `<input id="key" value=""`, `<a href="/_control/">`
	for _, tt := range []struct {
		name, path, host string
		args             []string
		want, lacks      []string
	}{
		{"serve", "/", "", []string{"-memory", "-addr", "127.0.0.1:0", "-api-key", chosen},
			[]string{noKey, "The operator of this"}, []string{chosen, inspectorLink}},
		{"demo", "/", "", []string{"demo", "-addr", "127.0.0.1:0"},
			[]string{`value="svc_live_demo"`, "This is a demo"}, []string{inspectorLink}},
		{"demo of a domain", "/", "demo.example", []string{"demo", "-addr", "127.0.0.1:0"},
			[]string{`value="svc_live_demo"`, "http://demo.example/api/public/v1/events"}, nil},
		{"double", "/", "", []string{"double", "-api-key", chosen, "-control-token", token},
			[]string{`value="` + chosen + `"`, "This is a test double", inspectorLink}, []string{token}},
		{"double, by a name without a dot", "/", "double:8080", []string{"double", "-api-key", chosen},
			[]string{`value="` + chosen + `"`}, nil},
		{"double, by a domain", "/", "rebound.example", []string{"double", "-api-key", chosen},
			[]string{noKey}, []string{chosen}},
		{"inspector", "/_control/", "", []string{"double", "-api-key", chosen, "-control-token", token},
			[]string{`<input id="token"`, "/_control/requests"}, []string{chosen, token}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, tt.args...)
			resp, page := p.getPage("GET", tt.path, tt.host, nil)
			hash := func(tag string) string {
				sum := sha256.Sum256([]byte(inside(t, page, tag)))
				return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			}
			policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
				"img-src data:; connect-src 'self'; script-src " + hash("script") + "; style-src " + hash("style")
			for name, want := range map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy,
				"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
				"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "",
				"Access-Control-Expose-Headers": "",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if resp.StatusCode != 200 || resp.ContentLength != int64(len(page)) {
				t.Errorf("GET %s = %s with the length %d, want 200 and %d",
					tt.path, resp.Status, resp.ContentLength, len(page))
			}
			want := append(tt.want, `<link rel="icon" href="data:,">`, "<noscript>")
			if tt.host == "" {
				want = append(want, p.lines["base_url"])
			}
			for _, text := range want {
				if !strings.Contains(page, text) {
					t.Errorf("the page lacks %s", text)
				}
			}
			for _, text := range append(tt.lacks, " style=", " onclick=", "https://", " src=") {
				if strings.Contains(page, text) {
					t.Errorf("the page has %s", text)
				}
			}
			if left := regexp.MustCompile(`\{\{[a-z]+\}\}`).FindString(page); left != "" {
				t.Errorf("the page has %s", left)
			}
			if head, body := p.getPage("HEAD", tt.path, tt.host, nil); head.StatusCode != 200 || body != "" ||
				head.ContentLength != resp.ContentLength {
				t.Errorf("HEAD %s = %s %v %q", tt.path, head.Status, head.Header, body)
			}
			post, body := p.getPage("POST", tt.path, tt.host, nil)
			if post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST %s = %s %s, want 405", tt.path, post.Status, body)
			}
		})
	}
}

// Only a double has an inspector.
func TestNoInspector(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "demo", "-addr", "127.0.0.1:0")
	if resp, body := p.getPage("GET", "/_control/", "", nil); resp.StatusCode != 404 {
		t.Errorf("GET /_control/ of a demo = %s %s, want 404", resp.Status, body)
	}
	if p.lines["inspector"] != "" {
		t.Errorf("a demo prints the inspector %s", p.lines["inspector"])
	}
}

// What a client or a proxy says of the host becomes text in the page.
func TestPageEscapesHost(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "double")
	const script = `"><script>alert(1)</script>{{key}}`
	for _, path := range []string{"/", "/_control/"} {
		_, page := p.getPage("GET", path, "", http.Header{"X-Forwarded-Proto": {script}})
		inside(t, page, "script") // which must be one
		if !strings.Contains(page, html.EscapeString(script)+"://127.0.0.1:") {
			t.Errorf("GET %s does not show the forwarded protocol as text", path)
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(p.lines["base_url"], base), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nHost: a'&b\r\n\r\n")
		b, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.Contains(string(b), "http://a&#39;&amp;b/api") || strings.Contains(string(b), "a'&b") {
			t.Errorf("GET %s repeats the host as markup: %.200s", path, b)
		}
	}
}

// The URL of the inspector has the token, whatever is in it, and it comes before the
// line that a script waits for.
func TestInspectorURL(t *testing.T) {
	t.Parallel()
	const token = `a&b=c+d#e%2F"<f>`
	ready := filepath.Join(tempDir(t), "ready.json")
	p := start(t, nil, "double", "-control-token", token, "-ready-file", ready)
	want := p.lines["control_url"] + "/#token=" + url.QueryEscape(token)
	if !strings.Contains(p.stdout, "\ninspector: "+want+"\nready: ") {
		t.Errorf("stdout is %s\nwant inspector: %s before ready", p.stdout, want)
	}
	content, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	var lines map[string]any
	if err := json.Unmarshal(content, &lines); err != nil || lines["inspector"] != want {
		t.Errorf("the ready file is %s, %v; want the inspector %s", content, err, want)
	}
}

// Without a script, the page has lines that work when they are pasted.
func TestPageWithoutScript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	for _, tt := range []struct {
		args []string
		path string
		want []string
	}{
		{[]string{"demo", "-addr", "127.0.0.1:0"}, "/", []string{`"id":"usr_ada"`, `"title":"Hello"`, `"has_more":false`}},
		{[]string{"double", "-control-token", "TOKEN"}, "/_control/", []string{`"data":[`, `"status":503`}},
	} {
		p := start(t, nil, tt.args...)
		_, page := p.getPage("GET", tt.path, "", nil)
		_, lines, _ := strings.Cut(inside(t, page, "noscript"), "<pre>")
		lines, _, _ = strings.Cut(lines, "</pre>")
		if n := strings.Count(lines, "curl "); n != 3 {
			t.Errorf("%s has %d curl lines, want 3", tt.path, n)
		}
		out, err := exec.Command("sh", "-ec", html.UnescapeString(lines)).Output()
		for _, want := range tt.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s\nprints %s, %v; want %s", lines, out, err, want)
			}
		}
	}
}

// The scripts are written to be read: few lines, and none that is long.
func TestPageSize(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, name := range []string{"reference.html", "inspector.html"} {
		page, err := os.ReadFile(filepath.Join("internal", "page", name))
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(strings.NewReader(strings.TrimSpace(inside(t, string(page), "script")))); sc.Scan(); {
			if lines++; len(sc.Text()) > 110 {
				t.Errorf("%s has a line of %d bytes, want at most 110: %s", name, len(sc.Text()), sc.Text())
			}
		}
		if unsafe := regexp.MustCompile(`(inner|outer)HTML|insertAdjacent|document\.write|eval\(|Storage|cookie`).
			FindString(string(page)); unsafe != "" {
			t.Errorf("%s uses %s", name, unsafe)
		}
	}
	if t.Logf("the scripts have %d of 500 lines", lines); lines > 500 {
		t.Errorf("the scripts have %d lines, want at most 500", lines)
	}
}
