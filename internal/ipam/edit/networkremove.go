package edit

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

func removeNetwork(p *Plan, e *ipam.RemoveNetwork) error {
	all, err := p.Subnets()
	if err != nil {
		return err
	}
	for _, sub := range all {
		if err := p.unused(sub, e.Force); err != nil {
			return err
		}
	}
	if err := p.dismissOwners(e.Force); err != nil {
		return err
	}
	left, err := elastic.EndNetwork(p.Change, p.N, e.Force)
	if err != nil {
		return err
	}
	if _, err := p.Tell(&ipam.Event{Verb: ipam.NetworkRemoved}, factsOfNetwork(p.N), nil); err != nil {
		return err
	}
	if left || len(all) > maxSubnets {
		leaving := *p.N
		leaving.Stage, p.run.leaving = ipam.Leaving, true
		return p.SetNetwork(leaving.ID, &leaving)
	}
	for _, sub := range all {
		if err := p.DropSubnet(sub); err != nil {
			return err
		}
	}
	return p.SetNetwork(p.N.ID, nil)
}

// finishLeaving removes the rest of removed networks, a batch of subnets at a time.
func finishLeaving(ctx context.Context, s *ledger.Ledger) error {
	for leaving(s) {
		left := false
		err := s.Update(ctx, func(c *ledger.Change) (err error) {
			left, err = leavePage(c)
			return err
		})
		if err != nil {
			return err
		}
		if !left {
			return nil
		}
	}
	return nil
}

// leaving reports whether a network is being removed.
func leaving(s *ledger.Ledger) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		for _, nx := range ix.Networks() {
			if nx.Record() != nil && nx.Record().Stage == ipam.Leaving {
				return true
			}
		}
		return false
	})
}

// leavePage removes one batch of a leaving network. It reports whether more may be left.
func leavePage(c *ledger.Change) (left bool, err error) {
	for id, nx := range c.Index().Networks() {
		if nx.Record() == nil || nx.Record().Stage != ipam.Leaving {
			continue
		}
		p := PlanOf(c, nx.Record())
		if left, err := elastic.EndNetwork(c, p.N, true); err != nil || left {
			return true, err
		}
		all, err := p.Subnets()
		if err != nil {
			return false, err
		}
		for _, sub := range all[:min(len(all), maxSubnets)] {
			if err := p.DropSubnet(sub); err != nil {
				return false, err
			}
		}
		if len(all) <= maxSubnets {
			err = c.SetNetwork(id, nil)
		}
		return true, err
	}
	return false, nil
}
