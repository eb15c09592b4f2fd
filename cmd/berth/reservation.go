package main

import (
	"context"
	"fmt"
	"net/netip"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) reservationCommand() *cobra.Command {
	return group("reservation", "Reservations: addresses that belong to an owner, in use or not", p.reservationAddCommand(),
		p.reservationListCommand(), p.reservationRemoveCommand())
}

const reservationAddHelp = `Reserves addresses for an owner, and prints them, one a line. An endpoint of that name gets them, and nobody else. --ip is an
address, pool (one of any pool, the default), or the name of a pool; several --ip reserve several, as ip0=...,ip1=... does. What
the owner has reserved already stays as it is.`

func (p *program) reservationAddCommand() *cobra.Command {
	var edit editing
	var owner string
	var wishes []string
	var force bool
	cmd := &cobra.Command{Use: "add NETWORK --owner OWNER", Short: "Reserve addresses for an owner", Long: reservationAddHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth reservation add net1 --owner web --ip 192.0.2.11
  berth reservation add net1 --owner shop/web/1 --ip front --ip 2001:db8::11
  berth reservation add net1 --owner web --dry-run`}
	ownerFlag(cmd, &owner, "that they are reserved for")
	cmd.Flags().StringArrayVar(&wishes, "ip", nil, "which: an address, pool, a `NAME`, or ip0=...,ip1=... (repeatable)")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also what is excluded, and what somebody holds, for after its release")
	completes(cmd, "ip", p.completeFlag(wishRefs))
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := needsOwner(cmd, owner); err != nil {
			return err
		}
		in, err := parseWishes(wishes)
		if err == nil && in.Action != ipam.Ensure {
			err = fmt.Errorf("--ip %q changes what is there, which a reservation does not; end that one with berth reservation rm, and write ip0=ADDRESS", wishes[0])
		}
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, sayAddresses, &ipam.AddReservation{Network: args[0], Owner: owner, Number: in.Number, Wishes: in.Wishes, Force: force})
	}
	return cmd
}

const reservationRemoveHelp = `Ends the reservations of an owner in a network, or the one of --ip, and prints the owner. Addresses in use stay in use.`

func (p *program) reservationRemoveCommand() *cobra.Command {
	var edit editing
	var owner, ip string
	cmd := &cobra.Command{Use: "rm NETWORK --owner OWNER", Aliases: []string{"remove"}, Short: "End the reservations of an owner", Long: reservationRemoveHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: "  berth reservation rm net1 --owner web\n  berth reservation rm net1 --owner web --ip 192.0.2.11"}
	ownerFlag(cmd, &owner, "whose reservations end")
	completes(cmd, "owner", p.completeFlag(reservationOwners))
	cmd.Flags().StringVar(&ip, "ip", "", "only that of this `ADDRESS`")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		addr, err := ownersAddress(cmd, owner, ip)
		if err != nil {
			return err
		}
		return p.edit(cmd, edit, echo(owner), &ipam.RemoveReservation{Network: args[0], Owner: owner, Address: addr})
	}
	return cmd
}

// ownersAddress reads --owner and, where it is given, --ip of what gives back.
func ownersAddress(cmd *cobra.Command, owner, ip string) (netip.Addr, error) {
	if err := needsOwner(cmd, owner); err != nil {
		return netip.Addr{}, err
	}
	if !cmd.Flags().Changed("ip") {
		return netip.Addr{}, nil
	}
	addr, err := alloc.ParseAddr(ip)
	if err != nil {
		return netip.Addr{}, usage(cmd, fmt.Errorf("--ip: %w", err))
	}
	return addr, nil
}

func (p *program) reservationListCommand() *cobra.Command {
	var out output
	var owner string
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List reservations",
		Long: "Lists reserved addresses, of one network or of all, whose they are, and who has them in use.", Args: mayTake("NETWORK"),
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example:           "  berth reservation ls\n  berth reservation ls net1 --owner web\n  berth reservation ls -q"}
	out.flags(cmd)
	ownerFlag(cmd, &owner, "whose are listed, and no others'")
	completes(cmd, "owner", p.completeFlag(reservationOwners))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return list(p, cmd, out, reservationColumns(), func(r *ipam.ReservationInfo) string { return r.Address.String() },
			func(ctx context.Context, c *admin.Client) ([]ipam.ReservationInfo, error) {
				return c.Reservations(ctx, first(args), owner)
			})
	}
	return cmd
}

func reservationColumns() []column[ipam.ReservationInfo] {
	return []column[ipam.ReservationInfo]{
		{"ADDRESS", func(r *ipam.ReservationInfo) string { return r.Address.String() }},
		{"OWNER", func(r *ipam.ReservationInfo) string { return r.Owner }},
		{"NETWORK", func(r *ipam.ReservationInfo) string { return r.Network }},
		{"SUBNET", func(r *ipam.ReservationInfo) string { return r.Subnet.String() }},
		{"KIND", func(r *ipam.ReservationInfo) string { return r.Kind.String() }},
		{"SLOT", func(r *ipam.ReservationInfo) string { return slotText(r.Interface, r.Slot) }},
		{"IN USE BY", func(r *ipam.ReservationInfo) string { return userText(r) }},
		{"SINCE", func(r *ipam.ReservationInfo) string { return localTime(r.Since) }},
	}
}

// userText says who has a reserved address in use, and where.
func userText(r *ipam.ReservationInfo) string {
	switch {
	case !r.InUse:
		return ""
	case r.Endpoint == "":
		return "somebody on " + r.Host
	case r.Host == "":
		return r.Endpoint
	}
	return r.Endpoint + " on " + r.Host
}

// slotText is a place among the addresses of an owner, as --ip writes it.
func slotText(nic, slot int) string { return fmt.Sprintf("%d:ip%d", nic, slot) }
