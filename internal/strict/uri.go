package strict

import (
	"net/netip"
	"regexp"
	"strings"
)

// webURL is the grammar of RFC 3986, appendix A, for a URI with the scheme http or
// https, a host and no user info. What looks like an IPv6 address need not be one.
var webURL = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://` +
	`(?:\[(?:[0-9A-Fa-f:.]+|[Vv][0-9A-Fa-f]+\.[` + plain + `:]+)\]` +
	`|(?:[` + plain + `]+|` + escaped + `)+)(?::[0-9]*)?(?:[/?]` + path + `)?(?:#` + path + `)?$`)

const (
	plain   = `A-Za-z0-9\-._~!$&'()*+,;=` // unreserved and sub-delims
	escaped = `%[0-9A-Fa-f]{2}`
	path    = `(?:[` + plain + `:@/?]+|` + escaped + `)*` // also a query or fragment
)

// URL reports whether s is a URI by the grammar of RFC 3986 with the scheme http
// or https, in any case, a host that is not empty, and no user info. Its length
// is for the caller to judge.
func URL(s string) bool {
	if !webURL.MatchString(s) {
		return false
	}
	_, literal, found := strings.Cut(s, "://[") // a [ stands nowhere but before an address
	if !found || literal[0] == 'v' || literal[0] == 'V' {
		return true // a name, or an address of a later version, which begins with v
	}
	literal, _, _ = strings.Cut(literal, "]")
	address, err := netip.ParseAddr(literal)
	return err == nil && address.Is6()
}
