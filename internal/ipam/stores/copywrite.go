package stores

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

func usableIn(sub *ipam.Subnet, l *ipam.Lease) bool {
	return alloc.Usable(sub.CIDR).Contains(l.Address)
}

// writeSpace writes what the source has of a space to the target: first the networks with their subnets, so that they
// are taken there, then what is in them.
func (cp *copying) writeSpace(ctx context.Context, space string, all []copied) error {
	if err := cp.to.Update(ctx, func(c *ledger.Change) error { return c.EnsureSpace(space) }); err != nil {
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
	return eachEvent(ctx, cp.from, space, copyPage(cp.to),
		func(page []spaceEvent) error { return cp.writeEvents(ctx, page) })
}

// clearOthers takes away what a copy that was cut off has written of networks that are no longer as they were then.
func (cp *copying) clearOthers(ctx context.Context, space string, all []copied) error {
	want := map[ipam.ID]*copied{}
	for i := range all {
		want[all[i].network.ID] = &all[i]
	}
	for _, n := range moving(cp.to, space) {
		one, same := want[n.ID], false
		if one != nil {
			err := cp.to.Look(ctx, func(c *ledger.Change) (err error) {
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
		if err := clearNetwork(ctx, cp.to, n, func(int) {}); err != nil {
			return err
		}
	}
	return nil
}

// moving lists the networks of a space that are being copied.
func moving(s *ledger.Ledger, space string) []*ipam.Network {
	return ledger.Ask(s, func(ix *ledger.Index) (all []*ipam.Network) {
		for _, n := range networksIn(ix, space) {
			if n.Stage == ipam.Moving {
				all = append(all, n)
			}
		}
		return all
	})
}

// claimed tells whether the target has the network with its subnets and attachments just as it is to have it.
func (cp *copying) claimed(c *ledger.Change, n *ipam.Network, one *copied) (bool, error) {
	there, err := cp.readNetwork(c, n)
	if err != nil {
		return false, err
	}
	if len(there.subnets) != len(one.subnets) {
		return false, nil
	}
	same, err := sameJSON(there.network, one.network)
	for i := range one.subnets {
		a, b := &there.subnets[i], &one.subnets[i]
		if err != nil {
			return false, err
		}
		if !same || len(a.attachments) != len(b.attachments) {
			return false, nil
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
	x, err := ipam.EncodeJSON(a)
	if err != nil {
		return false, err
	}
	y, err := ipam.EncodeJSON(b)
	return bytes.Equal(x, y), err
}

// claim writes a network, with its subnets and their attachments, unless it is there.
func (cp *copying) claim(ctx context.Context, one *copied) error {
	for i := 0; ; {
		next, did := i, 0
		err := cp.to.Update(ctx, func(c *ledger.Change) error {
			if next, did = i, 1; i == 0 {
				if there, err := cp.claimNetwork(c, one.network); err != nil || there {
					next = len(one.subnets)
					return err
				}
			}
			for ; next < len(one.subnets) && did < copyPage(cp.to); next++ {
				sub := &one.subnets[next]
				if err := claimSubnet(c, one.network, sub); err != nil {
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
func (cp *copying) claimNetwork(c *ledger.Change, n *ipam.Network) (there bool, err error) {
	if known := c.Index().Network(n.ID); known != nil {
		if known.Stage != ipam.Moving {
			return false, ipam.Refuse(ipam.ErrInUse, "network %s (%s) is in the target already", known.Name, n.ID)
		}
		return true, nil // clearOthers has found it to be the same
	}
	if err := edit.NameFree(c, n.Name); err != nil {
		return false, err
	}
	return false, c.SetNetwork(n.ID, n)
}

func claimSubnet(c *ledger.Change, n *ipam.Network, sub *copiedSubnet) error {
	other, err := c.Overlapping(sub.Space, sub.CIDR, ipam.ID{})
	if err != nil {
		return err
	}
	if other != nil {
		return ipam.Refuse(ipam.ErrOverlap,
			"the subnet %s of network %s overlaps %s, which network %s of space %s has in the target", sub.CIDR, n.Name,
			other.CIDR, c.NetworkName(other.Network), other.Space)
	}
	for _, at := range sub.attachments {
		if c.Index().Attachment(at.ID) != nil {
			return ipam.Refuse(ipam.ErrInUse, "the pool %s of network %s is in the target already", at.ID, n.Name)
		}
		if err := c.SetAttachment(at.ID, at); err != nil {
			return err
		}
	}
	return c.SetSubnet(sub.Subnet)
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
func (cp *copying) writeLeases(ctx context.Context, sub *ipam.Subnet) error {
	page := ledger.LeasesOf(sub.ID)
	page.Limit = copyPage(cp.to)
	for page.From != nil {
		var leases []*ipam.Lease
		var of store.Range
		var next []byte
		err := cp.from.View(ctx, func(tx store.Tx) (err error) {
			leases, of, next, err = cp.leasesPage(tx, sub, page)
			return err
		})
		if err != nil {
			return err
		}
		if err := cp.to.Update(ctx,
			func(c *ledger.Change) error { return takeLeases(c, sub.ID, leases, of) }); err != nil {
			return err
		}
		cp.step(len(leases))
		page.From = next
	}
	return nil
}

// takeLeases makes the leases of a range of keys just these.
func takeLeases(c *ledger.Change, subnet ipam.ID, leases []*ipam.Lease, of store.Range) error {
	before := map[string]*ipam.Lease{}
	there, _, err := edit.ReadPage(c.Tx(), of)
	if err != nil {
		return err
	}
	for _, l := range there {
		before[l.Address.String()] = l
	}
	for _, l := range leases {
		was := before[l.Address.String()]
		delete(before, l.Address.String())
		if was != nil && bytes.Equal(ipam.EncodeLease(nil, was), ipam.EncodeLease(nil, l)) {
			continue
		}
		if err := c.SetLease(subnet, l.Address, was, l); err != nil {
			return err
		}
		c.SkipIDs(l.ID)
	}
	for _, was := range before {
		if err := c.SetLease(subnet, was.Address, was, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeOwners makes the target's owners of a dynamic network those of the source.
func (cp *copying) writeOwners(ctx context.Context, n *ipam.Network) error {
	if n.Type != ipam.Dynamic {
		return nil
	}
	want := map[string]*ledger.DynamicOwner{}
	read := func(s *ledger.Ledger, owners map[string]*ledger.DynamicOwner) error {
		return s.Look(ctx, func(c *ledger.Change) error {
			known, err := ledger.ReadOwners(c.Tx(), n.ID)
			clear(owners)
			for i := range known {
				owners[known[i].Owner] = &known[i].DynamicOwner
			}
			return err
		})
	}
	there := map[string]*ledger.DynamicOwner{}
	if err := errors.Join(read(cp.from, want), read(cp.to, there)); err != nil {
		return err
	}
	for owner := range there {
		if want[owner] == nil {
			want[owner] = nil // is to go
		}
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(want)), copyPage(cp.to)) {
		err := cp.to.Update(ctx, func(c *ledger.Change) error {
			for _, owner := range part {
				if err := edit.SetOwner(c, n.ID, owner, want[owner]); err != nil {
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

// writeEvents writes a page of events, less those that are there. An id that another event of the target has goes to
// the next one that is free: it is the time in microseconds.
func (cp *copying) writeEvents(ctx context.Context, page []spaceEvent) error {
	err := cp.to.Update(ctx, func(c *ledger.Change) error {
		for _, e := range page {
			id, there, err := placeOfEvent(c.Tx(), e)
			if err != nil {
				return err
			}
			if there {
				continue
			}
			if err := c.Tx().Put(ledger.EventKey(nil, id), e.raw); err != nil {
				return err
			}
			c.CountEvents(1)
			c.SkipIDs(id)
		}
		return nil
	})
	cp.step(len(page))
	return err
}

// placeOfEvent is the id under which a store has an event, or the one that is free for it.
func placeOfEvent(tx store.Tx, e spaceEvent) (id uint64, there bool, err error) {
	for id = e.id; ; id++ {
		raw, err := tx.Get(ledger.EventKey(nil, id))
		if err != nil {
			return id, false, err
		}
		if raw == nil {
			return id, false, nil
		}
		if bytes.Equal(raw, e.raw) {
			return id, true, nil
		}
	}
}
