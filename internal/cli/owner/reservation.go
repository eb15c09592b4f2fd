// Package owner has the commands for owners: reservations, addresses of devices, and `ip`, which prints an owner's
// addresses one a line, or as variables for a shell. A script that repeats a request gets the same answer.
//
// reservation.go and address.go turn the addresses that --ip asks for (wish.go) into edits. ip.go finds the network and
// prints the addresses in order: reservations, or leases if there are none.
package owner

import (
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// ReservationCommand is `berth reservation`.
func ReservationCommand() cli.Row {
	return cli.Group("reservation", "Reservations: addresses that belong to an owner, held or not",
		reservationAddCommand(),
		reservationListCommand(), reservationMoveCommand(), reservationRemoveCommand())
}

const reservationAddHelp = `Reserves addresses for an owner, and prints them, one per line. Only an endpoint of
that name or MAC gets them. A MAC works only if the driver asks for MACs (berth serve --mac-socket). --ip is
an address, the name of a pool, or the word pool for any pool (the default). Repeat --ip, or use
ip0=...,ip1=..., for several addresses. Existing reservations stay, so a second run prints the same addresses.

--note describes the reservation in one line of at most 200 characters; berth reservation ls --format wide
shows it. Run the command again with the same --ip to replace the note; an empty note removes it.

--replace reserves other addresses; the owner keeps the old ones until it runs with the new ones. --for ends
the reservations after that time.

If somebody else has an address, the error names the holder.`

func reservationAddCommand() cli.Row {
	var add ipam.AddReservation
	var wishes []string
	var lives string
	return cli.Change{
		Verb: cli.Verb{Use: "add NETWORK --owner OWNER", Short: "Reserve addresses for an owner",
			Long: reservationAddHelp,
			Example: `  berth reservation add net1 --owner web --ip 192.0.2.11
  berth reservation add net1 --owner shop/web/1 --ip front --ip 2001:db8::11
  berth reservation add net1 --owner web --ip 192.0.2.12 --replace
  berth reservation add net1 --owner ci/build/7 --for 2h
  berth reservation add net1 --owner web --ip 192.0.2.11 --note 'behind the proxy'
  berth reservation add net1 --owner web --dry-run`,
			Flags: cli.Flags{
				cli.OwnerFlag(&add.Owner, "that the addresses are reserved for"),
				wishFlag(&wishes),
				cli.Flag(&add.Force, "force",
					"also reserve excluded addresses, and held ones for after their release"),
				cli.Flag(&add.Replace, "replace",
					"with --ip: replace the owner's reservations once it runs with the new "+
						"address"),
				cli.Flag(&add.Automatic, "automatic",
					"count the addresses of --ip as chosen by Berth, not as static"),
				cli.Flag(&lives, "for",
					"end the reservations after this `duration`, such as 2h (default: never)").Filled(),
				cli.Flag(&add.Note, "note", "a note, `TEXT`; an empty TEXT removes the note")}},
		Edit: func(args []string) (ipam.Edit, error) {
			if err := cli.NeedsOwner(add.Owner); err != nil {
				return nil, err
			}
			add.Network = args[0]
			return &add, readReservation(&add, wishes, lives)
		},
		Said: cli.SayAddresses,
		Then: func(r *cli.Run) {
			if _, err := ipam.ParseMAC(add.Owner); err == nil {
				r.Note("%s", needsMACs)
			}
		},
	}
}

// readReservation parses --ip and --for.
func readReservation(add *ipam.AddReservation, wishes []string, lives string) error {
	in, err := parseWishes(wishes)
	if err != nil {
		return err
	}
	if in.Action != ipam.Ensure {
		return fmt.Errorf("--ip %q changes an interface; to replace a reserved address, write --ip ADDRESS --replace",
			wishes[0])
	}
	add.Number, add.Wishes = in.Number, in.Wishes
	if lives != "" {
		add.For, err = parseLife(lives)
	}
	return err
}

// needsMACs is the note for a reservation for a MAC. The engine sends MACs only to a driver that asks for them.
const needsMACs = "Berth knows MACs only on Docker networks whose driver asks for MACs: " +
	"--ipam-driver berth-mac (berth serve --mac-socket), or a plugin with BERTH_ASK_MAC=true"

// parseLife parses --for.
func parseLife(text string) (ipam.Duration, error) {
	d, err := cli.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("it must be longer than zero")
	}
	if err != nil {
		return 0, fmt.Errorf("--for: %w", err)
	}
	return d, nil
}

const reservationRemoveHelp = `Ends the reservations of an owner in a network (with --ip only that of the address),
and prints the owner. Held addresses stay with their holders. Instead of network and owner you can pass addresses, as
berth reservation ls -q prints them.

--everywhere ends all reservations of an owner, also in removed subnets, releases the addresses that were taken
for the owner with berth address take, and prints all these addresses. It is no error if there are none.
--under includes all owners below it. --replaced ends only replaced reservations (berth reservation add --replace) of owners that
hold their new address.`

func reservationRemoveCommand() cli.Row {
	var all ipam.ReleaseOwner
	var everywhere bool
	d := ending{owners: cli.ReservationOwners, whose: reservedOwners,
		edit: func(network, owner string, addr netip.Addr) ipam.Edit {
			return &ipam.RemoveReservation{Network: network, Owner: owner, Address: addr}
		}}
	change := d.change("whose reservations end", cli.Verb{
		Use: "rm NETWORK --owner OWNER | ADDRESS...", Short: "End the reservations of an owner",
		Long: reservationRemoveHelp,
		Example: `  berth reservation rm net1 --owner web
  berth reservation rm net1 --owner web --ip 192.0.2.11
  berth reservation rm --owner shop/web/3 --everywhere
  berth reservation rm --owner shop --everywhere --under --dry-run
  berth reservation rm --owner web --everywhere --replaced`})
	change.Flags = append(change.Flags,
		cli.Flag(&everywhere, "everywhere", "with --owner: on all networks, and release its other addresses"),
		cli.Flag(&all.Under, "under",
			"with --everywhere: also of all owners below it; shop/web/1 is below shop and "+
				"shop/web"),
		cli.Flag(&all.Replaced, "replaced",
			"with --everywhere: only replaced reservations that are no longer needed"))
	here := change
	change.Args = func(r *cli.Run) error {
		switch {
		case everywhere:
			return cli.NoArgs(r)
		case all.Under || all.Replaced:
			return r.Usagef("--under and --replaced need --everywhere")
		}
		return here.Args(r)
	}
	change.Check = func(r *cli.Run) error {
		if everywhere {
			return cli.NeedsOwner(d.owner)
		}
		return here.Check(r)
	}
	change.Make = func(e *cli.Editor) error {
		if !everywhere {
			return here.Make(e)
		}
		all.Owner = d.owner
		return e.Make(func(out ipam.Outcome) []string {
			if len(out.Results[0].Addresses) == 0 {
				e.Note("nothing has ended: %s", nothingEnded(&all))
			}
			return cli.SayAddresses(out)
		}, &all)
	}
	return change
}

// nothingEnded explains why none of an owner's reservations ended.
func nothingEnded(r *ipam.ReleaseOwner) string {
	if r.Replaced {
		return fmt.Sprintf("%s has no replaced reservation, or does not use the new address yet", r.Owner)
	}
	return fmt.Sprintf("%s has no reserved address", r.Owner)
}

func reservedOwners(r *cli.Run, network string) (all []owned, err error) {
	reserved, err := r.Reservations(r, network, "")
	for _, one := range reserved {
		all = append(all, owned{one.Owner, one.Address})
	}
	return all, err
}

const reservationListHelp = `Lists the reserved addresses of one network or of all, with their owners and
holders (IN USE BY). STATE is held, taken (somebody else holds it), idle (nobody holds it) or replaced (kept
until the owner runs with the new address). On a network with DHCP the address comes from the server. --format wide adds
the host, the end of the reservation (UNTIL) and the notes.`

func reservationListCommand() cli.Row {
	var owner string
	return cli.Listing[ipam.ReservationInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List reservations", Long: reservationListHelp,
			Example: "  berth reservation ls\n  berth reservation ls net1 --owner web\n  berth reservation ls -q",
			Flags: cli.Flags{cli.OwnerFlag(&owner, "whose reservations to list").
				Of(cli.ReservationOwners)}},
		Keys: cli.Fields{"network", "space", "host", "owner",
			cli.ByProject(func(r *ipam.ReservationInfo) []string { return []string{r.Owner} }), "tag",
			cli.Choice("kind", ipam.Static.String(), ipam.Automatic.String()),
			cli.By("state", reservationState, stateHeld, stateTaken, stateIdle, stateReplaced)},
		Columns: cli.Fields{cli.RefCol(reservationRef), cli.Col("ADDRESS", reservedText), "Owner", "Network",
			cli.Col("STATE", reservationState).Marked(), cli.Col("IN USE BY", userText).AtMost(userShown),
			"Host,wide", "Subnet,wide", "Space,wide", "Kind,wide",
			cli.Col("SLOT", func(r *ipam.ReservationInfo) string { return slotText(r.Interface, r.Slot) }).Wide(),
			"MAC,wide", "Since,wide", "Until,wide", "Note,wide"},
		Fetch: func(r *cli.Run) ([]ipam.ReservationInfo, error) {
			return r.Reservations(r, r.First(), owner)
		},
	}
}

// The states of reservations.
const (
	stateHeld     = "held"
	stateTaken    = "taken"
	stateIdle     = "idle"
	stateReplaced = "replaced"
)

func reservationState(r *ipam.ReservationInfo) string {
	switch {
	case r.Replaced:
		return stateReplaced
	case r.Taken:
		return stateTaken
	case r.InUse:
		return stateHeld
	}
	return stateIdle
}

// reservationRef returns the argument of berth reservation rm. It has the owner instead of the address if there is
// none, as in a dynamic network.
func reservationRef(r *ipam.ReservationInfo) string {
	if !r.Address.IsValid() {
		return r.Network + "/" + r.Owner
	}
	return cli.Ref(r.Space, r.Network, r.Address.String())
}

// reservedText returns the address. On a dynamic network that is the one from the DHCP server, if there is one yet.
func reservedText(r *ipam.ReservationInfo) string {
	switch {
	case r.Address.IsValid():
		return r.Address.String()
	case r.Leased.IsValid():
		return r.Leased.String()
	}
	return ""
}

// userShown is the width of the user column, so that a row fits into 80 columns.
const userShown = 19

// userText returns who uses a reserved address.
func userText(r *ipam.ReservationInfo) string {
	switch {
	case !r.InUse:
		return ""
	case r.Endpoint == "":
		return "somebody"
	case r.Taken:
		return "taken by " + r.Endpoint
	}
	return r.Endpoint
}

// slotText formats an owner's interface and slot as --ip does.
func slotText(nic, slot int) string { return fmt.Sprintf("%d:ip%d", nic, slot) }
