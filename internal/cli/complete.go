package cli

import (
	"context"
	"time"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Completes sets the completion of a flag's value.
func Completes(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // the command has no such flag, which is a mistake in the code
	}
}

// CompletesDirs completes a flag's value with directories.
func CompletesDirs(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagDirname(flag); err != nil {
		panic(err)
	}
}

// CompletesFiles completes a flag's value with files.
func CompletesFiles(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagFilename(flag); err != nil {
		panic(err)
	}
}

// Words completes a flag that takes one of a few words.
func Words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// completionTime is the longest wait after a press of the tab key.
const completionTime = 2 * time.Second

// Refs lists the completions of one argument. network is the first argument, if it is there already.
type Refs func(ctx context.Context, c *client.Client, network string) ([]string, error)

// completeArgs completes each argument with its own list, and further ones with nothing.
func (p *Program) completeArgs(of ...Refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.complete(of[len(args)])(cmd, args, typed)
	}
}

// complete asks the daemon for names. If it does not answer, there are no completions and no error.
func (p *Program) complete(of Refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := p.Find(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		c.OnAway(nil)
		names, err := of(ctx, c, First(args))
		if err != nil {
			names = nil
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
