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

// chooseHeadroom is the address that req may be given out of those that suit, in the order in which all are chosen: the
// one that it asks for, and no other; the one that it had last; the lowest that nobody had; the one released longest
// ago and past its quarantine, of one who is gone before that of one who exists.
func chooseHeadroom(hr *headroom, req *ipam.AddressRequest, now time.Time,
	suits func(addr netip.Addr, lease uint64) bool, exists func(name string) bool) (netip.Addr, bool) {
	var free []netip.Addr
	for addr, one := range hr.addrs {
		if one.free() && suits(addr, one.Lease) {
			free = append(free, addr)
		}
	}
	if req.Preferred.IsValid() {
		return req.Preferred, slices.Contains(free, req.Preferred)
	}
	rank := func(addr netip.Addr) int {
		switch one := hr.addrs[addr]; {
		case !hr.Forget && one.wasOf(req):
			return 0
		case one.Holder == nil:
			return 1
		case one.Released.Add(hr.Quarantine).After(now):
			return 4
		case exists(one.Holder.Name):
			return 3
		}
		return 2
	}
	slices.SortFunc(free, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), hr.addrs[a].Released.Compare(hr.addrs[b].Released), a.Compare(b))
	})
	if len(free) == 0 || rank(free[0]) == 4 {
		return netip.Addr{}, false
	}
	return free[0], true
}

// headroomKeys begin the keys of the headroom; ledger/keys.go has all letters.
const headroomKeys = 'r'

func headroomKey(pool ipam.ID) []byte { return append([]byte{headroomKeys}, pool[:]...) }

func headroomAddrKey(pool ipam.ID, addr netip.Addr) []byte {
	return ipam.AppendAddr(headroomKey(pool), addr)
}

// DropHeadroom has a host forget the headroom that it knows of: its own store was put back to what it was, and the
// addresses may be in other hands since. Those that are claimed for it still it finds in the shared store.
func DropHeadroom(ctx context.Context, own store.Store) error {
	return own.Update(ctx, func(tx store.Tx) error {
		r := ledger.KindRange(headroomKeys)
		_, err := edit.DeleteWhile(tx, r, func(int, []byte) bool { return true })
		return err
	})
}

// setAddrs notes what becomes of addresses of an attachment's headroom; nil: it is none any more. The caller has turn.
func (s *Shared) setAddrs(ctx context.Context, pool ipam.ID, changed map[netip.Addr]*headroomAddr) error {
	notes := make([]note, 0, len(changed))
	for _, addr := range choose.SortedAddrs(changed) {
		n := note{key: headroomAddrKey(pool, addr)}
		if one := changed[addr]; one != nil {
			var err error
			if n, err = noteJSON(n.key, one); err != nil {
				return err
			}
		}
		notes = append(notes, n)
	}
	return s.keep(ctx, notes, func() {
		addrs := s.headroom[pool].addrs
		for addr, one := range changed {
			if before, ok := addrs[addr]; ok && !before.free() {
				s.inUse--
			}
			if one == nil {
				delete(addrs, addr)
				continue
			}
			if addrs[addr] = *one; !one.free() {
				s.inUse++
			}
		}
	})
}

// addrAt is what the host knows of an address of its headroom.
func (s *Shared) addrAt(pool ipam.ID, addr netip.Addr) (one headroomAddr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hr := s.headroom[pool]; hr != nil {
		one, ok = hr.addrs[addr]
	}
	return one, ok
}

// headroomOf is a copy of an attachment's headroom; nil where it has none.
func (s *Shared) headroomOf(pool ipam.ID) *headroom {
	s.mu.Lock()
	defer s.mu.Unlock()
	hr := s.headroom[pool]
	if hr == nil {
		return nil
	}
	return &headroom{headroomFacts: hr.headroomFacts, addrs: maps.Clone(hr.addrs)}
}

// setFacts notes the facts of an attachment's headroom, where they have changed. The caller has turn.
func (s *Shared) setFacts(ctx context.Context, pool ipam.ID, facts headroomFacts) error {
	if hr := s.headroomOf(pool); hr != nil && hr.headroomFacts == facts {
		return nil
	}
	n, err := noteJSON(headroomKey(pool), &facts)
	if err != nil {
		return err
	}
	return s.keep(ctx, []note{n}, func() {
		if hr := s.headroom[pool]; hr != nil {
			hr.headroomFacts = facts
		} else {
			s.headroom[pool] = &headroom{headroomFacts: facts, addrs: map[netip.Addr]headroomAddr{}}
		}
	})
}

// dropHeadroom forgets an attachment's headroom.
func (s *Shared) dropHeadroom(ctx context.Context, pool ipam.ID) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	notes, then := s.withoutHeadroom(pool)
	return s.keep(ctx, notes, then)
}

// withoutHeadroom is what is to be written for an attachment to have no headroom, and what the copy in memory is to do
// then.
func (s *Shared) withoutHeadroom(pool ipam.ID) (notes []note, then func()) {
	hr := s.headroomOf(pool)
	if hr == nil {
		return nil, func() {}
	}
	for _, addr := range choose.SortedAddrs(hr.addrs) {
		notes = append(notes, note{key: headroomAddrKey(pool, addr)})
	}
	return append(notes, note{key: headroomKey(pool)}), func() {
		s.inUse -= len(hr.toTell())
		delete(s.headroom, pool)
	}
}
