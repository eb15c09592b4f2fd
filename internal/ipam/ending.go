package ipam

import (
	"context"
	"net/netip"
	"time"
)

// endings are the reservations of owners that live for a time (BO-11). They are few, and what has ended is looked for only
// when something can have.
type endings struct {
	at   map[ending]time.Time
	next time.Time // none ends before; zero: there is none
}

// ending is what ends: an address of a subnet, or an owner that is known in a dynamic network.
type ending struct {
	sx   *subnetIndex
	addr netip.Addr

	network ID
	owner   string
}

func (e *endings) add(what ending, end time.Time) {
	if end.IsZero() {
		return
	}
	if e.at == nil {
		e.at = map[ending]time.Time{}
	}
	e.at[what] = end
	if e.next.IsZero() || end.Before(e.next) {
		e.next = end
	}
}

func (e *endings) remove(what ending) { delete(e.at, what) }

// overdue tells whether something can have ended.
func (e *endings) overdue(now time.Time) bool { return !e.next.IsZero() && !e.next.After(now) }

// due lists what has ended, at most limit of it.
func (e *endings) due(now time.Time, limit int) []ending {
	var due []ending
	e.next = time.Time{}
	for what, end := range e.at {
		if !end.After(now) && len(due) < limit {
			due = append(due, what)
		}
		if e.next.IsZero() || end.Before(e.next) {
			e.next = end
		}
	}
	return due
}

// endingActor is who ends them, for their events, and nobody who happens to ask for something at that moment.
const endingActor = "berth"

// endOwners ends the reservations of owners whose time is over. It runs before each change, so that from then on the
// addresses are anybody's, and where nothing else changes, with Run (BO-11).
func (s *Service) endOwners(ctx context.Context) error {
	for {
		s.mu.Lock()
		overdue := s.ix.ends.overdue(s.now())
		s.mu.Unlock()
		if !overdue {
			return nil
		}
		ended := 0
		err := s.change(WithActor(ctx, endingActor), func(c *change) (err error) {
			ended, err = c.endDue()
			return err
		})
		if err != nil || ended == 0 {
			return err
		}
	}
}

func (c *change) endDue() (ended int, err error) {
	for _, what := range c.ix.ends.due(c.now, c.page) {
		if what.sx == nil {
			err = c.endDynamic(what)
		} else {
			err = c.endPlaced(what)
		}
		if err != nil {
			return 0, err
		}
		ended++
	}
	return ended, nil
}

const timeIsOver = "its owner's time is over"

func (c *change) endPlaced(what ending) error {
	sub := what.sx.record.value
	if c.ix.subnets[sub.ID] != what.sx {
		c.ix.ends.remove(what) // its subnet is gone, and the sweep releases it
		return nil
	}
	l, err := c.lease(sub.ID, what.addr)
	if err != nil {
		return err
	}
	if r := l.reserved(); r == nil || r.Until.IsZero() || r.Until.After(c.now) {
		c.ix.ends.remove(what) // the index was wrong
		return nil
	}
	return c.endReservation(picked{sub, what.addr, l}, timeIsOver)
}

func (c *change) endDynamic(what ending) error {
	n := c.ix.network(what.network)
	if n == nil {
		c.ix.ends.remove(what)
		return nil
	}
	known, err := (&plan{c, n}).forgetOwner(what.owner, timeIsOver)
	if err == nil && !known {
		c.ix.ends.remove(what)
	}
	return err
}
