package ipam

import (
	"bytes"
	"container/list"
	"net/netip"
	"slices"
	"time"

	"berth/internal/alloc"
	"go4.org/netipx"
)

// index is advice about the records: which addresses have none yet, which were released longest ago, where a MAC or a
// name was seen last. It is built by one scan and moved on by each change; what it says is always checked against the
// record itself, so that a wrong index costs a second look and never a second holder. Service.mu guards it.
type index struct {
	spaces      map[string]*spaceIndex
	subnets     map[ID]*subnetIndex
	attachments map[ID]cached[Attachment]
	networks    map[ID]*networkIndex
	names       map[string]ID // of networks
	hosts       map[string]cached[Host]
	unread      []ID // subnets whose leases are to be read again
	lastEvent   uint64
	events      int       // how many are stored
	orphans     []*Subnet // that are gone and may have leases still
	strays      []stray
	ends        endings // of reservations
}

func newIndex() *index {
	return &index{
		spaces:      map[string]*spaceIndex{},
		subnets:     map[ID]*subnetIndex{},
		attachments: map[ID]cached[Attachment]{},
		networks:    map[ID]*networkIndex{},
		names:       map[string]ID{},
		hosts:       map[string]cached[Host]{},
	}
}

// cached is a decoded record beside its bytes, so that a record read again is decoded only when it changed.
type cached[T any] struct {
	raw   []byte
	value *T
}

func (c cached[T]) is(raw []byte) bool { return c.value != nil && bytes.Equal(c.raw, raw) }

// spaceIndex knows where a space has room for another subnet.
type spaceIndex struct {
	blocks *alloc.Blocks
	ids    map[netip.Prefix]ID
}

func (ix *index) space(name string) *spaceIndex {
	sp := ix.spaces[name]
	if sp == nil {
		sp = &spaceIndex{blocks: alloc.NewBlocks(), ids: map[netip.Prefix]ID{}}
		ix.spaces[name] = sp
	}
	return sp
}

// subnetIndex is the index of one subnet.
type subnetIndex struct {
	record   cached[Subnet]
	open     []openPool     // of the subnet openOf
	openOf   *Subnet        // as it was when open was worked out
	usable   netipx.IPRange // what the subnet allows (alloc.Usable)
	recorded *alloc.Set     // addresses that have a record: held, remembered or reserved
	idle     int            // how many are reserved and not held
	reserved int            // how many are reserved
	released list.List      // of memory, the one released longest ago first
	memories map[netip.Addr]*list.Element
	live     map[ID]int // leases in somebody's hands, by the attachment; headroom among them
	headroom claims
	byMAC    places[MAC]
	byName   places[string] // by rememberedName
	byOwner  places[string] // of reservations
	ends     *endings
}

// memory is a released address in the order of release.
type memory struct {
	addr     netip.Addr
	released time.Time
	until    time.Time
}

func newSubnetIndex(p netip.Prefix, ends *endings) *subnetIndex {
	return &subnetIndex{
		ends:     ends,
		usable:   alloc.Usable(p),
		recorded: alloc.NewSet(p),
		memories: map[netip.Addr]*list.Element{},
		live:     map[ID]int{},
	}
}

// held is the number of addresses in somebody's hands.
func (sx *subnetIndex) held() uint64 {
	return sx.recorded.Len() - uint64(sx.released.Len()) - uint64(sx.idle)
}

// move takes the index from one state of addr's record to the next; nil is no record.
func (sx *subnetIndex) move(addr netip.Addr, before, after *Lease) {
	sx.forget(addr, before)
	if after == nil {
		sx.recorded.Remove(addr)
		return
	}
	sx.recorded.Add(addr)
	switch {
	case after.Held():
		sx.live[after.Attachment]++
		sx.headroom.add(after)
	case after.Reservation != nil:
		sx.idle++
	default:
		sx.remember(memory{addr, after.Released, after.Until})
	}
	sx.byMAC.add(after.MAC, addr)
	sx.byName.add(rememberedName(after.Name), addr)
	if r := after.Reservation; r != nil {
		sx.reserved++
		sx.byOwner.add(r.Owner, addr)
		sx.ends.add(ending{sx: sx, addr: addr}, r.Until)
	}
}

func (sx *subnetIndex) forget(addr netip.Addr, before *Lease) {
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
	if before.idle() {
		sx.idle--
	}
	if before != nil {
		sx.byMAC.remove(before.MAC, addr)
		sx.byName.remove(rememberedName(before.Name), addr)
	}
	if r := before.reserved(); r != nil {
		sx.reserved--
		sx.byOwner.remove(r.Owner, addr)
		sx.ends.remove(ending{sx: sx, addr: addr})
	}
}

// remember puts m in its place: at the end, but for a change that is undone.
func (sx *subnetIndex) remember(m memory) {
	for e := sx.released.Back(); e != nil; e = e.Prev() {
		if !m.released.Before(e.Value.(memory).released) {
			sx.memories[m.addr] = sx.released.InsertAfter(m, e)
			return
		}
	}
	sx.memories[m.addr] = sx.released.PushFront(m)
}

// load fills a new index from all leases of the subnet, in whichever order: the least recently used first, so that each
// memory is put in at the end, and the latest use of a name or MAC wins.
func (sx *subnetIndex) load(leases []*Lease) {
	slices.SortFunc(leases, func(a, b *Lease) int { return a.lastUsed().Compare(b.lastUsed()) })
	for _, l := range leases {
		sx.move(l.Address, nil, l)
	}
}

// neverUsed is the lowest address of p that has no record. Each slot but the first begins at a place of its own in each range
// and comes to what lies before it in the end: hosts that share a pool do not race for the same address then.
func (sx *subnetIndex) neverUsed(p openPool, slot int) (netip.Addr, bool) {
	for _, r := range p.ranges {
		if addr, ok := sx.recorded.NextFree(netipx.IPRangeFrom(alloc.Place(r, uint8(slot)), r.To())); ok {
			return addr, true
		}
	}
	if slot == 0 {
		return netip.Addr{}, false
	}
	return sx.neverUsed(p, 0)
}

// longestReleased is the address of p that was released longest ago and is past its quarantine. Else ready tells when the
// first quarantine in p ends; it is zero where nothing in p is in quarantine.
func (sx *subnetIndex) longestReleased(p openPool, now time.Time) (addr netip.Addr, ready time.Time, ok bool) {
	for e := sx.released.Front(); e != nil; e = e.Next() {
		m := e.Value.(memory)
		if !p.contains(m.addr) {
			continue
		}
		if !m.until.After(now) {
			return m.addr, time.Time{}, true
		}
		if ready.IsZero() || m.until.Before(ready) {
			ready = m.until
		}
	}
	return netip.Addr{}, ready, false
}

// stale is the oldest memory, where there are more than limit and no quarantine keeps it.
func (sx *subnetIndex) stale(limit int, now time.Time) (netip.Addr, bool) {
	if sx.released.Len() <= limit {
		return netip.Addr{}, false
	}
	m := sx.released.Front().Value.(memory)
	return m.addr, !m.until.After(now)
}
