package strict

import (
	"net/netip"
	"regexp"
)

// webURL is the grammar of RFC 3986, appendix A, for a URI with the scheme http or https, a host and
// no user info. Its first group is the IPv6 address in brackets, which may be invalid.
var webURL = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://` +
	`(?:\[(?:([0-9A-Fa-f:.]+)|[Vv][0-9A-Fa-f]+\.[` + plain + `:]+)\]` +
	`|(?:[` + plain + `]+|` + escaped + `)+)(?::[0-9]*)?(?:[/?]` + path + `)?(?:#` + path + `)?$`)

const (
	plain   = `A-Za-z0-9\-._~!$&'()*+,;=` // unreserved and sub-delims
	escaped = `%[0-9A-Fa-f]{2}`
	path    = `(?:[` + plain + `:@/?]+|` + escaped + `)*` // path, query or fragment
)

// IsURL reports whether s is a URI as RFC 3986 defines it, with the scheme http or https, in any case,
// a host that is not empty, and no user info. It doesn't limit the length.
func IsURL(s string) bool {
	match := webURL.FindStringSubmatch(s)
	if match == nil {
		return false
	}
	if match[1] == "" {
		return true
	}
	address, err := netip.ParseAddr(match[1])
	return err == nil && address.Is6()
}
