package elastic

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// appliedOf returns the reports of the hosts' edges about an address: this host's first, then by host name. The edge of
// a removed host may not know yet that the host was removed, so its reports are included.
func appliedOf(ix *ledger.Index, self string, addr netip.Addr) (all []*ipam.Applied) {
	hosts := []string{self}
	for name := range ix.Hosts() {
		if name != self {
			hosts = append(hosts, name)
		}
	}
	slices.Sort(hosts[1:])
	for _, host := range hosts {
		if at := ix.Applied(ledger.AppliedAt{Host: host, Address: addr}); at != nil {
			all = append(all, at)
		}
	}
	return all
}

// inForce returns the reports of edges that may have the address in their kernel.
func inForce(ix *ledger.Index, self string, addr netip.Addr) []*ipam.Applied {
	return slices.DeleteFunc(appliedOf(ix, self, addr), func(at *ipam.Applied) bool { return !at.InForce })
}

// elsewhere returns the reports of other hosts' edges.
func elsewhere(c *ledger.Change, addr netip.Addr) []*ipam.Applied {
	return slices.DeleteFunc(inForce(c.Index(), c.Host(), addr),
		func(at *ipam.Applied) bool { return at.Host == c.Host() })
}

// leftOver reports whether an address was released and no edge maps it any more.
func leftOver(ix *ledger.Index, self string, addr netip.Addr) bool {
	known := ix.Elastic(addr)
	return known != nil && known.State == ipam.ElasticReleasing && len(inForce(ix, self, addr)) == 0
}

// isFree reports whether anybody may have the address.
func isFree(c *ledger.Change, addr netip.Addr) bool {
	return c.Index().Elastic(addr) == nil || leftOver(c.Index(), c.Host(), addr)
}

// edgesWith names the edges that may have an address in their kernel.
func edgesWith(c *ledger.Change, addr netip.Addr) string {
	var hosts []string
	for _, at := range inForce(c.Index(), c.Host(), addr) {
		hosts = append(hosts, at.Host)
	}
	return "the edge of host " + strings.Join(hosts, ", ")
}

// Sweep forgets the reports of edges that no longer exist: those of removed hosts or, in a store of one host, all but
// that host's, which may have had another name. Released addresses then wait for them no longer. A host that is only
// cut off is still waited for. In a shared store a report is forgotten only when nothing can answer there any more
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
			if ok, _, err := takesOver(c, s.SessionGone, known); err != nil || !ok {
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

// maySweep reports whether the report of another host's edge may be forgotten: the host has left the cluster, or no
// session of its edge is known and the address is released.
func maySweep(s *ledger.Ledger, ix *ledger.Index, at ledger.AppliedAt) bool {
	if h := ix.Host(at.Host); s.Member() == nil || h == nil || h.State == ipam.HostRemoved {
		return true
	}
	if known := ix.Elastic(at.Address); known != nil && known.State != ipam.ElasticReleasing {
		return false
	}
	known := ix.EdgeSession(at.Host)
	return known == nil || s.Shared().Held()[at.Host] != known.Session
}

// inPages makes many changes, one page per transaction.
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
