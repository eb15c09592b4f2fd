package stores

import (
	"context"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// freeze keeps other hosts from a space of a shared source: its networks are Moving, and so seen by nobody. It refuses
// a network that other hosts use.
func (cp *copying) freeze(ctx context.Context, space string) error {
	if space == elasticPart {
		return cp.from.Update(ctx, func(c *ledger.Change) error { return moveRanges(c, true) })
	}
	for frozen := false; !frozen; {
		err := cp.from.Update(ctx, func(c *ledger.Change) error {
			for _, n := range networksIn(c.Index(), space) {
				if n.Stage != ipam.Moving {
					return cp.freezeNetwork(c, n) // one at a time: it reads all its subnets
				}
			}
			frozen = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (cp *copying) freezeNetwork(c *ledger.Change, n *ipam.Network) error {
	one, err := cp.readNetwork(c, n)
	if err != nil {
		return err
	}
	for _, sub := range one.subnets {
		if err := ownAlone(c, n, sub.Subnet); err != nil {
			return err
		}
	}
	return c.SetNetwork(n.ID, one.network)
}

// ownAlone refuses a subnet that another host holds.
func ownAlone(c *ledger.Change, n *ipam.Network, sub *ipam.Subnet) error {
	for _, id := range sub.Attachments {
		at, err := c.Attachment(id)
		if err != nil {
			return err
		}
		if at.Host != c.Host() {
			return ipam.Refuse(ipam.ErrInUse,
				"host %s has a Docker network on the subnet %s of network %s; a space that several hosts use stays "+
					"in the store that they share", at.Host, sub.CIDR, n.Name)
		}
	}
	return nil
}

// release has the source let go of a space. From then on there is only one way: forward.
func (cp *copying) release(ctx context.Context, target *copyMark) error {
	return cp.from.Update(ctx, func(c *ledger.Change) error {
		if c.Member() != nil {
			for _, n := range networksIn(c.Index(), target.Space) {
				if n.Stage != ipam.Moving {
					return ipam.Refuse(ipam.ErrChanged, "network %s was made in the space %s meanwhile", n.Name,
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
		verb := ipam.SpaceMoved
		if released.Space == elasticPart {
			verb = ipam.ElasticMoved
		}
		if _, err := c.Event(&ipam.Event{Verb: verb, Name: released.Space, Detail: "to another store"}); err != nil {
			return err
		}
		return putMark(c, &released)
	})
}

// reveal lets the target's copy be seen. The last of its transactions takes the mark away.
func (cp *copying) reveal(ctx context.Context, m *copyMark) error {
	// of no space: the source keeps them, too, as long as their containers live
	stands, err := allocator.Of(ledger.Alone(cp.from)).StandIns(ctx)
	if err != nil {
		return err
	}
	if len(stands) > 0 {
		if err := cp.to.Update(ctx, func(c *ledger.Change) error { return allocator.PutStandIns(c, stands) }); err != nil {
			return err
		}
	}
	return unhide(ctx, cp.to, m.Space, func(c *ledger.Change) error {
		if _, err := c.Event(&ipam.Event{Verb: ipam.SpaceMoved, Name: m.Space, Detail: "from another store, by host " +
			m.Host}); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(m.Space))
	})
}

// unhide lets the networks of a space be seen that are Moving, and does the last thing with the last of them.
func unhide(ctx context.Context, s *ledger.Ledger, space string, last func(*ledger.Change) error) error {
	for more := true; more; {
		err := s.Update(ctx, func(c *ledger.Change) error {
			did := 0
			for _, n := range networksIn(c.Index(), space) {
				if n.Stage != ipam.Moving {
					continue
				}
				if more = did >= s.Page(); more {
					return nil
				}
				whole := *n
				whole.Stage = ""
				if err := c.SetNetwork(n.ID, &whole); err != nil {
					return err
				}
				did++
			}
			more = false
			return last(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end notes in the source that the target has the space, after a look whether that is so.
func (cp *copying) end(ctx context.Context, space string) error {
	all, err := cp.read(ctx, space)
	if err == nil && space == elasticPart {
		err = cp.elasticThere()
	}
	if err != nil {
		return err
	}
	err = cp.to.Look(ctx, func(c *ledger.Change) error {
		for _, one := range all {
			if n := c.Index().Network(one.network.ID); n == nil || n.Stage != "" {
				return fmt.Errorf("%w: the source has let go of network %s, and the target does not have it: the "+
					"target was replaced meanwhile; nothing more was removed", ipam.ErrDamaged, one.network.Name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cp.from.Update(ctx, func(c *ledger.Change) error {
		m, err := readMark(c.Tx(), space)
		if err != nil {
			return err
		}
		if m == nil || m.Stage == copyGone {
			return nil
		}
		m.Stage = copyGone
		return putMark(c, m)
	})
}

// clearSource removes what a source that has let go of a space still has of it. The last of its transactions takes the
// mark away.
func (cp *copying) clearSource(ctx context.Context, space string) error {
	s := cp.from
	if space == elasticPart {
		return cp.clearElastic(ctx)
	}
	all := ledger.Ask(s, func(ix *ledger.Index) []*ipam.Network { return networksIn(ix, space) })
	for _, n := range all {
		if err := clearNetwork(ctx, s, n, cp.step); err != nil {
			return err
		}
	}
	if err := cp.dropEventsOf(ctx, s, space); err != nil {
		return err
	}
	return s.Update(ctx, func(c *ledger.Change) error {
		if err := dropSpace(c, space); err != nil {
			return err
		}
		return c.Tx().Delete(copyKey(space))
	})
}

// dropSpace removes the record of a space, unless every store has it.
func dropSpace(c *ledger.Change, space string) error {
	if space == ipam.GlobalSpace || len(networksIn(c.Index(), space)) > 0 {
		return nil
	}
	return c.RemoveSpace(space)
}

// dropEventsOf removes the events that one of the stores has of a space, or of elastic addresses, which the other one
// has, too.
func (cp *copying) dropEventsOf(ctx context.Context, s *ledger.Ledger, part string) error {
	return eachEvent(ctx, cp.from, part, copyPage(s), func(page []store.Record) error {
		cp.step(len(page))
		return s.Update(ctx, func(c *ledger.Change) error { return dropEvents(c, page) })
	})
}

// dropEvents removes events where they are, and as they are.
func dropEvents(c *ledger.Change, page []store.Record) error {
	for _, e := range page {
		id, there, err := placeOfEvent(c.EventAlone, e)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if err := c.DropEvent(id); err != nil {
			return err
		}
	}
	return nil
}

// clearNetwork removes a network with all that is in it, without an event: another store has it. Leases go before their
// subnet, and attachments with it, so that nobody takes what is left for the rest of something that was given up.
func clearNetwork(ctx context.Context, s *ledger.Ledger, n *ipam.Network, step func(int)) error {
	subnets := s.SubnetsOf(n.ID)
	for _, id := range subnets {
		leases := &rangeCopy{keys: ledger.LeasesOf(id), limit: copyPage(s)}
		put := func(c *ledger.Change) putting { return leasesInto(c, id) }
		if err := leases.into(ctx, nil, s, put, step); err != nil {
			return err
		}
	}
	put := func(c *ledger.Change) putting { return ownersInto(c, n.ID) }
	if err := ownersOf(n.ID, copyPage(s)).into(ctx, nil, s, put, step); err != nil {
		return err
	}
	for len(subnets) > 0 {
		left, did := subnets, 0
		err := s.Update(ctx, func(c *ledger.Change) error {
			for left, did = subnets, 0; len(left) > 0 && did < copyPage(s); left = left[1:] {
				n, err := clearSubnet(c, left[0])
				if err != nil {
					return err
				}
				did += n
			}
			return nil
		})
		if err != nil {
			return err
		}
		subnets = left
		step(did)
	}
	step(2)
	return s.Update(ctx, func(c *ledger.Change) error { return c.SetNetwork(n.ID, nil) })
}

func clearSubnet(c *ledger.Change, id ipam.ID) (int, error) {
	sx := c.Index().Subnet(id)
	if sx == nil {
		return 0, nil
	}
	sub := sx.Record()
	for _, at := range sub.Attachments {
		if err := c.SetAttachment(at, nil); err != nil {
			return 0, err
		}
	}
	return 1 + len(sub.Attachments), c.RemoveSubnet(sub)
}

// undo takes back copies that were cut off, unless their source has let go.
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
					"all of %s is in the target, and the source has let go of it: that is not to be taken "+
						"back; finish it with `%s`, and copy it back", partName(name), cp.opt.Command)
		}
		if source == nil && target == nil {
			continue
		}
		if err := cp.undoSpace(ctx, name, source); err != nil {
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

func (cp *copying) undoSpace(ctx context.Context, name string, source *copyMark) error {
	if name == elasticPart {
		return cp.undoElastic(ctx, source)
	}
	for _, n := range moving(cp.to, name) {
		if err := clearNetwork(ctx, cp.to, n, func(int) {}); err != nil {
			return err
		}
	}
	if err := cp.dropEventsOf(ctx, cp.to, name); err != nil {
		return err
	}
	if source != nil {
		err := unhide(ctx, cp.from, name, func(c *ledger.Change) error { return c.Tx().Delete(copyKey(name)) })
		if err != nil {
			return err
		}
	}
	return cp.to.Update(ctx, func(c *ledger.Change) error { return c.Tx().Delete(copyKey(name)) })
}
