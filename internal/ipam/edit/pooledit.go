package edit

import (
	"slices"

	"berth/internal/alloc"
	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func addPool(p *Plan, e *ipam.AddPool) error {
	sub, r, err := p.poolPlace(e)
	if err != nil {
		return err
	}
	if e.Name != "" {
		if err := ipam.CheckNewName("pool", e.Name); err != nil {
			return err
		}
	}
	if sub, err = p.addPools(sub, ipam.Pool{Name: e.Name, Range: r}); err != nil {
		return err
	}
	if _, ok := ledger.Intersect(r.IPRange, alloc.Usable(sub.CIDR)); !ok {
		return ipam.Refuse(ipam.ErrInvalid, "the range %s holds no host address of the subnet %s", r,
			sub.CIDR)
	}
	p.cameIn(sub)
	return nil
}

// poolPlace returns the subnet and the range of a new pool.
func (p *Plan) poolPlace(e *ipam.AddPool) (*ipam.Subnet, ipam.Range, error) {
	if e.Subnet == "" {
		sub, err := p.Holding(e.Range)
		return sub, e.Range, err
	}
	sub, err := p.SubnetNamed(e.Subnet)
	if err != nil {
		return nil, ipam.Range{}, err
	}
	if e.Range.IsZero() {
		return sub, allocator.WholeRange(sub.CIDR), nil
	}
	return sub, e.Range, nil
}

func modifyPool(p *Plan, e *ipam.ModifyPool) error {
	if e.Name != "" {
		if err := ipam.CheckNewName("pool", e.Name); err != nil {
			return err
		}
	}
	if r, err := alloc.ParseRange(e.Pool); err == nil {
		return p.renameRange(ipam.Range{IPRange: r}, e.Name)
	}
	return p.renamePool(e.Pool, e.Name)
}

// renameRange renames the pool with exactly this range. If no other pool of the subnet has the old name, its
// attachments get the new name.
func (p *Plan) renameRange(r ipam.Range, name string) error {
	sub, err := p.Holding(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(sub.Pools, func(pool ipam.Pool) bool { return pool.Range == r })
	if i < 0 {
		return ipam.Refuse(ipam.ErrNotFound, "network %s has no pool with the range %s", p.Called(), r).
			Advise(ipam.DoListPools)
	}
	before := sub.Pools[i]
	if err := p.Note(&ipam.Event{Verb: ipam.PoolModified, Subnet: sub.CIDR}, before,
		ipam.Pool{Name: name, Range: r}); err != nil {
		return err
	}
	edited := *sub
	edited.Pools = slices.Clone(sub.Pools)
	edited.Pools[i].Name = name
	if err := p.SetSubnet(&edited); err != nil {
		return err
	}
	if before.Name == "" || edited.HasPool(before.Name) {
		return nil
	}
	return p.renameAttached(sub, before.Name, name)
}

// renamePool renames all pools of a name, and updates the attachments that use them.
func (p *Plan) renamePool(old, name string) error {
	all, err := p.named(old)
	if err != nil {
		return err
	}
	for _, sub := range all {
		edited := *sub
		edited.Pools = slices.Clone(sub.Pools)
		for i, pool := range edited.Pools {
			if pool.Name != old {
				continue
			}
			edited.Pools[i].Name = name
			if err := p.Note(&ipam.Event{Verb: ipam.PoolModified, Subnet: sub.CIDR}, pool,
				edited.Pools[i]); err != nil {
				return err
			}
		}
		if err := p.SetSubnet(&edited); err != nil {
			return err
		}
		if err := p.renameAttached(sub, old, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) renameAttached(sub *ipam.Subnet, old, name string) error {
	for _, id := range sub.Attachments {
		at, err := p.Attachment(id)
		if err != nil {
			return err
		}
		if at.Named != old {
			continue
		}
		if name == "" {
			return ipam.Refuse(ipam.ErrInUse,
				"a Docker network names the pool %s that it takes addresses from; give the pool another name, or "+
					"remove that Docker network first", old)
		}
		edited := *at
		edited.Named = name
		if err := p.SetAttachment(id, &edited); err != nil {
			return err
		}
	}
	return nil
}

// named lists the subnets that have a pool with this name.
func (p *Plan) named(name string) ([]*ipam.Subnet, error) {
	all, err := p.Subnets()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(sub *ipam.Subnet) bool {
		return name == "" || !sub.HasPool(name)
	})
	if len(all) == 0 {
		return nil, ipam.NoPoolNamed("network "+p.Called(), name).Advise(ipam.DoListPools, p.Called())
	}
	return all, nil
}

func removePool(p *Plan, e *ipam.RemovePool) error {
	if r, err := alloc.ParseRange(e.Pool); err == nil {
		sub, err := p.Holding(ipam.Range{IPRange: r})
		if err != nil {
			return err
		}
		p.cameIn(sub)
		edited := *sub
		edited.Pools, err = cut(p, ipam.PoolRemoved, sub, sub.Pools, poolRange, ipam.Range{IPRange: r},
			ipam.DoListPools)
		if err != nil {
			return err
		}
		return p.SetSubnet(&edited)
	}
	all, err := p.named(e.Pool)
	if err != nil {
		return err
	}
	for _, sub := range all {
		if err := p.dropPools(sub, e.Pool); err != nil {
			return err
		}
	}
	return nil
}
