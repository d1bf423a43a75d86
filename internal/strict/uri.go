package strict

import (
	"errors"
	"net/netip"
	"strings"
)

// The character sets of RFC 3986, section 2 and appendix A.
const (
	digits     = "0123456789"
	hexDigits  = digits + "ABCDEFabcdef"
	unreserved = digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~"
	subDelims  = "!$&'()*+,;="
	genDelims  = ":/?#[]@"
)

// URL returns nil if s is a URI by the grammar of RFC 3986 with the scheme http
// or https, in any case, a host that is not empty, and no user info. Its length
// is for the caller to judge.
//
// An error is the tail of a sentence whose subject is what holds s: it begins
// with "must", says what is wrong and how to put it right.
func URL(s string) error {
	if problem := notURL(s); problem != "" {
		return errors.New("must be an http or https URL with " + problem)
	}
	return nil
}

// notURL returns "", or what an s that URL refuses should have.
func notURL(s string) string {
	const (
		noHost   = "a host, such as https://example.com/x"
		brackets = "brackets only around an IPv6 address: write them as %5B and %5D elsewhere"
	)
	scheme, rest, _ := strings.Cut(s, "://")
	if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
		return noHost
	}
	if bad := strings.TrimLeft(rest, unreserved+subDelims+genDelims+"%"); bad != "" {
		switch {
		case bad[0] == ' ':
			return "no spaces: write each as %20"
		case bad[0] >= 0x80:
			return "ASCII only: percent-encode all else (é as %C3%A9), and write a host in its xn-- form"
		}
		return "no control characters and none of \" < > \\ ^ ` { | }: percent-encode them"
	}
	for _, after, ok := strings.Cut(rest, "%"); ok; _, after, ok = strings.Cut(after, "%") {
		if len(after) < 2 || !only(after[:2], hexDigits) {
			return "two hex digits after each %: write the percent sign itself as %25"
		}
	}

	host, rest := rest, ""
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host, rest = host[:i], host[i:]
	}
	if strings.Contains(host, "@") {
		return "no user info: remove what stands before the host, and the @"
	}
	if i := strings.LastIndex(host, ":"); i > strings.LastIndex(host, "]") {
		if !only(host[i+1:], digits) {
			return "digits only in its port, such as https://example.com:8443/x"
		}
		host = host[:i]
	}
	switch {
	case host == "":
		return noHost
	case host[0] == '[' && isIPLiteral(host):
	case host[0] == '[':
		return "a valid IPv6 address, and no zone, in the brackets, such as http://[2001:db8::1]/x"
	case strings.Contains(host, ":"):
		return "one colon at most after its host, and an IPv6 address in brackets, such as http://[2001:db8::1]/x"
	case strings.ContainsAny(host, "[]"):
		return brackets
	}
	// Of the characters that are left, path, query and fragment may hold all but these.
	switch {
	case strings.ContainsAny(rest, "[]"):
		return brackets
	case strings.Count(rest, "#") > 1:
		return "one # at most: write it as %23 in the fragment"
	}
	return ""
}

// isIPLiteral reports whether host is an IP-literal of RFC 3986, section 3.2.2.
func isIPLiteral(host string) bool {
	inner, ok := strings.CutSuffix(host[1:], "]")
	if rest, future := strings.CutPrefix(strings.ToLower(inner), "v"); ok && future {
		version, address, _ := strings.Cut(rest, ".")
		return version != "" && only(version, hexDigits) && address != "" && only(address, unreserved+subDelims+":")
	}
	address, err := netip.ParseAddr(inner)
	return ok && err == nil && address.Is6() && address.Zone() == ""
}

// only reports whether s has no characters but those of set.
func only(s, set string) bool { return strings.TrimLeft(s, set) == "" }
