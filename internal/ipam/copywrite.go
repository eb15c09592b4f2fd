package ipam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"berth/internal/alloc"
	"berth/store"
)

func usableIn(sub *Subnet, l *Lease) bool { return alloc.Usable(sub.CIDR).Contains(l.Address) }

// writeSpace writes what the source has of a space to the target: first the networks with their subnets, so that they are taken
// there, then what is in them.
func (cp *copying) writeSpace(ctx context.Context, space string, all []copied) error {
	if err := cp.to.update(ctx, func(c *change) error { return c.ensureSpace(space) }); err != nil {
		return err
	}
	if err := cp.clearOthers(ctx, space, all); err != nil {
		return err
	}
	for i := range all {
		if err := cp.claim(ctx, &all[i]); err != nil {
			return err
		}
	}
	for i := range all {
		if err := cp.writeNetwork(ctx, &all[i]); err != nil {
			return err
		}
	}
	return cp.from.eachEvent(ctx, space, cp.to.copyPage(), func(page []spaceEvent) error { return cp.writeEvents(ctx, page) })
}

// clearOthers takes away what a copy that was cut off has written of networks that are no longer as they were then.
func (cp *copying) clearOthers(ctx context.Context, space string, all []copied) error {
	want := map[ID]*copied{}
	for i := range all {
		want[all[i].network.ID] = &all[i]
	}
	for _, n := range cp.to.moving(space) {
		one, same := want[n.ID], false
		if one != nil {
			err := cp.to.look(ctx, func(c *change) (err error) {
				same, err = cp.claimed(c, n, one)
				return err
			})
			if err != nil {
				return err
			}
		}
		if same {
			continue
		}
		if err := cp.to.clearNetwork(ctx, n, func(int) {}); err != nil {
			return err
		}
	}
	return nil
}

// moving lists the networks of a space that are being copied.
func (s *Service) moving(space string) (all []*Network) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.ix.networksIn(space) {
		if n.Stage == Moving {
			all = append(all, n)
		}
	}
	return all
}

// claimed tells whether the target has the network with its subnets and attachments just as it is to have it.
func (cp *copying) claimed(c *change, n *Network, one *copied) (bool, error) {
	there, err := cp.readNetwork(c, n)
	if err != nil || len(there.subnets) != len(one.subnets) {
		return false, err
	}
	same, err := sameJSON(there.network, one.network)
	for i := range one.subnets {
		a, b := &there.subnets[i], &one.subnets[i]
		if err != nil || !same || len(a.attachments) != len(b.attachments) {
			return false, err
		}
		same, err = sameJSON(a.Subnet, b.Subnet)
		for j := range a.attachments {
			if err == nil && same {
				same, err = sameJSON(a.attachments[j], b.attachments[j])
			}
		}
	}
	return same, err
}

func sameJSON(a, b any) (bool, error) {
	x, err := encodeJSON(a)
	if err != nil {
		return false, err
	}
	y, err := encodeJSON(b)
	return bytes.Equal(x, y), err
}

// claim writes a network, with its subnets and their attachments, unless it is there.
func (cp *copying) claim(ctx context.Context, one *copied) error {
	for i := 0; ; {
		next, did := i, 0
		err := cp.to.update(ctx, func(c *change) error {
			if next, did = i, 1; i == 0 {
				if there, err := cp.claimNetwork(c, one.network); err != nil || there {
					next = len(one.subnets)
					return err
				}
			}
			for ; next < len(one.subnets) && did < cp.to.copyPage(); next++ {
				sub := &one.subnets[next]
				if err := c.claimSubnet(one.network, sub); err != nil {
					return err
				}
				did += 1 + len(sub.attachments)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if cp.step(did); next == len(one.subnets) {
			return nil
		}
		i = next
	}
}

// claimNetwork writes a network's record, and tells whether it was there already.
func (cp *copying) claimNetwork(c *change, n *Network) (there bool, err error) {
	if known := c.ix.network(n.ID); known != nil {
		if known.Stage != Moving {
			return false, &refusal{ErrInUse, fmt.Sprintf("network %s (%s) is in the target already", known.Name, n.ID)}
		}
		return true, nil // clearOthers has found it to be the same
	}
	if err := c.nameFree(n.Name); err != nil {
		return false, err
	}
	return false, c.setNetwork(n.ID, n)
}

func (c *change) claimSubnet(n *Network, sub *copiedSubnet) error {
	other, err := c.overlapping(sub.Space, sub.CIDR, ID{})
	if err != nil {
		return err
	}
	if other != nil {
		return &refusal{ErrOverlap, fmt.Sprintf("the subnet %s of network %s overlaps %s, which network %s of space %s has in the target", sub.CIDR, n.Name, other.CIDR, c.networkName(other.Network), other.Space)}
	}
	for _, at := range sub.attachments {
		if c.ix.attachments[at.ID].value != nil {
			return &refusal{ErrInUse, fmt.Sprintf("the pool %s of network %s is in the target already", at.ID, n.Name)}
		}
		if err := c.setAttachment(at.ID, at); err != nil {
			return err
		}
	}
	return c.setSubnet(sub.Subnet)
}

// writeNetwork writes the leases and owners of a network.
func (cp *copying) writeNetwork(ctx context.Context, one *copied) error {
	for i := range one.subnets {
		if err := cp.writeLeases(ctx, one.subnets[i].Subnet); err != nil {
			return err
		}
	}
	return cp.writeOwners(ctx, one.network)
}

// writeLeases makes the target's leases of a subnet those of the source, page by page.
func (cp *copying) writeLeases(ctx context.Context, sub *Subnet) error {
	page := leasesOf(sub.ID)
	page.Limit = cp.to.copyPage()
	for page.From != nil {
		var leases []*Lease
		var of store.Range
		var next []byte
		err := cp.from.store.View(ctx, func(tx store.Tx) (err error) {
			leases, of, next, err = cp.leasesPage(tx, sub, page)
			return err
		})
		if err != nil {
			return err
		}
		if err := cp.to.update(ctx, func(c *change) error { return c.takeLeases(sub.ID, leases, of) }); err != nil {
			return err
		}
		cp.step(len(leases))
		page.From = next
	}
	return nil
}

// takeLeases makes the leases of a range of keys just these.
func (c *change) takeLeases(subnet ID, leases []*Lease, of store.Range) error {
	before := map[string]*Lease{}
	there, _, err := readPage(c.tx, of)
	if err != nil {
		return err
	}
	for _, l := range there {
		before[l.Address.String()] = l
	}
	for _, l := range leases {
		was := before[l.Address.String()]
		delete(before, l.Address.String())
		if was != nil && bytes.Equal(encodeLease(nil, was), encodeLease(nil, l)) {
			continue
		}
		if err := c.setLease(subnet, l.Address, was, l); err != nil {
			return err
		}
		c.ix.lastEvent = max(c.ix.lastEvent, l.ID)
	}
	for _, was := range before {
		if err := c.setLease(subnet, was.Address, was, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeOwners makes the target's owners of a dynamic network those of the source.
func (cp *copying) writeOwners(ctx context.Context, n *Network) error {
	if n.Type != Dynamic {
		return nil
	}
	want := map[string]*dynamicOwner{}
	read := func(s *Service, owners map[string]*dynamicOwner) error {
		return s.look(ctx, func(c *change) error {
			known, err := readOwners(c.tx, n.ID)
			clear(owners)
			for i := range known {
				owners[known[i].owner] = &known[i].dynamicOwner
			}
			return err
		})
	}
	there := map[string]*dynamicOwner{}
	if err := errors.Join(read(cp.from, want), read(cp.to, there)); err != nil {
		return err
	}
	for owner := range there {
		if want[owner] == nil {
			want[owner] = nil // is to go
		}
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(want)), cp.to.copyPage()) {
		err := cp.to.update(ctx, func(c *change) error {
			for _, owner := range part {
				if err := c.setOwner(n.ID, owner, want[owner]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		cp.step(len(part))
	}
	return nil
}

// writeEvents writes a page of events, less those that are there. An id that another event of the target has goes to the next one
// that is free: it is the time in microseconds.
func (cp *copying) writeEvents(ctx context.Context, page []spaceEvent) error {
	err := cp.to.update(ctx, func(c *change) error {
		for _, e := range page {
			id, there, err := placeOfEvent(c.tx, e)
			if err != nil {
				return err
			}
			if there {
				continue
			}
			if err := c.tx.Put(eventKey(nil, id), e.raw); err != nil {
				return err
			}
			c.countEvents(1)
			c.ix.lastEvent = max(c.ix.lastEvent, id)
		}
		return nil
	})
	cp.step(len(page))
	return err
}

// placeOfEvent is the id under which a store has an event, or the one that is free for it.
func placeOfEvent(tx store.Tx, e spaceEvent) (id uint64, there bool, err error) {
	for id = e.id; ; id++ {
		raw, err := tx.Get(eventKey(nil, id))
		if err != nil || raw == nil {
			return id, false, err
		}
		if bytes.Equal(raw, e.raw) {
			return id, true, nil
		}
	}
}
