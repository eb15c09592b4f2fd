package elastic

import (
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Where hosts share the store, an address is answered for by one of them alone. Three things see to that.
//
// A grant: before an edge is told of a mapping that leads in, the store has it that this host may have the address
// (Applied.InForce), and it is granted to nobody while another host may. That ends when the other one's edge says that
// it has it no more.
//
// A session (session.go): the edge may answer only for the TTL of the range after the host's session was kept last, and
// the kernel sees to that by itself. The session's record is committed after the session has begun, and before anything
// is told by it.
//
// Taking over: a session that this host has seen to be gone was kept for the last time before that. When the TTL has
// passed since, nothing answers there, and what that host may have is taken from it, in one transaction with the
// session's record as it was when the wait began. Had the host come back meanwhile, its record would be another one, so
// that the transaction fails, and it would be told what it may have only after that.

// lateness is how much longer than the TTL is waited: as long as a kernel may let an element live too long
// (internal/edge/nft, ticketTime), and some more for clocks that do not run alike.
const lateness = 500*time.Millisecond + 50*time.Millisecond

// takesOver tells whether an address may be taken from a host, which may have it, and else when it is worth looking
// again; zero is: when that host says something.
func takesOver(c *ledger.Change, gone goneFor, from string, addr netip.Addr) (ok bool, again time.Duration, err error) {
	known, err := c.EdgeSession(from)
	if err != nil {
		return false, 0, err
	}
	long, is := gone(from, known)
	r := rangeOf(c.Index(), addr)
	h := c.Index().Host(from)
	removed := h == nil || h.State == ipam.HostRemoved
	wait := ipam.DefaultElasticTTL
	if r != nil {
		wait = r.TTL
	}
	at := c.Index().Applied(ledger.AppliedAt{Host: from, Address: addr})
	untimed := at != nil && at.Untimed
	switch left := time.Duration(wait) + lateness - long; {
	case (untimed || r != nil && r.OnCut == ipam.CutKeep) && !removed:
		return false, 0, nil // nothing there ends by itself
	case !is:
		return false, lookGone, nil
	case left > 0:
		return false, left, nil
	}
	return true, 0, nil
}

// goneFor is ledger.SessionGone.
type goneFor func(host string, known *ipam.EdgeSession) (time.Duration, bool)

// grantable tells whether this host may be granted an address, and else when it is worth looking again.
func grantable(c *ledger.Change, gone goneFor, addr netip.Addr) (ok bool, again time.Duration, err error) {
	for _, host := range holders(c.Index(), c.Host(), addr) {
		if host == c.Host() {
			continue
		}
		if ok, again, err := takesOver(c, gone, host, addr); err != nil || !ok {
			return false, again, err
		}
	}
	return true, 0, nil
}

// freed takes an address from all other hosts that may have it, where it is grantable.
func freed(c *ledger.Change, gone goneFor, addr netip.Addr) (ok bool, again time.Duration, err error) {
	if ok, again, err := grantable(c, gone, addr); err != nil || !ok {
		return false, again, err
	}
	for _, host := range holders(c.Index(), c.Host(), addr) {
		if host == c.Host() {
			continue
		}
		err = noteWithdrawn(c, ledger.AppliedAt{Host: host, Address: addr},
			fmt.Sprintf("taken over from host %s, whose edge is cut off", host))
		if err != nil {
			return false, 0, err
		}
	}
	return true, 0, nil
}

// grant has the store say that this host may have an address, or refuses that: then it is worth looking again after a
// while, or, where that is zero, when something is committed.
func grant(c *ledger.Change, gone goneFor, m *ipam.EdgeMapping) (number uint64, again time.Duration, err error) {
	e := c.Index().Elastic(m.Elastic)
	if e == nil || e.Association == nil || e.Association.ID != m.Association {
		return 0, 0, nil // another change has come before, and is told of
	}
	ok, again, err := freed(c, gone, m.Elastic)
	if err != nil || !ok {
		return 0, again, err
	}
	number = c.NextID()
	at := ledger.AppliedAt{Host: c.Host(), Address: m.Elastic}
	was := c.Index().Applied(at)
	return number, 0, c.SetApplied(at, &ipam.Applied{Host: c.Host(), Address: m.Elastic, Association: m.Association,
		Guest: m.Guest, Since: c.Now(), InForce: true, Grant: number, Unsaid: true, Untimed: was != nil && was.Untimed})
}
