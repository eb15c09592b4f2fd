package elastic

import (
	"context"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// edgeActor is the actor in events of reports.
const edgeActor = "edge"

// ReportEdge records what this host's edge has applied. Addresses that were released and are no longer mapped anywhere
// become free.
//
// In a shared store a report can be late: the host may have lost the address, or the edge may have heard of it again.
// So a report names its session, and each of its items its grant, and those of others are ignored. A late "in force"
// does not bring back a lost grant, and a late "not in force" does not end a new one.
func (s Addresses) ReportEdge(ctx context.Context, r ipam.EdgeReport) error {
	s, err := s.home()
	if err != nil {
		return err
	}
	ctx = ipam.WithActor(ctx, edgeActor)
	by, err := s.hear(&r)
	if err != nil {
		return err
	}
	if r.Whole {
		err := eachSaid(ctx, by, s.unnamed(&r), func(c *ledger.Change, addr netip.Addr, upto uint64) error {
			at := ledger.AppliedAt{Host: c.Host(), Address: addr}
			if known := c.Index().Applied(at); known == nil || known.Grant > upto {
				return nil // the edge was told after this report was made
			}
			return noteWithdrawn(c, at, "")
		})
		if err != nil {
			return err
		}
	}
	err = eachSaid(ctx, by, r.Withdrawn, func(c *ledger.Change, one ipam.EdgeWithdrawn, _ uint64) error {
		at := ledger.AppliedAt{Host: c.Host(), Address: one.Address}
		if known := c.Index().Applied(at); known == nil || known.Grant != one.Grant {
			return nil
		}
		return noteWithdrawn(c, at, "")
	})
	if err != nil {
		return err
	}
	return eachSaid(ctx, by, r.Applied, func(c *ledger.Change, one ipam.EdgeApplied, upto uint64) error {
		return noteApplied(c, &one, r.Whole, upto)
	})
}

// eachSaid records each item of a report, as long as its session is still the host's. Grants up to upto are of earlier
// sessions.
func eachSaid[T any](ctx context.Context, by reporter, all []T, note func(c *ledger.Change, one T, upto uint64) error,
) error {
	return inPages(ctx, by.ledger, all, func(c *ledger.Change, one T) error {
		upto, err := by.checkSession(c)
		if err != nil {
			return err
		}
		return note(c, one, upto)
	})
}

// reporter identifies the session of a report.
type reporter struct {
	ledger  *ledger.Ledger
	session string // empty: the store is the host's own, or everything was removed
	removed bool   // by hand, while no edge was connected
}

// hear refuses the report of an edge that is told nothing any more.
func (s Addresses) hear(r *ipam.EdgeReport) (by reporter, err error) {
	by = reporter{ledger: s.ledger, session: r.Session}
	if s.ledger.Member() == nil {
		return by, nil
	}
	by.removed = r.Session == "" && r.Whole && len(r.Applied) == 0
	if err := by.checkConnected(); err != nil {
		return by, err
	}
	s.ledger.HeardEdge(r.Session)
	return by, nil
}

func (by *reporter) checkConnected() error {
	told := by.ledger.ConnectedEdge()
	switch {
	case by.removed && told != "":
		return ipam.Refuse(ipam.ErrInUse, "an edge of host %s is connected, and restores removed mappings; stop that "+
			"edge first", by.ledger.Host())
	case told != by.session:
		return ipam.Refuse(ipam.ErrChanged, "this edge of host %s gets no more updates; it must request its "+
			"mappings again", by.ledger.Host())
	}
	return nil
}

// checkSession checks at the commit that the session is still the host's. Grants up to upto are of earlier sessions.
func (by *reporter) checkSession(c *ledger.Change) (upto uint64, err error) {
	if c.Member() == nil {
		return 0, nil
	}
	known, err := c.EdgeSession(c.Host())
	if err != nil {
		return 0, err
	}
	if err := by.checkConnected(); err != nil {
		return 0, err
	}
	if known == nil {
		return 0, nil
	}
	if by.removed {
		return c.NextID(), nil
	}
	if known.Session != by.session {
		return 0, ipam.Refuse(ipam.ErrChanged, "this host's edge has started another session")
	}
	return known.ID, nil
}

// unnamed lists the addresses about which this host's edge has reported before and does not report now.
func (s Addresses) unnamed(r *ipam.EdgeReport) (gone []netip.Addr) {
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

// noteApplied records an item about a mapping. Grants up to upto are of earlier sessions. whole: of these the edge has
// only what it reports.
func noteApplied(c *ledger.Change, one *ipam.EdgeApplied, whole bool, upto uint64) error {
	at := ledger.AppliedAt{Host: c.Host(), Address: one.Address}
	if !one.Address.IsValid() {
		return ipam.Refuse(ipam.ErrInvalid, "an address is missing in the edge's report")
	}
	known := c.Index().Applied(at)
	now := &ipam.Applied{Host: at.Host, Address: one.Address, Association: one.Association, Guest: one.Guest,
		Since: c.Now(), Error: one.Error, InForce: one.Error == "" || known != nil && known.InForce, Grant: one.Grant}
	if c.Member() != nil {
		now.Untimed = known != nil && known.Untimed && one.Error != ""
		granted := known != nil && known.InForce
		switch {
		case one.Staged && granted && !(whole && one.Error == "" && known.Grant <= upto):
			return nil // the end of the other half is reported separately
		case one.Staged:
			now.InForce = false
		case !granted || known.Grant != one.Grant:
			return nil
		}
	}
	if known != nil {
		same := *known
		same.Since = now.Since
		if same == *now {
			return nil
		}
	}
	event := &ipam.Event{Verb: ipam.ElasticApplied, Address: one.Address, Detail: one.Error}
	if e := c.Index().Elastic(one.Address); e != nil && e.Association != nil {
		event.Name, event.NetworkID = e.Association.Instance, e.Association.Network
	}
	_, err := tell(c, event, nil, nil)
	if err != nil {
		return err
	}
	return c.SetApplied(at, now)
}

// noteWithdrawn forgets what a host's edge had of an address. detail is the reason, unless the edge has reported it.
func noteWithdrawn(c *ledger.Change, at ledger.AppliedAt, detail string) error {
	if c.Index().Applied(at) == nil {
		return nil
	}
	_, err := tell(c, &ipam.Event{Verb: ipam.ElasticWithdrawn, Address: at.Address, Detail: detail}, nil, nil)
	if err != nil {
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
