package main

import (
	"testing"

	"berth/internal/golden"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestGoldenCommands: a command of 1.0 keeps its words and its flags. The flags of serve are the settings.
func TestGoldenCommands(t *testing.T) {
	var all []string
	eachCommand(func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.HasParent() && cmd.Parent().Hidden {
			return
		}
		all = append(all, cmd.CommandPath())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				all = append(all, cmd.CommandPath()+" --"+f.Name)
			}
		})
	})
	golden.Names(t, "commands.txt", all)
}
