package owner

import (
	"net/netip"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// AddressCommand is `berth address`.
func AddressCommand() cli.Row {
	return cli.Group("address", "Addresses of devices that are not containers: routers, VMs, printers",
		addressTakeCommand(),
		addressListCommand(),
		addressReleaseCommand())
}

const addressTakeHelp = `Takes addresses for a device that is not a container, and prints one per line. --ip
is an ADDRESS, pool (any pool, the default) or the NAME of a pool. A second run takes nothing new.

A device may have several interfaces, numbered from 0. The addresses of each are in slots: ip0, ip1 and so on
(SLOT in berth address ls --format wide). Instead of A or B you can write pool or NAME:
  --ip A --ip B       A is ip0 of interface 0, and B is ip1
  ip0=A,ip1=B         the same
  1:ip0=B             ip0 of interface 1
  -1:add,ip0=B        ip0 of one more interface
  0:modify,ip1=B      replaces ip1 with B, and leaves the other slots
  0:modify,ip1=none   releases ip1, and leaves the other slots
  0:remove            releases all addresses of interface 0

--note describes the addresses, as for reservations. An empty note removes it.`

func addressTakeCommand() cli.Row {
	var take ipam.TakeAddress
	var wishes []string
	return cli.Change{
		Verb: cli.Verb{Use: "take NETWORK --owner OWNER", Short: "Take addresses for a device that is not a container",
			Long: addressTakeHelp, SuggestFor: []string{"add", "create", "reserve"},
			Example: `  berth address take net1 --owner rtr --ip 192.0.2.12
  berth address take net1 --owner rtr --ip 0:ip0=192.0.2.12,ip1=pool,ip2=front
  berth address take net1 --owner rtr --ip 0:modify,ip1=none
  berth address take net1 --owner vm7 --subnet lan --dry-run`,
			Flags: cli.Flags{
				cli.OwnerFlag(&take.Owner, "that the addresses are taken for"),
				wishFlag(&wishes),
				cli.Flag(&take.Subnet, "subnet",
					"only addresses of this `SUBNET`, a CIDR, a name or an id").Of(cli.SubnetRefs),
				cli.Flag(&take.Force, "force", "take excluded addresses, too"),
				cli.Flag(&take.Note, "note", "a note, `TEXT`; an empty TEXT removes the note")}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			if err := cli.NeedsOwner(take.Owner); err != nil {
				return nil, err
			}
			take.Network = args[0]
			take.Interface, err = parseWishes(wishes)
			return &take, err
		},
		Said: cli.SayAddresses,
	}
}

const addressReleaseHelp = `Releases the addresses that an owner took with berth address take in a network,
and prints the owner. --ip releases only one. It is no error if it is free. Instead of network and owner you can
pass addresses, as berth address ls -q prints them.`

func addressReleaseCommand() cli.Row {
	d := ending{owners: cli.AddressOwners, whose: takenOwners,
		edit: func(network, owner string, addr netip.Addr) ipam.Edit {
			return &ipam.ReleaseAddress{Network: network, Owner: owner, Address: addr}
		}}
	return d.change("whose addresses are released", cli.Verb{Use: "release NETWORK --owner OWNER | ADDRESS...",
		Aliases: []string{"rm"}, Short: "Release addresses", Long: addressReleaseHelp,
		Example: "  berth address release net1 --owner rtr\n  berth address release net1 --owner rtr --ip 192.0.2.12"})
}

func takenOwners(r *cli.Run, network string) (all []owned, err error) {
	taken, err := r.Addresses(r, network, "")
	for _, a := range taken {
		all = append(all, owned{a.Owner, a.Address})
	}
	return all, err
}

func addressListCommand() cli.Row {
	var owner string
	return cli.Listing[ipam.TakenAddress]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List addresses of devices that are not containers",
			Long: "Lists addresses of devices (berth address take), of one network or of all. For addresses of " +
				"containers see berth lease ls. --format wide adds subnets and notes.",
			Example: `  berth address ls
  berth address ls net1 --owner rtr
  berth address ls -q`,
			Flags: cli.Flags{cli.OwnerFlag(&owner, "whose addresses to list").Of(cli.AddressOwners)}},
		Keys: cli.Fields{"network", "space", "owner",
			cli.ByProject(func(a *ipam.TakenAddress) []string { return []string{a.Owner} }), "tag"},
		Columns: cli.Fields{"Address,ref", "Address", "Owner", "Network", "Since",
			cli.Col("SLOT", func(a *ipam.TakenAddress) string { return slotText(a.Interface, a.Slot) }).Wide(),
			"Subnet,wide", "Space,wide", "Note,wide"},
		Fetch: func(r *cli.Run) ([]ipam.TakenAddress, error) {
			return r.Addresses(r, r.First(), owner)
		},
	}
}
