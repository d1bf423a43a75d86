package strict

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
)

// The grammar of RFC 3986, appendix A: a host and its port, where whatever looks
// like an IPv6 address is one, and what may follow them.
var (
	authority = regexp.MustCompile(`^(?:\[(?:[0-9A-Fa-f:.]+|[Vv][0-9A-Fa-f]+\.[` + plain + `:]+)\]` +
		`|(?:[` + plain + `]+|` + escaped + `)+)(?::[0-9]*)?$`)
	afterHost = regexp.MustCompile(`^` + path + `(?:#` + path + `)?$`)
)

const (
	plain   = `A-Za-z0-9\-._~!$&'()*+,;=` // unreserved and sub-delims
	escaped = `%[0-9A-Fa-f]{2}`
	path    = `(?:[` + plain + `:@/?]+|` + escaped + `)*` // also a query or fragment
)

// URL returns nil if s is a URI by the grammar of RFC 3986 with the scheme http
// or https, in any case, a host that is not empty, and no user info. Its length
// is for the caller to judge.
//
// An error is the tail of a sentence whose subject is what holds s: it begins
// with "must", says what is wrong and how to put it right.
func URL(s string) error {
	scheme, rest, _ := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	host, rest := rest, ""
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host, rest = host[:end], host[end:]
	}
	problem := ""
	switch {
	case scheme != "http" && scheme != "https" || host == "":
		problem = "a host, such as https://example.com/x"
	case strings.Contains(host, "@"):
		problem = "no user info: remove what stands before the host, and the @"
	case !authority.MatchString(host) || !validAddress(host):
		problem = "a valid host, such as example.com, example.com:8443 or [2001:db8::1]: write it in ASCII " +
			"(a name with other letters in its xn-- form), without spaces, and a port in digits"
	case !afterHost.MatchString(rest):
		problem = "only characters of a URL after its host: percent-encode all else, a space as %20, " +
			"é as %C3%A9, a percent sign as %25, brackets as %5B and %5D, and a second # as %23"
	default:
		return nil
	}
	return errors.New("must be an http or https URL with " + problem)
}

// validAddress reports whether the IPv6 address is valid that host is, if it is
// one. It has the form of authority.
func validAddress(host string) bool {
	literal, _, _ := strings.Cut(strings.TrimPrefix(host, "["), "]")
	if host[0] != '[' || literal[0]|0x20 == 'v' {
		return true // a name, or an address of a later version, which begins with v
	}
	address, err := netip.ParseAddr(literal)
	return err == nil && address.Is6()
}
