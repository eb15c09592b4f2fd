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

// Complete asks the daemon for names. If it does not answer, there are no completions and no error.
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
