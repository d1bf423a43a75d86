// Command eventsd serves an API for events and guest lists, from a data file or as a test double. Its
// subcommand help lists the others.
package main

import (
	"context"
	"os"

	"example.com/events"
)

func main() {
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
