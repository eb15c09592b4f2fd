package choose

import (
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// choose finds a free address for req and returns it with its record, a memory, a reservation or nil. The index
// proposes, and the record decides: a proposal that turns out to be held corrects the index, so that the next one is
// another.
func (t *Target) choose(req *ipam.AddressRequest) (netip.Addr, *ipam.Lease, error) {
	who := t.Index().Network(t.Sub.Network).Meaning(req.Name)
	_, addr, before, err := First(&requested{t, req, who})
	if err == nil && !addr.IsValid() {
		err = t.exhausted()
	}
	return addr, before, err
}

// requested is a target for a request of the engine.
type requested struct {
	t   *Target
	req *ipam.AddressRequest
	who ipam.Meaning
}

// Reserved implements Source. Whoever stands in for another has that one's.
func (r *requested) Reserved() (*ipam.Lease, error) {
	if l, err := r.t.ReservedFor(r.who, r.req.MAC); err != nil || l != nil {
		return l, err
	}
	return r.t.standIn(*r.req, r.who)
}

// Open implements Source.
func (r *requested) Open() error {
	if err := r.who.N.CheckAutomatic(); err != nil {
		return err
	}
	r.t.ByRule(r.who)
	return nil
}

// Remembered implements Source.
func (r *requested) Remembered() (*ipam.Lease, error) { return r.t.Remembered(r.req) }

// Any implements Source.
func (r *requested) Any() (netip.Addr, *ipam.Lease, error) { return r.t.Any() }

// AddressOf is the address of a record; the zero one for none.
func AddressOf(l *ipam.Lease) netip.Addr {
	if l == nil {
		return netip.Addr{}
	}
	return l.Address
}

// ByRule has an attachment that names no pool take from that which a rule of the network gives the owner. A rule binds
// the families in which its pool is: a network's other family may have pools without names.
func (t *Target) ByRule(who ipam.Meaning) {
	if t.Pool != "" || !t.At.Pool.IsZero() {
		return
	}
	if pool := who.Pool(); pool != "" && familyHasPool(t.Index(), who.N.ID, t.Sub.CIDR.Addr().Is6(), pool) {
		t.Pool = pool
	}
}

// familyHasPool tells whether a subnet of the family has a pool of the name.
func familyHasPool(ix *ledger.Index, network ipam.ID, is6 bool, name string) bool {
	nx := ix.NetworkIndex(network)
	return nx != nil && slices.ContainsFunc(nx.Subnets(), func(id ipam.ID) bool {
		sub := ix.Subnet(id).Record()
		return sub.CIDR.Addr().Is6() == is6 && sub.HasPool(name)
	})
}

// Pools are where automatic addresses come from, in order: all pools of the subnet, or those of the name that is wanted
// (which never spills over to others; GA-16), or what lies of them in the attachment's range.
func (t *Target) Pools() []ledger.OpenPool {
	all := t.Sx.OpenPools(t.Sub)
	if t.Pool == "" && t.At.Pool.IsZero() {
		return all
	}
	var chosen []ledger.OpenPool
	for _, p := range all {
		if t.Pool != "" && p.Name != t.Pool {
			continue
		}
		if t.At.Pool.IsZero() || t.At.Pool == p.Range {
			chosen = append(chosen, p)
		} else if t.At.Pool.Overlaps(p.Range.IPRange) {
			chosen = append(chosen, p.Within(t.At.Pool.IPRange))
		}
	}
	return chosen
}

// ReservedFor is the free address that is reserved for whom a name can mean, else for a MAC. Where the owner's
// addresses are all in other hands it is refused, because another address would not be the owner's.
func (t *Target) ReservedFor(who ipam.Meaning, mac ipam.MAC) (*ipam.Lease, error) {
	if t.Sx.Reserved() == 0 {
		return nil, nil
	}
	for owner := range who.Owners {
		if r, err := t.reservedOf(owner); err != nil {
			return r, err
		} else if r != nil {
			return r, nil
		}
	}
	if mac == (ipam.MAC{}) {
		return nil, nil
	}
	return t.reservedOf(mac.String())
}

// reservedOf is the first address that is reserved for an owner, and wanted; nil where there is none.
func (t *Target) reservedOf(owner string) (*ipam.Lease, error) {
	free, held, err := t.Reservations(t.Sub.ID, owner)
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
			return nil, HeldError(t.Change, t.Sub, l)
		}
	}
	return nil, nil
}

// Remembered is the free address that the name, else the MAC, of req had last. An address outside the pools counts only
// where it was asked for by address then, and no pool is named now; one for which another container asks by its own
// configuration does not.
func (t *Target) Remembered(req *ipam.AddressRequest) (*ipam.Lease, error) {
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Policy.Forget {
		return nil, nil
	}
	return LastHad(t.Sx, req, t.read, func(m *ipam.Lease) bool {
		return t.recalls(m) && !t.Kept.From(req.Name, m.Address)
	})
}

// read reads the record of an address in the subnet.
func (t *Target) read(addr netip.Addr) (*ipam.Lease, error) { return t.Lease(t.Sub.ID, addr) }

// recalls tells whether an address that was the requester's may be so again: out of the pools only where it was asked
// for by address then, and no pool is named now.
func (t *Target) recalls(m *ipam.Lease) bool {
	return t.InPools(m.Address) || m.Kind == ipam.Static && t.Pool == "" && t.Sub.Exclusion(m.Address) == nil &&
		t.Sub.StaticBand(m.Address).IsZero()
}

// InPools tells whether an address lies in one of the pools that addresses are chosen from.
func (t *Target) InPools(addr netip.Addr) bool {
	for _, p := range t.Pools() {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Any is an address of the pools, in their order, that anybody may have, with its record; the zero one where there is
// none.
func (t *Target) Any() (netip.Addr, *ipam.Lease, error) {
	slot := t.Slot()
	for _, p := range t.Pools() {
		if addr, before, err := t.chooseIn(p, slot); err != nil || addr.IsValid() {
			return addr, before, err
		}
	}
	return netip.Addr{}, nil, nil
}

// chooseIn proposes addresses of one pool until one is free by its record.
func (t *Target) chooseIn(p ledger.OpenPool, slot int) (netip.Addr, *ipam.Lease, error) {
	for {
		addr, ok := Next(t.Sx, p, slot, t.Now(), t.Kept, t.Known().StillExists)
		if !ok {
			return netip.Addr{}, nil, nil
		}
		found, err := t.read(addr)
		if err != nil {
			return addr, found, err
		}
		if Free(found, t.Now()) {
			return addr, found, nil
		}
		t.Sx.Move(addr, found, found) // the index was wrong; now it knows
	}
}

// Free tells whether l, the record of an address or nil, lets anybody have it at the given time.
func Free(l *ipam.Lease, now time.Time) bool {
	return l == nil || !l.Held() && l.Reservation == nil && !l.Until.After(now)
}

// exhausted says why nothing was found: how much there is, and where it went.
func (t *Target) exhausted() error {
	pools := t.Pools()
	if len(pools) == 0 {
		return t.noPool()
	}
	var f Fullness
	f.Add(t, pools)
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Planned {
		return ipam.Help(ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
			"no address is free in the subnet %s of space %s (1 "+
				"wanted, 0 free): %s; remove containers", t.Sub.CIDR, t.Sub.Space, f),
			ipam.OrAdvise(ipam.DoEnlargeNetwork, n.Name))
	}
	return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
		"no address is free in the subnet %s of space %s (1 wanted, 0 "+
			"free): %s; remove containers, or create a network with a larger subnet or range", t.Sub.CIDR, t.Sub.Space,
		f)
}

// Fullness is how full pools are, for an error.
type Fullness struct {
	Pools    []string
	until    time.Time      // the first end of a quarantine; zero: none
	headroom map[string]int // by host
	kept     []string       // addresses that containers ask for, with their names
}

// Add counts the pools of a target.
func (f *Fullness) Add(t *Target, pools []ledger.OpenPool) {
	for _, p := range pools {
		f.Pools = append(f.Pools, taken(&p, t.Sub, t.Sx.Idle() > 0))
		if _, ready, _ := t.Sx.LongestReleased(p, t.Now(), t.Kept, t.Known().StillExists); !ready.IsZero() &&
			(f.until.IsZero() || ready.Before(f.until)) {
			f.until = ready
		}
		for at, addrs := range t.Sx.AllHeadroom() {
			for addr := range addrs {
				if known := t.Index().Attachment(at); known != nil && p.Contains(addr) {
					if f.headroom == nil {
						f.headroom = map[string]int{}
					}
					f.headroom[known.Host]++
				}
			}
		}
	}
	for _, w := range t.Kept {
		in := slices.ContainsFunc(pools, func(p ledger.OpenPool) bool { return p.Contains(w.Address) })
		if in && (!t.Sx.HasRecord(w.Address) || t.Sx.Remembers(w.Address)) {
			f.kept = append(f.kept, fmt.Sprintf("%s by %s", w.Address, w.Container))
		}
	}
}

// String names at most four pools.
func (f Fullness) String() string {
	const shown = 4
	text := strings.Join(f.Pools[:min(len(f.Pools), shown)], ", ")
	if more := len(f.Pools) - shown; more > 0 {
		text += fmt.Sprintf(" and those of %d more", more)
	}
	if !f.until.IsZero() {
		text += fmt.Sprintf(" or in quarantine, the first until %s", f.until.Format(time.RFC3339))
	}
	if len(f.kept) > 0 {
		text += fmt.Sprintf(" or asked for by containers themselves (%s",
			strings.Join(f.kept[:min(len(f.kept), shown)], ", "))
		if more := len(f.kept) - shown; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		text += ")"
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
func taken(p *ledger.OpenPool, sub *ipam.Subnet, reserved bool) string {
	name := "the pool " + alloc.FormatRange(p.Range.IPRange)
	if p.Name != "" {
		name = fmt.Sprintf("the pool %s (%s)", p.Name, p.Range)
	}
	if len(p.Ranges) == 0 {
		return name + " has no host address that is not excluded" + sub.OrStatic()
	}
	n, state := new(big.Int), "taken"
	if reserved {
		state = "taken or reserved"
	}
	for _, r := range p.Ranges {
		n.Add(n, alloc.Size(r))
	}
	if whole, ok := ledger.Intersect(p.Range.IPRange, alloc.Usable(sub.CIDR)); ok && n.Cmp(alloc.Size(whole)) < 0 &&
		len(sub.Exclusions)+len(sub.Static) > 0 {
		return fmt.Sprintf("all %s of %s that are not excluded%s are %s", n, name, sub.OrStatic(), state)
	}
	return fmt.Sprintf("all %s of %s are %s", n, name, state)
}

// noPool says why there is no dynamic address at all (GA-15).
func (t *Target) noPool() error {
	what := "no pool"
	if t.Pool != "" {
		what = "no pool named " + t.Pool
	} else if !t.At.Pool.IsZero() {
		what = fmt.Sprintf("no pool in the range %s", t.At.Pool)
	}
	return ipam.Help(ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
		"the subnet %s of network %s has %s, so that no address can be chosen; ask for one by address",
		t.Sub.CIDR, t.NetworkName(t.Sub.Network), what), ipam.OrAdvise(ipam.DoAddPoolTo))
}
