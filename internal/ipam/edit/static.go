package edit

import (
	"errors"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// setStatic replaces the network's static bands. Addresses held or reserved in a band stay.
func (p *Plan) setStatic(bands []ipam.Range) error {
	if p.N.Type == ipam.Dynamic && len(bands) > 0 {
		return ipam.RefuseAs(ipam.WrongType, ipam.ErrInvalid, "network %s has the type dynamic: another system "+
			"chooses its addresses, so static bands have no effect", p.Called())
	}
	all, err := p.Subnets()
	if err != nil {
		return err
	}
	wanted := map[ipam.ID][]ipam.Range{}
	for _, band := range bands {
		sub, err := p.bandIn(band)
		if err != nil {
			return err
		}
		wanted[sub.ID] = append(wanted[sub.ID], band)
	}
	for _, sub := range all {
		after := wanted[sub.ID]
		if wrong := misplacedIn(sub.CIDR, after); len(wrong) > 0 { // they overlap, because each lies inside the subnet
			return ipam.RefuseAs(ipam.StaticOutOfRange, ipam.ErrOverlap, "the static bands %s and %s of network %s "+
				"overlap; combine them", after[wrong[0].Over], after[wrong[0].At], p.Called())
		}
		slices.SortFunc(after, func(a, b ipam.Range) int { return a.From().Compare(b.From()) })
		if slices.Equal(sub.Static, after) {
			continue
		}
		edited := *sub
		edited.Static = after
		if err := p.SetSubnet(&edited); err != nil {
			return err
		}
	}
	return nil
}

// bandIn returns the subnet that contains a static band. The band must not overlap an exclusion.
func (p *Plan) bandIn(band ipam.Range) (*ipam.Subnet, error) {
	sub, err := p.Holding(band)
	if errors.Is(err, ipam.ErrInvalid) {
		return nil, ipam.RefuseAs(ipam.StaticOutOfRange, ipam.ErrInvalid, "the static band %s: %v", band, err)
	}
	if err != nil {
		return nil, err
	}
	if _, other := sub.PlaceOfExclusion(band); other != nil {
		return nil, ipam.RefuseAs(ipam.StaticOutOfRange, ipam.ErrOverlap,
			"the static band %s overlaps the exclusion %s of the subnet %s; leave that part out",
			band, other, sub.CIDR).OrAdvise(ipam.DoShrinkExclusion)
	}
	return sub, nil
}

// Bands lists a network's static bands, in subnet order.
func Bands(ix *ledger.Index, network ipam.ID) []ipam.Range {
	var all []ipam.Range
	if nx := ix.NetworkIndex(network); nx != nil {
		for _, id := range nx.Subnets() {
			all = append(all, ix.Subnet(id).Record().Static...)
		}
	}
	return all
}
