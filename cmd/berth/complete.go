package main

import (
	"context"
	"time"

	"berth/internal/admin"

	"github.com/spf13/cobra"
)

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

// completes has the shell complete a flag.
func completes(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // the command has no such flag: a slip in its own file
	}
}

// completesDirs has the shell complete a flag that takes a directory.
func completesDirs(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagDirname(flag); err != nil {
		panic(err)
	}
}

// completesFiles has the shell complete a flag that takes a file.
func completesFiles(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagFilename(flag); err != nil {
		panic(err)
	}
}

// words completes a flag that takes one of a few.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// spaceFlag adds --space.
func (p *program) spaceFlag(cmd *cobra.Command, space *string) {
	cmd.Flags().StringVar(space, "space", "", "only those of the space `NAME`")
	completes(cmd, "space", p.completeSpaces)
}

// completionTime bounds what a press of the tab key may wait for.
const completionTime = 2 * time.Second

func (p *program) completeSpaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.complete(cmd, func(ctx context.Context, c *admin.Client) (names []string, err error) {
		all, err := c.Spaces(ctx)
		for _, space := range all {
			names = append(names, space.Name)
		}
		return names, err
	})
}

func (p *program) completeSubnets(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.complete(cmd, func(ctx context.Context, c *admin.Client) (names []string, err error) {
		all, err := c.Subnets(ctx, "")
		for _, sub := range all {
			names = append(names, sub.CIDR.String()+"\t"+sub.NetworkName+" in "+sub.Space)
		}
		return names, err
	})
}

// complete asks the daemon for names. Where it does not answer there is nothing to complete with, and no error to show.
func (p *program) complete(cmd *cobra.Command, ask func(context.Context, *admin.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	client, err := p.find(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close()
	client.OnAway(nil)
	names, err := ask(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
