package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) reservationCommand() *cobra.Command {
	return group("reservation", "Reservations: addresses that belong to an owner, in use or not", p.reservationAddCommand(),
		p.reservationListCommand(), p.reservationRemoveCommand(), p.reservationReleaseCommand())
}

const reservationAddHelp = `Reserves addresses for an owner, and prints them, one a line. An endpoint of that name or MAC gets them, and nobody else. --ip
is an address, pool (one of any pool, the default), or the name of a pool; several --ip reserve several, as ip0=...,ip1=... does. What
the owner has reserved already stays as it is, so that to ask again prints the same addresses.

--replace reserves other addresses in the place of those: the old ones are kept beside them until the owner runs with the new
ones. --for is for owners that are there for a while only: when it is over, what is reserved for them is nobody's.

A refusal begins with its code, such as NetworkReservationAlreadyInUse, and says who has what.`

func (p *program) reservationAddCommand() *cobra.Command {
	var edit editing
	var add ipam.AddReservation
	var wishes []string
	var lives string
	cmd := &cobra.Command{Use: "add NETWORK --owner OWNER", Short: "Reserve addresses for an owner", Long: reservationAddHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth reservation add net1 --owner web --ip 192.0.2.11
  berth reservation add net1 --owner shop/web/1 --ip front --ip 2001:db8::11
  berth reservation add net1 --owner web --ip 192.0.2.12 --replace
  berth reservation add net1 --owner ci/build/7 --for 2h
  berth reservation add net1 --owner web --dry-run`}
	ownerFlag(cmd, &add.Owner, "that they are reserved for")
	f := cmd.Flags()
	f.StringArrayVar(&wishes, "ip", nil, "which: an address, pool, a `NAME`, or ip0=...,ip1=... (repeatable)")
	f.BoolVarP(&add.Force, "force", "f", false, "also what is excluded, and what somebody holds, for after its release")
	f.BoolVar(&add.Replace, "replace", false, "with --ip: that instead of what the owner has, which is kept until it runs with the new one")
	f.BoolVar(&add.Automatic, "automatic", false, "the addresses of --ip count as chosen by Berth, and not as static")
	f.StringVar(&lives, "for", "", "how `long` the owner lives: 2h (default: without an end)")
	completes(cmd, "ip", p.completeFlag(wishRefs))
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := errors.Join(needsOwner(cmd, add.Owner), notEmpty(cmd, "for")); err != nil {
			return err
		}
		in, err := parseWishes(wishes)
		if err == nil && in.Action != ipam.Ensure {
			err = fmt.Errorf("--ip %q changes what is there; to reserve another address in the place of one, write --ip ADDRESS --replace", wishes[0])
		}
		if err == nil && lives != "" {
			add.For, err = parseLife(lives)
		}
		if err != nil {
			return usage(cmd, err)
		}
		add.Network, add.Number, add.Wishes = args[0], in.Number, in.Wishes
		return p.edit(cmd, edit, sayAddresses, &add)
	}
	return cmd
}

// parseLife reads --for.
func parseLife(text string) (ipam.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("an owner that lives for no time has nothing")
	}
	if err != nil {
		return 0, fmt.Errorf("--for: %w", err)
	}
	return d, nil
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

const reservationReleaseHelp = `Ends all that is reserved for an owner, on whichever networks, also where the subnet is gone, and gives back what it took
with berth address take; prints the addresses. Addresses that containers have in use stay in use. It is no error where there is nothing.

--replaced ends only what was replaced (berth reservation add --replace), where the owner has its new address in use.`

func (p *program) reservationReleaseCommand() *cobra.Command {
	var edit editing
	var release ipam.ReleaseOwner
	cmd := &cobra.Command{Use: "release OWNER", Short: "End all that is reserved for an owner, on all networks", Long: reservationReleaseHelp,
		Args: takes("OWNER"), ValidArgsFunction: p.completeRefs(anyOwners),
		Example: "  berth reservation release shop/web/3\n  berth reservation release shop --under --dry-run\n  berth reservation release web --replaced"}
	cmd.Flags().BoolVar(&release.Under, "under", false, "also of all owners below it: shop/web/1 is below shop and shop/web")
	cmd.Flags().BoolVar(&release.Replaced, "replaced", false, "only what was replaced, and is not needed any more")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		release.Owner = args[0]
		return p.edit(cmd, edit, func(out ipam.Outcome) []string {
			if len(out.Results[0].Addresses) == 0 {
				fmt.Fprintf(p.err, "%s: nothing is released: %s\n", cmd.CommandPath(), nothingReleased(&release))
			}
			return sayAddresses(out)
		}, &release)
	}
	return cmd
}

// nothingReleased says why a release came to nothing.
func nothingReleased(r *ipam.ReleaseOwner) string {
	if r.Replaced {
		return fmt.Sprintf("of %s nothing was replaced, or it has the new address not in use yet", r.Owner)
	}
	return fmt.Sprintf("%s has no address by a reservation", r.Owner)
}

const reservationListHelp = `Lists reserved addresses, of one network or of all, whose they are, and who has them in use. REPLACED are those that are
kept until their owner runs with the new one, UNTIL says when a short-lived owner ends; both columns are there where some have it.`

func (p *program) reservationListCommand() *cobra.Command {
	var out output
	var owner string
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List reservations", Long: reservationListHelp, Args: mayTake("NETWORK"),
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example:           "  berth reservation ls\n  berth reservation ls net1 --owner web\n  berth reservation ls -q"}
	out.flags(cmd)
	ownerFlag(cmd, &owner, "whose are listed, and no others'")
	completes(cmd, "owner", p.completeFlag(reservationOwners))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show, err := newTable(p.out, cmd, out, nil, reservedText)
		if err != nil {
			return err
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			all, err := c.Reservations(ctx, first(args), owner)
			if err != nil {
				return err
			}
			show.columns = reservationColumns(all)
			return show.rows(all)
		})
	}
	return cmd
}

// reservationColumns are the columns of what is listed; some only where a row has something in them.
func reservationColumns(all []ipam.ReservationInfo) []column[ipam.ReservationInfo] {
	columns := []column[ipam.ReservationInfo]{
		{"ADDRESS", reservedText},
		{"OWNER", func(r *ipam.ReservationInfo) string { return r.Owner }},
		{"NETWORK", func(r *ipam.ReservationInfo) string { return r.Network }},
		{"SUBNET", func(r *ipam.ReservationInfo) string {
			if !r.Subnet.IsValid() {
				return ""
			}
			return r.Subnet.String()
		}},
		{"KIND", func(r *ipam.ReservationInfo) string { return r.Kind.String() }},
		{"SLOT", func(r *ipam.ReservationInfo) string { return slotText(r.Interface, r.Slot) }},
		{"IN USE BY", func(r *ipam.ReservationInfo) string { return userText(r) }},
		{"SINCE", func(r *ipam.ReservationInfo) string { return localTime(r.Since) }},
	}
	if slices.ContainsFunc(all, func(r ipam.ReservationInfo) bool { return r.Replaced }) {
		columns = append(columns, column[ipam.ReservationInfo]{"REPLACED", func(r *ipam.ReservationInfo) string { return yes(r.Replaced) }})
	}
	if slices.ContainsFunc(all, func(r ipam.ReservationInfo) bool { return !r.Until.IsZero() }) {
		columns = append(columns, column[ipam.ReservationInfo]{"UNTIL", func(r *ipam.ReservationInfo) string { return localTime(r.Until) }})
	}
	return columns
}

// yes is a cell that says whether; no is empty.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// reservedText is the address, which an owner on a network of the type dynamic need not have yet.
func reservedText(r *ipam.ReservationInfo) string {
	if !r.Address.IsValid() {
		return ""
	}
	return r.Address.String()
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
