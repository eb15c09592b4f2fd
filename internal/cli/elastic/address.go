package elastic

import (
	"berth/internal/cli"
	"berth/internal/ipam"
)

const allocateHelp = `Allocates an elastic address to an account, and prints it: the lowest free address of the
cluster's ranges or of the ranges of --host, or the address of --ip. The address is not mapped yet. It is no error
if the account already has the address of --ip.

--release-on makes Berth disassociate and release the address: with destroy when its container is removed, with stop
also when its container stops. A container that runs again within two minutes keeps the address, because it was
restarted or recreated. Both release the address when the owner or the network is removed. For an --ip that the
account already has, the option changes when Berth releases the address.`

func allocateCommand() cli.Row {
	var take ipam.AllocateElastic
	var ip string
	return cli.Change{
		Verb: cli.Verb{Use: "allocate", Short: "Allocate an address to an account", Long: allocateHelp,
			Example: `  berth elastic allocate
  berth elastic allocate --account shop --ip 203.0.113.12
  berth elastic allocate --host a
  berth elastic allocate --release-on destroy`,
			Flags: cli.Flags{
				cli.Flag(&take.Account, "account", "the `ACCOUNT` that gets it (default: the account default)").
					Of(cli.AccountRefs).Filled(),
				cli.Flag(&ip, "ip", "allocate this `ADDRESS`").Filled(),
				cli.Flag(&take.Host, "host", "allocate from the ranges of this `HOST`").Filled(),
				cli.Flag(&take.ReleaseOn, "release-on",
					"release it automatically `WHEN` its container ends: destroy, stop or "+
						"never (default: never)").Words("never", "destroy", "stop").Filled()}},
		Edit: func([]string) (_ ipam.Edit, err error) {
			if ip != "" {
				take.Address, err = parseAddress(ip)
			}
			return &take, err
		},
		Said: cli.SayAddresses,
	}
}

const disassociateHelp = `Ends the association of an elastic address, and prints the address. The account keeps the
address. It is no error if the address is not associated.`

func disassociateCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "disassociate ADDRESS", Short: "End the mapping of an address", Long: disassociateHelp,
			Refs: []cli.Refs{addressRefs},
			Example: `  berth elastic disassociate 203.0.113.12
  berth elastic disassociate 203.0.113.12 --dry-run`},
		Edit: func(args []string) (ipam.Edit, error) {
			addr, err := parseAddress(args[0])
			return &ipam.DisassociateElastic{Address: addr}, err
		},
		Said: cli.SayAddresses,
	}
}

const releaseHelp = `Releases an elastic address, and prints it. It refuses while the address is associated.
The address is free once no edge maps it (until then: state releasing). It is no error if the address is already
free.`

func releaseCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "release ADDRESS...", Short: "Release addresses", Long: releaseHelp,
			Refs:    []cli.Refs{addressRefs},
			Example: "  berth elastic release 203.0.113.12\n  berth elastic release $(berth elastic ls -q)"},
		PerArg: func(arg string) (ipam.Edit, error) {
			addr, err := parseAddress(arg)
			return &ipam.ReleaseElastic{Address: addr}, err
		},
	}
}
