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

// reserve reserves addresses for an owner.
func (m *planModel) reserve(e *ipam.AddReservation) (given []netip.Addr, no refusals) {
	for i, w := range e.Wishes {
		if w.Address.IsValid() &&
			slices.ContainsFunc(e.Wishes[:i], func(other ipam.Wish) bool { return other.Address == w.Address }) {
			return nil, refusals{ipam.ErrInUse} // before any other check
		}
	}
	if len(m.subnets) == 0 {
		return nil, refusals{ipam.ErrExhausted}
	}
	owned := map[int]netip.Addr{}
	for _, sub := range m.subnets {
		free, held := sub.reserved(e.Owner)
		for _, a := range append(free, held...) {
			if sub.records[a].ownedNIC == e.Number {
				owned[sub.records[a].ownedSlot] = a
			}
		}
	}
	return eachWish(e.Wishes, func(w ipam.Wish) (netip.Addr, refusals) {
		if a, there := owned[w.Slot]; there {
			if !m.meets(w, a) {
				return a, refusals{ipam.ErrInUse}
			}
			return a, nil
		}
		sub, a, no := m.reservable(e, w)
		if len(no) > 0 {
			return a, no
		}
		rec := sub.records[a]
		if !rec.held {
			rec = planRecord{}
		}
		rec.owner, rec.ownedNIC, rec.ownedSlot = e.Owner, e.Number, w.Slot
		sub.records[a] = rec
		return a, nil
	})
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
		m.unsure = m.unsure || one.IsValid()
		if !one.IsValid() || w.Slot < len(m.hint) && m.hint[w.Slot] == a {
			one = a
		}
	}
	return one
}

func (m *planModel) unreserve(e *ipam.RemoveReservation) refusals {
	if e.Address.IsValid() && m.leavesGap(e) {
		return refusals{ipam.ErrInvalid}
	}
	found := false
	for _, sub := range m.subnets {
		free, held := sub.reserved(e.Owner)
		for _, a := range append(free, held...) {
			if e.Address.IsValid() && e.Address != a {
				continue
			}
			found = true
			rec := sub.records[a]
			rec.owner, rec.ownedNIC, rec.ownedSlot = "", 0, 0
			if rec.held {
				sub.records[a] = rec
			} else {
				delete(sub.records, a)
			}
		}
	}
	if !found {
		return refusals{ipam.ErrNotFound}
	}
	return nil
}

// leavesGap reports whether the interface would have a later slot, but not that of the address (GA-24).
func (m *planModel) leavesGap(e *ipam.RemoveReservation) bool {
	var one planRecord
	for _, sub := range m.subnets {
		if rec := sub.records[e.Address]; rec.owner == e.Owner {
			one = rec
		}
	}
	for _, sub := range m.subnets {
		for _, rec := range sub.records {
			if one.owner != "" && rec.owner == one.owner && rec.ownedNIC == one.ownedNIC &&
				rec.ownedSlot > one.ownedSlot {
				return true
			}
		}
	}
	return false
}
