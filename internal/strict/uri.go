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
	// Only an address stands in brackets: one of IPv6, or of a later version after a v.
	_, bracket, found := strings.Cut(s, "[")
	literal, _, _ := strings.Cut(bracket, "]")
	if !found || strings.ContainsAny(literal, "vV") {
		return true
	}
	address, _ := netip.ParseAddr(literal) // after an error the zero Addr, which is not IPv6
	return address.Is6()
}
