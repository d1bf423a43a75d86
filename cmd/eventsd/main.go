// Command eventsd serves the public REST API of an events networking service.
// Its subcommand help lists the others.
package main

import (
	"context"
	"os"

	"example.com/events"
)

func main() {
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
