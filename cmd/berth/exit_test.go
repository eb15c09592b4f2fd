package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"berth/internal/cli"

	"github.com/spf13/cobra"
)

// TestExitCodes walks all commands: help is done, what a command does not have is wrong usage, and what asks a daemon
// that is not there has failed, checks too.
func TestExitCodes(t *testing.T) {
	run := func(want int, line string) {
		t.Helper()
		var out, said bytes.Buffer
		p := &cli.Program{Out: &out, Err: &said, Env: func(string) string { return "" },
			Now: time.Now}
		if got := p.Run(context.Background(), rootCommand(p, emptyHost()), strings.Fields(line)); got != want {
			t.Errorf("berth %s: exit code %d, want %d: %s", line, got, want, said.String())
		}
	}
	leaves := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "berth")
		run(0, path+" --help")
		run(64, path+" --no-such-flag")
		if cmd.HasSubCommands() {
			run(64, path+" no-such-verb")
		} else {
			leaves++
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(cli.New("dev"), emptyHost()))
	const least = 80
	if leaves < least {
		t.Errorf("%d commands were found", leaves)
	}
	for name, lines := range asked {
		if name != "version" { // which tells its own where no daemon answers
			run(1, name+" "+lines[0]+" --admin-socket /nowhere/admin.sock")
		}
	}
}
