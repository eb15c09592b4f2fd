package ledger

import (
	"iter"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// endings are the reservations and dynamic owners with a set end. There are few, and they are searched only if
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

func (e *endings) add(what Ending, end time.Time) {
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

// Claim returns who has a claim to an address, as ipam.Lease.Claim does from its record.
func (sx *SubnetIndex) Claim(addr netip.Addr) ipam.Claim {
	switch m := sx.memories[addr]; {
	case m != nil:
		return ipam.Claim{Quarantine: m.Value.(Memory).QuarantineUntil}
	case sx.IsIdle(addr):
		return ipam.Claim{Reserved: true, ReservedUntil: sx.ends.At[Ending{Sx: sx, Addr: addr}]}
	}
	return ipam.Claim{Held: sx.HasRecord(addr)}
}

// Loose yields the addresses whose records may keep them for nobody: the remembered and the overdue ones, in no order.
func (sx *SubnetIndex) Loose(now time.Time) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for addr := range sx.memories {
			if !yield(addr) {
				return
			}
		}
		sx.Overdue(now)(yield)
	}
}

// Overdue yields the addresses without a holder whose reservation is over but not yet ended by a change, in no order.
func (sx *SubnetIndex) Overdue(now time.Time) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		if !sx.ends.overdue(now) {
			return
		}
		for what, end := range sx.ends.At {
			if what.Sx == sx && !end.After(now) && sx.IsIdle(what.Addr) && !yield(what.Addr) {
				return
			}
		}
	}
}

// IsIdle reports whether an address is reserved and not held.
func (sx *SubnetIndex) IsIdle(addr netip.Addr) bool { return sx.idle.Contains(addr) }
