package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// prepareElastic makes the target's copy of elastic addresses what the source has, and compares them, from wherever a
// run before was cut off. names are the spaces that are copied with them.
func (cp *copying) prepareElastic(ctx context.Context, names []string) (report *ipam.CopiedElastic, err error) {
	source, target, err := cp.both(ctx, elasticPart)
	if err != nil {
		return nil, err
	}
	if source != nil && source.Stage != copyFrozen {
		return &ipam.CopiedElastic{Finished: true}, nil
	}
	if _, err := cp.begin(ctx, elasticPart, source, target); err != nil {
		return nil, err
	}
	for pass := 1; ; pass++ {
		e := cp.readElastic(names)
		if err := cp.writeElastic(ctx, e, pass == 1); err != nil {
			return nil, err
		}
		report, err := cp.compareElastic(ctx, e)
		if pass == maxPasses || !errors.Is(err, errDiffers) {
			return report, err
		}
	}
}

// finishElastic shows in the target what the source has let go of, and clears that away.
func (cp *copying) finishElastic(ctx context.Context) error {
	_, target, err := cp.both(ctx, elasticPart)
	if err != nil {
		return err
	}
	if target != nil {
		if err := cp.revealElastic(ctx, target); err != nil {
			return err
		}
	}
	if err := cp.end(ctx, elasticPart); err != nil {
		return err
	}
	return cp.clearElastic(ctx)
}

// moveRanges marks all ranges of a store as being copied, or those that are as copied.
func moveRanges(c *ledger.Change, moving bool) error {
	c.TouchPlan()
	var all []*ipam.ElasticRange
	for _, r := range c.Index().AllElasticRanges() {
		if r.Moving != moving {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.ElasticRange) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for _, r := range all {
		changed := *r
		changed.Moving = moving
		if err := c.SetElasticRange(r.ID, &changed); err != nil {
			return err
		}
	}
	return nil
}

// stillMoving refuses to let go of ranges of a shared source to which one was added.
func stillMoving(c *ledger.Change) error {
	for _, r := range c.Index().ElasticRanges() {
		return ipam.Refuse(ipam.ErrChanged, "the elastic range %s was added meanwhile", r.Range)
	}
	return nil
}

func (cp *copying) revealElastic(ctx context.Context, m *copyMark) error {
	return cp.to.Update(ctx, func(c *ledger.Change) error {
		if err := moveRanges(c, false); err != nil {
			return err
		}
		if _, err := c.Event(&ipam.Event{Verb: ipam.ElasticMoved, Detail: "from another store, by host " +
			m.Host}); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(elasticPart))
	})
}

// elasticThere holds to it that the target has what the source has let go of.
func (cp *copying) elasticThere() error {
	return ledger.Ask(cp.from, func(from *ledger.Index) error {
		return ledger.Ask(cp.to, func(to *ledger.Index) error {
			has := map[ipam.ID]bool{}
			for id := range to.ElasticRanges() {
				has[id] = true
			}
			for id, r := range from.AllElasticRanges() {
				if !has[id] {
					return fmt.Errorf("%w: the source has let go of the elastic range %s, and the target does not have "+
						"it: the target was replaced meanwhile; nothing more was removed", ipam.ErrDamaged, r.Range)
				}
			}
			return nil
		})
	})
}

// clearElastic removes what a source that has let go of elastic addresses still has of them. The last of its
// transactions takes the mark away.
func (cp *copying) clearElastic(ctx context.Context) error {
	s := cp.from
	if err := dropElastic(ctx, s, func(string) bool { return true }, false, cp.step); err != nil {
		return err
	}
	if err := cp.dropEventsOf(ctx, s, elasticPart); err != nil {
		return err
	}
	return s.Update(ctx, func(c *ledger.Change) error {
		c.TouchPlan()
		for _, name := range accountNames(c.Index()) {
			if err := c.SetAccount(name, nil); err != nil {
				return err
			}
		}
		if err := dropRanges(c, func(*ipam.ElasticRange) bool { return true }); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(elasticPart))
	})
}

func accountNames(ix *ledger.Index) (names []string) {
	for name := range ix.Accounts() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func dropRanges(c *ledger.Change, is func(*ipam.ElasticRange) bool) error {
	var ids []ipam.ID
	for id, r := range c.Index().AllElasticRanges() {
		if is(r) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if err := c.SetElasticRange(id, nil); err != nil {
			return err
		}
	}
	return nil
}

// undoElastic takes back what the target has of a copy that was cut off. An account stays that has other addresses by
// now.
func (cp *copying) undoElastic(ctx context.Context, source *copyMark) error {
	if err := dropElastic(ctx, cp.to, func(string) bool { return true }, true, func(int) {}); err != nil {
		return err
	}
	if err := cp.dropEventsOf(ctx, cp.to, elasticPart); err != nil {
		return err
	}
	if source != nil {
		err := cp.from.Update(ctx, func(c *ledger.Change) error {
			if err := moveRanges(c, false); err != nil {
				return err
			}
			return c.Tx().Delete(copyKey(elasticPart))
		})
		if err != nil {
			return err
		}
	}
	return cp.to.Update(ctx, func(c *ledger.Change) error {
		m, err := readMark(c.Tx(), elasticPart)
		if err != nil || m == nil {
			return err
		}
		c.TouchPlan()
		used := map[string]bool{}
		for _, one := range c.Index().Elastics() {
			used[one.Account] = true
		}
		for _, name := range m.Accounts {
			if used[name] || c.Index().Account(name) == nil {
				continue
			}
			if err := c.SetAccount(name, nil); err != nil {
				return err
			}
		}
		if err := dropRanges(c, func(r *ipam.ElasticRange) bool { return r.Moving }); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(elasticPart))
	})
}
