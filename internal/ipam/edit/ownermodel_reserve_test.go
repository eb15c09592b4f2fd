package edit_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// reserve is one AddReservation: first the wishes for given addresses. got has the addresses by slot.
func (m *ownerModel) reserve(e *ipam.AddReservation, got []netip.Addr, chosen func(ipam.Wish) bool) verdict {
	n := m.nets[e.Network]
	if twice(e.Wishes) {
		// whichever error Berth sees first
		return no(ipam.AlreadyExists, ipam.AlreadyInUse, ipam.OutsideSubnet, ipam.WrongType, ipam.NotEnoughCapacity)
	}
	for _, a := range n.wanted(e.Owner) {
		if n.records[a].nic != e.Number {
			return no(ipam.AlreadyExists)
		}
	}
	wishes := slices.DeleteFunc(slices.Clone(e.Wishes), func(w ipam.Wish) bool { return !chosen(w) })
	if e.Replace {
		n.changePlaces(e, wishes)
	}
	for _, byAddress := range []bool{true, false} {
		for _, w := range wishes {
			if w.Address.IsValid() != byAddress {
				continue
			}
			var a netip.Addr
			if w.Slot < len(got) {
				a = got[w.Slot]
			}
			if v := m.reserveSlot(n, e, w, a); v.refused() || v.wrong != "" {
				return v
			}
		}
	}
	return verdict{}
}

// twice reports whether two wishes name the same address.
func twice(wishes []ipam.Wish) bool {
	seen := map[netip.Addr]bool{}
	for _, w := range wishes {
		if w.Address.IsValid() && seen[w.Address] {
			return true
		}
		seen[w.Address] = true
	}
	return false
}

// changePlaces moves the owner's addresses to the slots in which they are wished for. What was there is replaced,
// unless it moved, too.
func (n *ownedNet) changePlaces(e *ipam.AddReservation, wishes []ipam.Wish) {
	moved := map[netip.Addr]bool{}
	into := map[int]bool{}
	before := maps.Clone(n.records)
	for _, w := range wishes {
		if rec := before[w.Address]; w.Address.IsValid() && rec.owner == e.Owner && !rec.replaced &&
			rec.slot != w.Slot {
			rec.slot = w.Slot
			n.records[w.Address] = rec
			moved[w.Address], into[w.Slot] = true, true
		}
	}
	for a, rec := range before {
		if rec.owner == e.Owner && !rec.replaced && !moved[a] && into[rec.slot] {
			rec.replaced = true
			n.records[a] = rec
		}
	}
}

func (m *ownerModel) reserveSlot(n *ownedNet, e *ipam.AddReservation, w ipam.Wish, got netip.Addr) verdict {
	has, there := netip.Addr{}, false
	for _, a := range n.wanted(e.Owner) {
		if n.records[a].slot == w.Slot {
			has, there = a, true
		}
	}
	meets := func(a netip.Addr) bool {
		return w.Address.IsValid() && w.Address == a || !w.Address.IsValid() &&
			(w.Pool == "" || n.pools[w.Pool].Contains(a))
	}
	static := w.Address.IsValid() && !e.Automatic
	if e.Automatic && w.Address.IsValid() && there && meets(has) && (n.kind == "vip" || n.inBand(has)) {
		return no(ipam.WrongType)
	}
	switch {
	case there && meets(has):
		rec := n.records[has]
		if static || w.Address.IsValid() || n.kind != "vip" && !n.inBand(has) {
			rec.kind = map[bool]ipam.Kind{true: ipam.Static, false: ipam.Automatic}[static]
		}
		rec.until = m.end(e, rec.until)
		n.records[has] = rec
		return n.given(got, has)
	case there && !e.Replace:
		return no(ipam.AlreadyExists)
	}
	a, v := m.toReserve(n, e, w, got, meets)
	if e.Automatic && w.Address.IsValid() && (n.kind == "vip" || n.inBand(a)) {
		return no(append(v.codes, ipam.WrongType)...)
	}
	if v.refused() || v.wrong != "" {
		return v
	}
	if there {
		old := n.records[has]
		old.replaced = true
		n.records[has] = old
	}
	rec := n.records[a]
	rec.owner, rec.nic, rec.slot, rec.replaced, rec.until = e.Owner, e.Number, w.Slot, false, m.end(e, time.Time{})
	if static || w.Address.IsValid() || n.kind != "vip" && !n.inBand(a) { // otherwise it stays static
		rec.kind = map[bool]ipam.Kind{true: ipam.Static, false: ipam.Automatic}[static]
	}
	n.records[a] = rec
	return verdict{}
}

// end returns the end of an owner: the wished one, or the old one.
func (m *ownerModel) end(e *ipam.AddReservation, before time.Time) time.Time {
	if e.For > 0 {
		return m.now.Add(time.Duration(e.For))
	}
	return before
}

// toReserve returns the address for a wish that no reservation satisfies: the given one, a replaced one of the slot,
// one that the owner holds, or a free one.
func (m *ownerModel) toReserve(n *ownedNet, e *ipam.AddReservation, w ipam.Wish, got netip.Addr,
	meets func(netip.Addr) bool) (netip.Addr, verdict) {
	if a := w.Address; a.IsValid() {
		left := e.Replace && m.leaves(n, e, a)
		if left {
			n.put(a, n.records[a].unowned())
		}
		rec := n.records[a]
		own := n.holds(rec, e.Owner)
		switch {
		case !slices.Contains(n.hosts, a):
			return a, no(ipam.OutsideSubnet)
		case rec.owner != "" && rec.owner != e.Owner, rec.held && !own && !e.Force && !left:
			return a, no(ipam.AlreadyInUse)
		case rec.owner == e.Owner && !rec.replaced:
			return a, no(ipam.AlreadyExists)
		}
		return a, n.given(got, a)
	}
	pool := w.Pool
	if pool == "" {
		pool = n.poolOf(e.Owner)
	}
	for _, from := range []func(netip.Addr, ownedRecord) bool{
		func(a netip.Addr, rec ownedRecord) bool {
			return rec.owner == e.Owner && rec.replaced && rec.nic == e.Number && rec.slot == w.Slot && meets(a)
		},
		func(a netip.Addr, rec ownedRecord) bool {
			return n.kind != "vip" && rec.held && rec.owner == "" && n.holds(rec, e.Owner) && n.open(a, pool)
		},
	} {
		all := slices.DeleteFunc(slices.Clone(n.hosts), func(a netip.Addr) bool { return !from(a, n.records[a]) })
		switch {
		case len(all) == 0:
		case !got.IsValid():
			m.unsure = m.unsure || len(all) > 1
			return all[0], verdict{}
		case !from(got, n.records[got]):
			return got, verdict{wrong: "it gave " + got.String() + ", though the owner has had another one"}
		default:
			return got, verdict{}
		}
	}
	return n.choice(got, pool)
}

// leaves reports whether the owner of an address, or else its holder, gets something else by the same request.
func (m *ownerModel) leaves(n *ownedNet, e *ipam.AddReservation, a netip.Addr) bool {
	rec := n.records[a]
	if rec.owner != "" {
		return rec.owner != e.Owner && m.gives(n, rec.owner, a, func(one *ipam.AddReservation) bool {
			return rec.replaced || one.Number == rec.nic &&
				slices.ContainsFunc(one.Wishes, func(w ipam.Wish) bool {
					return w.Slot == rec.slot && (w.Address.IsValid() || rec.kind == ipam.Static)
				})
		})
	}
	return slices.ContainsFunc(m.wanted, func(one ipam.AddReservation) bool {
		return one.Owner != e.Owner && n.holds(rec, one.Owner) &&
			m.gives(n, one.Owner, a, func(*ipam.AddReservation) bool { return true })
	})
}

// gives reports whether an owner in the request is not to have an address: it is asked for on other networks only, or
// here without the address, and instead is true.
func (m *ownerModel) gives(n *ownedNet, owner string, a netip.Addr, instead func(*ipam.AddReservation) bool) bool {
	there := false
	for i := range m.wanted {
		one := &m.wanted[i]
		if one.Owner != owner {
			continue
		}
		if m.nets[one.Network] == n {
			return instead(one) && !slices.ContainsFunc(one.Wishes, func(w ipam.Wish) bool { return w.Address == a })
		}
		there = true
	}
	return there
}

// holds reports whether an owner holds an address.
func (n *ownedNet) holds(rec ownedRecord, owner string) bool {
	return rec.held && (slices.Contains(n.owners(rec.name), owner) || rec.mac != (ipam.MAC{}) &&
		rec.mac.String() == owner)
}

// bind is BindReservations; got has the addresses in the order of the owners.
func (m *ownerModel) bind(e *ipam.BindReservations, got []netip.Addr) verdict {
	wishes := func(net, owner string, nic, slot int) bool {
		return slices.ContainsFunc(e.Wanted, func(one ipam.AddReservation) bool {
			return one.Network == net && one.Owner == owner && one.Number == nic &&
				slices.ContainsFunc(one.Wishes, func(w ipam.Wish) bool { return w.Slot == slot })
		})
	}
	seen := map[[2]string]bool{}
	for _, one := range e.Wanted {
		if twice(one.Wishes) {
			return m.reserve(&one, nil, nil)
		}
		if seen[[2]string{one.Network, one.Owner}] {
			return no(ipam.AlreadyExists)
		}
		seen[[2]string{one.Network, one.Owner}] = true
		for net, n := range m.nets {
			for a, rec := range n.records {
				if rec.owner == one.Owner && !wishes(net, one.Owner, rec.nic, rec.slot) {
					rec.replaced = true
					n.records[a] = rec
				}
			}
		}
	}
	m.wanted = e.Wanted
	for _, byAddress := range []bool{true, false} {
		rest := got
		for _, one := range e.Wanted {
			one.Replace = true
			var mine []netip.Addr
			if len(rest) >= len(one.Wishes) {
				mine, rest = rest[:len(one.Wishes)], rest[len(one.Wishes):]
			}
			v := m.reserve(&one, mine, func(w ipam.Wish) bool { return w.Address.IsValid() || !byAddress })
			if v.refused() || v.wrong != "" {
				return v
			}
		}
	}
	return verdict{}
}

// endOwner is ReleaseOwner.
func (m *ownerModel) endOwner(e *ipam.ReleaseOwner) {
	of := func(name string) bool { return name == e.Owner || e.Under && strings.HasPrefix(name, e.Owner+"/") }
	if e.Replaced {
		m.endReplaced(of)
		return
	}
	for _, n := range m.nets {
		for a, rec := range n.records {
			if of(rec.owner) {
				n.put(a, rec.unowned())
			}
		}
	}
}

// endReplaced ends replaced addresses whose replacement is in use: the address in the same slot or, if there is
// none, any of the owner.
func (m *ownerModel) endReplaced(of func(string) bool) {
	before := m.clone()
	for name, n := range m.nets {
		for a, rec := range before.nets[name].records {
			if !of(rec.owner) || !rec.replaced {
				continue
			}
			there, runs, any := false, false, false
			for other, x := range before.nets {
				for _, w := range x.records {
					if w.owner != rec.owner || w.replaced {
						continue
					}
					any = any || w.held
					if other == name && w.nic == rec.nic && w.slot == rec.slot {
						there, runs = true, w.held
					}
				}
			}
			if there && runs || !there && any {
				n.put(a, n.records[a].unowned())
			}
		}
	}
}

// unreserve ends the reservation of one address, or of all with the zero one. If a wanted one ends, one that it
// replaced is wanted again; again tells which.
func (m *ownerModel) unreserve(e *ipam.RemoveReservation, again func(netip.Addr) bool) verdict {
	n := m.nets[e.Network]
	if e.Address.IsValid() && n.leavesGap(e.Owner, e.Address) {
		return no("") // without a code
	}
	var gone []ownedRecord
	for a, rec := range n.records {
		if rec.owner == e.Owner && (!e.Address.IsValid() || e.Address == a) {
			gone = append(gone, rec)
			n.put(a, rec.unowned())
		}
	}
	if len(gone) == 0 {
		return no(ipam.IPMissing)
	}
	if !e.Address.IsValid() || gone[0].replaced {
		return verdict{}
	}
	candidates, chosen := 0, 0
	for a, rec := range n.records {
		if rec.owner != e.Owner || !rec.replaced || rec.nic != gone[0].nic || rec.slot != gone[0].slot {
			continue
		}
		if candidates++; again(a) {
			chosen++
			rec.replaced = false
			n.records[a] = rec
		}
	}
	if chosen != min(candidates, 1) {
		return verdict{wrong: "what was replaced is not wanted again"}
	}
	return verdict{}
}

// leavesGap reports whether an interface would have a later slot, but not that of an address (GA-24). A replaced
// address takes the slot again.
func (n *ownedNet) leavesGap(owner string, a netip.Addr) bool {
	one := n.records[a]
	if one.owner != owner || one.replaced {
		return false
	}
	later := false
	for _, rec := range n.records {
		switch {
		case rec.owner != owner || rec.nic != one.nic:
		case rec.replaced && rec.slot == one.slot:
			return false
		case !rec.replaced && rec.slot > one.slot:
			later = true
		}
	}
	return later
}
