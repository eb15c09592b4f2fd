package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes a command that only holds others.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	asGroup(cmd)
	cmd.AddCommand(verbs...)
	return cmd
}

// asGroup has a command without a verb show its help, and refuse a verb that is none.
func asGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("%q is no command of %s", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		}
		return Usage(cmd, errors.New(text))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// helpCommand is cobra's, but for a command that is not there: that is wrong usage here as everywhere.
func helpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "help [COMMAND]", Short: "Show the help of a command"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, rest, err := cmd.Root().Find(args)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("there is no command %q", strings.Join(args, " "))
		}
		if err != nil {
			return Usage(cmd.Root(), err)
		}
		found.InitDefaultHelpFlag()
		return found.Help()
	}
	return cmd
}

// completionCommand adds cobra's command that writes the completion of a shell, for the shells of Linux.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd("")
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		asGroup(cmd)
		for _, shell := range cmd.Commands() {
			if shell.Name() == "powershell" {
				cmd.RemoveCommand(shell)
			}
		}
	}
}
