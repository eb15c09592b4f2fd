package elastic

import (
	"context"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Sweep forgets what the edges of hosts have said that are no more: of those that were removed from the cluster, and in
// a store of one host of all but that, which may have had another name. What was released waits for them no longer, nor
// for a host that is cut off. Where hosts share the store, it is forgotten when nothing can answer there any more
// (grant.go).
func Sweep(ctx context.Context, s *ledger.Ledger) error {
	if s.NoElastic() {
		return nil
	}
	var gone []ledger.AppliedAt
	var left []netip.Addr
	s.Read(func(ix *ledger.Index) {
		for at := range ix.AllApplied() {
			if at.Host != s.Host() && maySweep(s, ix, at) {
				gone = append(gone, at)
			}
		}
		for addr := range ix.Elastics() {
			if leftOver(ix, s.Host(), addr) {
				left = append(left, addr)
			}
		}
	})
	err := inPages(ctx, s, gone, func(c *ledger.Change, at ledger.AppliedAt) error {
		if !maySweep(s, c.Index(), at) {
			return nil
		}
		if known := c.Index().Applied(at); s.Member() != nil && known != nil && known.InForce {
			if ok, _, err := takesOver(c, s.SessionGone, at.Host, at.Address); err != nil || !ok {
				return err
			}
		}
		return noteWithdrawn(c, at, "")
	})
	if err != nil {
		return err
	}
	return inPages(ctx, s, left, func(c *ledger.Change, addr netip.Addr) error {
		if !leftOver(c.Index(), c.Host(), addr) {
			return nil
		}
		return c.SetElastic(addr, nil)
	})
}

// maySweep tells whether nobody is to have any more what the edge of a host other than this one has said.
func maySweep(s *ledger.Ledger, ix *ledger.Index, at ledger.AppliedAt) bool {
	if isGone(s, ix, at.Host) {
		return true
	}
	known := ix.Elastic(at.Address)
	return s.Member() != nil && (known == nil || known.State == ipam.ElasticReleasing) && sessionGone(s, ix, at.Host)
}

// sessionGone tells whether no session of a host's edge stands, as far as is known here.
func sessionGone(s *ledger.Ledger, ix *ledger.Index, host string) bool {
	known := ix.EdgeSession(host)
	return known == nil || s.Shared().Held()[host] != known.Session
}

// isGone tells whether a host other than this one takes no part any more.
func isGone(s *ledger.Ledger, ix *ledger.Index, host string) bool {
	h := ix.Host(host)
	return s.Member() == nil || h == nil || h.State == ipam.HostRemoved
}

// inPages changes many things, a page of them in each transaction.
func inPages[T any](ctx context.Context, s *ledger.Ledger, all []T, change func(*ledger.Change, T) error) error {
	for page := range slices.Chunk(all, s.Page()) {
		err := s.Update(ctx, func(c *ledger.Change) error {
			c.TouchPlan()
			for _, one := range page {
				if err := change(c, one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
