// Command eventsd serves the public REST API of an events networking service.
// Run it with help for what it can do.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"example.com/events"
)

func main() {
	collectLess(os.Getenv("GOGC"))
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// collectLess makes the collector run half as often as usual, unless GOGC says how often: most of
// the heap is what is stored.
func collectLess(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(200)
	}
}
