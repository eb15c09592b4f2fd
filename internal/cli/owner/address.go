package owner

import (
	"context"
	"net/netip"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// AddressCommand is `berth address`.
func AddressCommand(p *cli.Program) *cobra.Command {
	return cli.Group("address", "Addresses of devices that are not containers: routers, VMs, printers",
		addressTakeCommand(p),
		addressListCommand(p),
		addressReleaseCommand(p))
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

func addressTakeCommand(p *cli.Program) *cobra.Command {
	var take ipam.TakeAddress
	var wishes []string
	var note string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "take NETWORK --owner OWNER", Short: "Take addresses for a device that is not a container",
			Long: addressTakeHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth address take net1 --owner rtr --ip 192.0.2.12
  berth address take net1 --owner rtr --ip 0:ip0=192.0.2.12,ip1=pool,ip2=front
  berth address take net1 --owner rtr --ip 0:modify,ip1=none
  berth address take net1 --owner vm7 --subnet lan --dry-run`},
		Edits: func(cmd *cobra.Command, args []string) (_ []ipam.Edit, err error) {
			if err := cli.NeedsOwner(cmd, take.Owner); err != nil {
				return nil, err
			}
			if cmd.Flags().Changed("note") {
				take.Note = &note
			}
			take.Network = args[0]
			take.Interface, err = parseWishes(wishes)
			return cli.One(&take, err)
		},
		Said: cli.SayAddresses,
	}.Command(p)
	cli.OwnerFlag(cmd, &take.Owner, "that the addresses are taken for")
	cmd.Flags().StringArrayVar(&wishes, "ip", nil,
		"which: an address, pool, the `NAME` of a pool, or ip0=...,ip1=... (repeatable)")
	cmd.Flags().StringVar(&take.Subnet, "subnet", "", "only of this `SUBNET`, a CIDR, a name or an id")
	cmd.Flags().BoolVar(&take.Force, "force", false, "also excluded addresses")
	cmd.Flags().StringVar(&note, "note", "", "a note, `TEXT`; an empty one removes it")
	cmd.SuggestFor = []string{"add", "create", "reserve"}
	cli.Completes(cmd, "subnet", p.CompleteFlag(cli.SubnetRefs))
	cli.Completes(cmd, "ip", p.CompleteFlag(wishRefs))
	return cmd
}

const addressReleaseHelp = `Releases the addresses that an owner took with berth address take in a network,
and prints the owner. --ip releases only one. A free address is no error. Instead of network and owner you can
pass addresses, as berth address ls -q prints them.`

func addressReleaseCommand(p *cli.Program) *cobra.Command {
	verb := cli.Verb{Use: "release NETWORK --owner OWNER | ADDRESS...", Aliases: []string{"rm"},
		Short:   "Release addresses",
		Long:    addressReleaseHelp,
		Example: "  berth address release net1 --owner rtr\n  berth address release net1 --owner rtr --ip 192.0.2.12"}
	return endCommand(p, verb, cli.AddressOwners, "whose addresses are given back", takenOwners,
		func(network, owner string, addr netip.Addr) ipam.Edit {
			return &ipam.ReleaseAddress{Network: network, Owner: owner, Address: addr}
		})
}

func takenOwners(ctx context.Context, c *client.Client, network string) (all []owned, err error) {
	taken, err := c.Addresses(ctx, network, "")
	for _, a := range taken {
		all = append(all, owned{a.Owner, a.Address})
	}
	return all, err
}

func addressListCommand(p *cli.Program) *cobra.Command {
	var owner string
	cmd := cli.Listing[ipam.TakenAddress]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List addresses of devices that are not containers",
			Long: "Lists addresses of devices (berth address take), of one network or of all. For addresses of " +
				"containers see berth lease ls. --format wide adds subnets and notes.",
			Refs: []cli.Refs{cli.NetworkRefs}, Example: "  berth address ls\n  berth address ls net1 --owner rtr\n" +
				"  berth address ls -q"},
		Keys:    addressKeys(),
		Columns: func(cli.Output) []cli.Column[ipam.TakenAddress] { return addressColumns() },
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.TakenAddress, error) {
			return c.Addresses(ctx, cli.First(args), owner)
		},
	}.Command(p)
	cli.OwnerFlag(cmd, &owner, "whose addresses are listed, and no others")
	cli.Completes(cmd, "owner", p.CompleteFlag(cli.AddressOwners))
	return cmd
}

func addressKeys() []cli.Key[ipam.TakenAddress] {
	return []cli.Key[ipam.TakenAddress]{
		cli.ByNetwork(func(a *ipam.TakenAddress) string { return a.Network },
			func(a *ipam.TakenAddress) ipam.ID { return a.NetworkID }),
		cli.By(cli.KeySpace, func(a *ipam.TakenAddress) string { return a.Space }),
		cli.By(cli.KeyOwner, func(a *ipam.TakenAddress) string { return a.Owner }),
		cli.ByTagOf(func(a *ipam.TakenAddress) ipam.ID { return a.NetworkID }),
	}
}

func addressColumns() []cli.Column[ipam.TakenAddress] {
	return []cli.Column[ipam.TakenAddress]{
		cli.RefCol(func(a *ipam.TakenAddress) string { return cli.Ref(a.Space, a.Network, a.Address.String()) }),
		cli.Col("ADDRESS", func(a *ipam.TakenAddress) string { return a.Address.String() }),
		cli.Col("OWNER", func(a *ipam.TakenAddress) string { return a.Owner }),
		cli.Col("NETWORK", func(a *ipam.TakenAddress) string { return a.Network }),
		cli.Col("SINCE", func(a *ipam.TakenAddress) string { return cli.ShortTime(a.Since) }),
		cli.WideCol("SLOT", func(a *ipam.TakenAddress) string { return slotText(a.Interface, a.Slot) }),
		cli.WideCol("SUBNET", func(a *ipam.TakenAddress) string { return a.Subnet.String() }),
		cli.WideCol("SPACE", func(a *ipam.TakenAddress) string { return a.Space }),
		cli.WideCol("NOTE", func(a *ipam.TakenAddress) string { return a.Note }),
	}
}
