package dns

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// Index has the owner of each name and address. Its methods may be called concurrently.
type Index struct {
	zone string // without the final dot
	now  func() time.Time

	mu      sync.RWMutex
	told    map[string]bool // the stores that were read completely
	areas   map[ipam.ID]*area
	nodes   map[string]*node // by name in the zone; that of the zone itself is empty
	at      map[netip.Addr][]*entry
	within  prefixes // the prefixes of all areas
	reverse prefixes // the prefixes of our reverse zones
	serial  uint32
	names   int // number of names, without those of addresses
}

// New returns an Index of a zone (ParseZone) without names.
func New(zone string, now func() time.Time) *Index {
	return &Index{zone: zone, now: now, told: map[string]bool{}, areas: map[ipam.ID]*area{},
		nodes: map[string]*node{"": {}}, at: map[netip.Addr][]*entry{}, within: prefixes{}, reverse: prefixes{},
		serial: uint32(now().Unix())}
}

// Apply applies the news.
func (x *Index) Apply(news *ipam.NameNews) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if news.Whole {
		x.told[news.Store] = true
		x.forget(news)
	}
	for _, id := range news.Gone {
		x.remove(id)
	}
	fresh := map[ipam.ID]map[netip.Addr]bool{}
	for i := range news.Ranges {
		x.enter(&news.Ranges[i], news.Store)
		fresh[news.Ranges[i].ID] = map[netip.Addr]bool{}
	}
	for _, one := range news.Set {
		if of := fresh[one.In]; of != nil {
			of[one.Address] = true
		}
		x.set(one)
	}
	for _, one := range news.Removed {
		x.unset(one.In, one.Address)
	}
	for id, of := range fresh { // what the news no longer has
		for addr := range x.areas[id].entries {
			if !of[addr] {
				x.unset(id, addr)
			}
		}
	}
	if !news.Empty() {
		x.serial = max(x.serial+1, uint32(x.now().Unix()))
	}
}

// forget removes the areas that a complete message about a store no longer has.
func (x *Index) forget(news *ipam.NameNews) {
	stays := map[ipam.ID]bool{}
	for i := range news.Ranges {
		stays[news.Ranges[i].ID] = true
	}
	for id, a := range x.areas {
		if a.store == news.Store && !stays[id] {
			x.remove(id)
		}
	}
}

// enter adds a range. The names of its addresses stay, unless the range has changed.
func (x *Index) enter(r *ipam.NamedRange, store string) {
	label := elastic
	if !r.Elastic {
		label = labelOf(r.Network)
	}
	if was := x.areas[r.ID]; was != nil {
		if was.NamedRange == *r && was.store == store {
			return
		}
		x.remove(r.ID)
	}
	x.areas[r.ID] = &area{NamedRange: *r, store: store, label: label, entries: map[netip.Addr]*entry{}}
	for _, p := range r.Range.Prefixes() {
		x.within.add(p)
		x.reverse.add(zoneOf(p))
	}
}

func (x *Index) remove(id ipam.ID) {
	a := x.areas[id]
	if a == nil {
		return
	}
	for addr := range a.entries {
		x.unset(id, addr)
	}
	for _, p := range a.Range.Prefixes() {
		x.within.remove(p)
		x.reverse.remove(zoneOf(p))
	}
	delete(x.areas, id)
}

func (x *Index) set(one ipam.NamedAddress) {
	a := x.areas[one.In]
	if a == nil {
		return // it comes again with its range
	}
	if was := a.entries[one.Address]; was != nil {
		if was.NamedAddress == one {
			return
		}
		x.unset(one.In, one.Address)
	}
	e := &entry{NamedAddress: one, area: a}
	a.entries[one.Address] = e
	x.claims(e, func(name string, r rank, who string) {
		if !reserved(name) {
			x.put(name, claim{e, r, who})
		}
	})
	x.at[one.Address] = append(x.at[one.Address], e)
	slices.SortFunc(x.at[one.Address], func(a, b *entry) int { return claim{a, 0, a.Owner}.against(claim{b, 0, b.Owner}) })
}

// reserved reports whether a name is one of the zone's own.
func reserved(name string) bool { return name == nameServer || name == elastic }

func (x *Index) unset(id ipam.ID, addr netip.Addr) {
	a := x.areas[id]
	if a == nil || a.entries[addr] == nil {
		return
	}
	e := a.entries[addr]
	delete(a.entries, addr)
	x.claims(e, func(name string, r rank, who string) { x.drop(name, claim{e, r, who}) })
	rest := slices.DeleteFunc(x.at[addr], func(other *entry) bool { return other == e })
	if x.at[addr] = rest; len(rest) == 0 {
		delete(x.at, addr)
	}
}

// has reports whether an address belongs to a network or an elastic range.
func (x *Index) has(addr netip.Addr) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, has := x.within.longest(addr, addr.BitLen())
	return has
}

// Ready reports whether some store was read completely.
func (x *Index) Ready() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.told) > 0
}

// Count returns the number of names, without those of addresses.
func (x *Index) Count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.names
}

// The number of attempts to read the index for Clash, and the pause between them: some milliseconds in total.
const (
	clashTries = 50
	clashWait  = 20 * time.Microsecond
)

// Clash returns the name that an owner would have on a network, and who has that name: another owner, or the owner of a
// service. other is empty if nobody has it. Both are empty if the owner already has a name there, with or without a
// mark. It must not block requests, so it finds nobody while the index is busy with updates.
func (x *Index) Clash(space, network, owner string) (name, other string) {
	e := &entry{NamedAddress: ipam.NamedAddress{Owner: owner}, area: &area{NamedRange: ipam.NamedRange{Space: space,
		Network: network}, label: labelOf(network)}}
	own := x.longName(e)
	name = own + "." + x.zone
	for tries := 0; !x.mu.TryRLock(); tries++ {
		if tries == clashTries {
			return name, ""
		}
		time.Sleep(clashWait)
	}
	defer x.mu.RUnlock()
	n := x.nodes[own]
	if n == nil {
		return name, ""
	}
	for _, c := range n.claims {
		same := c.Owner == owner && c.area.Network == network && c.area.Space == space
		switch {
		case same && c.rank <= rankAltered:
			return "", ""
		case !same && c.rank <= rankGroup && other == "":
			other = c.Owner
		}
	}
	return name, other
}
