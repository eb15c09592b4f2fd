package ledger

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// endings are the reservations and dynamic owners with a set end (BO-11). There are few, and they are searched only if
// one may have ended.
type endings struct {
	At   map[Ending]time.Time
	Next time.Time // nothing ends earlier; zero: nothing ends
}

// Ending is a reserved address of a subnet, or an owner in a dynamic network, that ends at a known time.
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

// overdue reports whether anything may have ended.
func (e *endings) overdue(now time.Time) bool { return !e.Next.IsZero() && !e.Next.After(now) }

// due lists at most limit endings whose time has passed.
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

// OverdueIn lists the addresses of a subnet whose reservation is over but not yet ended by a change, in no order.
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

// IsIdle reports whether an address is reserved and not held.
func (sx *SubnetIndex) IsIdle(addr netip.Addr) bool { return sx.idle.Contains(addr) }
