package elastic

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Whole is what this host's edge is to have, worked out of all records at once: slow, and plain to see.
func (s Room) Whole(ctx context.Context) (all map[netip.Addr]ipam.EdgeMapping, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = map[netip.Addr]ipam.EdgeMapping{}
		foreign := foreignRanges(c)
		wanted := associatedWith(c.Index(), func(*ipam.Association) bool { return !c.NoElastic() })
		slices.SortFunc(wanted, func(a, b *ipam.Elastic) int { return cmp.Compare(a.Association.ID, b.Association.ID) })
		guests := map[netip.Addr]bool{} // that have one already
		for _, one := range wanted {
			a := one.Association
			if slices.ContainsFunc(foreign, func(r ipam.Range) bool { return r.Contains(one.Address) }) {
				continue
			}
			g, there, err := mapped(c, a)
			if err != nil {
				return err
			}
			if !there || guests[g.addr] || g.host != "" && g.host != c.Host() || !stillIts(c, one, &g) {
				continue
			}
			guests[g.addr] = true
			all[one.Address] = ipam.EdgeMapping{Elastic: one.Address, Guest: g.addr, Subnet: g.sub.CIDR,
				EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID}
		}
		return nil
	})
	return all, err
}

// Tracked is a tracker that no net catches: it looks only at what commits have touched.
type Tracked struct {
	t     *tracker
	told  map[netip.Addr]ipam.EdgeMapping
	Looks int // at addresses
}

// Tracked begins to follow what is committed.
func (s Room) Tracked(ctx context.Context) *Tracked {
	t := s.track(ctx)
	t.tick.Stop()
	return &Tracked{t: t, told: map[netip.Addr]ipam.EdgeMapping{}}
}

// End waits until nothing of it runs; the context has ended.
func (t *Tracked) End() { t.t.end() }

// Woken has a token once something was committed.
func (t *Tracked) Woken() <-chan struct{} { return t.t.commits.woken }

// Told is what an edge has been told after all that was committed and noted.
func (t *Tracked) Told(ctx context.Context) (map[netip.Addr]ipam.EdgeMapping, error) {
	changed, err := t.t.look(ctx)
	if err != nil {
		return nil, err
	}
	var news ipam.EdgeNews
	t.t.tell(&news, changed, t.told)
	t.Looks += len(t.t.looked)
	clear(t.t.looked)
	return maps.Clone(t.told), nil
}
