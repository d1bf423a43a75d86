package strict

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// One name a line, sorted: every name with a slash in lib/time/zoneinfo.zip of
// the Go distribution, and UTC.
//
//go:embed zones.txt
var zoneLines string

var zones = sync.OnceValue(func() []string { return strings.Fields(zoneLines) })

// Zone reports whether name is a time zone name of the form Area/City of the
// IANA time zone database, aliases included and in its exact case, or UTC. It
// knows the names only, from a list in the program, so the answer is the same on
// every machine.
func Zone(name string) bool {
	_, ok := slices.BinarySearch(zones(), name)
	return ok
}
