package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// reservationFacts is what events tell of a reservation.
type reservationFacts struct {
	Owner    string    `json:"owner"`
	Kind     Kind      `json:"kind"`
	Slot     string    `json:"slot"`
	Replaced bool      `json:"replaced,omitempty"`
	Until    time.Time `json:"until,omitzero"`
}

func (r *Reservation) facts() reservationFacts {
	return reservationFacts{r.Owner, r.Kind, r.Slot.String(), r.Replaced, r.Until}
}

// writeReservation makes an address the owner's.
func (p *plan) writeReservation(at picked, r *Reservation) (err error) {
	e := &Event{Verb: ReservationAdded, Subnet: at.sub.CIDR, Address: at.addr, Name: r.Owner, Detail: r.Kind.String()}
	if r.ID, err = p.tell(e, nil, r.facts()); err != nil {
		return err
	}
	return p.setLease(at.sub.ID, at.addr, at.record, at.record.withReservation(at.addr, r))
}

// changeReservation makes a reservation another of the same address and owner.
func (c *change) changeReservation(at picked, r Reservation) error {
	before := at.record.Reservation
	if *before == r {
		return nil
	}
	e := &Event{Verb: ReservationModified, Address: at.addr, Name: r.Owner, Detail: r.Kind.String()}
	if err := c.tellOwner(e, at, before.facts(), r.facts()); err != nil {
		return err
	}
	return c.setLease(at.sub.ID, at.addr, at.record, at.record.withReservation(at.addr, &r))
}

// endReservation makes an address nobody's, and why tells the reason, where it is not that somebody asked for it. Who has it in
// use keeps it. It is the one way in which a reservation ends, also that of an address whose subnet is gone (BO-12).
func (c *change) endReservation(at picked, why string) error {
	r := at.record.Reservation
	if err := c.tellOwner(&Event{Verb: ReservationRemoved, Address: at.addr, Name: r.Owner, Detail: why}, at, r.facts(), nil); err != nil {
		return err
	}
	return c.setLease(at.sub.ID, at.addr, at.record, at.record.withReservation(at.addr, nil))
}

// tellOwner writes the event of a change that is about an owner's address.
func (c *change) tellOwner(e *Event, at picked, before, after any) error {
	e.Subnet = at.sub.CIDR
	if n := c.ix.network(at.sub.Network); n != nil {
		_, err := (&plan{c, n}).tell(e, before, after)
		return err
	}
	var err error
	e.Space = at.sub.Space
	if e.Before, err = rawJSON(before); err != nil {
		return err
	}
	_, err = c.event(e)
	return err
}

// ownedSlots are what is reserved for an owner in a network: what is wanted, by slot, and what was replaced and is kept for a
// while (BO-13).
type ownedSlots struct {
	wanted   map[Slot]picked
	replaced []picked // in the order of subnets
}

// owned reads what is reserved for an owner in the network.
func (p *plan) owned(owner string) (ownedSlots, error) {
	all := ownedSlots{wanted: map[Slot]picked{}}
	nx := p.ix.networks[p.n.ID]
	if nx == nil {
		return all, nil
	}
	for _, id := range nx.subnets {
		sx := p.ix.subnets[id]
		if sx.reserved == 0 {
			continue
		}
		free, held, err := p.reservations(id, owner)
		if err != nil {
			return all, err
		}
		for _, l := range append(free, held...) {
			at := picked{sx.record.value, l.Address, l}
			if l.Reservation.Replaced {
				all.replaced = append(all.replaced, at)
			} else {
				all.wanted[l.Reservation.Slot] = at
			}
		}
	}
	return all, nil
}

// last is the one of a slot that was reserved last, of those that were replaced.
func (o ownedSlots) last(slot Slot) (last picked, found bool) {
	for _, old := range o.replaced {
		if r := old.record.Reservation; r.Slot == slot && (!found || last.record.Reservation.ID < r.ID) {
			last, found = old, true
		}
	}
	return last, found
}

// all lists both, what is wanted first, by slot.
func (o ownedSlots) all() []picked {
	var all []picked
	for _, slot := range slots(o.wanted) {
		all = append(all, o.wanted[slot])
	}
	return append(all, o.replaced...)
}

// holds tells whether a lease is in an owner's hands: its name can mean the owner, or its MAC is the owner.
func (n *Network) holds(l *Lease, owner string) bool {
	if l.Name == "" {
		return l.MAC != (MAC{}) && l.MAC.String() == owner
	}
	return n.canBe(AddressRequest{Name: l.Name, MAC: l.MAC}, owner)
}

// inUseBy is an address in the pools of a subnet that the owner has in hand, and that is nobody's reservation.
func (p *plan) inUseBy(owner string, t *target) (*Lease, error) {
	var found []netip.Addr
	for _, name := range p.n.namesOf(owner) {
		found = slices.AppendSeq(found, t.sx.byName.of(rememberedName(name)))
	}
	if mac, err := ParseMAC(owner); err == nil {
		found = slices.AppendSeq(found, t.sx.byMAC.of(mac))
	}
	for _, addr := range found {
		l, err := p.lease(t.sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if l.Held() && l.Reservation == nil && p.n.holds(l, owner) && t.inPools(addr) {
			return l, nil
		}
	}
	return nil, nil
}

// slots lists the slots of a map in order.
func slots(of map[Slot]picked) []Slot {
	all := make([]Slot, 0, len(of))
	for slot := range of {
		all = append(all, slot)
	}
	slices.SortFunc(all, Slot.compare)
	return all
}

// alreadyExists refuses a second reservation of an owner in a network (BO-6).
func (p *plan) alreadyExists(owner string, has picked, todo string) error {
	return refuse(AlreadyExists, ErrInUse, "%s has %s reserved in network %s already (%s); %s", owner, has.addr, p.n.Name, has.record.Reservation.Slot, todo)
}

// secondUse refuses what a state that is rebuilt from what runs knows already, whoever asks (BO-5).
func (p *plan) secondUse(has picked) error {
	return refuse(AlreadyInUse, ErrInUse, "%s is reserved for %s in network %s already, and this store, which forgets, takes nothing twice; leave it, or end it with `berth reservation rm`",
		has.addr, has.record.Reservation.Owner, p.n.Name)
}
