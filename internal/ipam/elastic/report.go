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
	for page := range slices.Chunk(r.Applied, s.ledger.Page()) {
		err := s.ledger.Update(ctx, func(c *ledger.Change) error {
			c.TouchPlan()
			for i := range page {
				if err := noteApplied(c, &page[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for page := range slices.Chunk(r.Withdrawn, s.ledger.Page()) {
		err := s.ledger.Update(ctx, func(c *ledger.Change) error {
			c.TouchPlan()
			for _, addr := range page {
				if err := noteWithdrawn(c, ledger.AppliedAt{Host: c.Host(), Address: addr}); err != nil {
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
	if known != nil && known.Association == one.Association && known.Guest == one.Guest && known.Error == one.Error {
		return nil
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
	return c.SetApplied(at, &ipam.Applied{Host: at.Host, Address: one.Address, Association: one.Association,
		Guest: one.Guest, Since: c.Now(), Error: one.Error})
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
	known := c.Index().Elastic(at.Address)
	if known == nil || known.State != ipam.ElasticReleasing || appliedOn(c, at.Address) != "" {
		return nil
	}
	return c.SetElastic(at.Address, nil)
}

// appliedOn names the hosts whose edges have an address in their kernel; empty where none has.
func appliedOn(c *ledger.Change, addr netip.Addr) string {
	var hosts []string
	for _, host := range hostsOf(c.Index(), c.Host()) {
		if c.Index().Applied(ledger.AppliedAt{Host: host, Address: addr}) != nil {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	return "the edge of host " + strings.Join(hosts, ", ")
}

// hostsOf are all hosts that may have an edge, this one first.
func hostsOf(ix *ledger.Index, self string) []string {
	all := []string{self}
	for name := range ix.Hosts() {
		if name != self {
			all = append(all, name)
		}
	}
	slices.Sort(all[1:])
	return all
}
