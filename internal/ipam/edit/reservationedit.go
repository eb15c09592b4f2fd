package edit

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func addReservation(p *Plan, wanted *ipam.AddReservation) error {
	edited := *wanted
	e := &edited
	in, err := p.beginReservation(e)
	if err != nil {
		return err
	}
	if err := p.replaceElsewhere(e); err != nil {
		return err
	}
	if p.N.Type == ipam.Dynamic && !byAddress(&in) {
		p.run.result.Addresses, err = p.recordWanted(e)
		return err
	}
	p.run.result.Addresses, err = p.fulfil(e, in, func(ipam.Wish) bool { return true })
	if err != nil {
		return err
	}
	return p.Keep()
}

// recordWanted records an owner with the terms of an edit.
func (p *Plan) recordWanted(e *ipam.AddReservation) ([]netip.Addr, error) {
	return p.recordOwner(e.Owner, e.Replace, func(had ipam.Terms) ipam.Terms {
		return e.WantedTerms.Over(had, p.Now())
	})
}

// replaceElsewhere marks the owner's reservations on all other networks that Only does not list as replaced.
func (p *Plan) replaceElsewhere(e *ipam.AddReservation) error {
	if e.Only == nil {
		return nil
	}
	return replaceBut(p.Change, e.Owner, append([]string{p.N.ID.String()}, e.Only...))
}

// replaceBut marks an owner's reservations as replaced, except on these networks. An unknown network may be in the
// other store (cluster/edits.go).
func replaceBut(c *ledger.Change, owner string, networks []string) error {
	return EachOwned(c, OwnerSet{names: []string{owner}}, func(at ledger.Picked) error {
		n := c.Index().Network(at.Sub.Network)
		if slices.Contains(networks, n.Name) || slices.Contains(networks, n.ID.String()) {
			return nil
		}
		r := *at.Record.Reservation
		r.Replaced = true
		return changeReservation(c, at, r)
	})
}

// byAddress reports whether all wishes are given addresses.
func byAddress(in *ipam.Interface) bool {
	return !slices.ContainsFunc(in.Wishes, func(w ipam.Wish) bool { return !w.Address.IsValid() })
}

// beginReservation refuses a reservation that is invalid in any state. It makes the owner canonical, so e must be the
// caller's own copy.
func (p *Plan) beginReservation(e *ipam.AddReservation) (ipam.Interface, error) {
	in := ipam.Interface{Number: e.Number, Wishes: slices.Clone(e.Wishes)}
	if err := ready(&in, e.Owner, e.Planned); err != nil {
		return in, err
	}
	e.Owner = ipam.CanonicalOwner(e.Owner)
	if err := p.run.nameClash(p.N, e.Owner); err != nil {
		return in, err
	}
	if err := e.WantedTerms.Check(e.Owner); err != nil {
		return in, err
	}
	if e.Only != nil && !e.Replace {
		return in, ipam.Refuse(ipam.ErrInvalid, "without \"replace\", %s keeps its addresses on other networks; set "+
			"\"replace\", or leave out \"only\"", e.Owner)
	}
	if e.Moves && !e.Replace {
		return in, ipam.Refuse(ipam.ErrInvalid, "without \"replace\", %s keeps addresses that are no longer allowed; "+
			"set \"replace\", or leave out \"moves\"", e.Owner)
	}
	for i, w := range in.Wishes {
		if !w.Address.IsValid() {
			continue
		}
		if slices.ContainsFunc(in.Wishes[:i], func(other ipam.Wish) bool { return other.Address == w.Address }) {
			return in, ipam.RefuseAs(ipam.AlreadyExists, ipam.ErrInUse, "%s is requested twice for %s; an address can "+
				"be reserved only once", w.Address, e.Owner)
		}
		if err := p.N.CheckStatic(); err != nil && !e.Automatic {
			return in, err
		}
	}
	return in, nil
}

// fulfil reserves addresses for the wishes that now selects, and returns them by slot.
func (p *Plan) fulfil(e *ipam.AddReservation, in ipam.Interface, now func(ipam.Wish) bool) ([]netip.Addr, error) {
	subnets, err := p.reachFor(&in)
	if err != nil {
		return nil, err
	}
	owned := ownedSlots{Wanted: map[ipam.Slot]ledger.Picked{}}
	if !e.Replaced && (!e.Planned || !p.placed()) {
		if owned, err = p.owned(e.Owner); err != nil {
			return nil, err
		}
	}
	for _, slot := range slots(owned.Wanted) {
		if int(slot.Interface) != e.Number {
			return nil, ipam.Help(p.alreadyExists(e.Owner, owned.Wanted[slot], "an owner has one reservation per "+
				"network, with one interface and one or more addresses"),
				ipam.Advise(ipam.DoReserveSeveral, slot.Interface))
		}
	}
	in.Wishes = slices.DeleteFunc(slices.Clone(in.Wishes), func(w ipam.Wish) bool { return !now(w) })
	if e.Replace {
		if err := p.reslot(e, in, owned); err != nil {
			return nil, err
		}
	}
	if !e.Replaced {
		if _, err := allocator.ForgetOwner(&p.NetworkPlan, e.Owner,
			"its owner now has a reservation with an address"); err != nil {
			return nil, err
		}
	}
	return each(&in, func(slot ipam.Slot, w ipam.Wish) (netip.Addr, error) {
		addr, err := p.reserve(e, slot, w, subnets, owned)
		owned.replaced = slices.DeleteFunc(owned.replaced, func(old ledger.Picked) bool { return old.Addr == addr })
		return addr, err
	})
}

// reslot moves the owner's reservations to the slots in which they are wished for. Two can swap.
func (p *Plan) reslot(e *ipam.AddReservation, in ipam.Interface, owned ownedSlots) error {
	had := maps.Clone(owned.Wanted)
	for _, w := range in.Wishes {
		to := ipam.Slot{Interface: uint8(e.Number), Number: uint8(w.Slot)}
		for _, from := range slots(had) {
			at := had[from]
			if at.Addr != w.Address || from == to {
				continue
			}
			if owned.Wanted[from].Addr == at.Addr {
				delete(owned.Wanted, from)
			}
			r := *at.Record.Reservation
			r.Slot = to
			moved := at
			moved.Record = at.Record.WithReservation(at.Addr, &r)
			if err := changeReservation(p.Change, at, r); err != nil {
				return err
			}
			owned.Wanted[to] = moved
		}
	}
	return p.displaced(had, owned)
}

// displaced marks reservations as replaced if an address from another slot took their slot.
func (p *Plan) displaced(had map[ipam.Slot]ledger.Picked, owned ownedSlots) error {
	for _, slot := range slots(had) {
		at, has := had[slot], owned.Wanted[slot]
		if has.Record == nil || has.Addr == at.Addr ||
			slices.ContainsFunc(slots(owned.Wanted),
				func(s ipam.Slot) bool { return owned.Wanted[s].Addr == at.Addr }) {
			continue
		}
		r := *at.Record.Reservation
		r.Replaced = true
		if err := changeReservation(p.Change, at, r); err != nil {
			return err
		}
	}
	return nil
}

// reserve reserves an address for one slot of an owner's interface. An existing reservation stays if it satisfies the
// wish. Otherwise the edit is refused, or the old address is kept until the new one is in use.
func (p *Plan) reserve(e *ipam.AddReservation, slot ipam.Slot, w ipam.Wish, subnets []*ipam.Subnet,
	owned ownedSlots) (netip.Addr, error) {
	has, there := owned.Wanted[slot]
	switch {
	case there && p.Forgets() && !e.Replace:
		return netip.Addr{}, p.secondUse(has)
	case there && p.meets(w, has.Sub, has.Addr) && !p.moves(e, w, has) &&
		!p.handsOn(e, w, has.Addr, has.Record.Reserved()):
		return has.Addr, p.reserveAgain(e, w, has)
	case there && !e.Replace:
		return netip.Addr{}, p.alreadyExists(e.Owner, has, "")
	}
	found, again := p.wantedAgain(e, w, slot, owned)
	if !again {
		var err error
		found, err = p.toReserve(e, w, subnets)
		if err != nil || allocator.Free(found.Record, p.Now()) {
			err = p.needed(e.Owner, w, found.Addr, err)
		}
		if err != nil {
			return netip.Addr{}, err
		}
		if !found.Addr.IsValid() {
			return netip.Addr{}, nil
		}
	}
	if there {
		old := *has.Record.Reservation
		old.Replaced = true
		if err := changeReservation(p.Change, has, old); err != nil {
			return netip.Addr{}, err
		}
	}
	return found.Addr, p.reserveNew(e, slot, w, found)
}

// wantedAgain returns the newest replaced address of a slot if it satisfies an automatic wish.
func (p *Plan) wantedAgain(e *ipam.AddReservation, w ipam.Wish, slot ipam.Slot, owned ownedSlots) (ledger.Picked, bool) {
	if w.Address.IsValid() {
		return ledger.Picked{}, false
	}
	owned.replaced = slices.DeleteFunc(slices.Clone(owned.replaced), func(old ledger.Picked) bool {
		return !p.meets(w, old.Sub, old.Addr) || p.moves(e, w, old) ||
			p.handsOn(e, w, old.Addr, old.Record.Reserved())
	})
	return owned.last(slot)
}

// reserveAgain updates an existing reservation with the kind and the terms of the new wish.
func (p *Plan) reserveAgain(e *ipam.AddReservation, w ipam.Wish, has ledger.Picked) error {
	kind, err := p.kindOf(e, w, has)
	if err != nil {
		return err
	}
	r := *has.Record.Reservation
	r.Kind, r.Terms = kind, e.WantedTerms.Over(r.Terms, p.Now())
	return changeReservation(p.Change, has, r)
}

// reserveNew reserves a free address, or restores a replaced reservation of the owner.
func (p *Plan) reserveNew(e *ipam.AddReservation, slot ipam.Slot, w ipam.Wish, found ledger.Picked) error {
	kind, err := p.kindOf(e, w, found)
	if err != nil {
		return err
	}
	var had ipam.Terms
	old := found.Record.Reserved()
	if old != nil {
		had = old.Anew()
	}
	r := &ipam.Reservation{Owner: e.Owner, Kind: kind, Slot: slot, Terms: e.WantedTerms.Over(had, p.Now())}
	r.Replaced = e.Replaced
	switch {
	case old == nil:
		return p.writeReservation(found, r)
	case old.Owner == e.Owner && old.Replaced:
		r.ID, r.Ahead = old.ID, old.Ahead
		return changeReservation(p.Change, found, *r)
	}
	return p.alreadyExists(e.Owner, found, "an address can be reserved only once")
}

// kindOf returns static for a given address unless the edit says automatic. An automatic one must not lie in a static
// band.
func (p *Plan) kindOf(e *ipam.AddReservation, w ipam.Wish, at ledger.Picked) (ipam.Kind, error) {
	had := at.Record.Reserved()
	switch {
	case w.Address.IsValid() && !e.Automatic:
		return ipam.Static, nil
	case w.Address.IsValid():
		return ipam.Automatic, p.N.CheckAutomaticAt(e.Owner, at.Sub, at.Addr)
	case e.Moves && had != nil && had.Kind == ipam.Static && !p.givable(w, at):
		return had.Kind, nil // a person chose it, and no deploy moves it
	case had != nil && p.N.CheckAutomaticAt(e.Owner, at.Sub, at.Addr) != nil:
		return had.Kind, nil // the wish accepts any address, but this one can only be static
	}
	return ipam.Automatic, nil
}

// toReserve finds the address: the given one if nobody else has it, otherwise one that the owner holds unreserved, or a
// free one.
func (p *Plan) toReserve(e *ipam.AddReservation, w ipam.Wish, subnets []*ipam.Subnet) (ledger.Picked, error) {
	if !w.Address.IsValid() {
		return p.toReserveAny(e, w, subnets)
	}
	left, err := p.makeWay(e, w, subnets)
	if err != nil {
		return ledger.Picked{}, err
	}
	found, err := p.pick(e.Owner, w, subnets, e.Force || e.Planned)
	if err == nil && bars(p.N, found.Record, e.Owner, e.Force || left) {
		return ledger.Picked{}, p.heldError(found)
	}
	return found, err
}

// heldError refuses an address that another holder has. Only a gateway's cannot be reserved ahead.
func (p *Plan) heldError(at ledger.Picked) error {
	err := allocator.HeldError(p.Change, at.Sub, at.Record)
	if at.Record.Kind == ipam.Gateway {
		return err
	}
	return ipam.Help(err, ipam.Advise(ipam.DoReserveHeld))
}

func (p *Plan) toReserveAny(e *ipam.AddReservation, w ipam.Wish, subnets []*ipam.Subnet) (ledger.Picked, error) {
	if p.N.Type == ipam.VIP {
		return ledger.Picked{}, ipam.RefuseAs(ipam.WrongType, ipam.ErrInvalid, "network %s has the type vip, which "+
			"allows only static reservations; give the address with --ip", p.Called())
	}
	subnets, err := in(&w, p, subnets)
	if err != nil {
		return ledger.Picked{}, err
	}
	if r, _ := p.N.Rule(e.Owner); w.Pool == "" && slices.ContainsFunc(subnets,
		func(sub *ipam.Subnet) bool { return sub.HasPool(r.Pool) }) {
		w.Pool = r.Pool
	}
	inUse := func(t *allocator.Target) (*ipam.Lease, error) {
		l, err := p.inUseBy(e.Owner, t, w.Not)
		if l != nil && p.handsOn(e, w, l.Address, nil) {
			return nil, nil
		}
		return l, err
	}
	return p.first(w, subnets, inUse, e.Owner) // without addresses reserved for the owner in other slots
}

// meets reports whether an address satisfies a wish.
func (p *Plan) meets(w ipam.Wish, sub *ipam.Subnet, addr netip.Addr) bool {
	switch {
	case w.Address.IsValid():
		return w.Address == addr
	case !w.Suits(sub), w.Not == addr:
		return false
	case w.Pool == "":
		return true
	}
	return slices.ContainsFunc(sub.Pools, func(pool ipam.Pool) bool {
		return pool.Name == w.Pool && pool.Range.Contains(addr)
	})
}

// moves reports whether an automatic reservation must be replaced because Berth may no longer choose its address.
// Static reservations stay, and so do those in subnets without pools.
func (p *Plan) moves(e *ipam.AddReservation, w ipam.Wish, has ledger.Picked) bool {
	return e.Moves && !w.Address.IsValid() && has.Record.Reserved().Kind == ipam.Automatic &&
		len(has.Sub.Pools) > 0 && !p.givable(w, has)
}

// givable reports whether Berth may choose an address: it is in a pool, and neither excluded nor in a static band.
func (p *Plan) givable(w ipam.Wish, at ledger.Picked) bool {
	return p.target(at.Sub, w.Pool).InPools(at.Addr)
}
