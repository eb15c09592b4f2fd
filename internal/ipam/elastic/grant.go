package elastic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Where hosts share the store, an address is answered for by one of them alone. Three things see to that.
//
// A grant: before an edge is told of a mapping that leads in, the store has it that this host may have the
// address (Applied.InForce), and it is granted to nobody while another host may. That ends when the other
// one's edge says that it has it no more.
//
// A session (below): the edge may answer only for the TTL of the range after the host's session was kept
// last, and the kernel sees to that by itself. The session's record is committed after the session has begun,
// and before anything is told by it.
//
// Taking over: a session that this host has seen to be gone was kept for the last time before that. When the
// TTL has passed since, nothing answers there, and what that host may have is taken from it, in one
// transaction with the session's record as it was when the wait began. Had the host come back meanwhile, its
// record would be another one, so that the transaction fails, and it would be told what it may have only
// after that.

// lateness is how much longer than the TTL is waited: as long as a kernel may let an element live too long
// (internal/edge/nft, ticketTime), and some more for clocks that do not run alike.
const lateness = 500*time.Millisecond + 50*time.Millisecond

// goneFor is ledger.SessionGone.
type goneFor func(host string, known *ipam.EdgeSession) (time.Duration, bool)

// takesOver tells whether an address may be taken from a host that may have it, and else when it is worth
// looking again; zero is: when that host says something.
func takesOver(c *ledger.Change, gone goneFor, at *ipam.Applied) (ok bool, again time.Duration, err error) {
	known, err := c.EdgeSession(at.Host)
	if err != nil {
		return false, 0, err
	}
	long, is := gone(at.Host, known)
	wait, stays := ipam.DefaultElasticTTL, at.Untimed
	if r := rangeOf(c.Index(), at.Address); r != nil {
		wait, stays = r.TTL, stays || r.OnCut == ipam.CutKeep
	}
	h := c.Index().Host(at.Host)
	removed := h == nil || h.State == ipam.HostRemoved
	switch left := time.Duration(wait) + lateness - long; {
	case stays && !removed:
		return false, 0, nil // nothing there ends by itself
	case !is:
		return false, lookGone, nil
	case left > 0:
		return false, left, nil
	}
	return true, 0, nil
}

// grantable tells whether this host may be granted an address, and else when it is worth looking again.
func grantable(c *ledger.Change, gone goneFor, addr netip.Addr) (ok bool, again time.Duration, err error) {
	for _, at := range elsewhere(c, addr) {
		if ok, again, err := takesOver(c, gone, at); err != nil || !ok {
			return false, again, err
		}
	}
	return true, 0, nil
}

// grant has the store say that this host may have an address, and no other, or refuses that: then it is worth
// looking again after a while, or, where that is zero, when something is committed.
func grant(c *ledger.Change, gone goneFor, m *ipam.EdgeMapping) (number uint64, again time.Duration, err error) {
	e := c.Index().Elastic(m.Elastic)
	if e == nil || e.Association == nil || e.Association.ID != m.Association {
		return 0, 0, nil // another change has come before, and is told of
	}
	ok, again, err := grantable(c, gone, m.Elastic)
	if err != nil || !ok {
		return 0, again, err
	}
	for _, at := range elsewhere(c, m.Elastic) {
		err := noteWithdrawn(c, ledger.AppliedAt{Host: at.Host, Address: at.Address},
			fmt.Sprintf("taken over from host %s, whose edge is cut off", at.Host))
		if err != nil {
			return 0, 0, err
		}
	}
	number = c.NextID()
	at := ledger.AppliedAt{Host: c.Host(), Address: m.Elastic}
	was := c.Index().Applied(at)
	return number, 0, c.SetApplied(at, &ipam.Applied{Host: c.Host(), Address: m.Elastic, Association: m.Association,
		Guest: m.Guest, Since: c.Now(), InForce: true, Grant: number, Unsaid: true, Untimed: was != nil && was.Untimed})
}

// The times of a session.
const (
	keptEvery   = time.Second            // a session is kept
	keptWithin  = time.Second            // its answer is waited for
	keptAgain   = 100 * time.Millisecond // after one that did not come
	edgeSilence = 4 * time.Second        // after which an edge that says nothing is frozen
	lookGone    = 100 * time.Millisecond // between two looks at a session for which somebody waits
)

// session is that of this host's edge, while it is told what to map. What it is told ends with it.
type session struct {
	ledger *ledger.Ledger
	held   store.Session     // nil: there is none, because no host shares the store, or nobody is to map
	known  *ipam.EdgeSession // its record
	sent   time.Duration     // the moment before it was kept last
	kept   chan time.Duration
	lost   chan error
}

// beginSession begins one. The order counts (grant.go): the session stands, then its record says so, and what
// is to be mapped is read only after that.
func (s Room) beginSession(ctx context.Context) (*session, error) {
	one := &session{ledger: s.ledger, sent: s.ledger.Moment(), kept: make(chan time.Duration, 1),
		lost: make(chan error, 1)}
	var err error
	if one.held, err = s.ledger.Shared().Hold(ctx, s.ledger.Host()); err != nil {
		return nil, err
	}
	s.ledger.TellsEdge(one.held.ID())
	err = s.ledger.Update(ctx, func(c *ledger.Change) error {
		one.known = &ipam.EdgeSession{Host: c.Host(), ID: c.NextID(), Session: one.held.ID(), Begun: c.Now()}
		return c.SetEdgeSession(c.Host(), one.known)
	})
	if err != nil {
		one.end()
		return nil, err
	}
	return one, nil
}

// end ends it, so that others need not wait until it falls.
func (one *session) end() {
	one.ledger.TellsEdgeNoMore(one.held.ID())
	ctx, cancel := context.WithTimeout(context.Background(), keptWithin)
	defer cancel()
	one.held.End(ctx)
}

// id is what the edge names the session by; empty where there is none.
func (one *session) id() string {
	if one.held == nil {
		return ""
	}
	return one.held.ID()
}

// keep keeps it until ctx ends or it has ended.
func (one *session) keep(ctx context.Context) {
	for next := keptEvery; rest(ctx, next, nil); {
		sent := one.ledger.Moment()
		asking, cancel := context.WithTimeout(ctx, keptWithin)
		err := one.held.Keep(asking)
		cancel()
		next = keptEvery - min(one.ledger.Moment()-sent, keptEvery-keptAgain)
		switch {
		case err == nil:
			select {
			case <-one.kept: // an older one that nobody has taken
			default:
			}
			one.kept <- sent
		case errors.Is(err, store.ErrEnded):
			one.lost <- errors.New("the session of this host's edge has ended; it begins another one")
			return
		default:
			next = keptAgain
		}
	}
}

// speaks refuses to go on where the edge is told by another session, says nothing, or the host takes no part
// any more.
func (one *session) speaks() error {
	if one.held == nil {
		return nil
	}
	s := one.ledger
	if told := s.ToldEdge(); told != one.held.ID() {
		return ipam.Refuse(ipam.ErrChanged, "another edge of host %s has connected, and gets the mappings", s.Host())
	}
	if silent := s.EdgeSilent(); silent > edgeSilence {
		return fmt.Errorf("the edge of host %s has said nothing for %s", s.Host(), silent.Round(time.Second))
	}
	self := ledger.Ask(s, func(ix *ledger.Index) *ipam.Host { return ix.Host(s.Host()) })
	return ledger.SpeaksFor(s.Member(), s.Host(), self)
}

// stands holds to it at a commit.
func (one *session) stands(c *ledger.Change) error {
	known, err := c.EdgeSession(c.Host())
	if err == nil && (known == nil || known.Session != one.held.ID()) {
		err = ipam.Refuse(ipam.ErrChanged, "the session of this host's edge is another one by now")
	}
	return err
}
