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
func (s Addresses) Whole(ctx context.Context) (all map[netip.Addr]ipam.EdgeMapping, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = map[netip.Addr]ipam.EdgeMapping{}
		wanted := associatedWith(c.Index(), func(*ipam.Association) bool { return !c.NoElastic() })
		slices.SortFunc(wanted, func(a, b *ipam.Elastic) int { return cmp.Compare(a.Association.ID, b.Association.ID) })
		guests := map[netip.Addr]bool{} // that have one already
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
				EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID}
		}
		return nil
	})
	return all, err
}

// Followed is what is wanted, kept up with what is committed. As long as the host's moment does not go on, it is worked
// out anew only after a commit that bears on it.
type Followed struct {
	f    *following
	told map[netip.Addr]ipam.EdgeMapping
}

// Followed begins to follow what is committed.
func (s Addresses) Followed(ctx context.Context) *Followed {
	return &Followed{f: s.follow(ctx), told: map[netip.Addr]ipam.EdgeMapping{}}
}

// Lose has it never hear of what was committed and noted, and tells how many records that were.
func (t *Followed) Lose() int {
	seen, _ := t.f.commits.Take()
	return len(seen)
}

// Bearing is Lose, and tells besides how many of the records bear on what is wanted.
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

// Ranges are those of which an edge was told.
func (t *Followed) Ranges() []ipam.EdgeRange { return t.f.wanted.ranges }

// It is worked out anew LookAgain after a change was reverted, and in any case LookAlways after it was worked out last.
const (
	LookAgain  = lookAgain
	LookAlways = lookAlways
)

// End waits until nothing of it runs; the context has ended.
func (t *Followed) End() { t.f.commits.Wait() }

// Woken has a token once something was committed.
func (t *Followed) Woken() <-chan struct{} { return t.f.commits.Woken() }

// Told is what an edge has been told after all that was committed and noted.
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

// Kept is an assigner that looks only when it is told to, and by itself at nothing as long as the host's moment does
// not go on.
type Kept struct{ k *assigner }

// Kept begins one.
func (s Addresses) Kept(ctx context.Context) *Kept { return &Kept{s.assigner(ctx)} }

// End waits until nothing of it runs; the context has ended.
func (k *Kept) End() { k.k.anew.commits.Wait() }

// Woken has a token once something was committed.
func (k *Kept) Woken() <-chan struct{} { return k.k.anew.commits.Woken() }

// Hear has the witness say something.
func (k *Kept) Hear() { k.k.heard = true }

// Round settles all guests, if something was committed that bears on them.
func (k *Kept) Round(ctx context.Context) error { return k.k.round(ipam.WithActor(ctx, keeperActor)) }

// Unsettled are the guests of this host that do not have what they are to have, and addresses that nobody looks after,
// worked out of all records at once.
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

// Lowest is the lowest free address of all ranges of the cluster, or of a host, by a look at each: slow, and plain to
// see.
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
