package pin

import (
	"context"
	"fmt"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

const unpinHelp = `Undoes berth pin: the containers no longer request an address, and their reservations end
unless you give --keep-reservation. This also removes addresses that docker run --ip or Compose configured. It does
not change a container that requests no address, nor its reservation.

A running container loses its network for a moment, and may get another address: engines before v29 do not
name the container that asks. Without --yes the command asks first.`

// UnpinCommand is `berth unpin`.
func UnpinCommand() cli.Row {
	var flags pinFlags
	return cli.Verb{Args: anyArgs, Use: "unpin CONTAINER... | --network NETWORK | --project PROJECT",
		Short: "Undo berth pin", Long: unpinHelp,
		Example: `  berth unpin web
  berth unpin --project shop --dry-run
  berth unpin --network front --keep-reservation --yes`,
		Any: cli.ContainerRefs,
		Flags: append(flags.flags(),
			cli.Flag(&flags.keep, "keep-reservation", "keep the reservations of the containers' owners")),
		Check: flags.fit,
		Run:   func(r *cli.Run) error { return withPins(r, &flags, (*pinRun).unpin) }}
}

// unpin ends the reservations of one endpoint after the other, and makes it ask for no address.
func (r *pinRun) unpin() error {
	asks := func(place *pin.Pin) bool { return len(place.Asked) > 0 }
	endpoints, err := r.endpoints(asks, func(place *pin.Pin) string {
		if !asks(place) {
			return ""
		}
		return place.Unsettled()
	})
	if err != nil {
		return err
	}
	if r.flags.dryRun {
		return r.sayEach(r.wouldUnpin)
	}
	cut := func(place *pin.Pin) bool { return asks(place) && place.Runs() }
	if err := r.ask(cut, "They may have other addresses afterwards. Unpin them?"); err != nil {
		return err
	}
	for i := range r.pins {
		place := &r.pins[i]
		said := "is not pinned"
		if asks(place) {
			moved, err := r.move(i, endpoints[i], false)
			if err != nil {
				return err
			}
			said = "is not pinned any more" + cutText(place, moved)
			if len(moved.Addresses) > 0 {
				said += "; it has " + joinAddrs(moved.Addresses) + " now"
			}
		}
		if err := r.say(place, said); err != nil {
			return err
		}
	}
	return nil
}

func (r *pinRun) wouldUnpin(place *pin.Pin) string {
	switch {
	case len(place.Asked) == 0:
		return "is not pinned"
	case place.Runs():
		return "would no longer be pinned, and the container would be cut off for a moment"
	}
	return "would no longer be pinned; the container is not running"
}

// endReservations ends the reservations of the addresses that a container asked for.
func (r *pinRun) endReservations(place *pin.Pin) error {
	if r.flags.keep || len(place.Reservation) == 0 {
		return nil
	}
	edits := make([]ipam.Edit, len(place.Reservation))
	for i, kept := range place.Reservation {
		edits[i] = &ipam.RemoveReservation{Network: kept.NetworkID.String(), Owner: kept.Owner, Address: kept.Address}
	}
	if _, err := r.Edit(context.WithoutCancel(r), client.EditOptions{}, edits...); err != nil {
		return fmt.Errorf("cannot end the reservations of %s: %w", place.Container, err)
	}
	return nil
}
