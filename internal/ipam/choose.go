package ipam

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
)

// choose finds a free address for req and returns it with its record, a memory, a reservation or nil. The index proposes,
// and the record decides: a proposal that turns out to be held corrects the index, so that the next one is another.
func (t *target) choose(req AddressRequest) (netip.Addr, *Lease, error) {
	n := t.ix.network(t.sub.Network)
	who := n.meaning(req.Name)
	if r, err := t.reservedFor(who, req.MAC); err != nil || r != nil {
		return addressOf(r), r, err
	}
	if err := n.checkAutomatic(); err != nil {
		return netip.Addr{}, nil, err
	}
	t.byRule(who)
	if m, err := t.remembered(req); err != nil || m != nil {
		return addressOf(m), m, err
	}
	for _, p := range t.pools() {
		if addr, m, err := t.chooseIn(p); err != nil || addr.IsValid() {
			return addr, m, err
		}
	}
	return netip.Addr{}, nil, t.exhausted()
}

func addressOf(l *Lease) netip.Addr {
	if l == nil {
		return netip.Addr{}
	}
	return l.Address
}

// byRule has an attachment that names no pool take from that which a rule of the network gives the owner. A rule binds the
// families in which its pool is: a network's other family may have pools without names.
func (t *target) byRule(who meaning) {
	if t.pool != "" || !t.at.Pool.IsZero() {
		return
	}
	if pool := who.pool(); pool != "" && t.ix.familyHasPool(who.n.ID, t.sub.CIDR.Addr().Is6(), pool) {
		t.pool = pool
	}
}

// familyHasPool tells whether a subnet of the family has a pool of the name.
func (ix *index) familyHasPool(network ID, is6 bool, name string) bool {
	nx := ix.networks[network]
	return nx != nil && slices.ContainsFunc(nx.subnets, func(id ID) bool {
		sub := ix.subnets[id].record.value
		return sub.CIDR.Addr().Is6() == is6 && sub.hasPool(name)
	})
}

// pools are where automatic addresses come from, in order: all pools of the subnet, or those of the name that is wanted
// (which never spills over to others; GA-16), or what lies of them in the attachment's range.
func (t *target) pools() []openPool {
	all := t.sx.openPools(t.sub)
	if t.pool == "" && t.at.Pool.IsZero() {
		return all
	}
	var chosen []openPool
	for _, p := range all {
		if t.pool != "" && p.Name != t.pool {
			continue
		}
		if t.at.Pool.IsZero() || t.at.Pool == p.Range {
			chosen = append(chosen, p)
		} else if t.at.Pool.Overlaps(p.Range.IPRange) {
			chosen = append(chosen, p.within(t.at.Pool.IPRange))
		}
	}
	return chosen
}

// reservedFor is the free address that is reserved for whom a name can mean, else for a MAC. Where the owner's addresses are
// all in other hands it is refused, because another address would not be the owner's.
func (t *target) reservedFor(who meaning, mac MAC) (*Lease, error) {
	if t.sx.reserved == 0 {
		return nil, nil
	}
	for owner := range who.owners {
		if r, err := t.reservedOf(owner); err != nil || r != nil {
			return r, err
		}
	}
	if mac == (MAC{}) {
		return nil, nil
	}
	return t.reservedOf(mac.String())
}

// reservedOf is the first address that is reserved for an owner, and wanted; nil where there is none.
func (t *target) reservedOf(owner string) (*Lease, error) {
	free, held, err := t.reservations(t.sub.ID, owner)
	if err != nil {
		return nil, err
	}
	for _, l := range free {
		if !l.Reservation.Replaced {
			return l, nil
		}
	}
	for _, l := range held {
		if !l.Reservation.Replaced {
			return nil, t.heldError(l)
		}
	}
	return nil, nil
}

// remembered is the free address that the name, else the MAC, of req had last. The quarantine does not bind
// it. An address outside the pools counts only where it was asked for by address then, and no pool is named now.
func (t *target) remembered(req AddressRequest) (*Lease, error) {
	if n := t.ix.network(t.sub.Network); n != nil && n.Policy.Forget {
		return nil, nil
	}
	name := rememberedName(req.Name)
	byName, err := t.memoryAt(t.sx.byName.of(name), func(m *Lease) bool { return rememberedName(m.Name) == name })
	if err != nil || byName != nil {
		return byName, err
	}
	return t.memoryAt(t.sx.byMAC.of(req.MAC), func(m *Lease) bool { return m.MAC == req.MAC })
}

// memoryAt is the memory of the same owner, among the places, that was released last. The order of the places says not
// which: a change that was taken back has put them in another.
func (t *target) memoryAt(places iter.Seq[netip.Addr], same func(*Lease) bool) (last *Lease, err error) {
	for addr := range places {
		m, err := t.lease(t.sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if m.Remembered() && m.Reservation == nil && same(m) && t.recalls(m) && (last == nil || last.Released.Before(m.Released)) {
			last = m
		}
	}
	return last, nil
}

// recalls tells whether an address that was the requester's may be so again: out of the pools only where it was asked for
// by address then, and no pool is named now.
func (t *target) recalls(m *Lease) bool {
	return t.inPools(m.Address) || m.Kind == Static && t.pool == "" && t.sub.exclusion(m.Address) == nil && t.sub.static(m.Address).IsZero()
}

func (t *target) inPools(addr netip.Addr) bool {
	for _, p := range t.pools() {
		if p.contains(addr) {
			return true
		}
	}
	return false
}

// chooseIn proposes addresses of one pool until one is free by its record: the lowest that nobody ever had, on a host that
// shares the pool with others from its own place in it on, then the one that was released longest ago and is past its
// quarantine.
func (t *target) chooseIn(p openPool) (netip.Addr, *Lease, error) {
	return t.chooseFrom(p, t.slot())
}

// chooseFrom is chooseIn that begins at the place of a slot.
func (t *target) chooseFrom(p openPool, slot int) (netip.Addr, *Lease, error) {
	for {
		addr, ok := t.sx.neverUsed(p, slot)
		if !ok {
			addr, _, ok = t.sx.longestReleased(p, t.now)
		}
		if !ok {
			return netip.Addr{}, nil, nil
		}
		found, err := t.lease(t.sub.ID, addr)
		if err != nil || found.free(t.now) {
			return addr, found, err
		}
		t.sx.move(addr, found, found) // the index was wrong; now it knows
	}
}

// free tells whether l, the record of an address or nil, lets anybody have it at the given time.
func (l *Lease) free(now time.Time) bool {
	return l == nil || !l.Held() && l.Reservation == nil && !l.Until.After(now)
}

// exhausted says why nothing was found: how much there is, and where it went.
func (t *target) exhausted() error {
	pools := t.pools()
	if len(pools) == 0 {
		return t.noPool()
	}
	var f fullness
	f.add(t, pools)
	todo := "create a network with a larger subnet or range"
	if n := t.ix.network(t.sub.Network); n != nil && n.Planned {
		todo = fmt.Sprintf("give network %s more with `berth pool add`", n.Name)
	}
	return refuse(NotEnoughCapacity, ErrExhausted, "no address is free in the subnet %s of space %s (1 wanted, 0 free): %s; remove containers, or %s", t.sub.CIDR, t.sub.Space, f, todo)
}

// fullness is how full pools are, for an error.
type fullness struct {
	pools    []string
	until    time.Time      // the first end of a quarantine; zero: none
	headroom map[string]int // by host
}

func (f *fullness) add(t *target, pools []openPool) {
	for _, p := range pools {
		f.pools = append(f.pools, p.taken(t.sub, t.sx.idle > 0))
		if _, ready, _ := t.sx.longestReleased(p, t.now); !ready.IsZero() && (f.until.IsZero() || ready.Before(f.until)) {
			f.until = ready
		}
		for at, addrs := range t.sx.headroom {
			for addr := range addrs {
				if known := t.ix.attachments[at].value; known != nil && p.contains(addr) {
					if f.headroom == nil {
						f.headroom = map[string]int{}
					}
					f.headroom[known.Host]++
				}
			}
		}
	}
}

// String names at most four pools.
func (f fullness) String() string {
	const shown = 4
	text := strings.Join(f.pools[:min(len(f.pools), shown)], ", ")
	if more := len(f.pools) - shown; more > 0 {
		text += fmt.Sprintf(" and those of %d more", more)
	}
	if !f.until.IsZero() {
		text += fmt.Sprintf(" or in quarantine, the first until %s", f.until.Format(time.RFC3339))
	}
	var hosts []string
	for _, host := range slices.Sorted(maps.Keys(f.headroom)) {
		hosts = append(hosts, fmt.Sprintf("%d of host %s", f.headroom[host], host))
	}
	if len(hosts) > 0 {
		text += fmt.Sprintf(" (headroom among them: %s)", strings.Join(hosts[:min(len(hosts), shown)], ", "))
	}
	return text
}

// taken says how many addresses of a full pool there are.
func (p *openPool) taken(sub *Subnet, reserved bool) string {
	name := "the pool " + alloc.FormatRange(p.Range.IPRange)
	if p.Name != "" {
		name = fmt.Sprintf("the pool %s (%s)", p.Name, p.Range)
	}
	if len(p.ranges) == 0 {
		return name + " has no host address that is not excluded" + sub.orStatic()
	}
	n, state := new(big.Int), "taken"
	if reserved {
		state = "taken or reserved"
	}
	for _, r := range p.ranges {
		n.Add(n, alloc.Size(r))
	}
	if whole, ok := intersect(p.Range.IPRange, alloc.Usable(sub.CIDR)); ok && n.Cmp(alloc.Size(whole)) < 0 && len(sub.Exclusions)+len(sub.Static) > 0 {
		return fmt.Sprintf("all %s of %s that are not excluded%s are %s", n, name, sub.orStatic(), state)
	}
	return fmt.Sprintf("all %s of %s are %s", n, name, state)
}

// noPool says why there is no dynamic address at all (GA-15).
func (t *target) noPool() error {
	what := "no pool"
	if t.pool != "" {
		what = "no pool named " + t.pool
	} else if !t.at.Pool.IsZero() {
		what = fmt.Sprintf("no pool in the range %s", t.at.Pool)
	}
	return refuse(NotEnoughCapacity, ErrExhausted, "the subnet %s of network %s has %s, so that no address can be chosen; ask for one by address, or add a pool with `berth pool add`",
		t.sub.CIDR, t.networkName(t.sub.Network), what)
}
