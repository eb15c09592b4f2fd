package allocator

import (
	"errors"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// GiveFree ends the lease of an address that was taken through an attachment, and returns its id. With an id, it ends
// only that lease.
func GiveFree(c *ledger.Change, pool ipam.ID, addr netip.Addr, id uint64) (ended uint64, err error) {
	t, err := OpenTarget(c, pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := t.Revive(); err != nil {
		return 0, err
	} else if !t.Sub.CIDR.Contains(addr) {
		return 0, nil
	}
	held, err := t.Lease(t.Sub.ID, addr)
	if err != nil {
		return 0, err
	}
	if !held.Held() || held.Attachment != pool || held.Kind == ipam.Headroom || id != 0 && held.ID != id {
		return 0, nil
	}
	return held.ID, Release(t.Change, t.Sub, held)
}

// Release turns a live lease into a memory. If there are too many memories, it forgets the oldest. Headroom had no
// holder and leaves no memory.
func Release(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	if held.Kind == ipam.Headroom {
		return unclaim(c, sub, held)
	}
	givenBack(c, held)
	e := ipam.EndOf(sub, held)
	if held.Kind == ipam.External {
		e.Network = c.NetworkName(sub.Network)
	}
	id, err := c.Event(e)
	if err != nil {
		return err
	}
	if held.Reservation != nil {
		return c.SetLease(sub.ID, held.Address, held, held.Unheld())
	}
	if c.Index().Subnet(sub.ID) == nil {
		return c.SetLease(sub.ID, held.Address, held, nil) // a removed subnet needs no memories
	}
	after := *held
	after.Released, after.Guessed, after.Note = ipam.EventTime(id), false, ""
	after.Ahead = after.Released.Sub(c.TimeOf(id))
	if d := after.DHCP; d != nil && d.State != ipam.LANBound && d.State != ipam.LANUnconfirmed {
		after.DHCP = nil // the holder lost it
	}
	if n := c.Index().Network(sub.Network); n != nil && n.Policy.Quarantine > 0 {
		after.QuarantineUntil = c.Now().Add(n.Policy.Quarantine)
	}
	if err := c.SetLease(sub.ID, held.Address, held, &after); err != nil {
		return err
	}
	return forgetOldest(c, sub.ID)
}

// forgetOldest limits the number of a subnet's memories.
func forgetOldest(c *ledger.Change, subnet ipam.ID) error {
	addr, ok := c.Index().Subnet(subnet).Stale(c.Memories(), c.Now(), c.Known().StillExists)
	if !ok {
		return nil
	}
	m, err := c.Lease(subnet, addr)
	if err != nil {
		return err
	}
	if !m.Remembered() || m.Reservation != nil {
		return nil
	}
	return c.SetLease(subnet, addr, m, nil)
}
