package edit

import (
	"context"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// arrivingOwners is how many owners of a dynamic network one transaction forgets.
const arrivingOwners = 256

// Withdraw removes networks that an import left unfinished. It leaves those that an import is writing, here or on
// another host. After a failure, the next call continues.
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

// arriving reports whether a network is being imported.
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

// withdrawPage starts to remove one unfinished network. It reports whether more may be left.
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
		if _, err := p.Tell(&ipam.Event{Verb: ipam.NetworkRemoved}, factsOfNetwork(n), nil); err != nil {
			return false, err
		}
		leaving := *n
		leaving.Stage, leaving.Importer = ipam.Leaving, nil
		return true, c.SetNetwork(n.ID, &leaving)
	}
	return false, nil
}

// imported reports whether the import of an arriving network still runs: its daemon is connected and imports.
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

// dismissSome forgets at most this many owners of a dynamic network. It reports whether there were any.
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
