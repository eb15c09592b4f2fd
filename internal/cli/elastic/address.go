package elastic

import (
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const allocateHelp = `Allocates an elastic address to an account, and prints it: the lowest free one of the
cluster's ranges, of those of --host, or the one of --ip. It is not mapped yet. An --ip that the account already
has is no error.

--release-on disassociates and releases the address by itself: with destroy when its container was removed, with stop
also when its container has stopped. A container that runs again within two minutes keeps the address, because it was
restarted or recreated. Both release the address when the owner or the network is removed. For an --ip that the
account already has, the option changes when it is released.`

func allocateCommand(p *cli.Program) *cobra.Command {
	var take ipam.AllocateElastic
	var ip string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "allocate", Short: "Allocate an address to an account", Long: allocateHelp,
			Example: "  berth elastic allocate\n  berth elastic allocate --account shop --ip 203.0.113.12\n" +
				"  berth elastic allocate --host a\n  berth elastic allocate --release-on destroy"},
		Edits: func(cmd *cobra.Command, _ []string) (_ []ipam.Edit, err error) {
			if err := cli.NotEmpty(cmd, "account", "ip", "host", "release-on"); err != nil {
				return nil, err
			}
			if ip != "" {
				take.Address, err = parseAddress(ip)
			}
			return cli.One(&take, err)
		},
		Said: cli.SayAddresses,
	}.Command(p)
	f := cmd.Flags()
	f.StringVar(&take.Account, "account", "", "the `ACCOUNT` that gets it (default: default)")
	f.StringVar(&ip, "ip", "", "this `ADDRESS`")
	f.StringVar(&take.Host, "host", "", "one of the ranges of this `HOST`")
	f.StringVar(&take.ReleaseOn, "release-on", "", "release it by itself `WHEN` its container ends: destroy, stop or "+
		"never (default: never)")
	cli.Completes(cmd, "account", p.CompleteFlag(accountRefs))
	cli.Completes(cmd, "release-on", cli.Words("never", "destroy", "stop"))
	return cmd
}

// addressChange is a verb of one address that prints it.
func addressChange(p *cli.Program, verb cli.Verb,
	edit func(*cobra.Command, string) ([]ipam.Edit, error)) *cobra.Command {
	verb.Refs = []cli.Refs{addressRefs}
	return cli.Change{Verb: verb,
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) { return edit(cmd, args[0]) },
		Said:  cli.SayAddresses,
	}.Command(p)
}

const disassociateHelp = `Ends the association of an elastic address, and prints the address. It stays with its
account. An address that is associated with nobody is no error.`

func disassociateCommand(p *cli.Program) *cobra.Command {
	verb := cli.Verb{Use: "disassociate ADDRESS", Short: "End the mapping of an address", Long: disassociateHelp,
		Example: "  berth elastic disassociate 203.0.113.12\n  berth elastic disassociate 203.0.113.12 --dry-run"}
	return addressChange(p, verb, func(_ *cobra.Command, text string) ([]ipam.Edit, error) {
		addr, err := parseAddress(text)
		return cli.One(&ipam.DisassociateElastic{Address: addr}, err)
	})
}

const releaseHelp = `Releases an elastic address, and prints it. It refuses while the address is associated.
The address is free once no edge maps it (until then: state releasing). An address that is free already is no
error.`

func releaseCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "release ADDRESS...", Short: "Release addresses", Long: releaseHelp,
			Args: cli.Some("ADDRESS"), Refs: []cli.Refs{addressRefs},
			Example: "  berth elastic release 203.0.113.12\n  berth elastic release $(berth elastic ls -q)"},
		PerArg: func(arg string) (ipam.Edit, error) {
			addr, err := parseAddress(arg)
			return &ipam.ReleaseElastic{Address: addr}, err
		},
	}.Command(p)
}
