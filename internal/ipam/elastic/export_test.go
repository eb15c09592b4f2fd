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

// Whole returns what this host's edge must have, computed from all records at once: slow, and easy to check.
func (s Addresses) Whole(ctx context.Context) (all map[netip.Addr]ipam.EdgeMapping, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = map[netip.Addr]ipam.EdgeMapping{}
		wanted := associatedWith(c.Index(), func(*ipam.Association) bool { return !c.NoElastic() })
		slices.SortFunc(wanted, func(a, b *ipam.Elastic) int { return cmp.Compare(a.Association.ID, b.Association.ID) })
		guests := map[netip.Addr]bool{} // guests that already have an elastic address
		for _, one := range wanted {
			a := one.Association
			if isForeign(c, one.Address) {
				continue
			}
			g, there, err := mapped(c, a)
			if err != nil {
				return err
			}
			if !there || guests[g.addr] || g.host != "" && g.host != c.Host() || whoseNow(claimsOf(c.Index()), one, &g) != one.Account {
				continue
			}
			guests[g.addr] = true
			all[one.Address] = ipam.EdgeMapping{Elastic: one.Address, Guest: g.addr, Subnet: g.sub.CIDR,
				EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID, Lease: g.lease}
		}
		return nil
	})
	return all, err
}

// Followed is what the edge must have, kept up to date with commits. While the host's moment stands still, it is
// computed again only after a commit that affects it.
type Followed struct {
	f    *following
	told map[netip.Addr]ipam.EdgeMapping
}

// Followed begins to follow commits.
func (s Addresses) Followed(ctx context.Context) *Followed {
	return &Followed{f: s.follow(ctx), told: map[netip.Addr]ipam.EdgeMapping{}}
}

// Lose makes t lose the commits noted so far, and returns the number of their records.
func (t *Followed) Lose() int {
	seen, _ := t.f.commits.Take()
	return len(seen)
}

// Bearing is Lose, and also returns how many of the records affect what the edge must have.
func (t *Followed) Bearing() (noted, bear int) {
	seen, _ := t.f.commits.Take()
	t.f.ledger.Read(func(ix *ledger.Index) {
		for key, value := range seen {
			if t.f.wanted.bears(ix, []byte(key), value) {
				bear++
			}
		}
	})
	return len(seen), bear
}

// Ranges returns the ranges that an edge got.
func (t *Followed) Ranges() []ipam.EdgeRange { return t.f.wanted.ranges }

// Followed is computed again LookAgain after a change was reverted, and at the latest LookAlways after the last
// time.
const (
	LookAgain  = lookAgain
	LookAlways = lookAlways
)

// End waits until nothing of it runs; the context has ended.
func (t *Followed) End() { t.f.commits.Wait() }

// Woken has a token once something was committed.
func (t *Followed) Woken() <-chan struct{} { return t.f.commits.Woken() }

// Told returns what an edge has got after all noted commits.
func (t *Followed) Told(ctx context.Context) (map[netip.Addr]ipam.EdgeMapping, error) {
	w, err := t.f.now(ctx)
	if err != nil {
		return nil, err
	}
	var news ipam.EdgeNews
	differences(&news, t.told, w.mappings)
	for _, m := range news.Set {
		t.told[m.Elastic] = m
	}
	for _, addr := range news.Removed {
		delete(t.told, addr)
	}
	return maps.Clone(t.told), nil
}

// Kept is an assigner that runs only when a test calls it. While the host's moment stands still, it checks nothing by
// itself.
type Kept struct{ k *assigner }

// Kept returns a new Kept.
func (s Addresses) Kept(ctx context.Context) *Kept { return &Kept{s.assigner(ctx)} }

// End waits until nothing of it runs; the context has ended.
func (k *Kept) End() { k.k.anew.commits.Wait() }

// Woken has a token once something was committed.
func (k *Kept) Woken() <-chan struct{} { return k.k.anew.commits.Woken() }

// Hear is a report of the witness.
func (k *Kept) Hear() { k.k.heard = true }

// Round settles all guests, if a commit affected them.
func (k *Kept) Round(ctx context.Context) error { return k.k.round(ipam.WithActor(ctx, keeperActor)) }

// Unsettled returns the guests of this host that do not have what they must have, and addresses that no host
// looks after, computed from all records at once.
func (s Addresses) Unsettled(ctx context.Context) (all []string, err error) {
	g, err := s.guests(ctx)
	if err != nil {
		return nil, err
	}
	err = s.stands(ctx, g, s.ledger.Now(), func(_ *ledger.Change, at guestPlace, one *standing) error {
		if !one.settled() || one.pending {
			all = append(all, at.addr.String())
		}
		return nil
	})
	for _, addr := range g.adrift {
		all = append(all, addr.String())
	}
	return all, err
}

// Lowest returns the lowest free address of all ranges of the cluster, or of a host. It checks each address:
// slow, and easy to check.
func (s Addresses) Lowest(ctx context.Context, host string) (lowest netip.Addr, err error) {
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
