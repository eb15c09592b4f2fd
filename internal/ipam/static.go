package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// static is the band of the subnet that addr lies in; the zero Range where it lies in none.
func (sub *Subnet) static(addr netip.Addr) Range {
	n := endingBefore(sub.Static, addr)
	if n < len(sub.Static) && sub.Static[n].Contains(addr) {
		return sub.Static[n]
	}
	return Range{}
}

// orStatic speaks of the static bands beside the exclusions, where there are any.
func (sub *Subnet) orStatic() string {
	if len(sub.Static) == 0 {
		return ""
	}
	return " or kept for static use"
}

// setStatic makes bands the network's only ones. What is in use, or somebody's, in a band stays.
func (p *plan) setStatic(bands []Range) error {
	if p.n.Type == Dynamic && len(bands) > 0 {
		return refuse(WrongType, ErrInvalid, "network %s is of the type dynamic: somebody else chooses its addresses, so that none are kept from being chosen here", p.n.Name)
	}
	all, err := p.subnets()
	if err != nil {
		return err
	}
	wanted := map[ID][]Range{}
	for _, band := range bands {
		sub, err := p.bandIn(band)
		if err != nil {
			return err
		}
		for _, other := range wanted[sub.ID] {
			if other.Overlaps(band.IPRange) {
				return refuse(StaticOutOfRange, ErrOverlap, "the static bands %s and %s of network %s overlap; put them into one", other, band, p.n.Name)
			}
		}
		wanted[sub.ID] = append(wanted[sub.ID], band)
	}
	for _, sub := range all {
		after := wanted[sub.ID]
		slices.SortFunc(after, func(a, b Range) int { return a.From().Compare(b.From()) })
		if slices.Equal(sub.Static, after) {
			continue
		}
		edited := *sub
		edited.Static = after
		if err := p.setSubnet(&edited); err != nil {
			return err
		}
	}
	return nil
}

// bandIn is the subnet that a static band lies in. It lies beside the exclusions, of which nothing is given at all.
func (p *plan) bandIn(band Range) (*Subnet, error) {
	sub, err := p.holding(band)
	if errors.Is(err, ErrInvalid) {
		return nil, refuse(StaticOutOfRange, ErrInvalid, "the static band %s: %v", band, err)
	}
	if err != nil {
		return nil, err
	}
	if _, other := sub.placeOfExclusion(band); other != nil {
		return nil, refuse(StaticOutOfRange, ErrOverlap, "the static band %s overlaps the exclusion %s of the subnet %s; leave that part out, or end the exclusion with `berth exclusion rm`",
			band, other, sub.CIDR)
	}
	return sub, nil
}

// outsideStatic refuses an exclusion that overlaps a static band.
func (sub *Subnet) outsideStatic(r Range) error {
	n := endingBefore(sub.Static, r.From())
	if n == len(sub.Static) || !sub.Static[n].Overlaps(r.IPRange) {
		return nil
	}
	return &refusal{ErrOverlap, fmt.Sprintf("the range %s overlaps the static band %s of the subnet %s; leave that part out, or change the band with `berth network modify --static`",
		r, sub.Static[n], sub.CIDR)}
}

// bands lists the static bands of a network's subnets, in the order of the subnets.
func (ix *index) bands(network ID) []Range {
	var all []Range
	if nx := ix.networks[network]; nx != nil {
		for _, id := range nx.subnets {
			all = append(all, ix.subnets[id].record.value.Static...)
		}
	}
	return all
}
