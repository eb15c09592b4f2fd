package edit

import (
	"berth/internal/ipam"
)

// A service can move from a network of one store to one of the other. As within one store, it keeps its old address
// until it runs with the new one. This takes two transactions, the new reservation first. Repeating them
// changes nothing.

// LeaveStore marks an owner's reservations in a store as replaced, except those on some networks.
type LeaveStore struct {
	Owner string
	Only  []string
}

// Op is the name of the operation. Clients cannot request it.
func (*LeaveStore) Op() string { return "owner.leave" }

func leaveStore(c *run, e *LeaveStore) error {
	return replaceBut(c.Change, ipam.CanonicalOwner(e.Owner), e.Only)
}

// ReleaseKnowing ends replaced reservations. Runs names the owners that run with an address of the other store.
type ReleaseKnowing struct {
	*ipam.ReleaseOwner
	Runs map[string]bool
}

func releaseKnowing(c *run, e *ReleaseKnowing) error {
	if err := ipam.CheckOwner(e.Owner); err != nil {
		return err
	}
	return releaseReplaced(c, Owners(e.ReleaseOwner), e.Runs)
}
