//go:build race

package cluster

import (
	"flag"
	"os"
)

// Under the race detector what one goroutine does alone is ten times as slow, and it finds nothing in it: models take a
// quarter of their rounds then. All are taken without it (`make unit`).
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil { // -rapid.checks says otherwise
		os.Exit(2)
	}
}
