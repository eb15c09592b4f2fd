package elastic

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// edgeActor is who says what is applied, for events.
const edgeActor = "edge"

// ReportEdge notes what the edge of this host has applied, and makes addresses free that were released and are mapped
// nowhere any more.
func (s Room) ReportEdge(ctx context.Context, r ipam.EdgeReport) error {
	ctx = ipam.WithActor(ctx, edgeActor)
	if r.Whole {
		r.Withdrawn = append(r.Withdrawn, s.unnamed(&r)...)
	}
	err := inPages(ctx, s.ledger, r.Applied, func(c *ledger.Change, one ipam.EdgeApplied) error {
		return noteApplied(c, &one)
	})
	if err != nil {
		return err
	}
	return inPages(ctx, s.ledger, r.Withdrawn, func(c *ledger.Change, addr netip.Addr) error {
		return noteWithdrawn(c, ledger.AppliedAt{Host: c.Host(), Address: addr})
	})
}

// unnamed are the addresses of which this host's edge has said something that stands in its report no more.
func (s Room) unnamed(r *ipam.EdgeReport) (gone []netip.Addr) {
	named := map[netip.Addr]bool{}
	for _, addr := range r.Only {
		named[addr] = true
	}
	for _, one := range r.Applied {
		named[one.Address] = true
	}
	s.ledger.Read(func(ix *ledger.Index) {
		for at := range ix.AllApplied() {
			if at.Host == s.ledger.Host() && !named[at.Address] {
				gone = append(gone, at.Address)
			}
		}
	})
	slices.SortFunc(gone, netip.Addr.Compare)
	return gone
}

func noteApplied(c *ledger.Change, one *ipam.EdgeApplied) error {
	at := ledger.AppliedAt{Host: c.Host(), Address: one.Address}
	if !one.Address.IsValid() {
		return ipam.Refuse(ipam.ErrInvalid, "an address is missing in what an edge has applied")
	}
	known := c.Index().Applied(at)
	now := &ipam.Applied{Host: at.Host, Address: one.Address, Association: one.Association, Guest: one.Guest,
		Since: c.Now(), Error: one.Error, InForce: one.Error == "" || known != nil && known.InForce}
	if known != nil {
		same := *known
		same.Since = now.Since
		if same == *now {
			return nil
		}
	}
	name := ""
	if e := c.Index().Elastic(one.Address); e != nil && e.Association != nil {
		name = e.Association.Instance
	}
	_, err := tell(c, &ipam.Event{Verb: ipam.ElasticApplied, Address: one.Address, Name: name, Detail: one.Error}, nil,
		nil)
	if err != nil {
		return err
	}
	return c.SetApplied(at, now)
}

func noteWithdrawn(c *ledger.Change, at ledger.AppliedAt) error {
	if c.Index().Applied(at) == nil {
		return nil
	}
	if _, err := tell(c, &ipam.Event{Verb: ipam.ElasticWithdrawn, Address: at.Address}, nil, nil); err != nil {
		return err
	}
	if err := c.SetApplied(at, nil); err != nil {
		return err
	}
	if !leftOver(c.Index(), c.Host(), at.Address) {
		return nil
	}
	return c.SetElastic(at.Address, nil)
}

// isFree tells whether an address is anybody's to have.
func isFree(c *ledger.Change, addr netip.Addr) bool {
	return c.Index().Elastic(addr) == nil || leftOver(c.Index(), c.Host(), addr)
}

// leftOver tells whether an address is one that was released, and that no edge maps any more.
func leftOver(ix *ledger.Index, self string, addr netip.Addr) bool {
	known := ix.Elastic(addr)
	return known != nil && known.State == ipam.ElasticReleasing && appliedOn(ix, self, addr) == ""
}

// appliedOn names the hosts whose edges have an address in their kernel; empty where none has.
func appliedOn(ix *ledger.Index, self string, addr netip.Addr) string {
	var hosts []string
	for _, host := range hostsOf(ix, self) {
		if at := ix.Applied(ledger.AppliedAt{Host: host, Address: addr}); at != nil && at.InForce {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	return "the edge of host " + strings.Join(hosts, ", ")
}

// hostsOf are all hosts that may have an edge, this one first; one that was removed has none.
func hostsOf(ix *ledger.Index, self string) []string {
	all := []string{self}
	for name, h := range ix.Hosts() {
		if name != self && h.State != ipam.HostRemoved {
			all = append(all, name)
		}
	}
	slices.Sort(all[1:])
	return all
}
