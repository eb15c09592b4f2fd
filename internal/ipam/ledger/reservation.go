package ledger

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Picked is an address that may be taken: its subnet and its record.
type Picked struct {
	Sub    *ipam.Subnet
	Addr   netip.Addr
	Record *ipam.Lease // as it was read; nil: none
}

// ReservationFacts is the part of a reservation that its events record.
type ReservationFacts struct {
	Owner string    `json:"owner"`
	Kind  ipam.Kind `json:"kind"`
	Slot  string    `json:"slot"`
	ipam.Terms
}

// FactsOf returns the facts of a reservation.
func FactsOf(r *ipam.Reservation) ReservationFacts {
	return ReservationFacts{r.Owner, r.Kind, r.Slot.String(), r.Terms}
}

// DynamicFacts returns the facts of an owner in a dynamic network.
func DynamicFacts(owner string, terms ipam.Terms) ReservationFacts {
	return ReservationFacts{Owner: owner, Kind: ipam.Automatic, Terms: terms}
}

// EndReservation removes an address's reservation. why is the reason for the event, empty if a person asked for it. A
// holder keeps the address. Every reservation ends here, also one whose subnet was removed.
func EndReservation(c *Change, at Picked, why string) error {
	r := at.Record.Reservation
	if err := TellOwner(c, &ipam.Event{Verb: ipam.ReservationRemoved, Address: at.Addr, Name: r.Owner, Detail: why}, at,
		FactsOf(r),
		nil); err != nil {
		return err
	}
	return c.SetLease(at.Sub.ID, at.Addr, at.Record, at.Record.WithReservation(at.Addr, nil))
}

// TellOwner writes the event of a change of an owner's address.
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

// DynamicOwner is the record of an owner in a dynamic network, where another system chooses the addresses. It makes the
// owner known there under any address.
type DynamicOwner struct {
	ID uint64 `json:"id"` // of the event that created it
	ipam.Terms
}

// KnownOwner is an owner of a dynamic network.
type KnownOwner struct {
	Owner string
	DynamicOwner
}

// ReadOwners reads the owners in a dynamic network, by name.
func ReadOwners(tx store.Tx, network ipam.ID) ([]KnownOwner, error) {
	prefix := OwnerKey(network, "")
	var all []KnownOwner
	for one, err := range EachJSON[DynamicOwner](tx, store.Prefix(prefix), "an owner") {
		if err != nil {
			return nil, err
		}
		all = append(all, KnownOwner{string(one.Key[len(prefix):]), *one.Value})
	}
	return all, nil
}

// loadOwners notes the ends of owners in dynamic networks.
func loadOwners(ix *Index, tx store.Tx) error {
	for id, nx := range ix.networks {
		if nx.record.Value == nil || nx.record.Value.Type != ipam.Dynamic {
			continue
		}
		known, err := ReadOwners(tx, id)
		if err != nil {
			return err
		}
		for _, one := range known {
			ix.ends.add(Ending{Network: id, Owner: one.Owner}, one.Until)
		}
	}
	return nil
}

// SetOwner writes an owner of a dynamic network, or removes it if record is nil.
func (c *Change) SetOwner(network ipam.ID, owner string, record *DynamicOwner) error {
	if _, err := setJSON(c, OwnerKey(network, owner), record); err != nil {
		return err
	}
	var until time.Time
	if record != nil {
		until = record.Until
	}
	c.setEnding(network, owner, until)
	return nil
}
