package ipam_test

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"

	"go4.org/netipx"
)

// apply makes an edit of the model, and answers with the addresses that it gives, by slot, or why it is refused. Where it is
// refused the model is spoilt.
func (m *planModel) apply(e ipam.Edit) ([]netip.Addr, refusals) {
	switch e := e.(type) {
	case *ipam.AddSubnet:
		return nil, m.addSubnet(e)
	case *ipam.ModifySubnet:
		return nil, m.modifySubnet(e)
	case *ipam.RemoveSubnet:
		return nil, m.removeSubnet(e)
	case *ipam.AddPool:
		return nil, m.addPool(e)
	case *ipam.RemovePool:
		return nil, m.removePool(e)
	case *ipam.ModifyPool:
		return nil, m.renamePool(e)
	case *ipam.AddExclusion:
		return nil, m.exclude(e)
	case *ipam.RemoveExclusion:
		return nil, m.include(e)
	case *ipam.TakeAddress:
		return m.take(e)
	case *ipam.ReleaseAddress:
		return nil, m.releaseTaken(e)
	case *ipam.AddReservation:
		return m.reserve(e)
	case *ipam.RemoveReservation:
		return nil, m.unreserve(e)
	}
	panic("an edit that the model does not know")
}

func (m *planModel) overlaps(cidr netip.Prefix, self *planSubnet) bool {
	return slices.ContainsFunc(m.subnets, func(sub *planSubnet) bool { return sub != self && sub.cidr.Overlaps(cidr) })
}

func (m *planModel) addSubnet(e *ipam.AddSubnet) (no refusals) {
	sub := &planSubnet{cidr: e.CIDR, gateway: e.Gateway, records: map[netip.Addr]planRecord{}}
	if m.overlaps(e.CIDR, nil) {
		no = append(no, ipam.ErrOverlap)
	}
	if e.Gateway.IsValid() && !sub.host(e.Gateway) {
		no = append(no, ipam.ErrInvalid)
	}
	if e.Pool {
		sub.pools = []planPool{{"", ipam.Range{IPRange: netipx.RangeOfPrefix(e.CIDR)}}}
	}
	m.subnets = append(m.subnets, sub)
	m.setGateway(sub)
	return no
}

func (m *planModel) setGateway(sub *planSubnet) {
	if sub.gateway.IsValid() {
		sub.records[sub.gateway] = planRecord{held: true, kind: ipam.Gateway, used: m.tick()}
	}
}

func (m *planModel) named(cidr string) *planSubnet {
	for _, sub := range m.subnets {
		if sub.cidr.String() == cidr {
			return sub
		}
	}
	return nil
}

func (m *planModel) modifySubnet(e *ipam.ModifySubnet) (no refusals) {
	sub := m.named(e.Subnet)
	if sub == nil {
		return refusals{ipam.ErrNotFound}
	}
	was, gateway := sub.cidr, sub.gateway
	if e.Gateway != nil {
		gateway = *e.Gateway
	}
	if e.CIDR != nil {
		sub.cidr = *e.CIDR
	}
	if m.attached(sub) && (sub.cidr != was || gateway != sub.gateway) {
		no = append(no, ipam.ErrInUse)
	}
	if was.Addr().Is4() != sub.cidr.Addr().Is4() {
		return append(no, ipam.ErrInvalid)
	}
	if m.overlaps(sub.cidr, sub) {
		no = append(no, ipam.ErrOverlap)
	}
	no = append(no, m.cutOff(sub, gateway)...)
	if gateway != sub.gateway {
		delete(sub.records, sub.gateway)
		switch rec := sub.records[gateway]; {
		case !gateway.IsValid():
		case !sub.host(gateway):
			no = append(no, ipam.ErrInvalid)
		case rec.held || rec.owner != "":
			no = append(no, ipam.ErrInUse)
		}
		sub.gateway = gateway
		m.setGateway(sub)
	}
	return no
}

// cutOff refuses what a subnet of another size has no room for, and trims the rest.
func (m *planModel) cutOff(sub *planSubnet, gateway netip.Addr) (no refusals) {
	for _, x := range sub.exclusions {
		if !sub.cidr.Contains(x.r.From()) || !sub.cidr.Contains(x.r.To()) {
			no = append(no, ipam.ErrInUse)
		}
	}
	for a, rec := range sub.records {
		if sub.host(a) {
			continue
		}
		if (rec.held || rec.owner != "") && (a != sub.gateway || gateway == a) {
			no = append(no, ipam.ErrInUse)
		}
		delete(sub.records, a)
	}
	var left []planPool
	for _, p := range sub.pools {
		for a := sub.cidr.Addr(); sub.cidr.Contains(a); a = a.Next() {
			if !p.r.Contains(a) {
				continue
			}
			to := p.r.To()
			if last := netipx.RangeOfPrefix(sub.cidr).To(); last.Less(to) {
				to = last
			}
			left = append(left, planPool{p.name, ipam.Range{IPRange: netipx.IPRangeFrom(a, to)}})
			break
		}
	}
	sub.pools = left
	return no
}

func (m *planModel) removeSubnet(e *ipam.RemoveSubnet) (no refusals) {
	sub := m.named(e.Subnet)
	if sub == nil {
		return refusals{ipam.ErrNotFound}
	}
	for _, rec := range sub.records {
		if rec.held && (rec.kind != ipam.Gateway) || rec.owner != "" {
			no = append(no, ipam.ErrInUse)
		}
	}
	if m.attached(sub) {
		no = append(no, ipam.ErrInUse)
	}
	m.subnets = slices.DeleteFunc(m.subnets, func(other *planSubnet) bool { return other == sub })
	return no
}

func (m *planModel) addPool(e *ipam.AddPool) (no refusals) {
	sub := m.holding(e.Range)
	if sub == nil {
		return refusals{ipam.ErrInvalid}
	}
	if !slices.ContainsFunc(hosts(sub.cidr), e.Range.Contains) {
		no = append(no, ipam.ErrInvalid)
	}
	for _, p := range sub.pools {
		if p.r.Overlaps(e.Range.IPRange) {
			no = append(no, ipam.ErrOverlap)
		}
	}
	sub.pools = append(sub.pools, planPool{e.Name, e.Range})
	return no
}

func (m *planModel) removePool(e *ipam.RemovePool) refusals {
	found := false
	cut := func(sub *planSubnet, is func(planPool) []ipam.Range) {
		var left []planPool
		for _, p := range sub.pools {
			parts := is(p)
			found = found || len(parts) != 1 || parts[0] != p.r
			for _, part := range parts {
				left = append(left, planPool{p.name, part})
			}
		}
		sub.pools = left
	}
	if r, ok := asRange(e.Pool); ok {
		sub := m.holding(r)
		if sub == nil {
			return refusals{ipam.ErrInvalid}
		}
		cut(sub, func(p planPool) []ipam.Range { return m.without(p.r, r) })
	} else {
		for _, sub := range m.subnets {
			cut(sub, func(p planPool) []ipam.Range {
				if p.name == e.Pool {
					return nil
				}
				return []ipam.Range{p.r}
			})
		}
	}
	if !found {
		return refusals{ipam.ErrNotFound}
	}
	return nil
}

func asRange(text string) (r ipam.Range, ok bool) { return r, r.UnmarshalText([]byte(text)) == nil }

// renamePool renames all ranges of a name, or one; Docker networks follow the last range of their pool's name.
func (m *planModel) renamePool(e *ipam.ModifyPool) refusals {
	r, ranged := asRange(e.Pool)
	if ranged && m.holding(r) == nil {
		return refusals{ipam.ErrInvalid}
	}
	found := false
	var no refusals
	for _, sub := range m.subnets {
		old := e.Pool
		renamed := false
		for i, p := range sub.pools {
			if ranged && p.r == r || !ranged && p.name == e.Pool {
				old, renamed = p.name, true
				sub.pools[i].name = e.Name
			}
		}
		found = found || renamed
		left := slices.ContainsFunc(sub.pools, func(p planPool) bool { return p.name == old })
		if !renamed || left || old == "" {
			continue
		}
		for _, d := range m.docker {
			if d.sub == sub && d.pool == old {
				if e.Name == "" {
					no = append(no, ipam.ErrInUse)
				}
				d.pool = e.Name
			}
		}
	}
	if !found {
		return refusals{ipam.ErrNotFound}
	}
	return no
}

func (m *planModel) exclude(e *ipam.AddExclusion) (no refusals) {
	sub := m.holding(e.Range)
	if sub == nil {
		return refusals{ipam.ErrInvalid}
	}
	if e.Range.From() == sub.gateway && e.Range.To() == sub.gateway {
		no = append(no, ipam.ErrInUse)
	}
	for _, x := range sub.exclusions {
		if x.r.Overlaps(e.Range.IPRange) {
			no = append(no, ipam.ErrOverlap)
		}
	}
	sub.exclusions = append(sub.exclusions, planExclusion{e.Note, e.Range})
	sub.sortExclusions()
	return no
}

func (sub *planSubnet) sortExclusions() {
	slices.SortFunc(sub.exclusions, func(a, b planExclusion) int { return a.r.From().Compare(b.r.From()) })
}

func (m *planModel) include(e *ipam.RemoveExclusion) refusals {
	sub := m.holding(e.Range)
	if sub == nil {
		return refusals{ipam.ErrInvalid}
	}
	var left []planExclusion
	found := false
	for _, x := range sub.exclusions {
		found = found || x.r.Overlaps(e.Range.IPRange)
		for _, part := range m.without(x.r, e.Range) {
			left = append(left, planExclusion{x.note, part})
		}
	}
	sub.exclusions = left
	if !found {
		return refusals{ipam.ErrNotFound}
	}
	return nil
}

// take is the whole of GA-24, one wish after the other.
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
	for _, w := range in.Wishes { // what is given back, or replaced by an address that is named, goes first
		at := [2]int{in.Number, w.Slot}
		if a, ok := has[at]; ok && in.Action == ipam.ModifyInterface && (w.None || w.Address.IsValid() && w.Address != a) {
			m.release(m.at(a), a)
			delete(has, at)
		}
	}
	return eachWish(in.Wishes, func(w ipam.Wish) (netip.Addr, refusals) { return m.takeSlot(e, w, has) })
}

// eachWish grants wishes, those for given addresses first, until one is refused. It answers with the addresses by slot.
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

// gaps refuses an interface whose slots would not be numbered from 0 on.
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
	sub, a, no := (*planSubnet)(nil), w.Address, refusals(nil)
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
	for at, a := range has { // none but the last one of an interface goes alone
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

// reserve makes addresses an owner's.
func (m *planModel) reserve(e *ipam.AddReservation) (given []netip.Addr, no refusals) {
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
		if rec.owner != "" || rec.held && (rec.kind == ipam.Gateway || rec.name != e.Owner && !e.Force) {
			no = append(no, ipam.ErrInUse)
		}
		return sub, w.Address, no
	}
	for _, sub := range m.subnets { // what the owner has in use becomes its own; which of several does not matter
		if a := m.inUse(sub, e.Owner, w); a.IsValid() {
			return sub, a, nil
		}
	}
	for _, sub := range m.subnets {
		if a := m.remembered(sub, w.Pool, func(rec planRecord) bool { return rec.name == e.Owner }); a.IsValid() {
			return sub, a, nil
		}
	}
	return m.pick("", w.Pool)
}

func (m *planModel) inUse(sub *planSubnet, owner string, w ipam.Wish) (one netip.Addr) {
	for a, rec := range sub.records {
		if !rec.held || rec.name != owner || rec.owner != "" || !sub.inPools(w.Pool, a) {
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
