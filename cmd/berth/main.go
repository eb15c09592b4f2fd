// Command berth manages the addresses of Docker networks and containers. `berth serve` is the daemon that the Docker
// Engine asks; every other verb asks that daemon, or looks at its files while it does not run. A refusal
// is one line on standard error that says why, and an exit code (internal/cli/exit.go).
//
// root.go hangs the verbs together. Those that only ask the daemon are in internal/cli and the rooms below it; here are
// serve (serve.go is the only place where the rooms of Berth are put together) and the verbs that open stores and state
// files themselves: backup, restore, fsck and store copy.
package main

import (
	"context"
	"os"

	"berth/internal/cli"
)

// version is stamped by -ldflags "-X main.version=...".
var version = "dev"

func main() {
	p := cli.New(version)
	os.Exit(p.Run(context.Background(), rootCommand(p, thisHost()), os.Args[1:]))
}
