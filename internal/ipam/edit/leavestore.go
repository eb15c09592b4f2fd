package edit

import (
	"berth/internal/ipam"
)

// A service can move from a network of one store to one of the other. What it had is kept for it until it runs with
// what it has then, as it is within one store (BO-13). That is two transactions, the new reservation's first; made
// again, both change nothing.

// LeaveStore marks what an owner has in a store as replaced, but for what it has on some networks.
type LeaveStore struct {
	Owner string
	Only  []string
}

// Op is the name of the operation, which nobody asks for by it.
func (*LeaveStore) Op() string { return "owner.leave" }

func (e *LeaveStore) apply(c *run) (ipam.Result, error) {
	return ipam.Result{}, replaceBut(c.Change, ipam.CanonicalOwner(e.Owner), e.Only)
}

// ReleaseKnowing ends what was replaced, knowing which owners run with an address of the other store.
type ReleaseKnowing struct {
	*ipam.ReleaseOwner
	Runs map[string]bool
}

func (e *ReleaseKnowing) apply(c *run) (ipam.Result, error) {
	if err := ipam.CheckOwner(e.Owner); err != nil {
		return ipam.Result{}, err
	}
	return releaseReplaced(c.Change, Owners(e.ReleaseOwner), e.Runs)
}
