package strict

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// zoneLines has one name a line, sorted: UTC, and every name with a slash in lib/time/zoneinfo.zip
// of the Go distribution.
//
//go:embed zones.txt
var zoneLines string

var zones = sync.OnceValue(func() []string { return strings.Fields(zoneLines) })

// IsZone reports whether name is a time zone name of the form Area/City in the IANA time zone
// database, including aliases and in its exact case, or UTC. The list of names is a part of the
// program, so the result is the same on every host.
func IsZone(name string) bool {
	_, ok := slices.BinarySearch(zones(), name)
	return ok
}
