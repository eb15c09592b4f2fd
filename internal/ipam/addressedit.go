package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// ready fills in what an interface without wishes means, and refuses what makes no sense in any state.
func (in *Interface) ready(owner string) error {
	if err := CheckOwner(owner); err != nil {
		return err
	}
	if len(in.Wishes) == 0 && in.Action != RemoveInterface {
		in.Wishes = []Wish{{}}
	}
	switch in.Action {
	case Ensure, AddInterface, ModifyInterface, RemoveInterface:
	default:
		return &refusal{ErrInvalid, fmt.Sprintf("%q is nothing to do with an interface: add, modify or remove it", in.Action)}
	}
	if err := in.check(); err != nil {
		return &refusal{ErrInvalid, fmt.Sprintf("the interface of %s: %v", owner, err)}
	}
	slices.SortFunc(in.Wishes, func(a, b Wish) int { return a.Slot - b.Slot })
	return nil
}

// each fulfils the wishes, those for a given address first, lest one of the others is given it. It returns the addresses by
// slot, without those of slots that have none.
func (in *Interface) each(fulfil func(Slot, Wish) (netip.Addr, error)) ([]netip.Addr, error) {
	addrs := make([]netip.Addr, len(in.Wishes))
	for _, given := range []bool{true, false} {
		for i, w := range in.Wishes {
			if w.Address.IsValid() != given {
				continue
			}
			var err error
			if addrs[i], err = fulfil(Slot{uint8(in.Number), uint8(w.Slot)}, w); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(addrs, func(addr netip.Addr) bool { return !addr.IsValid() }), nil
}

// interfaces is what an owner has taken in a network.
type interfaces map[Slot]picked

func (e *TakeAddress) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	in := e.Interface
	in.Wishes = slices.Clone(in.Wishes)
	if err := in.ready(e.Owner); err != nil {
		return Result{}, err
	}
	e.Owner = canonicalOwner(e.Owner)
	has, err := p.taken(e.Owner)
	if err != nil {
		return Result{}, err
	}
	if err := has.admit(e.Owner, &in); err != nil {
		return Result{}, err
	}
	subnets, err := p.reach(e.Subnet)
	if err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	if len(subnets) == 1 {
		result.Subnet, result.CIDR = subnets[0].ID, subnets[0].CIDR
	}
	if err := p.makeRoom(&in, has); err != nil {
		return Result{}, err
	}
	result.Addresses, err = in.each(func(slot Slot, w Wish) (netip.Addr, error) {
		return p.settleSlot(e, slot, w, subnets, has[slot], in.Action)
	})
	if err != nil {
		return Result{}, err
	}
	if in.Action == RemoveInterface {
		result.Addresses, err = p.giveBack(has, func(slot Slot, _ netip.Addr) bool { return int(slot.Interface) == in.Number })
		return result, err
	}
	return result, p.keep()
}

// taken reads what was taken for an owner in the network.
func (p *plan) taken(owner string) (interfaces, error) {
	all := interfaces{}
	for _, id := range p.ix.networkIndex(p.n.ID).subnets {
		sx := p.ix.subnets[id]
		for addr := range sx.byName.of(rememberedName(owner)) {
			l, err := p.lease(id, addr)
			if err != nil {
				return nil, err
			}
			if l.Held() && l.Kind == External && l.Name == owner {
				all[l.Slot] = picked{sx.record.value, addr, l}
			}
		}
	}
	return all, nil
}

// admit refuses an action on an interface that is not as the action takes it to be, numbers the next one, and sees to it
// that no gaps come about (GA-24).
func (has interfaces) admit(owner string, in *Interface) error {
	next := 0
	filled := map[int]bool{} // slots of the interface
	for slot := range has {
		next = max(next, int(slot.Interface)+1)
		filled[int(slot.Number)] = filled[int(slot.Number)] || int(slot.Interface) == in.Number
	}
	exists := has.has(in.Number)
	switch {
	case in.Number == -1 && next >= maxSlots:
		return &refusal{ErrExhausted, fmt.Sprintf("%s has %d interfaces, and more are not kept", owner, next)}
	case in.Number == -1:
		in.Number = next
		filled = map[int]bool{}
	case in.Action == AddInterface && exists:
		return &refusal{ErrInUse, fmt.Sprintf("%s has interface %d already; change it with %d:modify,...", owner, in.Number, in.Number)}
	case (in.Action == ModifyInterface || in.Action == RemoveInterface) && !exists:
		return &refusal{ErrNotFound, fmt.Sprintf("%s has no interface %d; add it with %d:ip0=...", owner, in.Number, in.Number)}
	}
	for _, w := range in.Wishes {
		if w.None && !filled[w.Slot] {
			return &refusal{ErrNotFound, fmt.Sprintf("%s has no ip%d at interface %d", owner, w.Slot, in.Number)}
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
	for slot := range maxSlots {
		switch {
		case !filled[slot] && gap < 0:
			gap = slot
		case filled[slot] && gap >= 0:
			return &refusal{ErrInvalid, fmt.Sprintf("interface %d of %s would have ip%d and no ip%d: the addresses of an interface are numbered without gaps", number, owner, slot, gap)}
		}
	}
	return nil
}

// makeRoom releases what is given back, and what another given address replaces, before anything is taken: two slots may
// change places.
func (p *plan) makeRoom(in *Interface, has interfaces) error {
	for _, w := range in.Wishes {
		slot := Slot{uint8(in.Number), uint8(w.Slot)}
		one, there := has[slot]
		if !there || in.Action != ModifyInterface || !w.None && (!w.Address.IsValid() || w.Address == one.addr) {
			continue
		}
		if err := p.release(one.sub, one.record); err != nil {
			return err
		}
		delete(has, slot)
	}
	return nil
}

// settleSlot makes one slot of an interface what a wish wants of it, and returns its address; the zero one for none.
func (p *plan) settleSlot(e *TakeAddress, slot Slot, w Wish, subnets []*Subnet, has picked, action Action) (netip.Addr, error) {
	switch {
	case w.None:
		return netip.Addr{}, nil
	case has.record == nil:
		return p.takeFor(e, slot, w, subnets)
	case p.meets(w, has.sub, has.addr) && (w.Address.IsValid() || action == Ensure):
		return has.addr, nil
	case action != ModifyInterface:
		return netip.Addr{}, &refusal{ErrInUse, fmt.Sprintf("%s has %s as %s in network %s already; change it with %d:modify,ip%d=...",
			e.Owner, has.addr, slot, p.n.Name, slot.Interface, slot.Number)}
	}
	addr, err := p.takeFor(e, slot, w, subnets) // first the new one, then the old one goes
	if err != nil {
		return netip.Addr{}, err
	}
	return addr, p.release(has.sub, has.record)
}

// takeFor takes a free address for a slot.
func (p *plan) takeFor(e *TakeAddress, slot Slot, w Wish, subnets []*Subnet) (netip.Addr, error) {
	found, err := p.pick(e.Owner, w, subnets, e.Force)
	if err != nil {
		return netip.Addr{}, err
	}
	if found.record.Held() {
		return netip.Addr{}, p.heldError(found.record)
	}
	return found.addr, p.writeTaken(found, e.Owner, slot)
}

// writeTaken puts a free address into the hands of what is no container.
func (p *plan) writeTaken(at picked, owner string, slot Slot) error {
	e := &Event{Verb: LeaseTaken, Subnet: at.sub.CIDR, Address: at.addr, Name: owner, Detail: External.String() + " " + slot.String()}
	id, err := p.tell(e, nil, nil)
	if err != nil {
		return err
	}
	after := &Lease{ID: id, Address: at.addr, Kind: External, Name: owner, Host: p.host, Since: eventTime(id), Slot: slot, Reservation: at.record.reserved()}
	return p.setLease(at.sub.ID, at.addr, at.record, after)
}

// giveBack releases what of it goes, by slot.
func (p *plan) giveBack(has interfaces, goes func(Slot, netip.Addr) bool) (released []netip.Addr, err error) {
	for _, slot := range slots(has) {
		one := has[slot]
		if !goes(slot, one.addr) {
			continue
		}
		if err := p.release(one.sub, one.record); err != nil {
			return nil, err
		}
		released = append(released, one.addr)
	}
	return released, nil
}

func (e *ReleaseAddress) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	if err := CheckOwner(e.Owner); err != nil {
		return Result{}, err
	}
	has, err := p.taken(canonicalOwner(e.Owner))
	if err != nil {
		return Result{}, err
	}
	if err := has.gapsWithout(e.Owner, e.Address); err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	result.Addresses, err = p.giveBack(has, func(_ Slot, addr netip.Addr) bool { return !e.Address.IsValid() || addr == e.Address })
	return result, err
}

// gapsWithout refuses to release one address of an interface that would leave a gap.
func (has interfaces) gapsWithout(owner string, addr netip.Addr) error {
	for slot, one := range has {
		if one.addr != addr {
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
