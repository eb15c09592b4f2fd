package elastic

import (
	"context"
	"math/big"
	"slices"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ElasticUse counts the addresses of each range by state, and the associations that are to be in force on this host and
// are not, as far as its edge has said.
func (s Room) ElasticUse(ctx context.Context) (use ipam.ElasticUse, err error) {
	s, err = s.home()
	if err != nil {
		return use, err
	}
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		accounts := claimsOf(c.Index())
		use = ipam.ElasticUse{Host: c.Host(), Ranges: rangeUses(c.Index())}
		for addr, one := range c.Index().Elastics() {
			i := slices.IndexFunc(use.Ranges, func(r ipam.RangeUse) bool { return r.Range.Contains(addr) })
			if i >= 0 && one.State == ipam.ElasticReleasing {
				use.Ranges[i].Releasing++
			} else if i >= 0 {
				use.Ranges[i].Allocated++
			}
			missing, err := unapplied(c, accounts, one)
			if err != nil {
				return err
			}
			if missing {
				use.Unapplied++
			}
		}
		for i := range use.Ranges {
			r := &use.Ranges[i]
			r.Free.Sub(r.Free.Int, new(big.Int).SetUint64(r.Allocated+r.Releasing))
		}
		return nil
	})
	return use, err
}

// rangeUses are all ranges by address, as if all of each were free.
func rangeUses(ix *ledger.Index) (all []ipam.RangeUse) {
	for _, r := range ix.ElasticRanges() {
		all = append(all, ipam.RangeUse{Range: r.Range, Free: ipam.Count{Int: alloc.Size(r.Range.IPRange)}})
	}
	slices.SortFunc(all, func(a, b ipam.RangeUse) int { return a.Range.From().Compare(b.Range.From()) })
	return all
}

// unapplied tells whether an address is to lead to a container that runs here, and this host's edge has not said that
// it does.
func unapplied(c *ledger.Change, accounts *claims, one *ipam.Elastic) (bool, error) {
	if one.Association == nil {
		return false, nil
	}
	at := c.Index().Applied(ledger.AppliedAt{Host: c.Host(), Address: one.Address})
	if at != nil && at.Association == one.Association.ID && at.InForce && at.Error == "" && !at.Unsaid {
		return false, nil
	}
	l, there, err := leadOf(c, accounts, one.Address)
	return there && l.here && !l.Staged, err
}
