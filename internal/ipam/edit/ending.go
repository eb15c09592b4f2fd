package edit

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// endingActor is who ends them, for their events, and nobody who happens to ask for something at that moment.
const endingActor = "berth"

// EndOwners ends the reservations of owners whose time is over. It runs before each change, so that from then on the
// addresses are anybody's, and where nothing else changes, with Run (BO-11).
func EndOwners(ctx context.Context, s *ledger.Ledger) error {
	for s.Overdue() {
		ended := 0
		err := s.Change(ipam.WithActor(ctx, endingActor), func(c *ledger.Change) (err error) {
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
		c.ForgetEnding(what) // its subnet is gone, and the sweep releases it
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
	if err := EndReservation(c, Picked{sub, what.Addr, l}, timeIsOver); err != nil {
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
	known, err := (&Plan{c, n}).ForgetOwner(what.Owner, timeIsOver)
	if err == nil && !known {
		c.ForgetEnding(what)
	}
	if err != nil {
		return err
	}
	return elastic.EndOwner(c, n, what.Owner)
}
