package strict_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.com/events/internal/strict"
)

// grammar is the ABNF of RFC 3986, appendix A, rule by rule, for an absolute http or https URI with
// a host and without user info.
var grammar = func() *regexp.Regexp {
	const (
		unreserved = `[A-Za-z0-9\-._~]`
		subDelims  = `[!$&'()*+,;=]`
		escaped    = `%[0-9A-Fa-f]{2}`
		pchar      = `(?:` + unreserved + `|` + escaped + `|` + subDelims + `|[:@])`
		h16        = `[0-9A-Fa-f]{1,4}`
		octet      = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])`
		ls32       = `(?:` + h16 + `:` + h16 + `|` + octet + `(?:\.` + octet + `){3})`
		g          = `(?:` + h16 + `:)`
		ipv6       = `(?:` + g + `{6}` + ls32 +
			`|::` + g + `{5}` + ls32 +
			`|(?:` + h16 + `)?::` + g + `{4}` + ls32 +
			`|(?:` + g + `{0,1}` + h16 + `)?::` + g + `{3}` + ls32 +
			`|(?:` + g + `{0,2}` + h16 + `)?::` + g + `{2}` + ls32 +
			`|(?:` + g + `{0,3}` + h16 + `)?::` + g + ls32 +
			`|(?:` + g + `{0,4}` + h16 + `)?::` + ls32 +
			`|(?:` + g + `{0,5}` + h16 + `)?::` + h16 +
			`|(?:` + g + `{0,6}` + h16 + `)?::)`
		future = `[vV][0-9A-Fa-f]+\.(?:` + unreserved + `|` + subDelims + `|:)+`
		name   = `(?:` + unreserved + `|` + escaped + `|` + subDelims + `)+`
		host   = `(?:\[(?:` + ipv6 + `|` + future + `)\]|` + name + `)`
		query  = `(?:` + pchar + `|[/?])*`
	)
	return regexp.MustCompile(`\A[hH][tT][tT][pP][sS]?://` + host + `(?::[0-9]*)?` +
		`(?:/` + pchar + `*)*(?:\?` + query + `)?(?:#` + query + `)?\z`)
}()

func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/x", "HTTP://a!$&'()*+,;=-._~%C3%A9:80/a:@b//?c/?#d/?%41",
		"http://[::ffff:1.2.3.4]:8080", "http://[v1f.a:b]", "http://[fe80::1%25en0]/", "http://%41/",
		"HTTPS://EXAMPLE.COM/X", "http://example.com?q", "http://example.com/?a=b&c=d/e?f#g/h?i",
		"http://example.com/a;b=c,d/(e)/f'g*h!i$j:k@l~m_n.o-p+q",
		"http://example.com/caf%C3%A9?%00%ff%FF#%0a", "http://example.com/100%25", "http://1.2.3.4:5/",
		"http://[::]", "http://[::1]:8080/x", "http://[2001:DB8::a:1]/", "http://[1:2:3:4:5:6:7:8]/",
		"http://[1:2:3:4:5:6:7::]/", "http://[::2:3:4:5:6:7:8]/", "http://[::ffff:192.0.2.1]/",
		"http://[1:2:3:4:5:6:192.0.2.1]/", "http://[v1.a]/", "http://[VF0.a:b!$&'()*+,;=-._~]:1/",
		"http:///x", "http://?q", "http:/example.com/x", "http;//example.com", "xhttp://example.com",
		"http ://example.com", "ldap://[2001:db8::7]/c=GB", "http://example.com/a b", "http://exa mple.com/",
		"http://example.com/#a b", "http://caf\u00e9.example/", "http://example.com/caf\u00e9",
		"http://example.com/\n", "http://example.com/<x>", "http://example.com/%zz",
		"http://example.com/%%20", "http://example.com/#%a", "http://exa%mple.com/",
		"http://example.com@example.org/", "http://[::1]@example.com/", "http://example.com:8%30/",
		"http://[::1]:x/", "http://example.com:80:80/", "http://[]/", "http://[::1/", "http://[::1]x/",
		"http://[::1]]/", "http://[1.2.3.4]/", "http://[example.com]/", "http://[1:2:3:4:5:6:7]/",
		"http://[1:2:3:4:5:6:7:8:9]/", "http://[1:2:3:4::5:6:7:8]/", "http://[1::2::3]/",
		"http://[:1:2:3:4:5:6:7]/", "http://[12345::]/", "http://[::g]/", "http://[:]/", "http://[:::]/",
		"http://[::1.2.3]/", "http://[::1.2.3.256]/", "http://[::01.2.3.4]/", "http://[::1.2.3.4:5]/",
		"http://[1:2:3:4:5:6:7:1.2.3.4]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%20]/",
		"http://[::%31]/", "http://[v1.]/", "http://[v.a]/", "http://[vg.a]/", "http://[v1.a%20]/",
		"http://[v1.a/]/", "http://example.com/[x]", "http://example.com/#[", "", "http://example.com",
		"http://example.com.", "http://example.com/a/b/../c/./d//e/", "http://example.com:",
		"http://xn--caf-dma.example/", "http://999.0x1.2/", "http:example.com", "//example.com/x",
		"ftp://example.com/x", " http://example.com", "javascript:alert(1)",
		"javascript://example.com/%0aalert(1)", "http\u017f://example.com", "http://example.com/\u200b",
		"http://example.com\r\nX: y", "http://example.com/\x00", `http:\\example.com`, `http://a\b`,
		`http://example.com/"x"`, "http://user:password@example.com/", "http://@/", "http://a@b@example.com/",
		"http://example.com:-1/", "http://2001:db8::1/", "http://exam[ple].com/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ok := strict.IsURL(s)
		if ok != grammar.MatchString(s) {
			t.Fatalf("URL(%q): got %t, want %t, as in the grammar", s, ok, grammar.MatchString(s))
		}
		if !ok {
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			// net/url doesn't support IPvFuture, and escaped ASCII in a host.
			host := s[strings.Index(s, "//")+2:]
			host = strings.ToLower(host[:strings.IndexAny(host+"/", "/?#")])
			if !strings.Contains(host, "%") && !strings.HasPrefix(host, "[v") {
				t.Fatalf("url.Parse(%q) of a URL: got %v, want no error", s, err)
			}
			return
		}
		for problem, wrong := range map[string]bool{
			"a host":          u.Hostname() == "",
			"no user info":    u.User != nil,
			"the scheme http": u.Scheme != "http" && u.Scheme != "https",
		} {
			if wrong {
				t.Fatalf("url.Parse(%q) of a URL: got %#v, want %s", s, u, problem)
			}
		}
	})
}
