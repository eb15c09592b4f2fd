package main

import (
	"testing"

	"berth/internal/cli"
	"berth/internal/golden"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestGoldenCommands: a command of 1.0 keeps its words and its flags. The flags of serve are the settings.
func TestGoldenCommands(t *testing.T) {
	var all []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		all = append(all, cmd.CommandPath())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				all = append(all, cmd.CommandPath()+" --"+f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(cli.New("dev"), emptyHost()))
	golden.Names(t, "commands.txt", all)
}
