package ledger

import (
	"iter"
	"net/netip"
	"slices"
)

// Places tells at which addresses a name or MAC was seen, held or remembered, the latest first. Nearly all have one
// place, so further ones lie apart.
type Places[K comparable] struct {
	Latest map[K]netip.Addr
	Older  map[K][]netip.Addr
}

// Add makes addr the latest place of k, which is not the zero K.
func (p *Places[K]) Add(k K, addr netip.Addr) {
	var none K
	if k == none {
		return
	}
	if p.Latest == nil {
		p.Latest, p.Older = map[K]netip.Addr{}, map[K][]netip.Addr{} // with the first: there may be many empty subnets
	}
	if was, ok := p.Latest[k]; ok && was != addr {
		p.Older[k] = append(p.Older[k], was)
	}
	p.Latest[k] = addr
}

// remove forgets that k was seen at addr.
func (p *Places[K]) remove(k K, addr netip.Addr) {
	older := p.Older[k]
	switch {
	case p.Latest[k] == addr && len(older) == 0:
		delete(p.Latest, k)
	case p.Latest[k] == addr:
		p.Latest[k] = older[len(older)-1]
		older = older[:len(older)-1]
	default:
		older = slices.DeleteFunc(older, func(a netip.Addr) bool { return a == addr })
	}
	if len(older) > 0 {
		p.Older[k] = older
	} else if len(p.Older) > 0 {
		delete(p.Older, k)
	}
}

// Of yields the places of k, the latest first.
func (p *Places[K]) Of(k K) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		addr, ok := p.Latest[k]
		if !ok || !yield(addr) {
			return
		}
		for _, addr := range slices.Backward(p.Older[k]) {
			if !yield(addr) {
				return
			}
		}
	}
}

// All yields each place with what was seen there.
func (p *Places[K]) All() iter.Seq2[K, netip.Addr] {
	return func(yield func(K, netip.Addr) bool) {
		for k, addr := range p.Latest {
			if !yield(k, addr) {
				return
			}
		}
		for k, addrs := range p.Older {
			for _, addr := range addrs {
				if !yield(k, addr) {
					return
				}
			}
		}
	}
}
