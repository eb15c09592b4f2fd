//go:build race

package ipamtest

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // has the flag
)

// RaceEnabled tells that the tests run under the race detector, which makes what one goroutine does alone ten times as
// slow, and finds nothing in it: models take a quarter of their rounds then, and a fault is put into each transaction
// once instead of in several ways. All of it is done without the race detector (`make unit`).
const RaceEnabled = true

func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil { // -rapid.checks says otherwise
		os.Exit(2)
	}
}
