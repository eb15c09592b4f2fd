package allocator

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// EndingActor is the actor of events that end an owner, instead of whoever made the current request.
const EndingActor = "berth"

// Update runs a change after KeepTime. Addresses whose owners (BO-11) or quarantines have ended are therefore free
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
		ended := 0
		err := s.Update(ipam.WithActor(ctx, EndingActor), func(c *ledger.Change) (err error) {
			ended, err = endDue(c)
			return err
		})
		if err != nil {
			return err
		}
		if ended == 0 {
			return nil
		}
	}
	return nil
}

func endDue(c *ledger.Change) (ended int, err error) {
	for _, what := range c.Due() {
		if what.Sx == nil {
			err = endDynamic(c, what)
		} else {
			err = endPlaced(c, what)
		}
		if err != nil {
			return 0, err
		}
		ended++
	}
	return ended, nil
}

const timeIsOver = "its owner's time is over"

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
	if err == nil && !known {
		c.ForgetEnding(what)
	}
	if err != nil {
		return err
	}
	return elastic.EndOwner(c, n, what.Owner)
}

// ForgetOwner undoes RecordOwner and reports whether there was a record.
func ForgetOwner(p *ledger.NetworkPlan, owner, why string) (known bool, err error) {
	raw, err := p.Tx().Get(ledger.OwnerKey(p.N.ID, owner))
	if err != nil {
		return false, err
	}
	if raw == nil {
		return false, nil
	}
	var record ledger.DynamicOwner
	if err := ipam.DecodeJSON("an owner", raw, &record); err != nil {
		return false, err
	}
	if _, err := p.Tell(&ipam.Event{Verb: ipam.ReservationRemoved, Name: owner, Detail: why},
		ledger.DynamicFacts(owner, record.Terms), nil); err != nil {
		return false, err
	}
	if err := ReturnLeases(p.Change, p.N, owner); err != nil {
		return false, err
	}
	return true, p.SetOwner(p.N.ID, owner, nil)
}
