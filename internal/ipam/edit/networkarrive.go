package edit

import (
	"context"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// arrivingOwners is how many owners of a dynamic network one transaction forgets.
const arrivingOwners = 256

// Withdraw removes the networks that an import left unfinished. It does not touch those that an import writes at this
// moment, here or on another host. What a failure leaves of this, the next call does.
func Withdraw(ctx context.Context, s *ledger.Ledger) error {
	for arriving(s) {
		left := false
		// The import may have ended because its ctx has.
		err := s.Update(context.WithoutCancel(ctx), func(c *ledger.Change) (err error) {
			left, err = withdrawPage(s, c)
			return err
		})
		if err != nil {
			return err
		}
		if !left {
			break
		}
	}
	return finishPlans(ctx, s)
}

// arriving tells whether a network is being imported.
func arriving(s *ledger.Ledger) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		for _, nx := range ix.Networks() {
			if nx.Record() != nil && nx.Record().Stage == ipam.Arriving {
				return true
			}
		}
		return false
	})
}

// withdrawPage begins to remove one unfinished network, and tells whether there may be more to do.
func withdrawPage(s *ledger.Ledger, c *ledger.Change) (left bool, err error) {
	for _, nx := range c.Index().Networks() {
		n := nx.Record()
		if n == nil || n.Stage != ipam.Arriving || imported(s, c, n) {
			continue
		}
		p := PlanOf(c, n)
		if left, err := p.dismissSome(arrivingOwners); err != nil || left {
			return true, err
		}
		if _, err := p.Tell(&ipam.Event{Verb: ipam.NetworkRemoved}, FactsOfNetwork(n), nil); err != nil {
			return false, err
		}
		leaving := *n
		leaving.Stage, leaving.Importer = ipam.Leaving, nil
		return true, c.SetNetwork(n.ID, &leaving)
	}
	return false, nil
}

// imported tells whether the import that writes an arriving network is under way: its daemon runs, and imports.
func imported(s *ledger.Ledger, c *ledger.Change, n *ipam.Network) bool {
	by := n.Importer
	switch {
	case c.Member() == nil:
		return s.Importing()
	case by == nil:
		return false
	case by.Session == c.Member().Session:
		return s.Importing()
	}
	h := c.Index().Host(by.Host)
	_, there := c.Present()[by.Host]
	return there && h != nil && h.Session == by.Session
}

// dismissSome forgets so many owners of a dynamic network, and tells whether there were any.
func (p *Plan) dismissSome(most int) (some bool, err error) {
	if p.N.Type != ipam.Dynamic {
		return false, nil
	}
	known, err := p.DynamicOwners()
	if err != nil {
		return false, err
	}
	for _, one := range known[:min(len(known), most)] {
		if _, err := allocator.ForgetOwner(&p.NetworkPlan, one.Owner, ""); err != nil {
			return false, err
		}
	}
	return len(known) > 0, nil
}
