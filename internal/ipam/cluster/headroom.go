package cluster

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"go4.org/netipx"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// chooseHeadroom is the address that req may be given out of those that suit: the one that it asks for, and no other,
// or else by the rule of every choice (allocator.First).
func chooseHeadroom(hr *headroom, req *ipam.AddressRequest, now time.Time,
	suits func(addr netip.Addr, lease uint64) bool, known *ipam.Known) (netip.Addr, bool, error) {
	o := &offered{hr: hr, index: hr.index(), req: req, now: now, known: known}
	for _, addr := range allocator.SortedAddrs(hr.addrs) {
		if one := hr.addrs[addr]; one.free() && suits(addr, one.Lease) {
			o.pool.Ranges = append(o.pool.Ranges, netipx.IPRangeFrom(addr, addr))
		}
	}
	if req.Preferred.IsValid() {
		return req.Preferred, o.pool.Contains(req.Preferred), nil
	}
	_, addr, _, err := allocator.First(o)
	return addr, addr.IsValid(), err
}

// offered is what a host has of its headroom for a request, which is not to be given by a reservation (fitHeadroom).
type offered struct {
	hr    *headroom
	index *ledger.SubnetIndex
	pool  ledger.OpenPool // of what is free and suits
	req   *ipam.AddressRequest
	now   time.Time
	known *ipam.Known
}

// Reserved implements allocator.Source.
func (o *offered) Reserved() (*ipam.Lease, error) { return nil, nil }

// Open implements allocator.Source.
func (o *offered) Open() error { return nil }

// Remembered implements allocator.Source.
func (o *offered) Remembered() (*ipam.Lease, error) {
	may := func(m *ipam.Lease) bool { return !o.hr.Forget && o.pool.Contains(m.Address) }
	return allocator.LastHad(o.index, o.known.ContainerOf(o.req.Name), o.req.Name, o.req.MAC, o.hr.lease, may)
}

// Any implements allocator.Source. The index is that of the records themselves, so that it needs no other look.
func (o *offered) Any() (netip.Addr, *ipam.Lease, error) {
	addr, ok := allocator.Next(o.index, o.pool, 0, o.now, nil, o.known.StillExists)
	if !ok {
		return netip.Addr{}, nil, nil
	}
	before, err := o.hr.lease(addr)
	return addr, before, err
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
		_, err := ledger.DeleteWhile(tx, r, func(store.Record) bool { return true })
		return err
	})
}

// setAddrs notes what becomes of addresses of an attachment's headroom; nil: it is none any more. The caller has turn.
func (s *Shared) setAddrs(ctx context.Context, pool ipam.ID, changed map[netip.Addr]*headroomAddr) error {
	notes := make([]note, 0, len(changed))
	for _, addr := range allocator.SortedAddrs(changed) {
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
	for _, addr := range allocator.SortedAddrs(hr.addrs) {
		notes = append(notes, note{key: headroomAddrKey(pool, addr)})
	}
	return append(notes, note{key: headroomKey(pool)}), func() {
		s.inUse -= len(hr.toTell())
		delete(s.headroom, pool)
	}
}
