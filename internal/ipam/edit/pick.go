package edit

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// reach returns the subnets in which an edit looks for addresses: all of the network in order, or the named one.
func (p *Plan) reach(subnet string) ([]*ipam.Subnet, error) {
	if subnet != "" {
		sub, err := p.SubnetNamed(subnet)
		return []*ipam.Subnet{sub}, err
	}
	all, err := p.Subnets()
	if err == nil && len(all) == 0 {
		err = p.NoSubnet()
	}
	return all, err
}

// reachFor returns the subnets of an interface's given addresses. If a wish has no address, or one outside the network,
// it returns all subnets.
func (p *Plan) reachFor(in *ipam.Interface) ([]*ipam.Subnet, error) {
	var all []*ipam.Subnet
	for _, w := range in.Wishes {
		if !w.Address.IsValid() {
			return p.reach("")
		}
		sx := p.Index().Overlapping(p.N.Space, netip.PrefixFrom(w.Address, w.Address.BitLen()))
		if sx == nil || sx.Record().Network != p.N.ID {
			return p.reach("")
		}
		sub, err := p.ReadSubnet(sx.Record())
		if err != nil {
			return nil, err
		}
		all = append(all, sub)
	}
	return all, nil
}

// pick finds an address for a wish: the given address if the owner may have it, or a free one from its pools. Force
// ignores exclusions.
func (p *Plan) pick(owner string, w ipam.Wish, subnets []*ipam.Subnet, force bool) (ledger.Picked, error) {
	if w.Address.IsValid() {
		return p.pickAddress(owner, w.Address, subnets, force)
	}
	subnets, err := in(&w, p, subnets)
	if err != nil {
		return ledger.Picked{}, err
	}
	reserved := func(t *allocator.Target) (*ipam.Lease, error) { return pickReserved(t, owner, w.Not) }
	return p.first(w, subnets, reserved, owner)
}

// first returns the first address in the order of allocator.First over all subnets. Addresses from reserved come first.
func (p *Plan) first(w ipam.Wish, subnets []*ipam.Subnet, reserved func(*allocator.Target) (*ipam.Lease, error),
	owner string) (ledger.Picked, error) {
	sources := make([]*wanted, 0, len(subnets))
	for _, sub := range subnets {
		t := p.target(sub, w.Pool)
		if w.Not.IsValid() {
			t.Kept = t.Kept.And(w.Not)
		}
		sources = append(sources, &wanted{t, p, owner, reserved})
	}
	from, addr, l, err := allocator.First(sources...)
	if err != nil {
		return ledger.Picked{}, err
	}
	if !addr.IsValid() {
		return ledger.Picked{}, p.exhausted(w, subnets)
	}
	return ledger.Picked{Sub: from.Sub, Addr: addr, Record: l}, nil
}

// wanted is an allocator.Source for an address that a person wants for an owner.
type wanted struct {
	*allocator.Target // has Any
	p                 *Plan
	owner             string
	reserved          func(*allocator.Target) (*ipam.Lease, error)
}

// Reserved implements allocator.Source.
func (w *wanted) Reserved() (*ipam.Lease, error) { return w.reserved(w.Target) }

// Open implements allocator.Source.
func (w *wanted) Open() error { return w.p.N.CheckAutomatic() }

// Remembered implements allocator.Source with the addresses that any name of the owner had.
func (w *wanted) Remembered() (*ipam.Lease, error) {
	mac, _ := ipam.ParseMAC(w.owner)
	for _, name := range w.Index().Network(w.Sub.Network).NamesOf(w.owner) {
		l, err := w.Target.Remembered(&ipam.AddressRequest{Name: name, MAC: mac})
		if err != nil || l != nil {
			return l, err
		}
	}
	return nil, nil
}

// target returns a subnet as the target of a request without a Docker network. An empty pool means any.
func (p *Plan) target(sub *ipam.Subnet, pool string) *allocator.Target {
	return allocator.NewTarget(p.Change, new(ipam.Attachment), sub, pool)
}

// pickReserved returns the first free address that is reserved for the owner and, if a pool is named, lies in it.
func pickReserved(t *allocator.Target, owner string, not netip.Addr) (*ipam.Lease, error) {
	all, err := t.Reservations(t.Sub.ID, owner)
	for _, l := range all {
		if !l.Held() && !l.Reservation.Replaced && l.Address != not && (t.Pool == "" || t.InPools(l.Address)) {
			return l, err
		}
	}
	return nil, err
}

// pickAddress returns a given address if the owner may have it.
func (p *Plan) pickAddress(owner string, addr netip.Addr, subnets []*ipam.Subnet, force bool) (ledger.Picked, error) {
	for _, sub := range subnets {
		if !sub.CIDR.Contains(addr) {
			continue
		}
		t := p.target(sub, "")
		if err := t.CheckHost(addr); err != nil {
			return ledger.Picked{}, err
		}
		l, err := p.Lease(sub.ID, addr)
		if err != nil {
			return ledger.Picked{}, err
		}
		r := l.Reserved()
		if r != nil && r.Owner != owner {
			return ledger.Picked{}, allocator.ReservedError(p.Change, addr, r)
		}
		if x := sub.Exclusion(addr); x != nil && r == nil && !force {
			return ledger.Picked{}, ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse, "%s is excluded by %s", addr, x).
				Advise(ipam.DoTakeExcluded)
		}
		return ledger.Picked{Sub: sub, Addr: addr, Record: l}, nil
	}
	if len(subnets) == 1 {
		return ledger.Picked{}, ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s of network %s%s", addr,
			allocator.NotHost(subnets[0].CIDR, addr), p.Called(), p.elsewhere(addr))
	}
	return ledger.Picked{}, ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid,
		"no subnet of network %s holds %s; it has %s%s", p.Called(), addr, p.SubnetList(),
		p.elsewhere(addr))
}

// elsewhere names the other network of the space that has an address, for a refusal. It is empty if none has it.
func (p *Plan) elsewhere(addr netip.Addr) string {
	sub, err := p.Overlapping(p.N.Space, netip.PrefixFrom(addr, addr.BitLen()), ipam.ID{})
	if err != nil || sub == nil || sub.Network == p.N.ID {
		return ""
	}
	return fmt.Sprintf("; the network %s has it, in the subnet %s", p.NetworkName(sub.Network), sub.CIDR)
}

// exhausted explains why no pool of the subnets has an address.
func (p *Plan) exhausted(w ipam.Wish, subnets []*ipam.Subnet) error {
	var f allocator.Fullness
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
		return ipam.NoPoolNamed(where, pool).Advise(ipam.DoListPools, p.Called())
	case len(f.Pools) == 0:
		return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted, "%s has no pool, so Berth cannot choose an "+
			"address; name the address yourself", where).OrAdvise(ipam.DoAddPoolTo)
	}
	one := ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted, "no address is free in %s (1 wanted, 0 free): %s",
		where, f).Advise(ipam.DoEnlargePools)
	return &shortage{error: one, Wish: w, Network: p.N.ID, Where: where, Open: open, Full: f.String()}
}

// in lists the subnets that suit a wish, and refuses if there are none.
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
