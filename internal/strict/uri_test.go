package strict_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.com/events/internal/strict"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"http://example.com",
		"https://example.com/x",
		"HTTPS://EXAMPLE.COM/X",
		"hTTp://example.com/",
		"http://localhost",
		"http://a",
		"http://example.com.",
		"http://example.com/a/b/../c/./d//e/",
		"http://example.com//",
		"http://example.com?q",
		"http://example.com#f",
		"http://example.com?#",
		"http://example.com/?a=b&c=d/e?f#g/h?i",
		"http://example.com/a;b=c,d/(e)/f'g*h!i$j:k@l~m_n.o-p+q",
		"http://example.com/caf%C3%A9?%00%ff%FF#%0a",
		"http://example.com/100%25",
		"http://example.com/@user",
		"http://example.com/http://example.org:80/",
		"http://example.com?http://user@example.org",
		"http://example.com:80/",
		"http://example.com:/",
		"http://example.com:",
		"http://example.com:00080",
		"http://example.com:" + strings.Repeat("9", 100), // *DIGIT has no end
		"http://xn--caf-dma.example/",
		"http://caf%C3%A9.example/",
		"http://a!$&'()*+,;=-._~b/",
		"http://under_score.example/",
		"http://-/",
		"http://.../",
		"http://1.2.3.4:5/",
		"http://999.0x1.2/", // not an address, but a name by the grammar
		"http://[::]",
		"http://[::1]:8080/x",
		"http://[2001:DB8::a:1]/",
		"http://[1:2:3:4:5:6:7:8]/",
		"http://[1:2:3:4:5:6:7::]/",
		"http://[::2:3:4:5:6:7:8]/",
		"http://[::ffff:192.0.2.1]/",
		"http://[1:2:3:4:5:6:192.0.2.1]/",
		"http://[v1.a]/",
		"http://[VF0.a:b!$&'()*+,;=-._~]:1/",
	} {
		t.Run(in[:min(len(in), 60)], func(t *testing.T) {
			t.Parallel()
			if err := strict.URL(in); err != nil {
				t.Errorf("URL(%q) = %v, want nil", in, err)
			}
			if !grammar.MatchString(in) {
				t.Errorf("the grammar refuses %q", in)
			}
		})
	}
}

func TestURLRefuses(t *testing.T) {
	t.Parallel()
	const (
		rule     = "with a host, such as https://example.com/x"
		userInfo = "with no user info"
		host     = "with a valid host"
		after    = "with only characters of a URL after its host"
	)
	for _, tt := range []struct{ in, want string }{
		{"", rule},
		{"http", rule},
		{"http:", rule},
		{"http:/", rule},
		{"http://", rule},
		{"http:///x", rule},
		{"http://?q", rule},
		{"http://#f", rule},
		{"http://:80/", host},
		{"http:example.com", rule},
		{"http:/example.com/x", rule},
		{"http;//example.com", rule},
		{"://example.com", rule},
		{"//example.com/x", rule},
		{"/x", rule},
		{"example.com", rule},
		{"www.example.com/x", rule},
		{"example.com:80", rule},
		{"ftp://example.com/x", rule},
		{"httpss://example.com", rule},
		{"xhttp://example.com", rule},
		{"http+x://example.com", rule},
		{"http%3A//example.com", rule},
		{" http://example.com", rule},
		{"\thttp://example.com", rule},
		{"http ://example.com", rule},
		{"javascript:alert(1)", rule},
		{"javascript://example.com/%0aalert(1)", rule},
		{"data:text/html,x", rule},
		{"file:///etc/passwd", rule},
		{"mailto:a@example.com", rule},
		{"urn:example:a", rule},
		{"ldap://[2001:db8::7]/c=GB", rule},
		{"ht\u017fp://example.com", rule},
		{"http\u017f://example.com", rule}, // folds to s

		{"http://example.com/a b", after},
		{"http://exa mple.com/", host},
		{"http://example.com ", host},
		{"http://example.com/?a b", after},
		{"http://example.com/#a b", after},
		{"http:// ", host},
		{"http://caf\u00e9.example/", host},
		{"http://example.com/caf\u00e9", after},
		{"http://example.com/?\u65e5", after},
		{"http://example.com/#\U0001f600", after},
		{"http://example.com/\u200b", after},
		{"http://example.com/\xff", after},
		{"http://\uff45xample.com/", host},
		{"http://example.com/\n", after},
		{"http://example.com\r\nX: y", host},
		{"http://example.com/\t", after},
		{"http://example.com/\x00", after},
		{"http://example.com/\x7f", after},
		{`http://example.com\x`, host},
		{`http:\\example.com`, rule},
		{`http://example.com/"x"`, after},
		{"http://example.com/<x>", after},
		{"http://<example.com>/", host},
		{"http://example.com/^", after},
		{"http://example.com/`", after},
		{"http://example.com/{id}", after},
		{"http://example.com/a|b", after},
		{"http://example.com/%", after},
		{"http://example.com/%4", after},
		{"http://example.com/%zz", after},
		{"http://example.com/%4g", after},
		{"http://example.com/%%20", after},
		{"http://example.com/?100%", after},
		{"http://example.com/#%a", after},
		{"http://exa%mple.com/", host},

		{"http://user@example.com/", userInfo},
		{"http://user:password@example.com/", userInfo},
		{"http://:@example.com/", userInfo},
		{"http://@example.com/", userInfo},
		{"http://@/", userInfo},
		{"http://example.com@example.org/", userInfo},
		{"http://a@b@example.com/", userInfo},
		{"http://[::1]@example.com/", userInfo},

		{"http://example.com:http/", host},
		{"http://example.com:-1/", host},
		{"http://example.com:+80/", host},
		{"http://example.com:80a/", host},
		{"http://example.com:8%30/", host},
		{"http://[::1]:x/", host},
		{"http://example.com:80:80/", host},
		{"http://example.com::80/", host},
		{"http://::1/", host},
		{"http://2001:db8::1/", host},

		{"http://[]/", host},
		{"http://[/", host},
		{"http://[::1/", host},
		{"http://[::1]x/", host},
		{"http://[::1]]/", host},
		{"http://[[::1]]/", host},
		{"http://[1.2.3.4]/", host},
		{"http://[example.com]/", host},
		{"http://[1:2:3:4:5:6:7]/", host},
		{"http://[1:2:3:4:5:6:7:8:9]/", host},
		{"http://[1:2:3:4::5:6:7:8]/", host},
		{"http://[1::2::3]/", host},
		{"http://[:1:2:3:4:5:6:7]/", host},
		{"http://[12345::]/", host},
		{"http://[::g]/", host},
		{"http://[:]/", host},
		{"http://[:::]/", host},
		{"http://[::1.2.3]/", host},
		{"http://[::1.2.3.256]/", host},
		{"http://[::01.2.3.4]/", host},
		{"http://[::1.2.3.4:5]/", host},
		{"http://[1:2:3:4:5:6:7:1.2.3.4]/", host},
		{"http://[fe80::1%25eth0]/", host},
		{"http://[fe80::1%20]/", host},
		{"http://[::%31]/", host},
		{"http://[v1]/", host},
		{"http://[v1.]/", host},
		{"http://[v.a]/", host},
		{"http://[vg.a]/", host},
		{"http://[v1.a%20]/", host},
		{"http://[v1.a/]/", host},

		{"http://exam[ple].com/", host},
		{"http://example.com]/", host},
		{"http://example.com/[x]", after},
		{"http://example.com/?a[]=1", after},
		{"http://example.com/#[", after},
		{"http://example.com/#a#b", after},
		{"http://example.com##", after},
	} {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			err := strict.URL(tt.in)
			if err == nil || !strings.HasPrefix(err.Error(), "must be an http or https URL "+tt.want) {
				t.Errorf("URL(%q) = %v, want …%s…", tt.in, err, tt.want)
			}
			if grammar.MatchString(tt.in) && tt.want != userInfo {
				t.Errorf("the grammar takes %q", tt.in)
			}
		})
	}
}

// grammar is the ABNF of RFC 3986, appendix A, once more and rule by rule, for an
// absolute http or https URI with a host and without user info.
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
		"http://[::ffff:1.2.3.4]:8080", "http://[1:2:3:4:5:6:7::]", "http://[v1f.a:b]",
		"http://user:pw@example.com", "http://example.com:", "http://[fe80::1%25en0]/",
		"http://example.com#a#b", "http://a[b]c?[]", `http://a\b`, "http://%41/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := strict.URL(s)
		if (err == nil) != grammar.MatchString(s) {
			t.Fatalf("URL(%q) = %v, and the grammar matches: %t", s, err, grammar.MatchString(s))
		}
		if err != nil {
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			// net/url has no IPvFuture and no escaped ASCII in a host.
			host := s[strings.Index(s, "//")+2:]
			host = strings.ToLower(host[:strings.IndexAny(host+"/", "/?#")])
			if !strings.Contains(host, "%") && !strings.HasPrefix(host, "[v") {
				t.Fatalf("URL(%q) = nil, but url.Parse has the error %v", s, err)
			}
			return
		}
		if u.Host == "" || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("URL(%q) = nil, but url.Parse = %#v", s, u)
		}
	})
}
