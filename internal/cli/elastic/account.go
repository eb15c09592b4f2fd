package elastic

import (
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const accountCreateHelp = `Creates an account for elastic addresses. --owner sets its containers: a pattern
such as 'shop/*' of
owners or container names, in which * stands for any characters. An address is mapped only to containers of its own
account. If several accounts match, the longest pattern wins; * is not counted. Other containers belong to the account
default, which always exists. --quota limits the number of addresses.`

func accountCreateCommand() cli.Row {
	var create ipam.CreateAccount
	return cli.Change{
		Verb: cli.Verb{Use: "create ACCOUNT", Short: "Make an account", Long: accountCreateHelp,
			Example: `  berth elastic account create shop --owner 'shop/*' --quota 4
  berth elastic account create mail --domain example.org --owner mail --dry-run`,
			Flags: cli.Flags{
				cli.Flag(&create.Domain, "domain",
					"the `DOMAIN` of the account, shown with its addresses").Filled(),
				cli.Flag(&create.Quota, "quota", "let it have at most `N` addresses (default: any number)"),
				cli.Flag(&create.Owners, "owner", "a `PATTERN` of the owners that belong to it (repeatable)")}},
		Edit: func(args []string) (ipam.Edit, error) {
			create.Account = args[0]
			return &create, nil
		},
	}
}

const accountRemoveHelp = `Removes an account. It refuses while the account has addresses; --force ends their
associations and releases them.`

func accountRemoveCommand() cli.Row {
	var force bool
	return cli.Change{
		Verb: cli.Verb{Use: "rm ACCOUNT...", Short: "Remove accounts", Long: accountRemoveHelp,
			Refs:    []cli.Refs{cli.AccountRefs},
			Example: "  berth elastic account rm shop\n  berth elastic account rm shop --force --dry-run",
			Flags:   cli.Flags{cli.Flag(&force, "force", "release its addresses")}},
		PerArg: func(account string) (ipam.Edit, error) {
			return &ipam.RemoveAccount{Account: account, Force: force}, nil
		},
	}
}

func accountListCommand() cli.Row {
	return cli.Listing[ipam.AccountInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List accounts",
			Long: "Lists the accounts, with how many elastic addresses each has and may have (QUOTA), and which " +
				"owners belong\nto it.",
			Example: "  berth elastic account ls\n  berth elastic account ls --format json"},
		Keys:    cli.Fields{"owner=Owners"},
		Columns: cli.Fields{"Name", "Domain", "Addresses", "Quota", "Owners,most=25"},
		Fetch:   cli.All((*client.Client).Accounts),
	}
}
