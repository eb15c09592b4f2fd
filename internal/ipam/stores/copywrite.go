package stores

import (
	"bytes"
	"context"

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
		func(page []store.Record) error { return cp.writeEvents(ctx, page) })
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

// writeNetwork makes the target's leases and owners of a network those of the source.
func (cp *copying) writeNetwork(ctx context.Context, one *copied) error {
	for i := range one.subnets {
		sub := one.subnets[i].Subnet
		leases := cp.leases(sub, copyPage(cp.to), func(*ipam.Lease) {})
		put := func(c *ledger.Change) putting { return leasesInto(c, sub.ID) }
		if err := leases.into(ctx, cp.from.View, cp.to, put, cp.step); err != nil {
			return err
		}
	}
	n := one.network
	if n.Type != ipam.Dynamic {
		return nil
	}
	put := func(c *ledger.Change) putting { return ownersInto(c, n.ID) }
	return ownersOf(n.ID, copyPage(cp.to)).into(ctx, cp.from.View, cp.to, put, cp.step)
}

// writeEvents writes a page of events, less those that are there. An id that another event of the target has goes to
// the next one that is free: it is the time in microseconds.
func (cp *copying) writeEvents(ctx context.Context, page []store.Record) error {
	err := cp.to.Update(ctx, func(c *ledger.Change) error {
		for _, e := range page {
			id, there, err := placeOfEvent(c.EventAlone, e)
			if err != nil {
				return err
			}
			if there {
				continue
			}
			if err := c.PutEvent(id, e.Value); err != nil {
				return err
			}
			c.SkipIDs(id)
		}
		return nil
	})
	cp.step(len(page))
	return err
}

// placeOfEvent is the id under which a store has an event, or the one that is free for it. read reads those that the
// store has, each as a record of its own.
func placeOfEvent(read func(id uint64) ([]byte, error), e store.Record) (id uint64, there bool, err error) {
	for id = ledger.EventID(e.Key); ; id++ {
		raw, err := read(id)
		if err != nil {
			return id, false, err
		}
		if raw == nil {
			return id, false, nil
		}
		if bytes.Equal(raw, e.Value) {
			return id, true, nil
		}
	}
}
