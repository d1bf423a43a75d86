package strict

import (
	"net/netip"
	"regexp"
)

// webURL is the grammar of RFC 3986, appendix A, for http and https URIs with a host and without user info.
// Its first group is an IPv6 address, which may be invalid.
var webURL = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://` +
	`(?:\[(?:([0-9A-Fa-f:.]+)|[Vv][0-9A-Fa-f]+\.[` + plain + `:]+)\]` +
	`|(?:[` + plain + `]+|` + escaped + `)+)(?::[0-9]*)?(?:[/?]` + path + `)?(?:#` + path + `)?$`)

const (
	plain   = `A-Za-z0-9\-._~!$&'()*+,;=` // unreserved and sub-delims
	escaped = `%[0-9A-Fa-f]{2}`
	path    = `(?:[` + plain + `:@/?]+|` + escaped + `)*` // path, query or fragment
)

// IsURL reports whether s is an http or https URI (RFC 3986) with a host and without user info. The scheme
// may be in any case. The length isn't limited.
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
