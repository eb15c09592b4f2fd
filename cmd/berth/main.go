// Command berth manages the addresses of Docker networks and containers. `berth serve` is the daemon that the Docker
// Engine asks. Every other verb asks that daemon, or reads its files while it does not run. A refusal is one line on
// standard error with the reason, and an exit code (internal/cli/exit.go).
//
// root.go combines the verbs. Verbs that only ask the daemon are in internal/cli and its subpackages. This package has
// serve and the verbs that open stores and state files themselves: backup, restore, fsck and store copy. Only serve.go
// connects the packages of Berth.
package main

import (
	"context"
	"os"

	"berth/internal/cli"
)

// version is set by -ldflags "-X main.version=...".
var version = "dev"

func main() {
	p := cli.New(version)
	os.Exit(p.Run(context.Background(), rootCommand(p, thisHost()), os.Args[1:]))
}
