package cluster

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/choose"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// chooseSpare is the address that req may be given out of those that suit, in the order in which all are chosen: the
// one that it asks for, and no other; the one that it had last; the lowest that nobody had; the one released longest
// ago and past its quarantine, of one who is gone before that of one who exists.
func chooseSpare(st *ledger.Stock, req *ipam.AddressRequest, now time.Time,
	suits func(addr netip.Addr, lease uint64) bool, exists func(name string) bool) (netip.Addr, bool) {
	var free []netip.Addr
	for addr, sp := range st.Spares {
		if sp.Free() && suits(addr, sp.Lease) {
			free = append(free, addr)
		}
	}
	if req.Preferred.IsValid() {
		return req.Preferred, slices.Contains(free, req.Preferred)
	}
	rank := func(addr netip.Addr) int {
		switch sp := st.Spares[addr]; {
		case !st.Forget && sp.IsOf(req):
			return 0
		case sp.Use == nil:
			return 1
		case sp.Released.Add(st.Quarantine).After(now):
			return 4
		case exists(sp.Use.Name):
			return 3
		}
		return 2
	}
	slices.SortFunc(free, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), st.Spares[a].Released.Compare(st.Spares[b].Released), a.Compare(b))
	})
	if len(free) == 0 || rank(free[0]) == 4 {
		return netip.Addr{}, false
	}
	return free[0], true
}

func stockKey(pool ipam.ID) []byte { return append([]byte{ledger.HeadroomKeys}, pool[:]...) }

func spareKey(pool ipam.ID, addr netip.Addr) []byte { return ipam.AppendAddr(stockKey(pool), addr) }

// DropHeadroom has a host forget the headroom that it knows of: its own store was put back to what it was, and the
// addresses may be in other hands since. Those that are claimed for it still it finds in the shared store.
func DropHeadroom(ctx context.Context, own store.Store) error {
	return own.Update(ctx, func(tx store.Tx) error {
		r := ledger.KindRange(ledger.HeadroomKeys)
		_, err := edit.DeleteWhile(tx, r, func(int, []byte) bool { return true })
		return err
	})
}

// setSpares notes what becomes of addresses of an attachment's headroom; nil: it is none any more. The caller has turn.
func (s *Shared) setSpares(ctx context.Context, pool ipam.ID, changed map[netip.Addr]*ledger.Spare) error {
	notes := make([]note, 0, len(changed))
	for _, addr := range choose.SortedAddrs(changed) {
		n := note{key: spareKey(pool, addr)}
		if sp := changed[addr]; sp != nil {
			var err error
			if n, err = noteJSON(n.key, sp); err != nil {
				return err
			}
		}
		notes = append(notes, n)
	}
	return s.keep(ctx, notes, func() {
		spares := s.stocks[pool].Spares
		for addr, sp := range changed {
			if before, ok := spares[addr]; ok && !before.Free() {
				s.inUse--
			}
			if sp == nil {
				delete(spares, addr)
				continue
			}
			if spares[addr] = *sp; !sp.Free() {
				s.inUse++
			}
		}
	})
}

// spareAt is what the host knows of an address of its headroom.
func (s *Shared) spareAt(pool ipam.ID, addr netip.Addr) (sp ledger.Spare, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stocks[pool]; st != nil {
		sp, ok = st.Spares[addr]
	}
	return sp, ok
}

// stockOf is a copy of an attachment's headroom; nil where it has none.
func (s *Shared) stockOf(pool ipam.ID) *ledger.Stock {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stocks[pool]
	if st == nil {
		return nil
	}
	return &ledger.Stock{StockFacts: st.StockFacts, Spares: maps.Clone(st.Spares)}
}

// setStock notes the facts of an attachment's headroom, where they have changed. The caller has turn.
func (s *Shared) setStock(ctx context.Context, pool ipam.ID, facts ledger.StockFacts) error {
	if st := s.stockOf(pool); st != nil && st.StockFacts == facts {
		return nil
	}
	n, err := noteJSON(stockKey(pool), &facts)
	if err != nil {
		return err
	}
	return s.keep(ctx, []note{n}, func() {
		if st := s.stocks[pool]; st != nil {
			st.StockFacts = facts
		} else {
			s.stocks[pool] = &ledger.Stock{StockFacts: facts, Spares: map[netip.Addr]ledger.Spare{}}
		}
	})
}

// dropStock forgets an attachment's headroom.
func (s *Shared) dropStock(ctx context.Context, pool ipam.ID) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	notes, then := s.withoutStock(pool)
	return s.keep(ctx, notes, then)
}

// withoutStock is what is to be written for an attachment to have no headroom, and what the copy in memory is to do
// then.
func (s *Shared) withoutStock(pool ipam.ID) (notes []note, then func()) {
	st := s.stockOf(pool)
	if st == nil {
		return nil, func() {}
	}
	for _, addr := range choose.SortedAddrs(st.Spares) {
		notes = append(notes, note{key: spareKey(pool, addr)})
	}
	return append(notes, note{key: stockKey(pool)}), func() {
		s.inUse -= len(st.Uses())
		delete(s.stocks, pool)
	}
}
