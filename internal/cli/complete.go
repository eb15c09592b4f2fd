package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// words completes a flag that takes one of a few words.
func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// completionTime is the longest wait after a press of the tab key.
const completionTime = 2 * time.Second

// Refs lists the completions of one argument. network is the first argument, if it is there already.
type Refs func(r *Run, network string) ([]string, error)

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
		r := &Run{Context: ctx, Program: p, Cmd: cmd, Args: args}
		if r.Ask() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer r.Close()
		r.OnAway(nil)
		names, err := of(r, r.First())
		if err != nil {
			names = nil
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
