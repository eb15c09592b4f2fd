package owner

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const reservationMoveHelp = `Moves the reservation of an address to another owner, in one transaction, and prints the
address. The note and the end of the reservation stay. ADDRESS is as berth reservation ls -q prints it: an
address of the space local, or NETWORK/ADDRESS.

If the old owner runs with the address, the command refuses. --force moves the reservation anyway: the old owner
keeps the address until it stops. If the new owner has another reservation in the network, the command refuses.
--replace replaces that reservation: the new owner keeps it until it runs with ADDRESS.`

func reservationMoveCommand() cli.Row {
	var to string
	add := ipam.AddReservation{}
	return cli.Change{
		Verb: cli.Verb{Use: "move ADDRESS --to OWNER", Short: "Move a reservation to another owner",
			Long: reservationMoveHelp, SuggestFor: []string{"mv", "transfer"}, Refs: []cli.Refs{reservedRefs},
			Example: `  berth reservation move 192.0.2.11 --to web2
  berth reservation move net1/192.0.2.11 --to shop/web/2 --dry-run`,
			Flags: cli.Flags{
				cli.Flag(&to, "to", "the new `OWNER`: a name, project/service/1, or a MAC").Of(cli.AnyOwners),
				cli.Flag(&add.Force, "force", "also a held address, which the new owner gets after its release"),
				cli.Flag(&add.Replace, "replace", "replace the new owner's other reservation in the network")},
			Check: func(r *cli.Run) error {
				if to == "" {
					return errors.New("--to is missing: it names the new owner")
				}
				return ipam.CheckOwner(to)
			}},
		Make: func(e *cli.Editor) error {
			places, err := e.Places()
			if err != nil {
				return err
			}
			from, err := reservationAt(e.Run, places[0])
			if err != nil {
				return err
			}
			add.Network, add.Owner, add.Automatic = places[0].Network, to, from.Kind == ipam.Automatic
			add.Wishes = []ipam.Wish{{Address: from.Address}}
			add.Until, add.Note = from.Until, &from.Note
			return e.Make(cli.Echo(from.Address.String()),
				&ipam.RemoveReservation{Network: add.Network, Owner: from.Owner, Address: from.Address}, &add)
		},
	}
}

// reservedRefs completes reserved addresses, with their owners.
func reservedRefs(r *cli.Run, _ string) (refs []string, err error) {
	all, err := r.Reservations(r, "", "")
	for i := range all {
		if all[i].Address.IsValid() {
			refs = append(refs, reservationRef(&all[i])+"\t"+all[i].Owner)
		}
	}
	return refs, err
}

// reservationAt returns the reservation of an address in a network.
func reservationAt(r *cli.Run, at cli.Place) (ipam.ReservationInfo, error) {
	all, err := r.Reservations(r, at.Network, "")
	if err != nil {
		return ipam.ReservationInfo{}, err
	}
	addr, _ := netip.ParseAddr(at.Thing)
	i := slices.IndexFunc(all, func(one ipam.ReservationInfo) bool { return addr.IsValid() && one.Address == addr })
	if i < 0 {
		return ipam.ReservationInfo{}, fmt.Errorf("%s is not reserved; `berth reservation ls` lists the reservations",
			at.Thing)
	}
	return all[i], nil
}
