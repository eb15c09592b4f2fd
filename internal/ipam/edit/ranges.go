package edit

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// Misplaced is a range that cannot be where it is.
type Misplaced struct {
	At   int // which of the ranges it is
	Over int // which of them it overlaps, and does not begin before; -1: it is not inside the subnet
}

// MisplacedIn is the rule for the pools of a subnet, for its exclusions and for its static bands: those of one kind lie
// inside it and apart. It lists what breaks the rule: what is not inside, and then what overlaps, the lowest first.
func MisplacedIn(cidr netip.Prefix, all []ipam.Range) (wrong []Misplaced) {
	inside := make([]int, 0, len(all))
	for i, r := range all {
		if ipam.Covers(cidr, r.IPRange) {
			inside = append(inside, i)
		} else {
			wrong = append(wrong, Misplaced{i, -1})
		}
	}
	slices.SortStableFunc(inside, func(a, b int) int {
		return cmp.Or(all[a].From().Compare(all[b].From()), all[a].To().Compare(all[b].To()))
	})
	last := -1 // of those that begin no later, the one that reaches furthest
	for _, i := range inside {
		if last >= 0 && !all[last].To().Less(all[i].From()) {
			wrong = append(wrong, Misplaced{i, last})
		}
		if last < 0 || all[last].To().Less(all[i].To()) {
			last = i
		}
	}
	return wrong
}

// placed refuses to put more of a kind into a subnet that is there: all of them, and how many of these it has already.
func placed[T fmt.Stringer](sub *ipam.Subnet, noun string, all []T, had int, rangeOf func(T) ipam.Range) error {
	ranges := make([]ipam.Range, len(all))
	for i, one := range all {
		ranges[i] = rangeOf(one)
	}
	for _, m := range MisplacedIn(sub.CIDR, ranges) {
		later := max(m.At, m.Over)
		switch {
		case later < had: // it is there
		case m.Over < 0:
			return ipam.Refuse(ipam.ErrInvalid, "the range %s is not inside the subnet %s", ranges[later], sub.CIDR)
		default:
			return ipam.Refuse(ipam.ErrOverlap,
				"the range %s overlaps the %s %s of the subnet %s; give a range beside it, or remove that one first",
				ranges[later], noun, all[min(m.At, m.Over)], sub.CIDR)
		}
	}
	return nil
}

// AddPools gives a subnet more pools.
func (p *Plan) AddPools(sub *ipam.Subnet, more ...ipam.Pool) (*ipam.Subnet, error) {
	edited := *sub
	edited.Pools = append(slices.Clone(sub.Pools), more...)
	if err := edited.CheckLAN(p.N); err != nil {
		return nil, err
	}
	if err := placed(sub, "pool", edited.Pools, len(sub.Pools),
		func(pool ipam.Pool) ipam.Range { return pool.Range }); err != nil {
		return nil, err
	}
	for _, pool := range more {
		if err := p.Note(&ipam.Event{Verb: ipam.PoolAdded, Subnet: sub.CIDR}, nil, pool); err != nil {
			return nil, err
		}
	}
	return &edited, p.SetSubnet(&edited)
}

// dropPools takes the pools of a name away from a subnet.
func (p *Plan) dropPools(sub *ipam.Subnet, name string) error {
	edited := *sub
	edited.Pools = nil
	for _, pool := range sub.Pools {
		if pool.Name != name {
			edited.Pools = append(edited.Pools, pool)
			continue
		}
		if err := p.Note(&ipam.Event{Verb: ipam.PoolRemoved, Subnet: sub.CIDR}, pool, nil); err != nil {
			return err
		}
	}
	return p.SetSubnet(&edited)
}

// AddExclusions gives a subnet more exclusions. They lie beside its static bands, too.
func (p *Plan) AddExclusions(sub *ipam.Subnet, more ...ipam.Exclusion) (*ipam.Subnet, error) {
	return p.exclude(ipam.Event{Verb: ipam.ExclusionAdded}, sub, more...)
}

// exclude adds exclusions, each with an event like the given one.
func (p *Plan) exclude(like ipam.Event, sub *ipam.Subnet, more ...ipam.Exclusion) (*ipam.Subnet, error) {
	like.Subnet = sub.CIDR
	edited := *sub
	edited.Exclusions = append(slices.Clone(sub.Exclusions), more...)
	if err := placed(sub, "exclusion", edited.Exclusions, len(sub.Exclusions),
		func(x ipam.Exclusion) ipam.Range { return x.Range }); err != nil {
		return nil, err
	}
	for _, x := range more {
		if err := sub.OutsideStatic(x.Range); err != nil {
			return nil, err
		}
		e := like
		if err := p.Note(&e, nil, x); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(edited.Exclusions, func(a, b ipam.Exclusion) int {
		return a.Range.From().Compare(b.Range.From())
	})
	return &edited, p.SetSubnet(&edited)
}
