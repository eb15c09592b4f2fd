package edit

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// writeReservation reserves an address for an owner.
func (p *Plan) writeReservation(at ledger.Picked, r *ipam.Reservation) (err error) {
	e := &ipam.Event{Verb: ipam.ReservationAdded, Subnet: at.Sub.CIDR, Address: at.Addr, Name: r.Owner,
		Detail: r.Kind.String()}
	if r.ID, err = p.Tell(e, nil, ledger.FactsOf(r)); err != nil {
		return err
	}
	r.Ahead = ipam.EventTime(r.ID).Sub(p.TimeOf(r.ID))
	return p.SetLease(at.Sub.ID, at.Addr, at.Record, at.Record.WithReservation(at.Addr, r))
}

// changeReservation changes a reservation. The address and the owner stay.
func changeReservation(c *ledger.Change, at ledger.Picked, r ipam.Reservation) error {
	before := at.Record.Reservation
	if *before == r {
		return nil
	}
	e := &ipam.Event{Verb: ipam.ReservationModified, Address: at.Addr, Name: r.Owner, Detail: r.Kind.String()}
	if err := ledger.TellOwner(c, e, at, ledger.FactsOf(before), ledger.FactsOf(&r)); err != nil {
		return err
	}
	return c.SetLease(at.Sub.ID, at.Addr, at.Record, at.Record.WithReservation(at.Addr, &r))
}

// ownedSlots are an owner's reservations in a network: the wanted ones by slot, and the replaced ones that are still
// kept.
type ownedSlots struct {
	Wanted   map[ipam.Slot]ledger.Picked
	replaced []ledger.Picked // in subnet order
}

// owned reads an owner's reservations in the network.
func (p *Plan) owned(owner string) (ownedSlots, error) {
	all := ownedSlots{Wanted: map[ipam.Slot]ledger.Picked{}}
	nx := p.Index().NetworkIndex(p.N.ID)
	if nx == nil {
		return all, nil
	}
	for _, id := range nx.Subnets() {
		sx := p.Index().Subnet(id)
		if sx.Reserved() == 0 {
			continue
		}
		reserved, err := p.Reservations(id, owner)
		if err != nil {
			return all, err
		}
		for _, l := range reserved {
			at := ledger.Picked{Sub: sx.Record(), Addr: l.Address, Record: l}
			if l.Reservation.Replaced {
				all.replaced = append(all.replaced, at)
			} else {
				all.Wanted[l.Reservation.Slot] = at
			}
		}
	}
	return all, nil
}

// last returns the newest replaced reservation of a slot.
func (o ownedSlots) last(slot ipam.Slot) (last ledger.Picked, found bool) {
	for _, old := range o.replaced {
		if r := old.Record.Reservation; r.Slot == slot && (!found || last.Record.Reservation.ID < r.ID) {
			last, found = old, true
		}
	}
	return last, found
}

// all lists the wanted reservations by slot, then the replaced ones.
func (o ownedSlots) all() []ledger.Picked {
	var all []ledger.Picked
	for _, slot := range slots(o.Wanted) {
		all = append(all, o.Wanted[slot])
	}
	return append(all, o.replaced...)
}

// bars reports whether a holder prevents a reservation for an owner. With force, the reservation applies after the
// holder's release. A gateway always prevents it.
func bars(n *ipam.Network, l *ipam.Lease, owner string, force bool) bool {
	return l.Held() && (l.Kind == ipam.Gateway || !holds(n, l, owner) && !force)
}

// holds reports whether an owner holds a lease: its name can mean the owner, or its MAC is the owner.
func holds(n *ipam.Network, l *ipam.Lease, owner string) bool {
	if l.Name == "" {
		return l.MAC != (ipam.MAC{}) && l.MAC.String() == owner
	}
	return n.CanBe(ipam.AddressRequest{Name: l.Name, MAC: l.MAC}, owner)
}

// inUseBy returns an unreserved address in the subnet's pools, other than not, that the owner holds.
func (p *Plan) inUseBy(owner string, t *allocator.Target, not netip.Addr) (*ipam.Lease, error) {
	var found []netip.Addr
	for _, name := range p.N.NamesOf(owner) {
		found = append(found, t.Sx.SawName(ipam.RememberedName(name))...)
	}
	if mac, err := ipam.ParseMAC(owner); err == nil {
		found = append(found, t.Sx.SawMAC(mac)...)
	}
	for _, addr := range found {
		l, err := p.Lease(t.Sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if l.Held() && addr != not && l.Reservation == nil && holds(p.N, l, owner) && t.InPools(addr) {
			return l, nil
		}
	}
	return nil, nil
}

// slots returns the slots of a map in order.
func slots(of map[ipam.Slot]ledger.Picked) []ipam.Slot {
	return slices.SortedFunc(maps.Keys(of), ledger.CompareSlots)
}

// alreadyExists refuses a second reservation of an owner in a network. If todo is empty, it advises to replace
// the first.
func (p *Plan) alreadyExists(owner string, has ledger.Picked, todo string) error {
	if todo == "" {
		return ipam.RefuseAs(ipam.AlreadyExists, ipam.ErrInUse,
			"%s has %s reserved in network %s already (%s)", owner, has.Addr,
			p.Called(), has.Record.Reservation.Slot).Advise(ipam.DoReplaceReservation)
	}
	return ipam.RefuseAs(ipam.AlreadyExists, ipam.ErrInUse, "%s has %s reserved in network %s already (%s); %s", owner,
		has.Addr,
		p.Called(), has.Record.Reservation.Slot, todo)
}

// secondUse refuses a reservation that exists, in a store that is rebuilt from what runs. Requests with Replace,
// as from Compose projects, are exempt.
func (p *Plan) secondUse(has ledger.Picked) error {
	return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "%s is already reserved for %s in network %s, and a store "+
		"in memory accepts each reservation only once; keep the existing one", has.Addr, has.Record.Reservation.Owner,
		p.Called()).
		OrAdvise(ipam.DoEndReservation)
}
