package elastic

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// appliedOf is what the edges of hosts have said of an address, or may have of it: this host's first, the
// others by their names. A host that was removed may have an edge that does not know it yet.
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

// inForce is that of the edges that may have an address in their kernel.
func inForce(ix *ledger.Index, self string, addr netip.Addr) []*ipam.Applied {
	return slices.DeleteFunc(appliedOf(ix, self, addr), func(at *ipam.Applied) bool { return !at.InForce })
}

// elsewhere is that of the edges of other hosts.
func elsewhere(c *ledger.Change, addr netip.Addr) []*ipam.Applied {
	return slices.DeleteFunc(inForce(c.Index(), c.Host(), addr),
		func(at *ipam.Applied) bool { return at.Host == c.Host() })
}

// leftOver tells whether an address is one that was released, and that no edge maps any more.
func leftOver(ix *ledger.Index, self string, addr netip.Addr) bool {
	known := ix.Elastic(addr)
	return known != nil && known.State == ipam.ElasticReleasing && len(inForce(ix, self, addr)) == 0
}

// isFree tells whether an address is anybody's to have.
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

// Sweep forgets what the edges of hosts have said that are no more: of those that were removed from the
// cluster, and in a store of one host of all but that, which may have had another name. What was released
// waits for them no longer, nor for a host that is cut off. Where hosts share the store, it is forgotten when
// nothing can answer there any more (grant.go).
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
