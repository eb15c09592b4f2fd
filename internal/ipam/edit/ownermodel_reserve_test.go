package edit_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// reserve is one AddReservation: the wishes for given addresses first. got is what was given, by slot.
func (m *ownerModel) reserve(e *ipam.AddReservation, got []netip.Addr, chosen func(ipam.Wish) bool) verdict {
	n := m.nets[e.Network]
	if twice(e.Wishes) {
		// whatever is seen first
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

// twice tells whether an address is wished for in two places.
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

// changePlaces gives addresses of the owner, wished for in other slots, these slots; what was there before is replaced,
// unless it has moved itself.
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
	if static || w.Address.IsValid() || n.kind != "vip" && !n.inBand(a) { // else it is the static one that it was
		rec.kind = map[bool]ipam.Kind{true: ipam.Static, false: ipam.Automatic}[static]
	}
	n.records[a] = rec
	return verdict{}
}

// end is when an owner's time is over, as a wish says or as it was.
func (m *ownerModel) end(e *ipam.AddReservation, before time.Time) time.Time {
	if e.For > 0 {
		return m.now.Add(time.Duration(e.For))
	}
	return before
}

// toReserve is the address for a wish that nothing meets yet: the one it names, one of the owner's that was replaced in
// the same slot, one that the owner has in hand, or a free one.
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

// leaves tells whether whose an address is gets another one in its place by the same request: they change places.
func (m *ownerModel) leaves(n *ownedNet, e *ipam.AddReservation, a netip.Addr) bool {
	rec := n.records[a]
	byHand := rec.held && rec.docker == ipam.ID{}
	i := slices.IndexFunc(m.wanted, func(one ipam.AddReservation) bool {
		return one.Owner == rec.owner && m.nets[one.Network] == n
	})
	if rec.owner == "" || rec.owner == e.Owner || byHand || i < 0 || m.wanted[i].Number != rec.nic {
		return false
	}
	another := false
	for _, w := range m.wanted[i].Wishes {
		if w.Address == a {
			return false
		}
		another = another || w.Slot == rec.slot && w.Address.IsValid()
	}
	return another
}

// holds tells whether what is held is in the hands of an owner.
func (n *ownedNet) holds(rec ownedRecord, owner string) bool {
	return rec.held && (slices.Contains(n.owners(rec.name), owner) || rec.mac != (ipam.MAC{}) &&
		rec.mac.String() == owner)
}

// bind makes what is wanted what is reserved; got is what was given, in the order of the owners.
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

// end is ReleaseOwner.
func (m *ownerModel) endOwner(e *ipam.ReleaseOwner) {
	of := func(name string) bool { return name == e.Owner || e.Under && strings.HasPrefix(name, e.Owner+"/") }
	if e.Replaced {
		m.endReplaced(of)
		return
	}
	for _, n := range m.nets {
		for a, rec := range n.records {
			if of(rec.owner) {
				rec = rec.unowned()
			}
			if rec.external && of(rec.name) {
				rec = rec.unheld()
			}
			n.put(a, rec)
		}
	}
}

// endReplaced ends what was replaced where what replaced it is in use: the address in the same place, or, where there
// is none, any of the owner's.
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

// unreserve ends the reservation of one address, or with the zero one of all. Where a wanted one goes, one that it had
// replaced is wanted again: again is which.
func (m *ownerModel) unreserve(e *ipam.RemoveReservation, again func(netip.Addr) bool) verdict {
	n := m.nets[e.Network]
	if e.Address.IsValid() && n.leavesGap(e.Owner, e.Address) {
		return no("") // of no code
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

// leavesGap tells whether an interface of an owner would have a later slot and not that of an address (GA-24). What the
// address was to replace comes back into its slot.
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

// take is TakeAddress for the first place of an owner's first interface.
func (n *ownedNet) take(owner string, w ipam.Wish, got netip.Addr) verdict {
	for a, rec := range n.records {
		if !rec.external || rec.name != owner {
			continue
		}
		if w.Address.IsValid() && w.Address != a || w.Pool != "" && !n.pools[w.Pool].Contains(a) {
			return no("") // of no code: the interface is there, and otherwise
		}
		return n.given(got, a)
	}
	_, v := n.choice(got, w.Pool)
	own := n.wanted(owner)
	at := slices.IndexFunc(own,
		func(a netip.Addr) bool { return !n.records[a].held && (w.Pool == "" || n.open(a, w.Pool)) })
	rec := n.records[w.Address]
	switch {
	case w.Address.IsValid() && !slices.Contains(n.hosts, w.Address):
		return no(ipam.OutsideSubnet)
	case w.Address.IsValid() && (rec.held || rec.owner != "" && rec.owner != owner):
		return no(ipam.AlreadyInUse)
	case w.Address.IsValid():
		v = n.given(got, w.Address)
	case at >= 0:
		v = n.given(got, own[at])
	}
	if !v.refused() && v.wrong == "" {
		rec := n.records[got]
		rec.held, rec.external, rec.name = true, true, owner
		n.records[got] = rec
	}
	return v
}
