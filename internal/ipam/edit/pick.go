package edit

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/choose"
	"berth/internal/ipam/ledger"
)

// Picked is an address that may be taken: where it is, and its record.
type Picked struct {
	Sub    *ipam.Subnet
	Addr   netip.Addr
	Record *ipam.Lease // as it was read; nil: none
}

// reach is where an edit looks for addresses: the network's subnets in order, or one of them.
func (p *Plan) reach(subnet string) ([]*ipam.Subnet, error) {
	if subnet != "" {
		sub, err := p.subnet(subnet)
		return []*ipam.Subnet{sub}, err
	}
	all, err := p.Subnets()
	if err == nil && len(all) == 0 {
		err = p.NoSubnet()
	}
	return all, err
}

// NoSubnet is the answer of a network that is L2 only (GA-1).
func (p *Plan) NoSubnet() error {
	return ipam.Help(ipam.Refuse(ipam.ErrExhausted, "network %s has no subnet, so that it gives no addresses",
		p.Called()),
		ipam.Advise(ipam.DoAddSubnetTo, p.Called()))
}

// pick finds what a wish may be given: the address that it names, if the owner may have it, or a free one out of its
// pools. Force goes over exclusions (GA-9).
func (p *Plan) pick(owner string, w ipam.Wish, subnets []*ipam.Subnet, force bool) (Picked, error) {
	if w.Address.IsValid() {
		return p.pickAddress(owner, w.Address, subnets, force)
	}
	subnets, err := in(&w, p, subnets)
	if err != nil {
		return Picked{}, err
	}
	reserved := func(t *choose.Target) (*ipam.Lease, error) { return pickReserved(t, owner, w.Not) }
	return p.first(w, subnets, reserved, owner)
}

// first is the first address in the order of every choice (choose.First), over all subnets, where reserved tells what
// comes before all others.
func (p *Plan) first(w ipam.Wish, subnets []*ipam.Subnet, reserved func(*choose.Target) (*ipam.Lease, error),
	owner string) (Picked, error) {
	sources := make([]*wanted, 0, len(subnets))
	for _, sub := range subnets {
		t := p.target(sub, w.Pool)
		if w.Not.IsValid() {
			t.Kept = t.Kept.And(w.Not)
		}
		sources = append(sources, &wanted{p, t, owner, reserved})
	}
	from, addr, l, err := choose.First(sources...)
	if err != nil {
		return Picked{}, err
	}
	if !addr.IsValid() {
		return Picked{}, p.exhausted(w, subnets)
	}
	return Picked{from.t.Sub, addr, l}, nil
}

// wanted is a target for a person who wants an address for an owner.
type wanted struct {
	p        *Plan
	t        *choose.Target
	owner    string
	reserved func(*choose.Target) (*ipam.Lease, error)
}

// Reserved implements choose.Source.
func (w *wanted) Reserved() (*ipam.Lease, error) { return w.reserved(w.t) }

// Open implements choose.Source.
func (w *wanted) Open() error { return w.p.N.CheckAutomatic() }

// Remembered implements choose.Source: what any name of the owner had.
func (w *wanted) Remembered() (*ipam.Lease, error) {
	mac, _ := ipam.ParseMAC(w.owner)
	for _, name := range w.t.Index().Network(w.t.Sub.Network).NamesOf(w.owner) {
		l, err := w.t.Remembered(&ipam.AddressRequest{Name: name, MAC: mac})
		if err != nil || l != nil {
			return l, err
		}
	}
	return nil, nil
}

// Any implements choose.Source.
func (w *wanted) Any() (netip.Addr, *ipam.Lease, error) { return w.t.Any() }

// target is a subnet for one who asks for an address without a Docker network, by the name of a pool or by none.
func (p *Plan) target(sub *ipam.Subnet, pool string) *choose.Target {
	return &choose.Target{Change: p.Change, At: &ipam.Attachment{Subnet: sub.ID, Space: sub.Space, CIDR: sub.CIDR},
		Sub: sub,
		Sx:  p.Index().Subnet(sub.ID), Pool: pool, Kept: choose.KeptOf(p.Change, sub)}
}

// pickReserved is the first address that is reserved for the owner, free and, where a pool is named, in it.
func pickReserved(t *choose.Target, owner string, not netip.Addr) (*ipam.Lease, error) {
	free, _, err := t.Reservations(t.Sub.ID, owner)
	for _, l := range free {
		if !l.Reservation.Replaced && l.Address != not && (t.Pool == "" || t.InPools(l.Address)) {
			return l, err
		}
	}
	return nil, err
}

// pickAddress finds out whether the owner may have an address.
func (p *Plan) pickAddress(owner string, addr netip.Addr, subnets []*ipam.Subnet, force bool) (Picked, error) {
	for _, sub := range subnets {
		if !sub.CIDR.Contains(addr) {
			continue
		}
		t := p.target(sub, "")
		if err := t.CheckHost(addr); err != nil {
			return Picked{}, err
		}
		l, err := p.Lease(sub.ID, addr)
		if err != nil {
			return Picked{}, err
		}
		r := l.Reserved()
		if r != nil && r.Owner != owner {
			return Picked{}, choose.ReservedError(p.Change, addr, r)
		}
		if x := sub.Exclusion(addr); x != nil && r == nil && !force {
			return Picked{}, ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse,
				"%s is excluded with %s; take it all the same with --force",
				addr, x)
		}
		return Picked{sub, addr, l}, nil
	}
	if len(subnets) == 1 {
		return Picked{}, ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s of network %s", addr,
			choose.NotHost(subnets[0].CIDR, addr), p.Called())
	}
	return Picked{}, ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "no subnet of network %s holds %s; it has %s",
		p.Called(), addr,
		p.SubnetList())
}

// exhausted says why no pool of the subnets has an address.
func (p *Plan) exhausted(w ipam.Wish, subnets []*ipam.Subnet) error {
	var f choose.Fullness
	var open []ledger.OpenPool
	pool := w.Pool
	for _, sub := range subnets {
		t := p.target(sub, pool)
		f.Add(t, t.Pools())
		open = append(open, t.Pools()...)
	}
	where := "network " + p.Called()
	if len(subnets) == 1 {
		where = fmt.Sprintf("the subnet %s of network %s", subnets[0].CIDR, p.Called())
	}
	switch {
	case len(f.Pools) == 0 && pool != "":
		return ipam.Help(ipam.Refuse(ipam.ErrNotFound, "%s has no pool named %s", where, pool),
			ipam.Advise(ipam.DoListPools, p.Called()))
	case len(f.Pools) == 0:
		return ipam.Help(ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
			"%s has no pool, so that no address can be chosen; ask for one by address", where),
			ipam.OrAdvise(ipam.DoAddPoolTo))
	}
	one := ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted, "no address is free in %s (1 wanted, 0 free): %s",
		where, f)
	return &shortage{Refusal: one, Wish: w, Network: p.N.ID, Where: where, Open: open, Full: f.String()}
}

// in lists the subnets that suit, and refuses to go on where there is none.
func in(w *ipam.Wish, p *Plan, subnets []*ipam.Subnet) ([]*ipam.Subnet, error) {
	if w.Family == 0 && w.Subnet == "" {
		return subnets, nil
	}
	left := slices.DeleteFunc(slices.Clone(subnets), func(sub *ipam.Subnet) bool { return !w.Suits(sub) })
	if len(left) > 0 {
		return left, nil
	}
	what := "subnet " + w.Subnet
	if w.Subnet == "" {
		what = fmt.Sprintf("IPv%d subnet", w.Family)
	}
	return nil, ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrNotFound, "network %s has no %s; it has %s", p.Called(), what,
		p.SubnetList())
}
