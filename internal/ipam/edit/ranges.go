package edit

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"berth/internal/ipam"
)

// Misplaced is a range in an invalid place.
type Misplaced struct {
	At   int // the index of the range
	Over int // the index of a range that it overlaps and that does not begin later; -1: it is outside the subnet
}

// misplacedIn checks the ranges of one kind in a subnet (pools, exclusions or static bands). They must lie inside it
// and must not overlap. It lists the ranges outside first, then the overlaps in ascending order.
func misplacedIn(cidr netip.Prefix, all []ipam.Range) (wrong []Misplaced) {
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
	last := -1 // of the ranges that begin no later, the one that ends last
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

func poolRange(p *ipam.Pool) *ipam.Range           { return &p.Range }
func exclusionRange(x *ipam.Exclusion) *ipam.Range { return &x.Range }

// placed refuses misplaced new pools or exclusions. all has the existing ones first; had is their number.
func placed[T fmt.Stringer](sub *ipam.Subnet, noun string, all []T, had int, rangeOf func(*T) *ipam.Range) error {
	ranges := make([]ipam.Range, len(all))
	for i := range all {
		ranges[i] = *rangeOf(&all[i])
	}
	for _, m := range misplacedIn(sub.CIDR, ranges) {
		later := max(m.At, m.Over)
		switch {
		case later < had: // it already exists
		case m.Over < 0:
			return ipam.Refuse(ipam.ErrInvalid, "the range %s is not inside the subnet %s", ranges[later], sub.CIDR)
		default:
			return ipam.Refuse(ipam.ErrOverlap, "the range %s overlaps the %s %s of the subnet %s; give a range "+
				"outside it, or remove the %s first", ranges[later], noun, all[min(m.At, m.Over)], sub.CIDR, noun)
		}
	}
	return nil
}

// cut removes a range from the pools or exclusions of a subnet, with an event for each that has a part of it. The rest
// keeps its name or note. It refuses if none has; list is the advice then.
func cut[T any](p *Plan, verb ipam.Verb, sub *ipam.Subnet, all []T, rangeOf func(*T) *ipam.Range, r ipam.Range,
	list ipam.Do) ([]T, error) {
	left := []T{}
	found := false
	for _, one := range all {
		whole := *rangeOf(&one)
		if !whole.Overlaps(r.IPRange) {
			left = append(left, one)
			continue
		}
		found = true
		rest := []T{}
		for _, part := range less(whole.IPRange, r.IPRange) {
			kept := one
			*rangeOf(&kept) = ipam.Range{IPRange: part}
			rest = append(rest, kept)
		}
		if err := p.Note(&ipam.Event{Verb: verb, Subnet: sub.CIDR, Detail: r.String()}, one, rest); err != nil {
			return nil, err
		}
		left = append(left, rest...)
	}
	if !found {
		noun, _, _ := strings.Cut(verb.String(), ".")
		return nil, ipam.Refuse(ipam.ErrNotFound, "no %s of the subnet %s overlaps the range %s", noun, sub.CIDR, r).
			Advise(list, p.Called())
	}
	return left, nil
}

// less returns the parts of r outside hole. The two must overlap.
func less(r, hole netipx.IPRange) (left []netipx.IPRange) {
	if r.From().Less(hole.From()) {
		left = append(left, netipx.IPRangeFrom(r.From(), hole.From().Prev()))
	}
	if hole.To().Less(r.To()) {
		left = append(left, netipx.IPRangeFrom(hole.To().Next(), r.To()))
	}
	return left
}

// addPools adds pools to a subnet.
func (p *Plan) addPools(sub *ipam.Subnet, more ...ipam.Pool) (*ipam.Subnet, error) {
	edited := *sub
	edited.Pools = append(slices.Clone(sub.Pools), more...)
	if err := edited.CheckLAN(p.N); err != nil {
		return nil, err
	}
	if err := placed(sub, "pool", edited.Pools, len(sub.Pools), poolRange); err != nil {
		return nil, err
	}
	for _, pool := range more {
		if err := p.Note(&ipam.Event{Verb: ipam.PoolAdded, Subnet: sub.CIDR}, nil, pool); err != nil {
			return nil, err
		}
	}
	return &edited, p.SetSubnet(&edited)
}

// dropPools removes the pools with this name from a subnet.
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

// addExclusions adds exclusions to a subnet. They must not overlap its static bands.
func (p *Plan) addExclusions(sub *ipam.Subnet, more ...ipam.Exclusion) (*ipam.Subnet, error) {
	return p.exclude(ipam.Event{Verb: ipam.ExclusionAdded}, sub, more...)
}

// exclude adds exclusions, each with a copy of the given event.
func (p *Plan) exclude(like ipam.Event, sub *ipam.Subnet, more ...ipam.Exclusion) (*ipam.Subnet, error) {
	like.Subnet = sub.CIDR
	edited := *sub
	edited.Exclusions = append(slices.Clone(sub.Exclusions), more...)
	if err := placed(sub, "exclusion", edited.Exclusions, len(sub.Exclusions), exclusionRange); err != nil {
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
