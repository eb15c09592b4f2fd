package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExitCodes runs all commands. Help succeeds, an unknown flag or word is wrong usage, and without a daemon any
// command that needs one fails, checks too.
func TestExitCodes(t *testing.T) {
	ends := func(want int, line string) {
		t.Helper()
		if _, said, got := runs(strings.Fields(line)...); got != want {
			t.Errorf("berth %s: exit code %d, want %d: %s", line, got, want, said)
		}
	}
	leaves := 0
	eachCommand(func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "berth")
		ends(0, path+" --help")
		ends(64, path+" --no-such-flag")
		if cmd.HasSubCommands() {
			ends(64, path+" no-such-verb")
		} else {
			leaves++
		}
	})
	const least = 80
	if leaves < least {
		t.Errorf("%d commands were found", leaves)
	}
	for name, lines := range asked {
		if name != "version" { // which prints its own version without a daemon
			ends(1, name+" "+lines[0]+" --admin-socket /nowhere/admin.sock")
		}
	}
}
