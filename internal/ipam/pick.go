package ipam

import (
	"fmt"
	"net/netip"
)

// picked is an address that may be taken: where it is, and its record.
type picked struct {
	sub    *Subnet
	addr   netip.Addr
	record *Lease // as it was read; nil: none
}

// reach is where an edit looks for addresses: the network's subnets in order, or one of them.
func (p *plan) reach(subnet string) ([]*Subnet, error) {
	if subnet != "" {
		sub, err := p.subnet(subnet)
		return []*Subnet{sub}, err
	}
	all, err := p.subnets()
	if err == nil && len(all) == 0 {
		err = p.noSubnet()
	}
	return all, err
}

// noSubnet is the answer of a network that is L2 only (GA-1).
func (p *plan) noSubnet() error {
	return &refusal{ErrExhausted, fmt.Sprintf("network %s has no subnet, so that it gives no addresses; add one with `berth subnet add %s CIDR`", p.n.Name, p.n.Name)}
}

// pick finds what a wish may be given: the address that it names, if the owner may have it, or a free one out of its pools.
// Force goes over exclusions (GA-9).
func (p *plan) pick(owner string, w Wish, subnets []*Subnet, force bool) (picked, error) {
	if w.Address.IsValid() {
		return p.pickAddress(owner, w.Address, subnets, force)
	}
	subnets, err := w.in(p, subnets)
	if err != nil {
		return picked{}, err
	}
	for _, sub := range subnets {
		l, err := pickReserved(p.target(sub, w.Pool), owner)
		if err != nil || l != nil {
			return picked{sub, addressOf(l), l}, err
		}
	}
	if err := p.n.checkAutomatic(); err != nil {
		return picked{}, err
	}
	for _, sub := range subnets {
		l, err := pickRemembered(p.target(sub, w.Pool), owner)
		if err != nil || l != nil {
			return picked{sub, addressOf(l), l}, err
		}
	}
	for _, sub := range subnets { // LN-13, GA-16
		t := p.target(sub, w.Pool)
		for _, pool := range t.pools() {
			addr, l, err := t.chooseIn(pool)
			if err != nil || addr.IsValid() {
				return picked{sub, addr, l}, err
			}
		}
	}
	return picked{}, p.exhausted(w.Pool, subnets)
}

// target is a subnet for one who asks for an address without a Docker network, by the name of a pool or by none.
func (p *plan) target(sub *Subnet, pool string) *target {
	return &target{change: p.change, at: &Attachment{Subnet: sub.ID, Space: sub.Space, CIDR: sub.CIDR}, sub: sub, sx: p.ix.subnets[sub.ID], pool: pool}
}

// pickReserved is the first address that is reserved for the owner, free and, where a pool is named, in it.
func pickReserved(t *target, owner string) (*Lease, error) {
	free, _, err := t.reservations(t.sub.ID, owner)
	for _, l := range free {
		if !l.Reservation.Replaced && (t.pool == "" || t.inPools(l.Address)) {
			return l, err
		}
	}
	return nil, err
}

func pickRemembered(t *target, owner string) (*Lease, error) {
	mac, _ := ParseMAC(owner)
	for _, name := range t.ix.network(t.sub.Network).namesOf(owner) {
		l, err := t.remembered(AddressRequest{Name: name, MAC: mac})
		if err != nil || l != nil {
			return l, err
		}
	}
	return nil, nil
}

// pickAddress finds out whether the owner may have an address.
func (p *plan) pickAddress(owner string, addr netip.Addr, subnets []*Subnet, force bool) (picked, error) {
	for _, sub := range subnets {
		if !sub.CIDR.Contains(addr) {
			continue
		}
		t := p.target(sub, "")
		if err := t.checkHost(addr); err != nil {
			return picked{}, err
		}
		l, err := p.lease(sub.ID, addr)
		if err != nil {
			return picked{}, err
		}
		r := l.reserved()
		if r != nil && r.Owner != owner {
			return picked{}, p.reservedError(addr, r)
		}
		if x := sub.exclusion(addr); x != nil && r == nil && !force {
			return picked{}, refuse(IPReserved, ErrInUse, "%s is excluded with %s; take it all the same with --force", addr, x)
		}
		return picked{sub, addr, l}, nil
	}
	if len(subnets) == 1 {
		return picked{}, refuse(OutsideSubnet, ErrInvalid, "%s is %s of network %s", addr, notHost(subnets[0].CIDR, addr), p.n.Name)
	}
	return picked{}, refuse(OutsideSubnet, ErrInvalid, "no subnet of network %s holds %s; it has %s", p.n.Name, addr, p.subnetList())
}

// exhausted says why no pool of the subnets has an address.
func (p *plan) exhausted(pool string, subnets []*Subnet) error {
	var f fullness
	for _, sub := range subnets {
		t := p.target(sub, pool)
		f.add(t, t.pools())
	}
	where := "network " + p.n.Name
	if len(subnets) == 1 {
		where = fmt.Sprintf("the subnet %s of network %s", subnets[0].CIDR, p.n.Name)
	}
	switch {
	case len(f.pools) == 0 && pool != "":
		return &refusal{ErrNotFound, fmt.Sprintf("%s has no pool named %s; `berth pool ls %s` lists its pools", where, pool, p.n.Name)}
	case len(f.pools) == 0:
		return refuse(NotEnoughCapacity, ErrExhausted, "%s has no pool, so that no address can be chosen; ask for one by address, or add a pool with `berth pool add`", where)
	}
	n := capacity{wanted: 1}
	if p.edit.capacity != nil {
		n = *p.edit.capacity
	}
	return refuse(NotEnoughCapacity, ErrExhausted, "no address is free in %s (%d wanted, %d free): %s; give it more with `berth pool add`", where, n.wanted, n.given, f)
}
