package deploy

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// Another returns edits that give owners second addresses in addition to the ones in not. A successor that starts
// before its predecessor stops needs them. The edits follow those of Edits, in one transaction if they fit.
// GrantAnother takes the results of both. Addresses that the files name stay as they are.
func (p *Plan) Another(not map[string][]netip.Addr) []ipam.Edit {
	edits := p.Edits()
	for _, i := range p.others(not) {
		again := *edits[i].(*ipam.AddReservation)
		again.Wishes = slices.Clone(again.Wishes)
		for w := range again.Wishes {
			// An owner has one address per subnet, so the slot's subnet has at most this one.
			if has := at(p.claims[i].has, w); !again.Wishes[w].Address.IsValid() &&
				slices.Contains(not[again.Owner], has) {
				again.Wishes[w].Not = has
			}
		}
		edits = append(edits, &again)
	}
	return edits
}

// GrantAnother takes the results of the edits of Another.
func (p *Plan) GrantAnother(not map[string][]netip.Addr, results []ipam.Result) error {
	others := p.others(not)
	if len(results) != len(p.claims)+len(others) {
		return fmt.Errorf("Berth requested %d reservations, but the daemon returned %d", len(p.claims)+len(others),
			len(results))
	}
	again := results[len(p.claims):]
	results = slices.Clone(results[:len(p.claims)])
	for k, i := range others {
		results[i] = again[k]
	}
	return p.Grant(results)
}

// ProblemOfAnother returns the refusal of an edit of Another as a problem of the files, with its place.
func (p *Plan) ProblemOfAnother(not map[string][]netip.Addr, edit int, err error) error {
	if edit < len(p.claims) {
		return p.Problem(edit, err)
	}
	c := p.claims[p.others(not)[edit-len(p.claims)]]
	return p.project.problem(path{"services", c.service}, "no second address for %s on networks.%s, which its order "+
		"start-first needs: %w", c.owner, c.on.key, err)
}

// others returns the indexes of claims whose owners need second addresses.
func (p *Plan) others(not map[string][]netip.Addr) (all []int) {
	for i, c := range p.claims {
		if len(not[c.owner]) > 0 && slices.ContainsFunc(c.has, func(addr netip.Addr) bool {
			return slices.Contains(not[c.owner], addr)
		}) {
			all = append(all, i)
		}
	}
	return all
}

func at(addrs []netip.Addr, i int) netip.Addr {
	if i >= len(addrs) {
		return netip.Addr{}
	}
	return addrs[i]
}
