package strict

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// zoneLines has one name per line, sorted: UTC and all names with a slash from lib/time/zoneinfo.zip in the
// Go distribution.
//
//go:embed zones.txt
var zoneLines string

var zones = sync.OnceValue(func() []string { return strings.Fields(zoneLines) })

// IsZone reports whether name is UTC or a name such as Europe/Paris from the IANA time zone database. Aliases
// are valid, other cases are not. The names are part of the program, so the result is the same on every host.
func IsZone(name string) bool {
	_, ok := slices.BinarySearch(zones(), name)
	return ok
}
