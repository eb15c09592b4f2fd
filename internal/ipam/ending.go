package ipam

import (
	"context"
	"net/netip"
	"time"
)

// endings are the reservations of owners that live for a time (BO-11). They are few, and what has ended is looked for only
// when something can have.
type endings struct {
	at   map[place]time.Time
	next time.Time // none ends before; zero: there is none
}

// place is an address of a subnet.
type place struct {
	sx   *subnetIndex
	addr netip.Addr
}

func (e *endings) add(sx *subnetIndex, addr netip.Addr, end time.Time) {
	if end.IsZero() {
		return
	}
	if e.at == nil {
		e.at = map[place]time.Time{}
	}
	e.at[place{sx, addr}] = end
	if e.next.IsZero() || end.Before(e.next) {
		e.next = end
	}
}

func (e *endings) remove(sx *subnetIndex, addr netip.Addr) { delete(e.at, place{sx, addr}) }

// due takes the places whose time is over, at most limit of them.
func (e *endings) due(now time.Time, limit int) []place {
	if e.next.IsZero() || e.next.After(now) {
		return nil
	}
	var due []place
	e.next = time.Time{}
	for p, end := range e.at {
		if !end.After(now) && len(due) < limit {
			due = append(due, p)
		} else if e.next.IsZero() || end.Before(e.next) {
			e.next = end
		}
	}
	return due
}

// endDue ends the reservations whose owners' time is over, as a part of whatever change comes next: from then on the
// addresses are anybody's (BO-11).
func (c *change) endDue() error {
	due := c.ix.ends.due(c.now, pageSize)
	if len(due) == 0 {
		return nil
	}
	c.undo = append(c.undo, func() { // what was not ended is due still
		for _, p := range due {
			if end, left := c.ix.ends.at[p]; left {
				c.ix.ends.add(p.sx, p.addr, end)
			}
		}
	})
	for _, at := range due {
		sub := at.sx.record.value
		if c.ix.subnets[sub.ID] != at.sx {
			c.ix.ends.remove(at.sx, at.addr) // its subnet is gone, and the sweep releases it
			continue
		}
		l, err := c.lease(sub.ID, at.addr)
		if err != nil {
			return err
		}
		if r := l.reserved(); r == nil || r.Until.IsZero() || r.Until.After(c.now) {
			continue // the index was wrong
		}
		if err := c.endReservation(picked{sub, at.addr, l}, "its owner's time is over"); err != nil {
			return err
		}
	}
	return nil
}

// End ends the reservations whose owners' time is over, where nothing else changes.
func (s *Service) endOwners(ctx context.Context) error {
	s.mu.Lock()
	next := s.ix.ends.next
	s.mu.Unlock()
	if next.IsZero() || next.After(s.now()) {
		return nil
	}
	return s.update(ctx, func(*change) error { return nil })
}
