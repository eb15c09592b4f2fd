package edit

import (
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ready fills in the default wish and refuses an interface that is invalid in any state. A planned interface comes
// address by address, so its slots may begin anywhere.
func ready(in *ipam.Interface, owner string, planned bool) error {
	if err := ipam.CheckOwner(owner); err != nil {
		return err
	}
	if len(in.Wishes) == 0 && in.Action != ipam.RemoveInterface {
		in.Wishes = []ipam.Wish{{}}
	}
	switch in.Action {
	case ipam.Ensure, ipam.AddInterface, ipam.ModifyInterface, ipam.RemoveInterface:
	default:
		return ipam.Refuse(ipam.ErrInvalid, "%q is not an interface action: use add, modify or remove", in.Action)
	}
	checked := *in
	if planned {
		checked.Action = ipam.ModifyInterface
	}
	if err := checked.Check(); err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "the interface of %s: %v", owner, err)
	}
	slices.SortFunc(in.Wishes, func(a, b ipam.Wish) int { return a.Slot - b.Slot })
	return nil
}

// each fulfils the wishes. Given addresses come first, so that no other wish takes them. It returns the addresses by
// slot, without empty slots.
func each(in *ipam.Interface, fulfil func(ipam.Slot, ipam.Wish) (netip.Addr, error)) ([]netip.Addr, error) {
	addrs := make([]netip.Addr, len(in.Wishes))
	for _, given := range []bool{true, false} {
		for i, w := range in.Wishes {
			if w.Address.IsValid() != given {
				continue
			}
			var err error
			if addrs[i], err = fulfil(ipam.Slot{Interface: uint8(in.Number), Number: uint8(w.Slot)}, w); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(addrs, func(addr netip.Addr) bool { return !addr.IsValid() }), nil
}

// interfaces holds the external addresses of an owner in a network.
type interfaces map[ipam.Slot]ledger.Picked

func takeAddress(p *Plan, wanted *ipam.TakeAddress) (err error) {
	edited := *wanted
	e, in := &edited, wanted.Interface
	in.Wishes = slices.Clone(in.Wishes)
	if err := ready(&in, e.Owner, e.Planned); err != nil {
		return err
	}
	if e.Note != nil {
		if err := ipam.CheckNote(*e.Note); err != nil {
			return err
		}
	}
	e.Owner = ipam.CanonicalOwner(e.Owner)
	if err := p.run.nameClash(p.N, e.Owner); err != nil {
		return err
	}
	has := interfaces{}
	if !e.Planned || !p.placed() {
		if has, err = p.Taken(e.Owner); err != nil {
			return err
		}
		if err := has.admit(e.Owner, &in); err != nil {
			return err
		}
	}
	subnets, err := p.reach(e.Subnet)
	if e.Planned {
		subnets, err = p.reachFor(&in)
	}
	if err != nil {
		return err
	}
	if len(subnets) == 1 {
		p.cameIn(subnets[0])
	}
	if err := p.makeRoom(&in, has); err != nil {
		return err
	}
	if in.Action == ipam.RemoveInterface {
		return p.giveBack(has, func(slot ipam.Slot, _ netip.Addr) bool { return int(slot.Interface) == in.Number })
	}
	p.run.result.Addresses, err = each(&in, func(slot ipam.Slot, w ipam.Wish) (netip.Addr, error) {
		return p.settleSlot(e, slot, w, subnets, has[slot], in.Action)
	})
	if err != nil {
		return err
	}
	return p.Keep()
}

// Taken reads the external addresses of an owner in the network.
func (p *Plan) Taken(owner string) (interfaces, error) {
	all := interfaces{}
	for _, id := range p.Index().NetworkIndex(p.N.ID).Subnets() {
		sx := p.Index().Subnet(id)
		for _, addr := range sx.SawName(ipam.RememberedName(owner)) {
			l, err := p.Lease(id, addr)
			if err != nil {
				return nil, err
			}
			if l.Held() && l.Kind == ipam.External && l.Name == owner {
				all[l.Slot] = ledger.Picked{Sub: sx.Record(), Addr: addr, Record: l}
			}
		}
	}
	return all, nil
}

// admit refuses an action that does not fit the existing interfaces, assigns the number of a next interface, and
// prevents gaps.
func (has interfaces) admit(owner string, in *ipam.Interface) error {
	next := 0
	filled := map[int]bool{} // slots of the interface
	for slot := range has {
		next = max(next, int(slot.Interface)+1)
		filled[int(slot.Number)] = filled[int(slot.Number)] || int(slot.Interface) == in.Number
	}
	exists := has.has(in.Number)
	switch {
	case in.Number == -1 && next >= ipam.MaxSlots:
		return ipam.Refuse(ipam.ErrExhausted, "%s already has %d interfaces, the maximum", owner, next)
	case in.Number == -1:
		in.Number = next
		filled = map[int]bool{}
	case in.Action == ipam.AddInterface && exists:
		return ipam.Refuse(ipam.ErrInUse, "%s has interface %d already; change it with %d:modify,...", owner, in.Number,
			in.Number)
	case (in.Action == ipam.ModifyInterface || in.Action == ipam.RemoveInterface) && !exists:
		return ipam.Refuse(ipam.ErrNotFound, "%s has no interface %d; add it with %d:ip0=...", owner, in.Number,
			in.Number)
	}
	for _, w := range in.Wishes {
		if w.None && !filled[w.Slot] {
			return ipam.Refuse(ipam.ErrNotFound, "%s has no ip%d at interface %d", owner, w.Slot, in.Number)
		}
		filled[w.Slot] = !w.None
	}
	return noGap(owner, in.Number, filled)
}

func (has interfaces) has(number int) bool {
	for slot := range has {
		if int(slot.Interface) == number {
			return true
		}
	}
	return false
}

func noGap(owner string, number int, filled map[int]bool) error {
	gap := -1
	for slot := range ipam.MaxSlots {
		switch {
		case !filled[slot] && gap < 0:
			gap = slot
		case filled[slot] && gap >= 0:
			return ipam.Refuse(ipam.ErrInvalid,
				"interface %d of %s would have ip%d and no ip%d: the addresses of an interface are numbered "+
					"without gaps", number, owner, slot, gap)
		}
	}
	return nil
}

// makeRoom releases addresses that are given up or replaced by a given address. It runs before anything is taken, so
// that two slots can swap.
func (p *Plan) makeRoom(in *ipam.Interface, has interfaces) error {
	for _, w := range in.Wishes {
		slot := ipam.Slot{Interface: uint8(in.Number), Number: uint8(w.Slot)}
		one, there := has[slot]
		if !there || in.Action != ipam.ModifyInterface || !w.None && (!w.Address.IsValid() || w.Address == one.Addr) {
			continue
		}
		if err := allocator.Release(p.Change, one.Sub, one.Record); err != nil {
			return err
		}
		delete(has, slot)
	}
	return nil
}

// settleSlot applies a wish to one slot of an interface. It returns the slot's address, or the zero Addr for none.
func (p *Plan) settleSlot(e *ipam.TakeAddress, slot ipam.Slot, w ipam.Wish, subnets []*ipam.Subnet, has ledger.Picked,
	action ipam.Action) (netip.Addr, error) {
	switch {
	case w.None:
		return netip.Addr{}, nil
	case has.Record == nil:
		return p.takeFor(e, slot, w, subnets, "")
	case p.meets(w, has.Sub, has.Addr) && (w.Address.IsValid() || action == ipam.Ensure):
		return has.Addr, p.noteTaken(e, has)
	case action != ipam.ModifyInterface:
		return netip.Addr{}, ipam.Refuse(ipam.ErrInUse,
			"%s has %s as %s in network %s already; change it with %d:modify,ip%d=...",
			e.Owner, has.Addr, slot, p.Called(), slot.Interface, slot.Number)
	}
	addr, err := p.takeFor(e, slot, w, subnets, has.Record.Note) // take the new address before releasing the old one
	if err != nil {
		return netip.Addr{}, err
	}
	if !addr.IsValid() {
		return netip.Addr{}, nil
	}
	return addr, allocator.Release(p.Change, has.Sub, has.Record)
}

// noteTaken changes the note of an external address, if the edit has another one.
func (p *Plan) noteTaken(e *ipam.TakeAddress, has ledger.Picked) error {
	if e.Note == nil || *e.Note == has.Record.Note {
		return nil
	}
	after := *has.Record
	after.Note = *e.Note
	told := &ipam.Event{Verb: ipam.LeaseNoted, Subnet: has.Sub.CIDR, Address: has.Addr, Lease: after.ID,
		Name: after.Name}
	if _, err := p.Tell(told, takenFacts{has.Record.Note}, takenFacts{after.Note}); err != nil {
		return err
	}
	return p.SetLease(has.Sub.ID, has.Addr, has.Record, &after)
}

// takeFor takes a free address for a slot. The address keeps the slot's old note unless the edit has one.
func (p *Plan) takeFor(e *ipam.TakeAddress, slot ipam.Slot, w ipam.Wish, subnets []*ipam.Subnet,
	note string) (netip.Addr, error) {
	found, err := p.pick(e.Owner, w, subnets, e.Force)
	if err == nil && found.Record.Held() {
		return netip.Addr{}, allocator.HeldError(p.Change, found.Sub, found.Record)
	}
	if err == nil {
		err = allocator.CheckRuns(p.Change, found.Sub, found.Addr)
	}
	if err != nil || allocator.Free(found.Record, p.Now()) {
		err = p.needed(e.Owner, w, found.Addr, err)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	if !found.Addr.IsValid() {
		return netip.Addr{}, nil
	}
	if e.Note != nil {
		note = *e.Note
	}
	return found.Addr, p.writeTaken(found, e.Owner, slot, note)
}

// takenFacts is the event data of an external address, besides its owner and slot.
type takenFacts struct {
	Note string `json:"note"`
}

// writeTaken leases a free address to a non-container.
func (p *Plan) writeTaken(at ledger.Picked, owner string, slot ipam.Slot, note string) error {
	e := &ipam.Event{Verb: ipam.LeaseTaken, Subnet: at.Sub.CIDR, Address: at.Addr, Name: owner,
		Detail: ipam.External.String() + " " + slot.String()}
	var facts any
	if note != "" {
		facts = takenFacts{note}
	}
	id, err := p.Tell(e, nil, facts)
	if err != nil {
		return err
	}
	after := &ipam.Lease{ID: id, Address: at.Addr, Kind: ipam.External, Name: owner, Host: p.Host(),
		Since: p.TimeOf(id), Slot: slot, Note: note, Reservation: at.Record.Reserved()}
	return p.SetLease(at.Sub.ID, at.Addr, at.Record, after)
}

// giveBack releases the addresses that goes selects, in slot order.
func (p *Plan) giveBack(has interfaces, goes func(ipam.Slot, netip.Addr) bool) error {
	for _, slot := range slots(has) {
		one := has[slot]
		if !goes(slot, one.Addr) {
			continue
		}
		if err := allocator.Release(p.Change, one.Sub, one.Record); err != nil {
			return err
		}
		p.run.gave(one.Addr)
	}
	return nil
}

func releaseAddress(p *Plan, e *ipam.ReleaseAddress) error {
	if err := ipam.CheckOwner(e.Owner); err != nil {
		return err
	}
	has, err := p.Taken(ipam.CanonicalOwner(e.Owner))
	if err != nil {
		return err
	}
	if err := has.gapsWithout(e.Owner, e.Address); err != nil {
		return err
	}
	return p.giveBack(has,
		func(_ ipam.Slot, addr netip.Addr) bool { return !e.Address.IsValid() || addr == e.Address })
}

// gapsWithout refuses to release one address of an interface if that leaves a gap.
func (has interfaces) gapsWithout(owner string, addr netip.Addr) error {
	for slot, one := range has {
		if one.Addr != addr {
			continue
		}
		filled := map[int]bool{}
		for other := range has {
			filled[int(other.Number)] = filled[int(other.Number)] || other.Interface == slot.Interface && other != slot
		}
		return noGap(owner, int(slot.Interface), filled)
	}
	return nil
}
