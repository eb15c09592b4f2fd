package edit_test

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// take is GA-24, one wish after the other.
func (m *planModel) take(e *ipam.TakeAddress) (given []netip.Addr, no refusals) {
	has := m.taken(e.Owner)
	in := e.Interface
	count := 0
	for at := range has {
		if at[0] == in.Number {
			count++
		}
	}
	switch {
	case in.Action == ipam.AddInterface && count > 0:
		no = append(no, ipam.ErrInUse)
	case (in.Action == ipam.ModifyInterface || in.Action == ipam.RemoveInterface) && count == 0:
		no = append(no, ipam.ErrNotFound)
	}
	if len(m.subnets) == 0 {
		no = append(no, ipam.ErrExhausted)
	}
	no = append(no, m.gaps(in, has)...)
	if len(no) > 0 {
		return nil, no
	}
	if in.Action == ipam.RemoveInterface {
		for slot := range 8 {
			if a, ok := has[[2]int{in.Number, slot}]; ok {
				m.release(m.at(a), a)
			}
		}
		return nil, nil
	}
	for _, w := range in.Wishes { // released addresses, and those replaced by a named one, go first
		at := [2]int{in.Number, w.Slot}
		if a, ok := has[at]; ok && in.Action == ipam.ModifyInterface &&
			(w.None || w.Address.IsValid() && w.Address != a) {
			m.release(m.at(a), a)
			delete(has, at)
		}
	}
	return eachWish(in.Wishes, func(w ipam.Wish) (netip.Addr, refusals) { return m.takeSlot(e, w, has) })
}

// eachWish grants wishes until one is refused, first those for given addresses. It returns the addresses by slot.
func eachWish(wishes []ipam.Wish, grant func(ipam.Wish) (netip.Addr, refusals)) (given []netip.Addr, no refusals) {
	bySlot := map[int]netip.Addr{}
	for _, named := range []bool{true, false} {
		for _, w := range wishes {
			if w.None || w.Address.IsValid() != named {
				continue
			}
			if bySlot[w.Slot], no = grant(w); len(no) > 0 {
				return nil, no
			}
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(bySlot)) {
		given = append(given, bySlot[slot])
	}
	return given, nil
}

// gaps refuses an interface whose slots are not numbered from 0 without gaps.
func (m *planModel) gaps(in ipam.Interface, has map[[2]int]netip.Addr) (no refusals) {
	filled := map[int]bool{}
	for at := range has {
		if at[0] == in.Number {
			filled[at[1]] = true
		}
	}
	for _, w := range in.Wishes {
		if w.None && !filled[w.Slot] {
			no = append(no, ipam.ErrNotFound)
		}
		filled[w.Slot] = !w.None
	}
	for slot := range 8 {
		if filled[slot+1] && !filled[slot] {
			no = append(no, ipam.ErrInvalid)
		}
	}
	return no
}

func (m *planModel) takeSlot(e *ipam.TakeAddress, w ipam.Wish, has map[[2]int]netip.Addr) (netip.Addr, refusals) {
	old, there := has[[2]int{e.Interface.Number, w.Slot}]
	if there && m.meets(w, old) && (w.Address.IsValid() || e.Interface.Action == ipam.Ensure) {
		return old, nil
	}
	if there && e.Interface.Action != ipam.ModifyInterface {
		return old, refusals{ipam.ErrInUse}
	}
	var sub *planSubnet
	var no refusals
	a := w.Address
	if a.IsValid() {
		if sub, no = m.may(e.Owner, a, e.Force); sub != nil && sub.records[a].held {
			no = append(no, ipam.ErrInUse)
		}
	} else {
		sub, a, no = m.pick(e.Owner, w.Pool)
	}
	if len(no) > 0 {
		return a, no
	}
	m.hold(sub, a, planRecord{kind: ipam.External, name: e.Owner, nic: e.Interface.Number, slot: w.Slot})
	if there {
		m.release(m.at(old), old)
	}
	return a, nil
}

func (m *planModel) releaseTaken(e *ipam.ReleaseAddress) refusals {
	has := m.taken(e.Owner)
	for at, a := range has { // only the last address of an interface can go alone
		if _, more := has[[2]int{at[0], at[1] + 1}]; more && a == e.Address {
			return refusals{ipam.ErrInvalid}
		}
	}
	for nic := range 8 {
		for slot := range 8 {
			if a, ok := has[[2]int{nic, slot}]; ok && (!e.Address.IsValid() || e.Address == a) {
				m.release(m.at(a), a)
			}
		}
	}
	return nil
}

// reserve reserves one address for an owner. The model of owners has more (ownerModel).
func (m *planModel) reserve(e *ipam.AddReservation) (given []netip.Addr, no refusals) {
	if len(m.subnets) == 0 {
		return nil, refusals{ipam.ErrExhausted}
	}
	for _, sub := range m.subnets {
		if a := sub.reserved(e.Owner); a.IsValid() {
			if !m.meets(e.Wishes[0], a) {
				return nil, refusals{ipam.ErrInUse}
			}
			return []netip.Addr{a}, nil
		}
	}
	sub, a, no := m.reservable(e, e.Wishes[0])
	if len(no) > 0 {
		return nil, no
	}
	rec := sub.records[a]
	if !rec.held {
		rec = planRecord{}
	}
	rec.owner = e.Owner
	sub.records[a] = rec
	return []netip.Addr{a}, nil
}

func (m *planModel) reservable(e *ipam.AddReservation, w ipam.Wish) (sub *planSubnet, a netip.Addr, no refusals) {
	if w.Address.IsValid() {
		sub, no = m.may(e.Owner, w.Address, e.Force)
		if sub == nil {
			return nil, w.Address, no
		}
		rec := sub.records[w.Address]
		if rec.owner != "" || rec.held && (rec.kind == ipam.Gateway || !rec.by(e.Owner) && !e.Force) {
			no = append(no, ipam.ErrInUse)
		}
		return sub, w.Address, no
	}
	for _, sub := range m.subnets { // the owner reserves an address that it uses; which of several does not matter
		if a := m.inUse(sub, e.Owner, w); a.IsValid() {
			return sub, a, nil
		}
	}
	for _, sub := range m.subnets {
		if a := m.remembered(sub, w.Pool, func(rec planRecord) bool { return rec.by(e.Owner) }); a.IsValid() {
			return sub, a, nil
		}
	}
	return m.pick("", w.Pool)
}

// by reports whether an owner holds the address, by its name or its MAC.
func (rec planRecord) by(owner string) bool {
	return rec.name == owner || rec.mac != (ipam.MAC{}) && rec.mac.String() == owner
}

func (m *planModel) inUse(sub *planSubnet, owner string, w ipam.Wish) (one netip.Addr) {
	for a, rec := range sub.records {
		if !rec.held || !rec.by(owner) || rec.owner != "" || !sub.inPools(w.Pool, a) {
			continue
		}
		if !one.IsValid() || slices.Contains(m.hint, a) {
			one = a
		}
	}
	return one
}

func (m *planModel) unreserve(e *ipam.RemoveReservation) refusals {
	for _, sub := range m.subnets {
		a := sub.reserved(e.Owner)
		if !a.IsValid() || e.Address.IsValid() && e.Address != a {
			continue
		}
		rec := sub.records[a]
		if rec.owner = ""; rec.held {
			sub.records[a] = rec
		} else {
			delete(sub.records, a)
		}
		return nil
	}
	return refusals{ipam.ErrNotFound}
}
