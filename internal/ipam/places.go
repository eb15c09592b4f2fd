package ipam

import (
	"iter"
	"net/netip"
	"slices"
)

// places tells at which addresses a name or MAC was seen, held or remembered, the latest first. Nearly all have one place,
// so further ones lie apart.
type places[K comparable] struct {
	latest map[K]netip.Addr
	older  map[K][]netip.Addr
}

// add makes addr the latest place of k, which is not the zero K.
func (p *places[K]) add(k K, addr netip.Addr) {
	var none K
	if k == none {
		return
	}
	if p.latest == nil {
		p.latest, p.older = map[K]netip.Addr{}, map[K][]netip.Addr{} // with the first: there may be many empty subnets
	}
	if was, ok := p.latest[k]; ok && was != addr {
		p.older[k] = append(p.older[k], was)
	}
	p.latest[k] = addr
}

// remove forgets that k was seen at addr.
func (p *places[K]) remove(k K, addr netip.Addr) {
	older := p.older[k]
	switch {
	case p.latest[k] == addr && len(older) == 0:
		delete(p.latest, k)
	case p.latest[k] == addr:
		p.latest[k] = older[len(older)-1]
		older = older[:len(older)-1]
	default:
		older = slices.DeleteFunc(older, func(a netip.Addr) bool { return a == addr })
	}
	if len(older) > 0 {
		p.older[k] = older
	} else if len(p.older) > 0 {
		delete(p.older, k)
	}
}

// of yields the places of k, the latest first.
func (p *places[K]) of(k K) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		addr, ok := p.latest[k]
		if !ok || !yield(addr) {
			return
		}
		for _, addr := range slices.Backward(p.older[k]) {
			if !yield(addr) {
				return
			}
		}
	}
}
