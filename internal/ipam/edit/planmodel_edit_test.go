package edit_test

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// apply makes an edit in the model. It returns the addresses by slot, or why the edit is refused. After a refusal
// the model is useless.
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
		if gateway.IsValid() && gateway != sub.gateway && sub.excluded(gateway) {
			no = append(no, ipam.ErrInUse)
		}
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

// cutOff refuses a CIDR that cuts something off, and trims the pools.
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
	if !slices.ContainsFunc(ipamtest.Hosts(sub.cidr), e.Range.Contains) {
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

// renamePool renames all ranges of a name, or one. A Docker network follows the last range with its pool's name.
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
