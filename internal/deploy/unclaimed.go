package deploy

import (
	"slices"
	"strconv"

	"berth/internal/ipam"
)

// Unclaimed is an owner of a project that its files name no more, with all that is reserved for it.
type Unclaimed struct {
	Owner    string
	Service  string
	Number   int
	Why      string // it is not named
	Reserved []ipam.ReservationInfo
}

// UnclaimedOwners finds, in all that is reserved, what is reserved for replicas of the project that its files name no
// more, by owner. Of one that has a name of its own nothing tells whose it is.
func (p *Plan) UnclaimedOwners(reserved []ipam.ReservationInfo) (all []Unclaimed) {
	at := map[string]int{}
	for i := range reserved {
		owner := reserved[i].Owner
		project, service, digits, ok := ipam.ServiceOf(owner)
		if !ok || project != p.project.Name() ||
			slices.ContainsFunc(p.claims, func(c *claim) bool { return c.owner == owner }) {
			continue
		}
		why := p.gone(owner, nil)
		if why == "" {
			continue
		}
		number, err := strconv.Atoi(digits)
		if err != nil {
			continue // no replica has such a number
		}
		k, seen := at[owner]
		if !seen {
			k = len(all)
			at[owner] = k
			all = append(all, Unclaimed{Owner: owner, Service: service, Number: number, Why: why})
		}
		all[k].Reserved = append(all[k].Reserved, reserved[i])
	}
	return all
}
