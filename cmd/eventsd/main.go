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
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // collect half as often as usual: most of the heap is what is stored
	}
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
