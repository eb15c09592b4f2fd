package ledger

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// endings are the reservations of owners that live for a time (BO-11). They are few, and what has ended is looked for
// only when something can have.
type endings struct {
	At   map[Ending]time.Time
	Next time.Time // none ends before; zero: there is none
}

// Ending is an address of a subnet, or an owner in a dynamic network, that ends at a known time.
type Ending struct {
	Sx   *SubnetIndex
	Addr netip.Addr

	Network ipam.ID
	Owner   string
}

func (e *endings) Add(what Ending, end time.Time) {
	if end.IsZero() {
		return
	}
	if e.At == nil {
		e.At = map[Ending]time.Time{}
	}
	e.At[what] = end
	if e.Next.IsZero() || end.Before(e.Next) {
		e.Next = end
	}
}

func (e *endings) Remove(what Ending) { delete(e.At, what) }

// overdue tells whether something can have ended.
func (e *endings) overdue(now time.Time) bool { return !e.Next.IsZero() && !e.Next.After(now) }

// due lists what has ended, at most limit of it.
func (e *endings) due(now time.Time, limit int) []Ending {
	var due []Ending
	e.Next = time.Time{}
	for what, end := range e.At {
		if !end.After(now) && len(due) < limit {
			due = append(due, what)
		}
		if e.Next.IsZero() || end.Before(e.Next) {
			e.Next = end
		}
	}
	return due
}

// OverdueIn lists the addresses of a subnet whose reservation is over, which the next change ends, in no order.
func (ix *Index) OverdueIn(sx *SubnetIndex, now time.Time) (all []netip.Addr) {
	if !ix.ends.overdue(now) {
		return nil
	}
	for what, end := range ix.ends.At {
		if what.Sx == sx && !end.After(now) {
			all = append(all, what.Addr)
		}
	}
	return all
}

// IsIdle tells whether an address is reserved and not held.
func (sx *SubnetIndex) IsIdle(addr netip.Addr) bool { return sx.idle.Contains(addr) }
