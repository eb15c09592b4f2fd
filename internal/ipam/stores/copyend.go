package stores

import (
	"context"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// hide makes a part of a shared store invisible to other hosts, or visible again: its networks and ranges are Moving,
// or not. It runs last in the transaction of the last one. It refuses to hide a network that other hosts use.
func hide(ctx context.Context, s *ledger.Ledger, part string, hidden bool, last func(*ledger.Change) error) error {
	stage := map[bool]ipam.Stage{true: ipam.Moving}
	for more := true; more; {
		err := s.Update(ctx, func(c *ledger.Change) error {
			did := 0
			for _, n := range networksIn(c.Index(), part) {
				if n.Stage != stage[!hidden] {
					continue
				}
				if more = did >= s.Page() || hidden && did > 0; more { // hiding one reads its pools
					return nil
				}
				if hidden {
					if err := ownAlone(c, n); err != nil {
						return err
					}
				}
				changed := *n
				changed.Stage = stage[hidden]
				if err := c.SetNetwork(n.ID, &changed); err != nil {
					return err
				}
				did++
			}
			if more = false; part == elasticPart {
				if err := moveRanges(c, hidden); err != nil {
					return err
				}
			}
			return last(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ownAlone refuses a network that another host uses.
func ownAlone(c *ledger.Change, n *ipam.Network) error {
	if n == nil {
		return nil
	}
	for _, id := range c.Index().NetworkIndex(n.ID).Subnets() {
		sub := c.Index().Subnet(id).Record()
		for _, id := range sub.Attachments {
			at, err := c.Attachment(id)
			if err != nil {
				return err
			}
			if at.Host != c.Host() {
				return ipam.Refuse(ipam.ErrInUse,
					"host %s has a Docker network on the subnet %s of network %s; a space that several hosts use "+
						"stays in their shared store", at.Host, sub.CIDR, n.Name)
			}
		}
	}
	return nil
}

// release makes the source let go of a space. After that the copy can only be completed.
func (cp *copying) release(ctx context.Context, target *copyMark) error {
	return cp.from.Update(ctx, func(c *ledger.Change) error {
		if c.Member() != nil {
			for _, n := range networksIn(c.Index(), target.Space) {
				if n.Stage != ipam.Moving {
					return ipam.Refuse(ipam.ErrChanged, "network %s was created in the space %s during the "+
						"copy", n.Name,
						target.Space)
				}
			}
		}
		if c.Member() != nil && target.Space == elasticPart {
			if err := stillMoving(c); err != nil {
				return err
			}
		}
		released := *target
		released.Stage = copyReleased
		if err := moved(c, released.Space, "to another store"); err != nil {
			return err
		}
		return putMark(c, &released)
	})
}

// moved is the event of a part that was copied to or from a store.
func moved(c *ledger.Change, part, detail string) error {
	e := &ipam.Event{Verb: ipam.SpaceMoved, Name: part, Detail: detail}
	if part == elasticPart {
		e.Verb = ipam.ElasticMoved
	}
	_, err := c.Event(e)
	return err
}

// reveal makes the target's copy visible. Its last transaction removes the mark.
func (cp *copying) reveal(ctx context.Context, m *copyMark) error {
	// stand-ins belong to no space: the source keeps them, too, as long as their containers exist
	stands, err := allocator.Of(ledger.Alone(cp.from)).StandIns(ctx)
	if err == nil && len(stands) > 0 && m.Space != elasticPart {
		err = cp.to.Update(ctx, func(c *ledger.Change) error { return allocator.PutStandIns(c, stands) })
	}
	if err != nil {
		return err
	}
	return hide(ctx, cp.to, m.Space, false, func(c *ledger.Change) error {
		if err := moved(c, m.Space, "from another store, by host "+m.Host); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(m.Space))
	})
}

// end records in the source that the target has a part, after it has checked that.
func (cp *copying) end(ctx context.Context, part string, all []*group) error {
	err := cp.to.Look(ctx, func(c *ledger.Change) error {
		for _, g := range all {
			for _, r := range g.units[0] {
				if err := there(c, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cp.from.Update(ctx, func(c *ledger.Change) error {
		m, err := readMark(c.Tx(), part)
		if err != nil || m == nil || m.Stage == copyGone {
			return err
		}
		m.Stage = copyGone
		return putMark(c, m)
	})
}

// there checks that the target has a network or range that the source has let go of.
func there(c *ledger.Change, r record) error {
	if r.key[0] != ledger.NetworkKeys && r.key[0] != ledger.ElasticRangeKeys {
		return nil
	}
	raw, err := c.Tx().Get(r.key)
	if err != nil {
		return err
	}
	var hidden struct {
		Stage  ipam.Stage `json:"stage"`
		Moving bool       `json:"moving"`
	}
	if raw != nil {
		if err := ipam.DecodeJSON(r.what, raw, &hidden); err != nil {
			return err
		}
	}
	if raw == nil || hidden.Stage != "" || hidden.Moving {
		return fmt.Errorf("%w: the source has released %s, but the target does not have it: the target was replaced "+
			"during the copy; nothing more was removed", ipam.ErrDamaged, r.what)
	}
	return nil
}

// clearSource removes the rest of a part from a source that has let go of it. Its last transaction removes the mark.
func (cp *copying) clearSource(ctx context.Context, part string, all []*group) error {
	if err := cp.clear(ctx, cp.from, all); err != nil {
		return err
	}
	if err := cp.dropEventsOf(ctx, cp.from, part); err != nil {
		return err
	}
	return cp.from.Update(ctx, func(c *ledger.Change) error {
		if part != elasticPart {
			if err := dropSpace(c, part); err != nil {
				return err
			}
		}
		return c.Tx().Delete(copyKey(part))
	})
}

// dropSpace removes the record of a space, unless every store has it.
func dropSpace(c *ledger.Change, space string) error {
	if space == ipam.GlobalSpace || len(networksIn(c.Index(), space)) > 0 {
		return nil
	}
	return c.RemoveSpace(space)
}

// undo takes back interrupted copies whose source has not let go.
func (cp *copying) undo(ctx context.Context, names []string) (ipam.CopyReport, error) {
	report := ipam.CopyReport{Undone: true}
	for _, name := range names {
		source, target, err := cp.both(ctx, name)
		if err != nil {
			return ipam.CopyReport{}, err
		}
		if source != nil && source.Stage != copyFrozen {
			return ipam.CopyReport{},
				ipam.Refuse(ipam.ErrInUse,
					"the target has all of %s, and the source has released it, so the copy cannot be undone; finish "+
						"the copy with `%s`, then copy everything back", partName(name), cp.opt.Command)
		}
		if source == nil && target == nil {
			continue
		}
		if err := cp.undoPart(ctx, name, source); err != nil {
			return ipam.CopyReport{}, cp.stopped(ctx, name, err)
		}
		if name == elasticPart {
			report.Elastic = new(ipam.CopiedElastic)
			continue
		}
		report.Spaces = append(report.Spaces, ipam.CopiedSpace{Name: name})
	}
	return report, nil
}

func (cp *copying) undoPart(ctx context.Context, part string, source *copyMark) error {
	all, err := cp.there(ctx, part)
	if err != nil {
		return err
	}
	if err := cp.clear(ctx, cp.to, all); err != nil {
		return err
	}
	if err := cp.dropEventsOf(ctx, cp.to, part); err != nil {
		return err
	}
	unmark := func(c *ledger.Change) error { return c.Tx().Delete(copyKey(part)) }
	if source != nil {
		if err := hide(ctx, cp.from, part, false, unmark); err != nil {
			return err
		}
	}
	return cp.to.Update(ctx, unmark)
}
