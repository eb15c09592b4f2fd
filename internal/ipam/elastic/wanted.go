package elastic

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// wanted is what this host's edge must have, according to all records.
type wanted struct {
	ranges   []ipam.EdgeRange
	mappings map[netip.Addr]ipam.EdgeMapping
	first    map[netip.Addr]lead // by guest: the one that is mapped, of those that lead to it here
	guests   map[netip.Addr]bool // with an address that leads to them, here or elsewhere
	networks map[ipam.ID]bool    // with an association
	accounts *claims
}

// workOut computes from the records what this host's edge must have. Commits during that time may be included or not;
// the caller hears of them and computes it again.
func workOut(ctx context.Context, l *ledger.Ledger) (*wanted, error) {
	w := &wanted{mappings: map[netip.Addr]ipam.EdgeMapping{}, first: map[netip.Addr]lead{},
		guests: map[netip.Addr]bool{}, networks: map[ipam.ID]bool{}}
	var all []*ipam.Elastic
	err := l.Look(ctx, func(c *ledger.Change) error {
		w.ranges, w.accounts, all = edgeRanges(c), claimsOf(c.Index()), associated(c.Index())
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = ledger.LookEach(ctx, l, all, func(c *ledger.Change, one *ipam.Elastic) error {
		w.networks[one.Association.Network] = true
		led, there, err := leadOf(c, w.accounts, one.Address)
		if there {
			w.add(led)
		}
		return err
	})
	for _, led := range w.first {
		w.mappings[led.Elastic] = led.EdgeMapping
	}
	return w, err
}

// add adds an elastic address that leads to a guest, the address of a container. If several lead to the same guest,
// only the one that was associated first is mapped. Usually there is one; there are more only if the guest has passed
// from one container to another.
func (w *wanted) add(led lead) {
	w.guests[led.Guest] = true
	if other, there := w.first[led.Guest]; led.here && (!there || led.Association < other.Association) {
		w.first[led.Guest] = led
	}
}

// bearing are the kinds of records from which wanted is computed.
var bearing = []byte{ledger.LeaseKeys, ledger.ElasticKeys, ledger.ElasticRangeKeys, ledger.AccountKeys,
	ledger.NetworkKeys, ledger.SubnetKeys}

// bears reports whether a record that was written can change wanted. Most leases, networks and subnets cannot, because
// no address is associated there.
func (w *wanted) bears(ix *ledger.Index, key, value []byte) bool {
	switch key[0] {
	case ledger.NetworkKeys:
		return w.networks[ipam.ID(key[1:])]
	case ledger.SubnetKeys:
		sub, there := ledger.Decoded[ipam.Subnet](value)
		return !there || w.networks[sub.Value.Network]
	case ledger.LeaseKeys:
		subnet, addr, ok := ledger.LeaseKeyParts(key)
		return ok && (w.guests[addr] || isForHolder(ix, subnet, addr, value))
	}
	return true
}

// isForHolder reports whether an address is associated with the holder of a guest's address, or with the owner for whom
// it is reserved.
func isForHolder(ix *ledger.Index, subnet ipam.ID, guest netip.Addr, value []byte) bool {
	sx := ix.Subnet(subnet)
	if sx == nil || value == nil {
		return false
	}
	n := ix.Network(sx.Record().Network)
	l, err := ipam.DecodeLease(guest, value)
	if n == nil || err != nil || !l.Held() && l.Reserved() == nil {
		return false // reading the record is refused later, or nobody has the address
	}
	return len(ofHolder(ix, n, l)) > 0
}

// following is wanted, updated with the records.
type following struct {
	anew
	wanted *wanted
	took   time.Duration // the time of the last computation
}

// follow begins to follow commits. Reports of edges and hosts matter for grants.
func (s Addresses) follow(ctx context.Context) *following {
	return &following{anew: anewAfter(ctx, s.ledger, bearing, []byte{ledger.AppliedKeys, ledger.HostKeys}),
		wanted: &wanted{}}
}

// now returns what is wanted now.
func (f *following) now(ctx context.Context) (w *wanted, err error) {
	if !f.due(f.wanted.bears) {
		return f.wanted, nil
	}
	begun := time.Now()
	if w, err = workOut(ctx, f.ledger); err == nil {
		f.wanted, f.took = w, time.Since(begun)
	}
	return w, err
}

// pause is how long nothing is computed again: as long as it took, so that at least half of a core stays free.
func (f *following) pause() time.Duration { return max(restBetween, f.took) }

// lead is where an elastic address leads: the mapping that this host's edge must have for it.
type lead struct {
	ipam.EdgeMapping
	here bool // it is mapped on this host, unless another address leads to the guest already
}

// leadOf computes from the records where an address leads, or false if it leads nowhere. The outgoing half of a mapping
// exists while the guest's address is reserved, so that no packet ever leaves with another source. The incoming half
// exists only while the container runs here.
func leadOf(c *ledger.Change, accounts *claims, addr netip.Addr) (l lead, there bool, err error) {
	one := c.Index().Elastic(addr)
	if c.NoElastic() || one == nil || one.Association == nil {
		return lead{}, false, nil
	}
	a := one.Association
	g, there, err := mapped(c, a)
	if err != nil || !there {
		return lead{}, false, err
	}
	l = lead{EdgeMapping: ipam.EdgeMapping{Elastic: addr, Guest: g.addr, Subnet: g.sub.CIDR,
		EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID, Lease: g.lease}}
	l.here = (g.host == "" || g.host == c.Host()) && !isForeign(c, addr) && whoseNow(accounts, one, &g) == one.Account
	return l, true, nil
}

// isForeign reports whether an address is of another cluster host's range, so that it cannot lead to a guest here.
func isForeign(c *ledger.Change, addr netip.Addr) bool {
	if c.Member() == nil {
		return false
	}
	r := rangeOf(c.Index(), addr)
	return r != nil && r.Host != "" && r.Host != c.Host()
}

// edgeRanges lists the ranges of which this host's edge may have addresses, in order.
func edgeRanges(c *ledger.Change) (all []ipam.EdgeRange) {
	if c.NoElastic() {
		return nil
	}
	for _, r := range ranges(c.Index()) {
		if r.Host == "" || r.Host == c.Host() {
			all = append(all, ipam.EdgeRange{Range: r.Range, Announce: r.Announce, TTL: r.TTL, OnCut: r.OnCut})
		}
	}
	return all
}

// whoseNow returns the account of the container that an address leads to, also after accounts or owner rules have
// changed. A container that does not run is known only by its owner's names, which may not tell the account. Then it is
// the address's account, unless another one claims the names.
func whoseNow(accounts *claims, one *ipam.Elastic, g *guest) string {
	account := accounts.of(g.namesOf(one.Association.Instance))
	if g.name == "" && account == ipam.DefaultAccount {
		return one.Account
	}
	return account
}
