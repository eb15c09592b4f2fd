package main

import (
	"context"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) addressCommand() *cobra.Command {
	return group("address", "Addresses of what is no container: a router, a VM, a printer", p.addressTakeCommand(), p.addressListCommand(),
		p.addressReleaseCommand())
}

const addressTakeHelp = `Takes addresses for what is no container, and prints them, one a line. --ip says which:
  ADDRESS, pool or NAME        this one; one of any pool (the default); one of the pools of that name
  ip0=...,ip1=...              several of one interface, which is 0, or N with N: in front; ip is ip0
  -1:add,ip0=...               a further interface
  N:modify,ip1=ADDRESS         only that one is changed; ip1=none gives it back
  N:remove                     gives all of the interface back
Asked again, it takes nothing twice. Several --ip are ip0, ip1 and so on of the interface 0.`

func (p *program) addressTakeCommand() *cobra.Command {
	var edit editing
	var owner, subnet string
	var wishes []string
	var force bool
	cmd := &cobra.Command{Use: "take NETWORK --owner OWNER", Short: "Take addresses for what is no container", Long: addressTakeHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth address take net1 --owner rtr --ip 192.0.2.12
  berth address take net1 --owner rtr --ip 0:ip0=192.0.2.12,ip1=pool,ip2=front
  berth address take net1 --owner rtr --ip 0:modify,ip1=none
  berth address take net1 --owner vm7 --subnet lan --dry-run`}
	ownerFlag(cmd, &owner, "that they are taken for")
	cmd.Flags().StringArrayVar(&wishes, "ip", nil, "which: an address, pool, a `NAME`, or ip0=...,ip1=... (repeatable)")
	cmd.Flags().StringVar(&subnet, "subnet", "", "only of this `SUBNET`, a CIDR, a name or an id")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also what is excluded")
	completes(cmd, "subnet", p.completeFlag(subnetRefs))
	completes(cmd, "ip", p.completeFlag(wishRefs))
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := needsOwner(cmd, owner); err != nil {
			return err
		}
		in, err := parseWishes(wishes)
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, sayAddresses, &ipam.TakeAddress{Network: args[0], Subnet: subnet, Owner: owner, Interface: in, Force: force})
	}
	return cmd
}

const addressReleaseHelp = `Gives back what berth address take has taken for an owner in a network, all or the one of --ip, and prints the owner. What is
free already is no error.`

func (p *program) addressReleaseCommand() *cobra.Command {
	var edit editing
	var owner, ip string
	cmd := &cobra.Command{Use: "release NETWORK --owner OWNER", Aliases: []string{"rm"}, Short: "Give addresses back", Long: addressReleaseHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: "  berth address release net1 --owner rtr\n  berth address release net1 --owner rtr --ip 192.0.2.12"}
	ownerFlag(cmd, &owner, "whose are given back")
	completes(cmd, "owner", p.completeFlag(addressOwners))
	cmd.Flags().StringVar(&ip, "ip", "", "only this `ADDRESS`")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		addr, err := ownersAddress(cmd, owner, ip)
		if err != nil {
			return err
		}
		return p.edit(cmd, edit, echo(owner), &ipam.ReleaseAddress{Network: args[0], Owner: owner, Address: addr})
	}
	return cmd
}

func (p *program) addressListCommand() *cobra.Command {
	var out output
	var owner string
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List addresses that were taken for what is no container",
		Long: "Lists what berth address take has taken, of one network or of all. Containers' addresses are in berth lease ls.",
		Args: mayTake("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: "  berth address ls\n  berth address ls net1 --owner rtr\n  berth address ls -q"}
	out.flags(cmd)
	ownerFlag(cmd, &owner, "whose are listed, and no others'")
	completes(cmd, "owner", p.completeFlag(addressOwners))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return list(p, cmd, out, addressColumns(), func(a *ipam.TakenAddress) string { return a.Address.String() },
			func(ctx context.Context, c *admin.Client) ([]ipam.TakenAddress, error) {
				return c.Addresses(ctx, first(args), owner)
			})
	}
	return cmd
}

func addressColumns() []column[ipam.TakenAddress] {
	return []column[ipam.TakenAddress]{
		{"ADDRESS", func(a *ipam.TakenAddress) string { return a.Address.String() }},
		{"OWNER", func(a *ipam.TakenAddress) string { return a.Owner }},
		{"NETWORK", func(a *ipam.TakenAddress) string { return a.Network }},
		{"SUBNET", func(a *ipam.TakenAddress) string { return a.Subnet.String() }},
		{"SLOT", func(a *ipam.TakenAddress) string { return slotText(a.Interface, a.Slot) }},
		{"SINCE", func(a *ipam.TakenAddress) string { return localTime(a.Since) }},
	}
}
