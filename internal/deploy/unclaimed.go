package deploy

import (
	"slices"
	"strconv"

	"berth/internal/ipam"
)

// Unclaimed is an owner of a project that is no longer in its files, with its reservations.
type Unclaimed struct {
	Owner    string
	Service  string
	Number   int
	Why      string // why it is not in the files
	Reserved []ipam.ReservationInfo
}

// UnclaimedOwners returns the replicas of the project that are no longer in its files, by owner, with their
// reservations. It does not find owners with their own names, because these do not show the project. reserved are all
// reservations.
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
