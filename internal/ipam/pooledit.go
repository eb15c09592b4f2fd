package ipam

import (
	"fmt"
	"slices"

	"berth/internal/alloc"
	"go4.org/netipx"
)

func (e *AddPool) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, r, err := p.poolPlace(e)
	if err != nil {
		return Result{}, err
	}
	if e.Name != "" {
		if err := CheckName("pool", e.Name); err != nil {
			return Result{}, err
		}
	}
	if _, ok := intersect(r.IPRange, alloc.Usable(sub.CIDR)); !ok {
		return Result{}, &refusal{ErrInvalid, fmt.Sprintf("the range %s holds no host address of the subnet %s", r, sub.CIDR)}
	}
	if other := sub.overlappingPool(r); other != nil {
		return Result{}, &refusal{ErrOverlap, fmt.Sprintf("the range %s overlaps the pool %s of the subnet %s; give a range beside it, or remove that pool first", r, *other, sub.CIDR)}
	}
	pool := Pool{e.Name, r}
	if err := p.note(&Event{Verb: PoolAdded, Subnet: sub.CIDR}, nil, pool); err != nil {
		return Result{}, err
	}
	edited := *sub
	edited.Pools = append(slices.Clone(sub.Pools), pool)
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, c.setSubnet(&edited)
}

// String names a pool for an error: by its name and range.
func (pool Pool) String() string {
	if pool.Name == "" {
		return pool.Range.String()
	}
	return fmt.Sprintf("%s (%s)", pool.Name, pool.Range)
}

// poolPlace is the subnet and the range of a pool that is to be made.
func (p *plan) poolPlace(e *AddPool) (*Subnet, Range, error) {
	if e.Subnet == "" {
		sub, err := p.holding(e.Range)
		return sub, e.Range, err
	}
	sub, err := p.subnet(e.Subnet)
	if err != nil {
		return nil, Range{}, err
	}
	if e.Range.IsZero() {
		return sub, wholeRange(sub.CIDR), nil
	}
	if !covers(sub.CIDR, e.Range.IPRange) {
		return nil, Range{}, &refusal{ErrInvalid, fmt.Sprintf("the range %s is not inside the subnet %s", e.Range, sub.CIDR)}
	}
	return sub, e.Range, nil
}

func (e *ModifyPool) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	if e.Name != "" {
		if err := CheckName("pool", e.Name); err != nil {
			return Result{}, err
		}
	}
	if r, err := alloc.ParseRange(e.Pool); err == nil {
		return Result{Network: p.n.ID}, p.renameRange(Range{r}, e.Name)
	}
	return Result{Network: p.n.ID}, p.renamePool(e.Pool, e.Name)
}

// renameRange names the pool of exactly one range. Attachments follow it where it was the last of its name.
func (p *plan) renameRange(r Range, name string) error {
	sub, err := p.holding(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(sub.Pools, func(pool Pool) bool { return pool.Range == r })
	if i < 0 {
		return &refusal{ErrNotFound, fmt.Sprintf("network %s has no pool of the range %s; `berth pool ls` lists its pools", p.n.Name, r)}
	}
	before := sub.Pools[i]
	if err := p.note(&Event{Verb: PoolModified, Subnet: sub.CIDR}, before, Pool{name, r}); err != nil {
		return err
	}
	edited := *sub
	edited.Pools = slices.Clone(sub.Pools)
	edited.Pools[i].Name = name
	if err := p.setSubnet(&edited); err != nil {
		return err
	}
	if before.Name == "" || edited.hasPool(before.Name) {
		return nil
	}
	return p.renameAttached(sub, before.Name, name)
}

func (sub *Subnet) hasPool(name string) bool {
	return slices.ContainsFunc(sub.Pools, func(pool Pool) bool { return pool.Name == name })
}

// renamePool gives all ranges of a name another one, and tells the attachments that take from it (GA-21, invariant 5).
func (p *plan) renamePool(old, name string) error {
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
			if err := p.note(&Event{Verb: PoolModified, Subnet: sub.CIDR}, pool, edited.Pools[i]); err != nil {
				return err
			}
		}
		if err := p.setSubnet(&edited); err != nil {
			return err
		}
		if err := p.renameAttached(sub, old, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) renameAttached(sub *Subnet, old, name string) error {
	for _, id := range sub.Attachments {
		at, err := p.attachment(id)
		if err != nil {
			return err
		}
		if at.Named != old {
			continue
		}
		if name == "" {
			return &refusal{ErrInUse, fmt.Sprintf("a Docker network takes its addresses from the pool %s by name; give it another name, or remove that network first", old)}
		}
		edited := *at
		edited.Named = name
		if err := p.setAttachment(id, &edited); err != nil {
			return err
		}
	}
	return nil
}

// named lists the subnets that have a pool of a name.
func (p *plan) named(name string) ([]*Subnet, error) {
	all, err := p.subnets()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(sub *Subnet) bool {
		return name == "" || !sub.hasPool(name)
	})
	if len(all) == 0 {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("network %s has no pool named %q; `berth pool ls %s` lists its pools", p.n.Name, name, p.n.Name)}
	}
	return all, nil
}

func (e *RemovePool) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	if r, err := alloc.ParseRange(e.Pool); err == nil {
		sub, err := p.holding(Range{r})
		if err != nil {
			return Result{}, err
		}
		return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, p.cutPools(sub, Range{r})
	}
	all, err := p.named(e.Pool)
	if err != nil {
		return Result{}, err
	}
	for _, sub := range all {
		edited := *sub
		edited.Pools = []Pool{}
		for _, pool := range sub.Pools {
			if pool.Name != e.Pool {
				edited.Pools = append(edited.Pools, pool)
				continue
			}
			if err := p.note(&Event{Verb: PoolRemoved, Subnet: sub.CIDR}, pool, nil); err != nil {
				return Result{}, err
			}
		}
		if err := c.setSubnet(&edited); err != nil {
			return Result{}, err
		}
	}
	return Result{Network: p.n.ID}, nil
}

// cutPools takes a range out of the pools of a subnet; what is left of one keeps its name (GA-19).
func (p *plan) cutPools(sub *Subnet, r Range) error {
	edited := *sub
	edited.Pools = []Pool{}
	cut := false
	for _, pool := range sub.Pools {
		if !pool.Range.Overlaps(r.IPRange) {
			edited.Pools = append(edited.Pools, pool)
			continue
		}
		cut = true
		left := []Pool{}
		for _, part := range less(pool.Range.IPRange, r.IPRange) {
			left = append(left, Pool{pool.Name, Range{part}})
		}
		if err := p.note(&Event{Verb: PoolRemoved, Subnet: sub.CIDR, Detail: r.String()}, pool, left); err != nil {
			return err
		}
		edited.Pools = append(edited.Pools, left...)
	}
	if !cut {
		return &refusal{ErrNotFound, fmt.Sprintf("no pool of the subnet %s has an address of the range %s; `berth pool ls %s` lists its pools", sub.CIDR, r, p.n.Name)}
	}
	return p.setSubnet(&edited)
}

// less is what is left of r without hole, which it overlaps.
func less(r, hole netipx.IPRange) (left []netipx.IPRange) {
	if r.From().Less(hole.From()) {
		left = append(left, netipx.IPRangeFrom(r.From(), hole.From().Prev()))
	}
	if hole.To().Less(r.To()) {
		left = append(left, netipx.IPRangeFrom(hole.To().Next(), r.To()))
	}
	return left
}
