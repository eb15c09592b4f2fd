package edit

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Plan is the network that an edit changes.
type Plan struct {
	ledger.NetworkPlan
	run *run
}

// PlanOf returns the plan of a network in a change without a request.
func PlanOf(c *ledger.Change, n *ipam.Network) *Plan { return (&run{Change: c}).plan(n) }

func (c *run) plan(n *ipam.Network) *Plan {
	return &Plan{ledger.NetworkPlan{Change: c.Change, N: n}, c}
}

// openPlan opens the network that an edit names. The first one must have the revision in IfMatch, if that is set.
func openPlan(c *run, ref string, e ipam.Edit) (*Plan, error) {
	if c.imports != nil {
		return c.imports.open(ref)
	}
	n, err := c.NetworkOf(ref, e)
	if err != nil {
		return nil, err
	}
	if seen := c.match; seen != 0 && seen != n.LastRevision() {
		return nil, ipam.Refuse(ipam.ErrChanged, "network %s has changed since you read it (revision %d, now %d); "+
			"read it again, and repeat the change", n.Name, seen, n.LastRevision())
	}
	c.match = 0
	return c.plan(n), nil
}

// takeName refuses an invalid name, or one that another network has. No network but its own keeps it as a
// former name.
func (c *run) takeName(name string, own ipam.ID) error {
	if err := ipam.CheckNewName("network", name); err != nil {
		return err
	}
	taken, err := c.Tx().Get(ledger.NameKey(nil, name))
	if err != nil {
		return err
	}
	if taken == nil {
		return c.dropFormerName(name, own)
	}
	return ipam.Refuse(ipam.ErrInUse, "network %s already exists; choose another name", name)
}
