package cli

import (
	"context"
	"time"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Completes has the shell complete a flag.
func Completes(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // the command has no such flag: a slip in its own file
	}
}

// CompletesDirs has the shell complete a flag that takes a directory.
func CompletesDirs(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagDirname(flag); err != nil {
		panic(err)
	}
}

// CompletesFiles has the shell complete a flag that takes a file.
func CompletesFiles(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagFilename(flag); err != nil {
		panic(err)
	}
}

// Words completes a flag that takes one of a few.
func Words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// completionTime bounds what a press of the tab key may wait for.
const completionTime = 2 * time.Second

func (p *Program) CompleteSpaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.Complete(cmd, spaceNames)
}

func spaceNames(ctx context.Context, c *client.Client) (names []string, err error) {
	all, err := c.Spaces(ctx)
	for _, space := range all {
		names = append(names, space.Name)
	}
	return names, err
}

// Complete asks the daemon for names. Where it does not answer there is nothing to complete with, and no error to show.
func (p *Program) Complete(cmd *cobra.Command,
	ask func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	c, err := p.Find(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	c.OnAway(nil)
	names, err := ask(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
