package allocator

import (
	"context"
	"errors"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// GiveFree ends the lease of an address that was taken through an attachment, and returns its id. With an id, it ends
// only that lease.
func GiveFree(c *ledger.Change, pool ipam.ID, addr netip.Addr, id uint64) (ended uint64, err error) {
	t, held, err := takenThrough(c, pool, addr)
	if held == nil || id != 0 && held.ID != id {
		return 0, err
	}
	return held.ID, Release(t.Change, t.Sub, held)
}

// takenThrough returns the lease of an address that was taken through an attachment. It is nil if there is none.
func takenThrough(c *ledger.Change, pool ipam.ID, addr netip.Addr) (t *Target, held *ipam.Lease, err error) {
	t, err = OpenTarget(c, pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := t.Revive(); err != nil {
		return nil, nil, err
	}
	held, err = t.heldThrough(pool, addr)
	return t, held, err
}

// heldThrough is takenThrough for an open target. It changes nothing.
func (t *Target) heldThrough(pool ipam.ID, addr netip.Addr) (*ipam.Lease, error) {
	if !t.Sub.CIDR.Contains(addr) {
		return nil, nil
	}
	held, err := t.Record(addr)
	if err != nil || !held.Held() || held.Attachment != pool || held.Kind == ipam.Headroom {
		return nil, err
	}
	return held, nil
}

// handOver ends a lease of an address that other containers still have, and leases the address to one of them. It
// returns the id of the ended lease. Nobody knows which container has released it; if it was the new holder, the witness
// corrects the lease.
func handOver(c *ledger.Change, pool ipam.ID, addr netip.Addr, others []ipam.Container) (ended uint64, err error) {
	t, held, err := takenThrough(c, pool, addr)
	if held == nil {
		return 0, err
	}
	doLook(c)
	heir := others[0]
	for _, other := range others {
		if ipam.ShortContainer(other.ID) != held.Container && other.Name != held.Name {
			heir = other
		}
	}
	return held.ID, t.take(ipam.AddressRequest{Pool: pool, Name: heir.Name}, addr, held, held.Kind)
}

// Release turns a live lease into a memory. If there are too many memories, it forgets the oldest. Headroom had no
// holder and leaves no memory.
func Release(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	if held.Kind == ipam.Headroom {
		return unclaim(c, sub, held)
	}
	givenBack(c, held)
	e := held.Event(ipam.LeaseReleased, sub, "")
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
	if quarantine := c.Index().Policy(sub).Quarantine; quarantine > 0 {
		after.QuarantineUntil = c.Now().Add(quarantine)
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

// EndingActor is the actor of events that end an owner, instead of whoever made the current request.
const EndingActor = "berth"

// Update runs a change after KeepTime. Addresses whose owners or quarantines have ended are therefore free
// inside it. Durations that the change shortens take effect at once.
func Update(ctx context.Context, s *ledger.Ledger, fn func(*ledger.Change) error) error {
	if err := KeepTime(ctx, s); err != nil {
		return err
	}
	if err := s.Update(ctx, fn); err != nil {
		return err
	}
	_ = bringNearer(ctx, s) // the change is made; if this fails, the next change does it
	return nil
}

// KeepTime ends the reservations of owners whose time is over. It also shortens quarantines that would last longer than
// those that begin now.
func KeepTime(ctx context.Context, s *ledger.Ledger) error {
	if err := endOwners(ctx, s); err != nil {
		return err
	}
	return bringNearer(ctx, s)
}

func bringNearer(ctx context.Context, s *ledger.Ledger) error {
	for all := s.FarMemories(); len(all) > 0; all = s.FarMemories() {
		if err := s.Update(ctx, func(c *ledger.Change) error { return c.BringNearer(all) }); err != nil {
			return err
		}
	}
	return nil
}

func endOwners(ctx context.Context, s *ledger.Ledger) error {
	for s.Overdue() {
		var due []ledger.Ending
		err := s.Update(ipam.WithActor(ctx, EndingActor), func(c *ledger.Change) (err error) {
			due = c.Due()
			for _, what := range due {
				if what.Sx == nil {
					err = endDynamic(c, what)
				} else {
					err = endPlaced(c, what)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(due) == 0 {
			return err
		}
	}
	return nil
}

const timeIsOver = "its owner expired"

func endPlaced(c *ledger.Change, what ledger.Ending) error {
	sub := what.Sx.Record()
	if c.Index().Subnet(sub.ID) != what.Sx {
		c.ForgetEnding(what) // its subnet is gone, and Sweep releases it
		return nil
	}
	l, err := c.Lease(sub.ID, what.Addr)
	if err != nil {
		return err
	}
	if r := l.Reserved(); r == nil || r.Until.IsZero() || r.Until.After(c.Now()) {
		c.ForgetEnding(what) // the index was wrong
		return nil
	}
	owner := l.Reservation.Owner
	if err := ledger.EndReservation(c, ledger.Picked{Sub: sub, Addr: what.Addr, Record: l}, timeIsOver); err != nil {
		return err
	}
	if n := c.Index().Network(sub.Network); n != nil {
		return elastic.EndOwner(c, n, owner)
	}
	return nil
}

func endDynamic(c *ledger.Change, what ledger.Ending) error {
	n := c.Index().Network(what.Network)
	if n == nil {
		c.ForgetEnding(what)
		return nil
	}
	known, err := ForgetOwner(&ledger.NetworkPlan{Change: c, N: n}, what.Owner, timeIsOver)
	if err != nil {
		return err
	}
	if !known {
		c.ForgetEnding(what)
	}
	return elastic.EndOwner(c, n, what.Owner)
}

// ForgetOwner undoes RecordOwner and reports whether there was a record.
func ForgetOwner(p *ledger.NetworkPlan, owner, why string) (known bool, err error) {
	record, err := ledger.ReadJSON[ledger.DynamicOwner](p.Tx(), ledger.OwnerKey(p.N.ID, owner), "an owner")
	if err != nil || record == nil {
		return false, err
	}
	if _, err := p.Tell(&ipam.Event{Verb: ipam.ReservationRemoved, Name: owner, Detail: why},
		ledger.DynamicFacts(owner, record.Terms), nil); err != nil {
		return false, err
	}
	if err := returnLeases(p.Change, p.N, owner); err != nil {
		return false, err
	}
	return true, p.SetOwner(p.N.ID, owner, nil)
}
