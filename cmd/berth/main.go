// Command berth manages the addresses of Docker networks and containers. `berth serve` is the daemon that the Docker Engine
// asks; every other verb asks that daemon, or looks at its files while it does not run. It promises exit code 0 for
// what was done, 1 for a refusal, with one line on standard error that says why, and 2 for wrong usage.
//
// A verb is one file: a function that returns its cobra command. What it needs from the daemon goes through an admin.Client
// (find.go finds the socket), what it shows goes through output.go. serve.go is the only place where the rooms of
// Berth are put together.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// version is stamped by -ldflags "-X main.version=...".
var version = "dev"

func main() {
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now, started: time.Now(), places: defaultPlaces()}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// run carries out one command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(p.err, "berth: %s\n", oneLine(err))
	if !p.understood || isUsage(err) {
		return 2
	}
	return 1
}
