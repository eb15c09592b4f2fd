package ledger

import (
	"bytes"
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// Index is derived from the records: unused addresses, the order of release, where a MAC or name was last seen. One
// scan builds it and each change updates it. Every result is checked against the record itself, so a wrong index costs
// time but never correctness. Ledger.mu guards it.
type Index struct {
	spaces      map[string]*spaceIndex
	subnets     map[ipam.ID]*SubnetIndex
	attachments map[ipam.ID]Cached[ipam.Attachment]
	networks    map[ipam.ID]*NetworkIndex
	names       map[string]ipam.ID // of networks
	formerNames map[string]ipam.ID // of networks
	hosts       map[string]Cached[ipam.Host]
	mending     Cached[mending]
	unread      []ipam.ID // subnets whose leases must be read again
	lastEvent   uint64
	ahead       uint64 // microseconds that lastEvent is ahead of the clock; 0: at most clockSlack
	sane        sane
	events      EventSum
	orphans     []*ipam.Subnet // removed subnets that may still have leases
	strays      []Stray
	fromDHCP    int     // subnets whose addresses a LAN's DHCP server chooses
	ends        endings // of reservations
	turnover    map[ipam.ID]Turnover
	clock       time.Time        // when FarMemories was last called
	suspects    map[ipam.ID]bool // subnets whose memories it examines
	elastic     elastics

	// Marks of leases, by id, since the daemon's start:
	leftBehind map[uint64]bool // the IPv6 address of the same start was refused
	used       map[uint64]bool // headroom that came into use
	answered   map[uint64]bool // given again while the store was unreachable, so no record shows it
}

func newIndex() *Index {
	return &Index{
		spaces:      map[string]*spaceIndex{},
		subnets:     map[ipam.ID]*SubnetIndex{},
		attachments: map[ipam.ID]Cached[ipam.Attachment]{},
		networks:    map[ipam.ID]*NetworkIndex{},
		names:       map[string]ipam.ID{},
		formerNames: map[string]ipam.ID{},
		hosts:       map[string]Cached[ipam.Host]{},
		turnover:    map[ipam.ID]Turnover{},
		suspects:    map[ipam.ID]bool{},
		elastic:     newElastics(),
		leftBehind:  map[uint64]bool{},
		answered:    map[uint64]bool{},
		used:        map[uint64]bool{},
	}
}

// Cached is a decoded record with its bytes. A record is decoded again only if its bytes changed.
type Cached[T any] struct {
	Raw   []byte
	Value *T
}

// Is reports whether the record still has these bytes.
func (c Cached[T]) Is(raw []byte) bool { return c.Value != nil && bytes.Equal(c.Raw, raw) }

// spaceIndex finds room for another subnet in a space.
type spaceIndex struct {
	Blocks *alloc.Blocks
	Ids    map[netip.Prefix]ipam.ID
}

// FromDHCP is the number of subnets that get their addresses from a LAN's DHCP server.
func (ix *Index) FromDHCP() int { return ix.fromDHCP }

// countDHCP adds n to the number of DHCP subnets if sub is one.
func (ix *Index) countDHCP(sub *ipam.Subnet, n int) {
	if sub.FromDHCP() {
		ix.fromDHCP += n
	}
}

// space returns the index of a space, and creates it if it is missing.
func (ix *Index) space(name string) *spaceIndex {
	sp := ix.spaces[name]
	if sp == nil {
		sp = newSpaceIndex()
		ix.spaces[name] = sp
	}
	return sp
}

func newSpaceIndex() *spaceIndex {
	return &spaceIndex{Blocks: alloc.NewBlocks(), Ids: map[netip.Prefix]ipam.ID{}}
}

// SubnetIndex is the index of one subnet.
type SubnetIndex struct {
	record   Cached[ipam.Subnet]
	open     []OpenPool     // the pools of openOf
	openOf   *ipam.Subnet   // the record from which open was computed
	usable   netipx.IPRange // host addresses (alloc.Usable)
	recorded *alloc.Set     // addresses with a record: held, remembered or reserved
	idle     *alloc.Set     // of these, the addresses that are reserved and not held
	reserved int            // number of reserved addresses
	released list.List      // of Memory, the one released longest ago first
	memories map[netip.Addr]*list.Element
	live     map[ipam.ID]int // held leases by attachment, with headroom
	headroom claims
	byMAC    sightings
	byName   sightings                    // by ipam.RememberedName
	byID     sightings                    // by the short id of a container
	byTaken  OwnerPlaces                  // held addresses that a person took for an owner, by ipam.RememberedName
	byOwner  OwnerPlaces                  // of reservations
	lan      map[netip.Addr]ipam.LANState // states of the leases from a DHCP server; nil: there are none
	ends     *endings
}

// Memory is a released address in the order of release.
type Memory struct {
	Addr            netip.Addr
	name, id        string // of the last holder and its container
	Released        time.Time
	QuarantineUntil time.Time
}

// quarantined reports whether the address is still kept for its last holder.
func (m *Memory) quarantined(now time.Time) bool { return ipam.Quarantined(m.QuarantineUntil, now) }

func newSubnetIndex(p netip.Prefix, ends *endings) *SubnetIndex {
	return &SubnetIndex{
		ends:     ends,
		usable:   alloc.Usable(p),
		recorded: alloc.NewSet(p),
		idle:     alloc.NewSet(p),
		memories: map[netip.Addr]*list.Element{},
		live:     map[ipam.ID]int{},
	}
}

// IndexOf builds an index of leases that have no reservations, outside of any ledger.
func IndexOf(cidr netip.Prefix, leases []*ipam.Lease) *SubnetIndex {
	sx := newSubnetIndex(cidr, nil)
	sx.load(leases)
	return sx
}

// Held is the number of leased addresses.
func (sx *SubnetIndex) Held() uint64 {
	return sx.recorded.Len() - uint64(sx.released.Len()) - sx.idle.Len()
}

// Move replaces the record of addr in the index: before by after. nil means no record.
func (sx *SubnetIndex) Move(addr netip.Addr, before, after *ipam.Lease) {
	sx.forget(addr, before)
	if after == nil {
		sx.recorded.Remove(addr)
		return
	}
	sx.recorded.Add(addr)
	if d := after.DHCP; !d.IsReturned() {
		if sx.lan == nil {
			sx.lan = map[netip.Addr]ipam.LANState{}
		}
		sx.lan[addr] = d.State
	}
	switch {
	case after.Held():
		sx.live[after.Attachment]++
		sx.headroom.add(after)
	case after.Reservation != nil:
		sx.idle.Add(addr)
	default:
		sx.remember(Memory{addr, after.Name, after.Container, after.Released, after.QuarantineUntil})
	}
	sx.see(addr, after)
	if r := after.Reservation; r != nil {
		sx.reserved++
		sx.byOwner.add(r.Owner, addr)
		sx.ends.add(Ending{Sx: sx, Addr: addr}, r.Until)
	}
}

func (sx *SubnetIndex) forget(addr netip.Addr, before *ipam.Lease) {
	if delete(sx.lan, addr); len(sx.lan) == 0 {
		sx.lan = nil
	}
	if e := sx.memories[addr]; e != nil {
		sx.released.Remove(e)
		delete(sx.memories, addr)
	}
	if before.Held() {
		sx.headroom.remove(before)
		if sx.live[before.Attachment]--; sx.live[before.Attachment] <= 0 {
			delete(sx.live, before.Attachment)
		}
	}
	if before.Idle() {
		sx.idle.Remove(addr)
	}
	if before != nil {
		sx.unsee(addr, before)
	}
	if r := before.Reserved(); r != nil {
		sx.reserved--
		sx.byOwner.remove(r.Owner, addr)
		sx.ends.Remove(Ending{Sx: sx, Addr: addr})
	}
}

// see adds the MAC, name and container of a record.
func (sx *SubnetIndex) see(addr netip.Addr, l *ipam.Lease) {
	name := ipam.RememberedName(l.Name)
	sx.byMAC.add(macKey(l.MAC), addr16Of(addr))
	sx.byName.add(nameKey(name), addr16Of(addr))
	sx.byID.add(nameKey(l.Container), addr16Of(addr))
	if isTaken(l) {
		sx.byTaken.add(name, addr)
	}
}

// unsee removes them.
func (sx *SubnetIndex) unsee(addr netip.Addr, l *ipam.Lease) {
	name := ipam.RememberedName(l.Name)
	sx.byMAC.remove(macKey(l.MAC), addr16Of(addr))
	sx.byName.remove(nameKey(name), addr16Of(addr))
	sx.byID.remove(nameKey(l.Container), addr16Of(addr))
	if isTaken(l) {
		sx.byTaken.remove(name, addr)
	}
}

// isTaken reports whether an owner holds the address because a person took it.
func isTaken(l *ipam.Lease) bool { return l.Held() && l.Kind == ipam.External }

// remember inserts m in the order of release. That is the end, unless a change is reverted.
func (sx *SubnetIndex) remember(m Memory) {
	for e := sx.released.Back(); e != nil; e = e.Prev() {
		if !m.Released.Before(e.Value.(Memory).Released) {
			sx.memories[m.Addr] = sx.released.InsertAfter(m, e)
			return
		}
	}
	sx.memories[m.Addr] = sx.released.PushFront(m)
}

// load fills a new index with leases in any order. It sorts them by last use, so that each memory goes to the end of
// the list.
func (sx *SubnetIndex) load(leases []*ipam.Lease) {
	slices.SortFunc(leases, byLastUse)
	sx.put(leases)
}

// put adds records of addresses that the index does not know.
func (sx *SubnetIndex) put(leases []*ipam.Lease) {
	for _, l := range leases {
		sx.Move(l.Address, nil, l)
	}
}

func byLastUse(a, b *ipam.Lease) int {
	return cmp.Or(a.LastUsed().Compare(b.LastUsed()), a.Address.Compare(b.Address))
}

// NeverUsed returns the lowest address of p that has no record and is not kept. Each slot but the first starts at its
// own place in each range and wraps around. So hosts that share a pool do not compete for the same address.
func (sx *SubnetIndex) NeverUsed(p OpenPool, slot int, kept ipam.Wants) (netip.Addr, bool) {
	for _, r := range p.Ranges {
		if addr, ok := sx.NextFree(netipx.IPRangeFrom(alloc.Place(r, uint8(slot)), r.To()), kept); ok {
			return addr, true
		}
	}
	if slot == 0 {
		return netip.Addr{}, false
	}
	return sx.NeverUsed(p, 0, kept)
}

// NextFree returns the lowest address of r that has no record and is not kept. It returns false if there is none.
func (sx *SubnetIndex) NextFree(r netipx.IPRange, kept ipam.Wants) (netip.Addr, bool) {
	at, _ := kept.After(r.From())
	for {
		addr, ok := sx.recorded.NextFree(r)
		for at < len(kept) && kept[at].Address.Less(addr) {
			at++
		}
		if !ok || at == len(kept) || kept[at].Address != addr {
			return addr, ok
		}
		if addr == r.To() {
			return netip.Addr{}, false
		}
		r = netipx.IPRangeFrom(addr.Next(), r.To())
	}
}

// NextTaken returns the lowest address of r that has a record. It returns false if there is none.
func (sx *SubnetIndex) NextTaken(r netipx.IPRange) (netip.Addr, bool) {
	return sx.recorded.NextTaken(r)
}

// LongestReleased returns the address of p that was released longest ago, is past its quarantine and is not kept.
// Addresses of removed containers come before those of existing ones. If there is none, ready is when the first
// quarantine in p ends, or zero without a quarantine.
func (sx *SubnetIndex) LongestReleased(p OpenPool, now time.Time, kept ipam.Wants,
	exists func(name, id string) bool) (addr netip.Addr, ready time.Time, ok bool) {
	for e := sx.released.Front(); e != nil; e = e.Next() {
		m := e.Value.(Memory)
		if !p.Contains(m.Addr) || kept.Has(m.Addr) {
			continue
		}
		switch {
		case m.quarantined(now):
			if ready.IsZero() || m.QuarantineUntil.Before(ready) {
				ready = m.QuarantineUntil
			}
		case !exists(m.name, m.id):
			return m.Addr, time.Time{}, true
		case !ok:
			addr, ok = m.Addr, true
		}
	}
	if ok {
		return addr, time.Time{}, true
	}
	return netip.Addr{}, ready, false
}

// LastReleased returns the addresses released within a period before the last release, oldest first.
func (sx *SubnetIndex) LastReleased(within time.Duration) (all []netip.Addr) {
	last := sx.released.Back()
	if last == nil {
		return nil
	}
	since := last.Value.(Memory).Released.Add(-within)
	for e := last; e != nil && !e.Value.(Memory).Released.Before(since); e = e.Prev() {
		all = append(all, e.Value.(Memory).Addr)
	}
	slices.Reverse(all)
	return all
}

// Stale returns the oldest memory if there are more than limit, but false while that one is in quarantine. Memories of
// removed containers come first.
func (sx *SubnetIndex) Stale(limit int, now time.Time, exists func(name, id string) bool) (netip.Addr, bool) {
	if sx.released.Len() <= limit {
		return netip.Addr{}, false
	}
	oldest := sx.released.Front()
	for e := oldest; e != nil; e = e.Next() {
		m := e.Value.(Memory)
		if !exists(m.name, m.id) {
			return m.Addr, !m.quarantined(now)
		}
	}
	m := oldest.Value.(Memory)
	return m.Addr, !m.quarantined(now)
}
