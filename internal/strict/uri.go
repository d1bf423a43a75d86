package strict

import (
	"net/netip"
	"regexp"
)

// webURL is the grammar of RFC 3986, appendix A, for a URI with the scheme http or
// https, a host and no user info. What looks like an IPv6 address need not be one. It is
// the first group.
var webURL = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://` +
	`(?:\[(?:([0-9A-Fa-f:.]+)|[Vv][0-9A-Fa-f]+\.[` + plain + `:]+)\]` +
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
	match := webURL.FindStringSubmatch(s)
	if match == nil || match[1] == "" {
		return match != nil
	}
	address, _ := netip.ParseAddr(match[1]) // after an error the zero Addr, which is not IPv6
	return address.Is6()
}
