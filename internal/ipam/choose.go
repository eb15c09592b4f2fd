package ipam

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"time"

	"berth/internal/alloc"
	"go4.org/netipx"
)

// choose finds a free address for req and returns it with its record, a memory or nil. The index proposes, and the record
// decides: a proposal that turns out to be held corrects the index, so that the next one is another.
func (t *target) choose(req AddressRequest) (netip.Addr, *Lease, error) {
	if m, err := t.remembered(req); err != nil {
		return netip.Addr{}, nil, err
	} else if m != nil {
		return m.Address, m, nil
	}
	for _, r := range t.ranges() {
		if addr, m, err := t.chooseIn(r); err != nil || addr.IsValid() {
			return addr, m, err
		}
	}
	return netip.Addr{}, nil, t.exhausted()
}

// ranges are where automatic addresses come from: the subPool of the attachment, else all pools of the subnet.
func (t *target) ranges() []netipx.IPRange {
	if !t.at.Pool.IsZero() {
		return []netipx.IPRange{t.at.Pool.IPRange}
	}
	ranges := make([]netipx.IPRange, 0, len(t.sub.Pools))
	for _, p := range t.sub.Pools {
		ranges = append(ranges, p.Range.IPRange)
	}
	return ranges
}

// remembered is the free address that the name, else the MAC, of req had last. The quarantine does not bind
// it. An address outside the pools counts only where it was asked for by address then.
func (t *target) remembered(req AddressRequest) (*Lease, error) {
	if n := t.ix.networks[t.sub.Network]; n != nil && n.Policy.Forget {
		return nil, nil
	}
	byName, err := t.memoryAt(t.sx.byName.of(req.Name), func(m *Lease) bool { return m.Name == req.Name })
	if err != nil || byName != nil {
		return byName, err
	}
	return t.memoryAt(t.sx.byMAC.of(req.MAC), func(m *Lease) bool { return m.MAC == req.MAC })
}

// memoryAt is the first of the places that is a memory of the same owner.
func (t *target) memoryAt(places iter.Seq[netip.Addr], same func(*Lease) bool) (*Lease, error) {
	for addr := range places {
		m, err := t.lease(t.sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if m != nil && !m.Held() && same(m) && (m.Kind == Static || t.inPools(addr)) {
			return m, nil
		}
	}
	return nil, nil
}

func (t *target) inPools(addr netip.Addr) bool {
	for _, r := range t.ranges() {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

// chooseIn proposes addresses of one range until one is free by its record.
func (t *target) chooseIn(r netipx.IPRange) (netip.Addr, *Lease, error) {
	for {
		addr, ok := t.sx.neverUsed(r)
		if !ok {
			addr, _, ok = t.sx.longestReleased(r, t.now)
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
	return l == nil || !l.Held() && !l.Until.After(now)
}

// exhausted says why nothing was found: how much there is, and where it went.
func (t *target) exhausted() error {
	var b strings.Builder
	fmt.Fprintf(&b, "no address is free in the subnet %s of space %s", t.sub.CIDR, t.sub.Space)
	var until time.Time
	for i, r := range t.ranges() {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		usable, ok := intersect(r, t.sx.usable)
		if !ok {
			fmt.Fprintf(&b, "%sthe pool %s has no host address", sep, alloc.FormatRange(r))
			continue
		}
		fmt.Fprintf(&b, "%sall %s of the pool %s are taken", sep, alloc.Size(usable), alloc.FormatRange(r))
		if _, ready, _ := t.sx.longestReleased(r, t.now); !ready.IsZero() && (until.IsZero() || ready.Before(until)) {
			until = ready
		}
	}
	if !until.IsZero() {
		fmt.Fprintf(&b, " or in quarantine, the first until %s", until.Format(time.RFC3339))
	}
	b.WriteString("; remove containers, or create a network with a larger subnet or range")
	return &refusal{ErrExhausted, b.String()}
}
