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
	networks    map[ID]*Network
	lastEvent   uint64
	events      int  // how many are stored
	orphans     []ID // subnets that are gone and had leases when the store was opened
}

func newIndex() *index {
	return &index{
		spaces:      map[string]*spaceIndex{},
		subnets:     map[ID]*subnetIndex{},
		attachments: map[ID]cached[Attachment]{},
		networks:    map[ID]*Network{},
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
	usable   netipx.IPRange // what the subnet allows (alloc.Usable)
	recorded *alloc.Set     // addresses that have a record: held or remembered
	released list.List      // of memory, the one released longest ago first
	memories map[netip.Addr]*list.Element
	live     map[ID]int // leases in somebody's hands, by the attachment
	byMAC    places[MAC]
	byName   places[string]
}

// memory is a released address in the order of release.
type memory struct {
	addr     netip.Addr
	released time.Time
	until    time.Time
}

func newSubnetIndex(p netip.Prefix) *subnetIndex {
	return &subnetIndex{
		usable:   alloc.Usable(p),
		recorded: alloc.NewSet(p),
		memories: map[netip.Addr]*list.Element{},
		live:     map[ID]int{},
		byMAC:    newPlaces[MAC](),
		byName:   newPlaces[string](),
	}
}

// held is the number of addresses in somebody's hands.
func (sx *subnetIndex) held() uint64 { return sx.recorded.Len() - uint64(sx.released.Len()) }

// move takes the index from one state of addr's record to the next; nil is no record.
func (sx *subnetIndex) move(addr netip.Addr, before, after *Lease) {
	sx.forget(addr, before)
	if after == nil {
		sx.recorded.Remove(addr)
		return
	}
	sx.recorded.Add(addr)
	if after.Held() {
		sx.live[after.Attachment]++
	} else {
		sx.remember(memory{addr, after.Released, after.Until})
	}
	sx.byMAC.add(after.MAC, addr)
	sx.byName.add(after.Name, addr)
}

func (sx *subnetIndex) forget(addr netip.Addr, before *Lease) {
	if e := sx.memories[addr]; e != nil {
		sx.released.Remove(e)
		delete(sx.memories, addr)
	}
	if before.Held() {
		if sx.live[before.Attachment]--; sx.live[before.Attachment] <= 0 {
			delete(sx.live, before.Attachment)
		}
	}
	if before != nil {
		sx.byMAC.remove(before.MAC, addr)
		sx.byName.remove(before.Name, addr)
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

// neverUsed is the lowest address of r that the subnet allows and that has no record.
func (sx *subnetIndex) neverUsed(r netipx.IPRange) (netip.Addr, bool) {
	r, ok := intersect(r, sx.usable)
	if !ok {
		return netip.Addr{}, false
	}
	return sx.recorded.NextFree(r)
}

// longestReleased is the address of r that was released longest ago and is past its quarantine. Else ready tells when the
// first quarantine in r ends; it is zero where nothing in r is in quarantine.
func (sx *subnetIndex) longestReleased(r netipx.IPRange, now time.Time) (addr netip.Addr, ready time.Time, ok bool) {
	for e := sx.released.Front(); e != nil; e = e.Next() {
		m := e.Value.(memory)
		if !r.Contains(m.addr) {
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

// intersect is the part that a and b share.
func intersect(a, b netipx.IPRange) (netipx.IPRange, bool) {
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	r := netipx.IPRangeFrom(from, to)
	return r, r.IsValid()
}
