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

// Tracked is a tracker. As long as the host's moment does not go on no net catches it: it looks only at what commits
// have touched.
type Tracked struct {
	t     *tracker
	told  map[netip.Addr]ipam.EdgeMapping
	Looks int // at addresses
}

// Tracked begins to follow what is committed.
func (s Room) Tracked(ctx context.Context) *Tracked {
	return &Tracked{t: s.track(ctx), told: map[netip.Addr]ipam.EdgeMapping{}}
}

// Lose has it never hear of what was committed and noted, and tells how many records that were.
func (t *Tracked) Lose() int {
	seen, _ := t.t.commits.Take()
	return len(seen)
}

// Ranges are those of which an edge was told.
func (t *Tracked) Ranges() []ipam.EdgeRange { return t.t.ranges }

// InNet is in how many ticks each address is looked at, and Tick how long one is.
const (
	InNet = inNet
	Tick  = lookAgain
)

// End waits until nothing of it runs; the context has ended.
func (t *Tracked) End() { t.t.end() }

// Woken has a token once something was committed.
func (t *Tracked) Woken() <-chan struct{} { return t.t.commits.Woken() }

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

// Kept is a keeper that looks only when it is told to, and by itself at nothing as long as the host's moment does not
// go on.
type Kept struct{ k *keeper }

// Kept begins one.
func (s Room) Kept(ctx context.Context) *Kept { return &Kept{s.keeper(ctx)} }

// End waits until nothing of it runs; the context has ended.
func (k *Kept) End() { k.k.leads.end() }

// Woken has a token once something was committed.
func (k *Kept) Woken() <-chan struct{} { return k.k.leads.commits.Woken() }

// Hear has the witness say something.
func (k *Kept) Hear() { k.k.heard = true }

// Round settles what is to be looked at, and tells at how many guests it was.
func (k *Kept) Round(ctx context.Context) (guests int, err error) {
	due, err := k.k.round(ipam.WithActor(ctx, keeperActor))
	return len(due), err
}

// Unsettled are the guests of this host that do not have what they are to have, and addresses that nobody looks after,
// worked out of all records at once.
func (s Room) Unsettled(ctx context.Context) (all []string, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = nil
		places, gone := systemGuests(c)
		more, err := autoGuests(c)
		if err != nil {
			return err
		}
		for _, addr := range gone {
			all = append(all, addr.String())
		}
		for _, at := range append(places, more...) {
			one, err := stand(c, at, s.ledger.Now())
			if err != nil {
				return err
			}
			if !one.settled() || one.pending {
				all = append(all, at.addr.String())
			}
		}
		return nil
	})
	return all, err
}

// Lowest is the lowest free address of all ranges of the cluster, or of a host, by a look at each: slow, and plain to
// see.
func (s Room) Lowest(ctx context.Context, host string) (lowest netip.Addr, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		for _, r := range rangesOf(c.Index(), host) {
			for addr := r.Range.From(); r.Range.Contains(addr); addr = addr.Next() {
				if isFree(c, addr) {
					lowest = addr
					return nil
				}
			}
		}
		return nil
	})
	return lowest, err
}
