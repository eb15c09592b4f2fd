package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// reservationFacts is what events tell of a reservation.
type reservationFacts struct {
	Owner string `json:"owner"`
	Kind  Kind   `json:"kind"`
	Slot  string `json:"slot"`
}

func (r *Reservation) facts() reservationFacts {
	return reservationFacts{r.Owner, r.Kind, r.Slot.String()}
}

func (e *AddReservation) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	in := Interface{Number: e.Number, Wishes: e.Wishes}
	if err := in.ready(e.Owner); err != nil {
		return Result{}, err
	}
	e.Owner = canonicalOwner(e.Owner)
	subnets, err := p.reach("")
	if err != nil {
		return Result{}, err
	}
	owned, err := p.owned(e.Owner)
	if err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	result.Addresses, err = in.each(func(slot Slot, w Wish) (netip.Addr, error) { return p.reserve(e, slot, w, subnets, owned[slot]) })
	if err != nil {
		return Result{}, err
	}
	return result, p.keep()
}

// owned reads what is reserved for an owner in the network.
func (p *plan) owned(owner string) (map[Slot]picked, error) {
	all := map[Slot]picked{}
	for _, id := range p.ix.networkIndex(p.n.ID).subnets {
		sub := p.ix.subnets[id].record.value
		free, held, err := p.reservations(id, owner)
		if err != nil {
			return nil, err
		}
		for _, l := range append(free, held...) {
			all[l.Reservation.Slot] = picked{sub, l.Address, l}
		}
	}
	return all, nil
}

// reserve makes one slot of an owner's interface a reserved address. What is reserved there already stays, if the wish
// can mean it (BO-5), and refuses another wish (BO-6).
func (p *plan) reserve(e *AddReservation, slot Slot, w Wish, subnets []*Subnet, has picked) (netip.Addr, error) {
	if has.record != nil {
		if !p.meets(w, has.sub, has.addr) {
			return netip.Addr{}, &refusal{ErrInUse, fmt.Sprintf("%s has %s reserved in network %s already (%s); end that first with `berth reservation rm`", e.Owner, has.addr, p.n.Name, slot)}
		}
		return has.addr, nil
	}
	found, err := p.toReserve(e, w, subnets)
	if err != nil {
		return netip.Addr{}, err
	}
	if r := found.record.reserved(); r != nil {
		return netip.Addr{}, &refusal{ErrInUse, fmt.Sprintf("%s is reserved for %s already, as %s", found.addr, r.Owner, r.Slot)}
	}
	r := &Reservation{Owner: e.Owner, Kind: Static, Slot: slot}
	if !w.Address.IsValid() {
		r.Kind = Automatic
	}
	return found.addr, p.writeReservation(found, r)
}

// writeReservation makes an address the owner's.
func (p *plan) writeReservation(at picked, r *Reservation) (err error) {
	e := &Event{Verb: ReservationAdded, Subnet: at.sub.CIDR, Address: at.addr, Name: r.Owner, Detail: r.Kind.String()}
	if r.ID, err = p.tell(e, nil, r.facts()); err != nil {
		return err
	}
	return p.setLease(at.sub.ID, at.addr, at.record, at.record.withReservation(at.addr, r))
}

// toReserve finds the address: the one wished for, where nobody else has it; else the one that the owner has in use and
// not reserved, or a free one.
func (p *plan) toReserve(e *AddReservation, w Wish, subnets []*Subnet) (picked, error) {
	if !w.Address.IsValid() {
		for _, sub := range subnets {
			if l, err := p.inUseBy(e.Owner, sub, w.Pool); err != nil || l != nil {
				return picked{sub, addressOf(l), l}, err
			}
		}
		return p.pickUnreserved(e.Owner, w, subnets)
	}
	found, err := p.pick(e.Owner, w, subnets, e.Force)
	if err != nil || !found.record.Held() {
		return found, err
	}
	held := found.record
	if held.Kind == Gateway || held.Name != e.Owner && !e.Force {
		return picked{}, p.heldError(held)
	}
	return found, nil
}

// pickUnreserved is pick less what is reserved for the owner in other slots.
func (p *plan) pickUnreserved(owner string, w Wish, subnets []*Subnet) (picked, error) {
	for _, sub := range subnets {
		l, err := pickRemembered(p.target(sub, w.Pool), owner)
		if err != nil || l != nil {
			return picked{sub, addressOf(l), l}, err
		}
	}
	return p.pick("", w, subnets, false)
}

// inUseBy is an address in the pools of sub that is held under the owner's name and is nobody's reservation.
func (p *plan) inUseBy(owner string, sub *Subnet, pool string) (*Lease, error) {
	t := p.target(sub, pool)
	for addr := range t.sx.byName.of(owner) {
		l, err := p.lease(sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if l.Held() && l.Name == owner && l.Reservation == nil && t.inPools(addr) {
			return l, nil
		}
	}
	return nil, nil
}

// meets tells whether an address is what a wish can mean.
func (p *plan) meets(w Wish, sub *Subnet, addr netip.Addr) bool {
	switch {
	case w.Address.IsValid():
		return w.Address == addr
	case w.Pool == "":
		return true
	}
	return slices.ContainsFunc(sub.Pools, func(pool Pool) bool { return pool.Name == w.Pool && pool.Range.Contains(addr) })
}

func (e *RemoveReservation) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	if err := CheckOwner(e.Owner); err != nil {
		return Result{}, err
	}
	owned, err := p.owned(canonicalOwner(e.Owner))
	if err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	for _, slot := range slots(owned) {
		has := owned[slot]
		if e.Address.IsValid() && e.Address != has.addr {
			continue
		}
		if err := p.endReservation(has); err != nil {
			return Result{}, err
		}
		result.Addresses = append(result.Addresses, has.addr)
	}
	if len(result.Addresses) == 0 {
		what := "no address"
		if e.Address.IsValid() {
			what = "not " + e.Address.String()
		}
		return Result{}, &refusal{ErrNotFound, fmt.Sprintf("%s has %s reserved in network %s; `berth reservation ls %s` lists what is", e.Owner, what, p.n.Name, p.n.Name)}
	}
	return result, nil
}

// endReservation makes an address nobody's. Who has it in use keeps it.
func (p *plan) endReservation(has picked) error {
	r := has.record.Reservation
	ev := &Event{Verb: ReservationRemoved, Subnet: has.sub.CIDR, Address: has.addr, Name: r.Owner}
	if _, err := p.tell(ev, r.facts(), nil); err != nil {
		return err
	}
	return p.setLease(has.sub.ID, has.addr, has.record, has.record.withReservation(has.addr, nil))
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
