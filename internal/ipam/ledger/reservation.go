package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// Picked is an address that may be taken: where it is, and its record.
type Picked struct {
	Sub    *ipam.Subnet
	Addr   netip.Addr
	Record *ipam.Lease // as it was read; nil: none
}

// ReservationFacts is what events tell of a reservation.
type ReservationFacts struct {
	Owner string    `json:"owner"`
	Kind  ipam.Kind `json:"kind"`
	Slot  string    `json:"slot"`
	ipam.Terms
}

// FactsOf are those of a reservation.
func FactsOf(r *ipam.Reservation) ReservationFacts {
	return ReservationFacts{r.Owner, r.Kind, r.Slot.String(), r.Terms}
}

// DynamicFacts is what events tell of an owner in a dynamic network.
func DynamicFacts(owner string, terms ipam.Terms) ReservationFacts {
	return ReservationFacts{Owner: owner, Kind: ipam.Automatic, Terms: terms}
}

// EndReservation makes an address nobody's, and why tells the reason, where it is not that somebody asked for it. Who
// has it in use keeps it. It is the one way in which a reservation ends, also that of an address whose subnet is gone
// (BO-12).
func EndReservation(c *Change, at Picked, why string) error {
	r := at.Record.Reservation
	if err := TellOwner(c, &ipam.Event{Verb: ipam.ReservationRemoved, Address: at.Addr, Name: r.Owner, Detail: why}, at,
		FactsOf(r),
		nil); err != nil {
		return err
	}
	return c.SetLease(at.Sub.ID, at.Addr, at.Record, at.Record.WithReservation(at.Addr, nil))
}

// TellOwner writes the event of a change that is about an owner's address.
func TellOwner(c *Change, e *ipam.Event, at Picked, before, after any) error {
	e.Subnet = at.Sub.CIDR
	if n := c.Index().Network(at.Sub.Network); n != nil {
		_, err := (&NetworkPlan{c, n}).Tell(e, before, after)
		return err
	}
	var err error
	e.Space = at.Sub.Space
	if e.Before, err = rawJSON(before); err != nil {
		return err
	}
	_, err = c.Event(e)
	return err
}
