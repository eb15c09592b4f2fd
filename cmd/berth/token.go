package main

import (
	"context"
	"fmt"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) tokenCommand() *cobra.Command {
	return group("token", "Tokens for those who ask the daemon over the network", p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRemoveCommand())
}

const tokenCreateHelp = `Creates a token, with which somebody may ask the daemon over the network, and prints it: this once, since the
daemon keeps only a hash of it. What is done with it is done by "token NAME" in the events.

With --role read-only it is for looking: everything that changes something is refused.`

func (p *program) tokenCreateCommand() *cobra.Command {
	var req admin.TokenRequest
	var role string
	var lifetime time.Duration
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a token and print it", Long: tokenCreateHelp, Args: oneArg("the name of the token"),
		Example: `  berth token create ci > ci.token
  berth token create dashboard --role read-only --expires 720h
  berth --admin-socket https://berth.example:7890 --token-file ci.token lease ls`}
	f := cmd.Flags()
	f.StringVar(&role, "role", string(admin.RoleAdmin), "`role` of who has it: admin or read-only")
	f.DurationVar(&lifetime, "expires", 0, "how long it is valid, a `duration` such as 720h (default: until it is removed)")
	completes(cmd, "role", words(string(admin.RoleAdmin), string(admin.RoleReadOnly)))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("expires") && lifetime <= 0 {
			return usage(cmd, fmt.Errorf("--expires is %s and must be more than nothing; leave it out for a token that is valid until it is removed", lifetime))
		}
		client, err := p.find(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		req.Name, req.Role, req.Lifetime = args[0], admin.Role(role), ipam.Duration(lifetime)
		made, err := client.CreateToken(cmd.Context(), req)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, made.Token)
		return err
	}
	return cmd
}

const tokenListHelp = `Lists the tokens with which one may ask the daemon over the network. The tokens themselves are nowhere to be
had: who has lost one creates another.`

func (p *program) tokenListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List tokens", Long: tokenListHelp, Args: noArgs,
		Example: "  berth token ls\n  berth token ls -q\n  berth token ls --format json"}
	out.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return list(p, cmd, out, tokenColumns(), func(t *admin.TokenInfo) string { return t.Name },
			func(ctx context.Context, c *admin.Client) ([]admin.TokenInfo, error) { return c.Tokens(ctx) })
	}
	return cmd
}

func tokenColumns() []column[admin.TokenInfo] {
	return []column[admin.TokenInfo]{
		{"TOKEN", func(t *admin.TokenInfo) string { return t.Name }},
		{"ROLE", func(t *admin.TokenInfo) string { return string(t.Role) }},
		{"CREATED", func(t *admin.TokenInfo) string { return localTime(t.Created) }},
		{"BY", func(t *admin.TokenInfo) string { return t.By }},
		{"EXPIRES", func(t *admin.TokenInfo) string {
			if t.Expired {
				return localTime(t.Expires) + " (expired)"
			}
			return localTime(t.Expires)
		}},
	}
}

func (p *program) tokenRemoveCommand() *cobra.Command {
	return &cobra.Command{Use: "rm NAME", Aliases: []string{"remove"}, Short: "Remove a token", Args: oneArg("the name of the token"),
		Long:              "Removes a token: who asks with it is refused from then on, and is cut off if he asks at this moment.",
		Example:           "  berth token rm ci",
		ValidArgsFunction: p.completeTokens,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := p.find(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			_, err = client.RemoveToken(cmd.Context(), args[0])
			return err
		}}
}

func (p *program) completeTokens(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(cmd, func(ctx context.Context, c *admin.Client) (names []string, err error) {
		all, err := c.Tokens(ctx)
		for _, t := range all {
			names = append(names, t.Name)
		}
		return names, err
	})
}
