package ipam

import (
	"context"
	"fmt"
	"slices"

	"berth/store"
)

// freeze keeps other hosts from a space of a shared source: its networks are Moving, and so seen by nobody. It refuses a network
// that other hosts use.
func (cp *copying) freeze(ctx context.Context, space string) error {
	for frozen := false; !frozen; {
		err := cp.from.update(ctx, func(c *change) error {
			for _, n := range c.ix.networksIn(space) {
				if n.Stage != Moving {
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

func (cp *copying) freezeNetwork(c *change, n *Network) error {
	one, err := cp.readNetwork(c, n)
	if err != nil {
		return err
	}
	for _, sub := range one.subnets {
		if err := c.ownAlone(n, sub.Subnet); err != nil {
			return err
		}
	}
	return c.setNetwork(n.ID, one.network)
}

// ownAlone refuses a subnet that another host holds.
func (c *change) ownAlone(n *Network, sub *Subnet) error {
	for _, id := range sub.Attachments {
		at, err := c.attachment(id)
		if err != nil {
			return err
		}
		if at.Host != c.host {
			return &refusal{ErrInUse, fmt.Sprintf("host %s has a Docker network on the subnet %s of network %s; a space that several hosts use stays in the store that they share", at.Host, sub.CIDR, n.Name)}
		}
	}
	return nil
}

// release has the source let go of a space. From then on there is only one way: forward.
func (cp *copying) release(ctx context.Context, target *copyMark) error {
	return cp.from.update(ctx, func(c *change) error {
		if c.member != nil {
			for _, n := range c.ix.networksIn(target.Space) {
				if n.Stage != Moving {
					return &refusal{ErrChanged, fmt.Sprintf("network %s was made in the space %s meanwhile", n.Name, target.Space)}
				}
			}
		}
		released := *target
		released.Stage = copyReleased
		if _, err := c.event(&Event{Verb: SpaceMoved, Name: released.Space, Detail: "to another store"}); err != nil {
			return err
		}
		return c.putMark(&released)
	})
}

// reveal lets the target's copy be seen. The last of its transactions takes the mark away.
func (cp *copying) reveal(ctx context.Context, m *copyMark) error {
	return cp.to.unhide(ctx, m.Space, func(c *change) error {
		if _, err := c.event(&Event{Verb: SpaceMoved, Name: m.Space, Detail: "from another store, by host " + m.Host}); err != nil {
			return err
		}
		return c.tx.Delete(copyKey(m.Space))
	})
}

// unhide lets the networks of a space be seen that are Moving, and does the last thing with the last of them.
func (s *Service) unhide(ctx context.Context, space string, last func(*change) error) error {
	for more := true; more; {
		err := s.update(ctx, func(c *change) error {
			did := 0
			for _, n := range c.ix.networksIn(space) {
				if n.Stage != Moving {
					continue
				}
				if more = did >= s.page; more {
					return nil
				}
				whole := *n
				whole.Stage = ""
				if err := c.setNetwork(n.ID, &whole); err != nil {
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
	if err != nil {
		return err
	}
	err = cp.to.look(ctx, func(c *change) error {
		for _, one := range all {
			if n := c.ix.network(one.network.ID); n == nil || n.Stage != "" {
				return fmt.Errorf("%w: the source has let go of network %s, and the target does not have it: the target was replaced meanwhile; nothing more was removed", ErrDamaged, one.network.Name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cp.from.update(ctx, func(c *change) error {
		m, err := readMark(c.tx, space)
		if err != nil || m == nil || m.Stage == copyGone {
			return err
		}
		m.Stage = copyGone
		return c.putMark(m)
	})
}

// clearSource removes what a source that has let go of a space still has of it. The last of its transactions takes the mark
// away.
func (cp *copying) clearSource(ctx context.Context, space string) error {
	s := cp.from
	s.mu.Lock()
	all := s.ix.networksIn(space)
	s.mu.Unlock()
	for _, n := range all {
		if err := s.clearNetwork(ctx, n, cp.step); err != nil {
			return err
		}
	}
	err := s.eachEvent(ctx, space, s.copyPage(), func(page []spaceEvent) error {
		cp.step(len(page))
		return s.update(ctx, func(c *change) error { return c.dropEvents(page) })
	})
	if err != nil {
		return err
	}
	return s.update(ctx, func(c *change) error {
		if err := c.dropSpace(space); err != nil {
			return err
		}
		return c.tx.Delete(copyKey(space))
	})
}

// dropSpace removes the record of a space, unless every store has it.
func (c *change) dropSpace(space string) error {
	if space == GlobalSpace || len(c.ix.networksIn(space)) > 0 {
		return nil
	}
	if before, was := c.ix.spaces[space]; was {
		delete(c.ix.spaces, space)
		c.undo = append(c.undo, func() { c.ix.spaces[space] = before })
	}
	return c.tx.Delete(spaceKey(nil, space))
}

// dropEvents removes events where they are, and as they are.
func (c *change) dropEvents(page []spaceEvent) error {
	for _, e := range page {
		id, there, err := placeOfEvent(c.tx, e)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if err := c.tx.Delete(eventKey(nil, id)); err != nil {
			return err
		}
		c.countEvents(-1)
	}
	return nil
}

// clearNetwork removes a network with all that is in it, without an event: another store has it. Leases go before their subnet,
// and attachments with it, so that nobody takes what is left for the rest of something that was given up.
func (s *Service) clearNetwork(ctx context.Context, n *Network, step func(int)) error {
	s.mu.Lock()
	var subnets []ID
	if nx := s.ix.networks[n.ID]; nx != nil {
		subnets = slices.Clone(nx.subnets)
	}
	s.mu.Unlock()
	for _, id := range subnets {
		err := s.clearRange(ctx, leasesOf(id), func(c *change, page store.Range) (int, error) { return c.clearLeases(id, page) }, step)
		if err != nil {
			return err
		}
	}
	owners := func(c *change, page store.Range) (int, error) { return c.clearOwners(n.ID, page) }
	if err := s.clearRange(ctx, store.Prefix(ownerKey(n.ID, "")), owners, step); err != nil {
		return err
	}
	for len(subnets) > 0 {
		left, did := subnets, 0
		err := s.update(ctx, func(c *change) error {
			for left, did = subnets, 0; len(left) > 0 && did < s.copyPage(); left = left[1:] {
				n, err := c.clearSubnet(left[0])
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
	return s.update(ctx, func(c *change) error { return c.setNetwork(n.ID, nil) })
}

// clearRange removes a range of records in pages, until one is not full.
func (s *Service) clearRange(ctx context.Context, page store.Range, clear func(*change, store.Range) (int, error), step func(int)) error {
	page.Limit = s.copyPage()
	for n := page.Limit; n == page.Limit; {
		err := s.update(ctx, func(c *change) (err error) {
			n, err = clear(c, page)
			return err
		})
		if err != nil {
			return err
		}
		step(n)
	}
	return nil
}

func (c *change) clearLeases(subnet ID, page store.Range) (int, error) {
	leases, _, err := readPage(c.tx, page)
	for _, l := range leases {
		if err == nil {
			err = c.setLease(subnet, l.Address, l, nil)
		}
	}
	return len(leases), err
}

func (c *change) clearOwners(network ID, page store.Range) (int, error) {
	var owners []string
	for rec, err := range c.tx.Scan(page) {
		if err != nil {
			return 0, err
		}
		owners = append(owners, string(rec.Key[1+len(network):]))
	}
	for _, owner := range owners {
		if err := c.setOwner(network, owner, nil); err != nil {
			return 0, err
		}
	}
	return len(owners), nil
}

func (c *change) clearSubnet(id ID) (int, error) {
	sx := c.ix.subnets[id]
	if sx == nil {
		return 0, nil
	}
	sub := sx.record.value
	for _, at := range sub.Attachments {
		if err := c.setAttachment(at, nil); err != nil {
			return 0, err
		}
	}
	return 1 + len(sub.Attachments), c.removeSubnet(sub)
}

// undo takes back copies that were cut off, unless their source has let go.
func (cp *copying) undo(ctx context.Context, names []string) (CopyReport, error) {
	report := CopyReport{Undone: true}
	for _, name := range names {
		source, target, err := cp.both(ctx, name)
		if err != nil {
			return CopyReport{}, err
		}
		if source != nil && source.Stage != copyFrozen {
			return CopyReport{}, &refusal{ErrInUse, fmt.Sprintf("all of the space %s is in the target, and the source has let go of it: that is not to be taken back; finish it with `%s`, and copy it back", name, cp.opt.Command)}
		}
		if source == nil && target == nil {
			continue
		}
		if err := cp.undoSpace(ctx, name, source); err != nil {
			return CopyReport{}, cp.stopped(ctx, name, err)
		}
		report.Spaces = append(report.Spaces, CopiedSpace{Name: name})
	}
	return report, nil
}

func (cp *copying) undoSpace(ctx context.Context, name string, source *copyMark) error {
	for _, n := range cp.to.moving(name) {
		if err := cp.to.clearNetwork(ctx, n, func(int) {}); err != nil {
			return err
		}
	}
	err := cp.from.eachEvent(ctx, name, cp.to.copyPage(), func(page []spaceEvent) error {
		return cp.to.update(ctx, func(c *change) error { return c.dropEvents(page) })
	})
	if err != nil {
		return err
	}
	if source != nil {
		err := cp.from.unhide(ctx, name, func(c *change) error { return c.tx.Delete(copyKey(name)) })
		if err != nil {
			return err
		}
	}
	return cp.to.update(ctx, func(c *change) error { return c.tx.Delete(copyKey(name)) })
}
