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

// chooseHeadroom returns a free and suitable headroom address for req. It is the requested address, if one is
// requested, or else the first by allocator.First.
func chooseHeadroom(hr *headroom, req *ipam.AddressRequest, now time.Time,
	suits func(addr netip.Addr, lease uint64) bool, known *ipam.Known) (netip.Addr, bool, error) {
	o := &offered{hr: hr, index: hr.index(), req: req, now: now, known: known}
	for _, addr := range allocator.SortedAddrs(hr.addrs) {
		_, runs := known.RunsElsewhere(hr.Space, hr.CIDR, addr, req.Name)
		if one := hr.addrs[addr]; one.free() && suits(addr, one.Lease) && !runs {
			o.pool.Ranges = append(o.pool.Ranges, netipx.IPRangeFrom(addr, addr))
		}
	}
	if req.Preferred.IsValid() {
		return req.Preferred, o.pool.Contains(req.Preferred), nil
	}
	_, addr, _, err := allocator.First(o)
	return addr, addr.IsValid(), err
}

// offered is the allocator.Source of a host's headroom for a request. Reserved addresses are excluded before
// (fitHeadroom).
type offered struct {
	hr    *headroom
	index *ledger.SubnetIndex
	pool  ledger.OpenPool // the free and suitable addresses
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
	return allocator.LastHad(o.index, o.known.ContainerOf(o.req.Name), o.req.Name, o.req.MAC, o.hr.lease, allocator.IsMemory, may)
}

// Any implements allocator.Source. The index is built from the records, so its proposal needs no check.
func (o *offered) Any() (netip.Addr, *ipam.Lease, error) {
	addr, ok := allocator.Next(o.index, o.pool, 0, o.now, nil, o.known.StillExists)
	if !ok {
		return netip.Addr{}, nil, nil
	}
	before, err := o.hr.lease(addr)
	return addr, before, err
}

// headroomKeys is the first byte of the keys of headroom; ledger/keys.go lists all.
const headroomKeys = 'r'

func headroomKey(pool ipam.ID) []byte { return append([]byte{headroomKeys}, pool[:]...) }

func headroomAddrKey(pool ipam.ID, addr netip.Addr) []byte {
	return ipam.AppendAddr(headroomKey(pool), addr)
}

// DropHeadroom deletes a host's knowledge of its headroom. It is for a host whose own store was restored to an earlier
// state, because others may have the addresses since. The host finds in the shared store which addresses are still
// claimed for it.
func DropHeadroom(ctx context.Context, own store.Store) error {
	return own.Update(ctx, func(tx store.Tx) error {
		r := ledger.KindRange(headroomKeys)
		_, err := ledger.DeleteWhile(tx, r, func(store.Record) bool { return true })
		return err
	})
}

// setAddrs writes changed addresses of an attachment's headroom; nil removes one. The caller has turn.
func (s *Shared) setAddrs(ctx context.Context, pool ipam.ID, changed map[netip.Addr]*headroomAddr) error {
	notes, err := addrNotes(pool, changed)
	if err != nil {
		return err
	}
	return s.keep(ctx, notes, func() { s.changeAddrs(pool, changed) })
}

func addrNotes(pool ipam.ID, changed map[netip.Addr]*headroomAddr) ([]note, error) {
	notes := make([]note, 0, len(changed))
	for _, addr := range allocator.SortedAddrs(changed) {
		n := note{key: headroomAddrKey(pool, addr)}
		if one := changed[addr]; one != nil {
			var err error
			if n, err = noteJSON(n.key, one); err != nil {
				return nil, err
			}
		}
		notes = append(notes, n)
	}
	return notes, nil
}

// changeAddrs changes the copy in memory. The lock is held.
func (s *Shared) changeAddrs(pool ipam.ID, changed map[netip.Addr]*headroomAddr) {
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
}

// setAllAddrs is setAddrs for several attachments.
func (s *Shared) setAllAddrs(ctx context.Context, changed map[ipam.ID]map[netip.Addr]*headroomAddr) error {
	for pool, addrs := range changed {
		if err := s.setAddrs(ctx, pool, addrs); err != nil {
			return err
		}
	}
	return nil
}

// addrAt returns what the host knows of a headroom address.
func (s *Shared) addrAt(pool ipam.ID, addr netip.Addr) (one headroomAddr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hr := s.headroom[pool]; hr != nil {
		one, ok = hr.addrs[addr]
	}
	return one, ok
}

// headroomOf returns a copy of an attachment's headroom, or nil.
func (s *Shared) headroomOf(pool ipam.ID) *headroom {
	s.mu.Lock()
	defer s.mu.Unlock()
	hr := s.headroom[pool]
	if hr == nil {
		return nil
	}
	return &headroom{headroomFacts: hr.headroomFacts, addrs: maps.Clone(hr.addrs)}
}

// setFacts writes the facts of an attachment's headroom if they have changed. The caller has turn.
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

// withoutHeadroom returns the writes that delete an attachment's headroom, and the function that then deletes it in
// memory.
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
