package elastic

import (
	"context"
	"strconv"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const accountCreateHelp = `Creates an account for elastic addresses. --owner sets its containers: a pattern
such as 'shop/*' of
owners or container names, in which * stands for any characters. An address is mapped only to containers of its own
account. If several accounts match, the longest pattern wins; * is not counted. Other containers belong to the account
default, which always exists. --quota limits the number of addresses.`

func accountCreateCommand(p *cli.Program) *cobra.Command {
	var create ipam.CreateAccount
	var quota int
	cmd := cli.Change{
		Verb: cli.Verb{Use: "create ACCOUNT", Short: "Make an account", Long: accountCreateHelp,
			Example: "  berth elastic account create shop --owner 'shop/*' --quota 4\n" +
				"  berth elastic account create mail --domain example.org --owner mail --dry-run"},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			create.Account = args[0]
			if cmd.Flags().Changed("quota") {
				create.Quota = &quota
			}
			return cli.One(&create, cli.NotEmpty(cmd, "domain"))
		},
	}.Command(p)
	f := cmd.Flags()
	f.StringVar(&create.Domain, "domain", "", "the `DOMAIN` that it is of, shown with its addresses")
	f.IntVar(&quota, "quota", 0, "how many addresses `N` it may have (default: any number)")
	f.StringArrayVar(&create.Owners, "owner", nil, "a `PATTERN` of owners that are its own (repeatable)")
	return cmd
}

const accountRemoveHelp = `Removes an account. It refuses while the account has addresses; --force ends their
associations and releases them.`

func accountRemoveCommand(p *cli.Program) *cobra.Command {
	var remove ipam.RemoveAccount
	cmd := cli.Change{
		Verb: cli.Verb{Use: "rm ACCOUNT...", Short: "Remove accounts", Long: accountRemoveHelp,
			Args:    cli.Some("ACCOUNT"),
			Refs:    []cli.Refs{accountRefs},
			Example: "  berth elastic account rm shop\n  berth elastic account rm shop --force --dry-run"},
		PerArg: func(account string) (ipam.Edit, error) {
			return &ipam.RemoveAccount{Account: account, Force: remove.Force}, nil
		},
	}.Command(p)
	cmd.Flags().BoolVar(&remove.Force, "force", false, "release its addresses")
	return cmd
}

func accountListCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[ipam.AccountInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List accounts",
			Long: "Lists the accounts, with how many elastic addresses each has and may have (QUOTA), and which " +
				"owners are\nits own.",
			Example: "  berth elastic account ls\n  berth elastic account ls --format json"},
		Keys: []cli.Key[ipam.AccountInfo]{
			cli.ByAny(cli.KeyOwner, func(a *ipam.AccountInfo) []string { return a.Owners }),
		},
		Columns: func(cli.Output) []cli.Column[ipam.AccountInfo] {
			const shown = 25 // of the owners, which are any number
			return []cli.Column[ipam.AccountInfo]{
				cli.Col("NAME", func(a *ipam.AccountInfo) string { return a.Name }),
				cli.Col("DOMAIN", func(a *ipam.AccountInfo) string { return a.Domain }),
				cli.Col("ADDRESSES", func(a *ipam.AccountInfo) string { return strconv.Itoa(a.Addresses) }),
				cli.Col("QUOTA", quotaText),
				cli.Col("OWNERS", func(a *ipam.AccountInfo) string { return strings.Join(a.Owners, ",") }).
					AtMost(shown),
			}
		},
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.AccountInfo, error) {
			return c.Accounts(ctx)
		},
	}.Command(p)
}

func quotaText(a *ipam.AccountInfo) string {
	if a.Quota == nil {
		return ""
	}
	return strconv.Itoa(*a.Quota)
}
