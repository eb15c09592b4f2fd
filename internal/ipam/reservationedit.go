package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

func (e *AddReservation) apply(c *change) (Result, error) {
	p, in, err := e.begin(c)
	if err != nil {
		return Result{}, err
	}
	if p.n.Type == Dynamic && !in.byAddress() {
		addrs, err := p.recordOwner(e)
		return Result{Network: p.n.ID, Addresses: addrs}, err
	}
	addrs, err := p.fulfil(e, in, func(Wish) bool { return true })
	if err != nil {
		return Result{}, err
	}
	p.edit.capacity = nil
	return Result{Network: p.n.ID, Addresses: addrs}, p.keep()
}

// byAddress tells whether all that is wished for are given addresses.
func (in *Interface) byAddress() bool {
	return !slices.ContainsFunc(in.Wishes, func(w Wish) bool { return !w.Address.IsValid() })
}

// begin opens the network of a reservation, and refuses what makes no sense in any state of it.
func (e *AddReservation) begin(c *change) (*plan, Interface, error) {
	in := Interface{Number: e.Number, Wishes: slices.Clone(e.Wishes)}
	p, err := c.plan(e.Network)
	if err != nil {
		return nil, in, err
	}
	if err := in.ready(e.Owner); err != nil {
		return nil, in, err
	}
	e.Owner = canonicalOwner(e.Owner)
	if e.For < 0 {
		return nil, in, &refusal{ErrInvalid, fmt.Sprintf("%s cannot live for %s; give a time that is not negative, or none", e.Owner, time.Duration(e.For))}
	}
	for i, w := range in.Wishes {
		if !w.Address.IsValid() {
			continue
		}
		if slices.ContainsFunc(in.Wishes[:i], func(other Wish) bool { return other.Address == w.Address }) {
			return nil, in, refuse(AlreadyExists, ErrInUse, "%s is wished for twice for %s; an address is reserved once", w.Address, e.Owner)
		}
		if err := p.n.checkStatic(); err != nil && !e.Automatic {
			return nil, in, err
		}
	}
	return p, in, nil
}

// fulfil reserves what is wished for, of the wishes that are chosen now, and returns the addresses by slot.
func (p *plan) fulfil(e *AddReservation, in Interface, now func(Wish) bool) ([]netip.Addr, error) {
	subnets, err := p.reach("")
	if err != nil {
		return nil, err
	}
	owned, err := p.owned(e.Owner)
	if err != nil {
		return nil, err
	}
	for _, slot := range slots(owned.wanted) {
		if int(slot.Interface) != e.Number {
			return nil, p.alreadyExists(e.Owner, owned.wanted[slot], fmt.Sprintf("an owner has one reservation in a network, of one interface, which may have several addresses (--ip %d:ip0=...,ip1=...)", slot.Interface))
		}
	}
	if p.edit.capacity == nil { // else it is that of several owners together
		p.edit.capacity = &capacity{wanted: p.lacking(e, in, owned)}
	}
	in.Wishes = slices.DeleteFunc(slices.Clone(in.Wishes), func(w Wish) bool { return !now(w) })
	if e.Replace {
		if err := p.reslot(e, in, owned); err != nil {
			return nil, err
		}
	}
	if _, err := p.forgetOwner(e.Owner, "it has an address now"); err != nil {
		return nil, err
	}
	return in.each(func(slot Slot, w Wish) (netip.Addr, error) {
		addr, err := p.reserve(e, slot, w, subnets, owned)
		if p.lacks(w, slot, owned) && err == nil {
			p.edit.capacity.given++
		}
		owned.replaced = slices.DeleteFunc(owned.replaced, func(old picked) bool { return old.addr == addr })
		return addr, err
	})
}

// lacks tells whether a wish needs an automatic address that is not there yet.
func (p *plan) lacks(w Wish, slot Slot, owned ownedSlots) bool {
	has, there := owned.wanted[slot]
	return !w.Address.IsValid() && !(there && p.meets(w, has.sub, has.addr))
}

// lacking counts the automatic addresses that an owner is to get.
func (p *plan) lacking(e *AddReservation, in Interface, owned ownedSlots) (n int) {
	for _, w := range in.Wishes {
		if p.lacks(w, Slot{uint8(e.Number), uint8(w.Slot)}, owned) {
			n++
		}
	}
	return n
}

// reslot gives addresses that the owner has, and that are wished for in other slots, these slots: two may change places.
func (p *plan) reslot(e *AddReservation, in Interface, owned ownedSlots) error {
	had := maps.Clone(owned.wanted)
	for _, w := range in.Wishes {
		to := Slot{uint8(e.Number), uint8(w.Slot)}
		for _, from := range slots(had) {
			at := had[from]
			if at.addr != w.Address || from == to {
				continue
			}
			if owned.wanted[from].addr == at.addr {
				delete(owned.wanted, from)
			}
			r := *at.record.Reservation
			r.Slot = to
			moved := at
			moved.record = at.record.withReservation(at.addr, &r)
			if err := p.changeReservation(at, r); err != nil {
				return err
			}
			owned.wanted[to] = moved
		}
	}
	return p.displaced(had, owned)
}

// displaced marks what had to make room for an address of another slot as replaced.
func (p *plan) displaced(had map[Slot]picked, owned ownedSlots) error {
	for _, slot := range slots(had) {
		at, has := had[slot], owned.wanted[slot]
		if has.record == nil || has.addr == at.addr || slices.ContainsFunc(slots(owned.wanted), func(s Slot) bool { return owned.wanted[s].addr == at.addr }) {
			continue
		}
		r := *at.record.Reservation
		r.Replaced = true
		if err := p.changeReservation(at, r); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes one slot of an owner's interface a reserved address. What is reserved there already stays, if the wish
// can mean it (BO-5, BO-9); else it is refused (BO-6), or kept beside the new one until that is in use (BO-13).
func (p *plan) reserve(e *AddReservation, slot Slot, w Wish, subnets []*Subnet, owned ownedSlots) (netip.Addr, error) {
	has, there := owned.wanted[slot]
	switch {
	case there && p.forgets:
		return netip.Addr{}, p.secondUse(has)
	case there && p.meets(w, has.sub, has.addr):
		return has.addr, p.reserveAgain(e, w, has)
	case there && !e.Replace:
		return netip.Addr{}, p.alreadyExists(e.Owner, has, "end that first with `berth reservation rm`, or change it with --replace, which keeps both until the new one is in use")
	}
	found, again := p.wantedAgain(w, slot, owned)
	if !again {
		var err error
		if found, err = p.toReserve(e, w, subnets); err != nil {
			return netip.Addr{}, err
		}
	}
	if there {
		old := *has.record.Reservation
		old.Replaced = true
		if err := p.changeReservation(has, old); err != nil {
			return netip.Addr{}, err
		}
	}
	return found.addr, p.reserveNew(e, slot, w, found)
}

// wantedAgain is the address that the owner had last in a slot, and that is kept still, where an automatic wish can mean it (BO-9).
func (p *plan) wantedAgain(w Wish, slot Slot, owned ownedSlots) (picked, bool) {
	if w.Address.IsValid() {
		return picked{}, false
	}
	owned.replaced = slices.DeleteFunc(slices.Clone(owned.replaced), func(old picked) bool { return !p.meets(w, old.sub, old.addr) })
	return owned.last(slot)
}

// reserveAgain is what comes of a reservation that is there when it is wished for again: its kind is that of the wish, and it
// lives for as long as is said now.
func (p *plan) reserveAgain(e *AddReservation, w Wish, has picked) error {
	kind, err := p.kindOf(e, w, has)
	if err != nil {
		return err
	}
	r := *has.record.Reservation
	r.Kind = kind
	if e.For > 0 {
		r.Until = p.now.Add(time.Duration(e.For))
	}
	return p.changeReservation(has, r)
}

// reserveNew writes a reservation of a free address, or one of the owner's that was replaced and is wanted again.
func (p *plan) reserveNew(e *AddReservation, slot Slot, w Wish, found picked) error {
	kind, err := p.kindOf(e, w, found)
	if err != nil {
		return err
	}
	r := &Reservation{Owner: e.Owner, Kind: kind, Slot: slot}
	if e.For > 0 {
		r.Until = p.now.Add(time.Duration(e.For))
	}
	old := found.record.reserved()
	switch {
	case old == nil:
		return p.writeReservation(found, r)
	case old.Owner == e.Owner && old.Replaced:
		r.ID = old.ID
		return p.changeReservation(found, *r)
	}
	return p.alreadyExists(e.Owner, found, "an address is reserved once")
}

// kindOf is static for an address that was wished for, unless it is said to be an automatic one, which none of a static band
// can be (BO-10).
func (p *plan) kindOf(e *AddReservation, w Wish, at picked) (Kind, error) {
	had := at.record.reserved()
	switch {
	case w.Address.IsValid() && !e.Automatic:
		return Static, nil
	case w.Address.IsValid():
		return Automatic, p.n.checkAutomaticAt(e.Owner, at.sub, at.addr)
	case had != nil && p.n.checkAutomaticAt(e.Owner, at.sub, at.addr) != nil:
		return had.Kind, nil // which address it is to be was left open, and it can be no other
	}
	return Automatic, nil
}

// toReserve finds the address: the one wished for, where nobody else has it; else the one that the owner has in use and
// not reserved, or a free one.
func (p *plan) toReserve(e *AddReservation, w Wish, subnets []*Subnet) (picked, error) {
	if !w.Address.IsValid() {
		return p.toReserveAny(e, w, subnets)
	}
	found, err := p.pick(e.Owner, w, subnets, e.Force)
	if err != nil || !found.record.Held() {
		return found, err
	}
	held := found.record
	if held.Kind == Gateway || !p.n.holds(held, e.Owner) && !e.Force {
		return picked{}, p.heldError(held)
	}
	return found, nil
}

func (p *plan) toReserveAny(e *AddReservation, w Wish, subnets []*Subnet) (picked, error) {
	if p.n.Type == VIP {
		return picked{}, refuse(WrongType, ErrInvalid, "network %s is of the type vip, which has static reservations only; say which address with --ip", p.n.Name)
	}
	subnets, err := w.in(p, subnets)
	if err != nil {
		return picked{}, err
	}
	if r, _ := p.n.rule(e.Owner); w.Pool == "" && slices.ContainsFunc(subnets, func(sub *Subnet) bool { return sub.hasPool(r.Pool) }) {
		w.Pool = r.Pool
	}
	for _, sub := range subnets {
		l, err := p.inUseBy(e.Owner, p.target(sub, w.Pool))
		if err != nil || l != nil {
			return picked{sub, addressOf(l), l}, err
		}
	}
	for _, sub := range subnets { // less what is reserved for the owner in other slots
		l, err := pickRemembered(p.target(sub, w.Pool), e.Owner)
		if err != nil || l != nil {
			return picked{sub, addressOf(l), l}, err
		}
	}
	return p.pick("", w, subnets, false)
}

// meets tells whether an address is what a wish can mean.
func (p *plan) meets(w Wish, sub *Subnet, addr netip.Addr) bool {
	switch {
	case w.Address.IsValid():
		return w.Address == addr
	case !w.suits(sub):
		return false
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
	owner := canonicalOwner(e.Owner)
	owned, err := p.owned(owner)
	if err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	for _, has := range owned.all() {
		if e.Address.IsValid() && e.Address != has.addr {
			continue
		}
		if err := p.endReservation(has, ""); err != nil {
			return Result{}, err
		}
		result.Addresses = append(result.Addresses, has.addr)
	}
	if e.Address.IsValid() && len(result.Addresses) > 0 {
		return result, p.wantAgain(owned, e.Address)
	}
	unplaced, err := p.forgetOwner(owner, "")
	if err != nil || unplaced || len(result.Addresses) > 0 {
		return result, err
	}
	what := "no address"
	if e.Address.IsValid() {
		what = "not " + e.Address.String()
	}
	return Result{}, refuse(IPMissing, ErrNotFound, "%s has %s reserved in network %s; `berth reservation ls %s` lists what is", e.Owner, what, p.n.Name, p.n.Name)
}

// wantAgain takes a change of an address back: where the one that was to replace another is given up, that is wanted again.
func (p *plan) wantAgain(owned ownedSlots, gone netip.Addr) error {
	for slot, has := range owned.wanted {
		if has.addr != gone {
			continue
		}
		if old, found := owned.last(slot); found {
			r := *old.record.Reservation
			r.Replaced = false
			return p.changeReservation(old, r)
		}
	}
	return nil
}
