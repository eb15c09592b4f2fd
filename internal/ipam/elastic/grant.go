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

// If hosts share a store, only one of them answers for an address. Three things ensure that.
//
// A grant: before an edge hears of an incoming mapping, the store records that this host may have the address
// (Applied.InForce). No other host gets a grant until this host's edge reports that it no longer has the address.
//
// A session: the edge may answer only for the range's TTL after the session was last kept alive, and the kernel
// enforces that by itself. The session's record is committed after the session has begun, and before the edge hears
// anything.
//
// A takeover: if this host sees that a session is gone, the session was last kept alive before that. When the TTL has
// passed since then, nothing answers there any more. One transaction takes over what that host may have. It compares
// the session's record with the one from the beginning of the wait. If the host has come back meanwhile, its record is
// another one and the transaction fails. The host hears of its mappings only after that.

// lateness is how much longer than the TTL a takeover waits: as long as a kernel may keep an element too long
// (ticketTime in internal/edge/nft), and a little more for clocks of different speed.
const lateness = 500*time.Millisecond + 50*time.Millisecond

// goneFor is ledger.SessionGone.
type goneFor func(host string, known *ipam.EdgeSession) (time.Duration, bool)

// takesOver reports whether an address may be taken from a host that may have it. If not, again is when to look again;
// zero means when that host reports something.
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

// grantable reports whether this host may get a grant of an address. If not, again is when to look again.
func grantable(c *ledger.Change, gone goneFor, addr netip.Addr) (ok bool, again time.Duration, err error) {
	for _, at := range elsewhere(c, addr) {
		if ok, again, err := takesOver(c, gone, at); err != nil || !ok {
			return false, again, err
		}
	}
	return true, 0, nil
}

// grant records in the store that only this host may have an address, and returns the grant's number. If that is
// refused, again is when to look again; zero means when something is committed.
func grant(c *ledger.Change, gone goneFor, m *ipam.EdgeMapping) (number uint64, again time.Duration, err error) {
	e := c.Index().Elastic(m.Elastic)
	if e == nil || e.Association == nil || e.Association.ID != m.Association {
		return 0, 0, nil // another change came first, and the edge will hear of it
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
	keptEvery   = time.Second            // between two keepalives
	keptWithin  = time.Second            // how long to wait for the answer of one
	keptAgain   = 100 * time.Millisecond // after one that was not answered
	edgeSilence = 4 * time.Second        // a silent edge counts as frozen after this time
	lookGone    = 100 * time.Millisecond // between two looks at a session during a takeover
)

// session is the session of this host's edge. All that the edge was told ends with it.
type session struct {
	ledger *ledger.Ledger
	held   store.Session     // nil: no session, because no host shares the store, or the edge only looks
	known  *ipam.EdgeSession // its record
	sent   time.Duration     // the host's time just before the last keepalive that was answered
	kept   chan time.Duration
	lost   chan error
}

// beginSession begins a session. The order matters: first the session exists, then its record is committed, and only
// then are the wanted mappings read.
func (s Addresses) beginSession(ctx context.Context) (*session, error) {
	one := &session{ledger: s.ledger, sent: s.ledger.SinceBoot(), kept: make(chan time.Duration, 1),
		lost: make(chan error, 1)}
	var err error
	if one.held, err = s.ledger.Shared().Hold(ctx, s.ledger.Host()); err != nil {
		return nil, err
	}
	s.ledger.ConnectEdge(one.held.ID())
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

// end ends the session, so that others need not wait until it times out.
func (one *session) end() {
	one.ledger.DisconnectEdge(one.held.ID())
	ctx, cancel := context.WithTimeout(context.Background(), keptWithin)
	defer cancel()
	one.held.End(ctx)
}

// id is the edge's name for the session, or empty without one.
func (one *session) id() string {
	if one.held == nil {
		return ""
	}
	return one.held.ID()
}

// keep keeps the session alive until ctx ends or the session has ended.
func (one *session) keep(ctx context.Context) {
	for next := keptEvery; rest(ctx, next, nil); {
		sent := one.ledger.SinceBoot()
		asking, cancel := context.WithTimeout(ctx, keptWithin)
		err := one.held.Keep(asking)
		cancel()
		next = keptEvery - min(one.ledger.SinceBoot()-sent, keptEvery-keptAgain)
		switch {
		case err == nil:
			select {
			case <-one.kept: // an older keepalive that nobody has read
			default:
			}
			one.kept <- sent
		case errors.Is(err, store.ErrEnded):
			one.lost <- errors.New("the session of this host's edge has ended; the edge starts another")
			return
		default:
			next = keptAgain
		}
	}
}

// speaks returns an error if another session speaks to the edge, the edge is silent, or the host has left the cluster.
func (one *session) speaks() error {
	if one.held == nil {
		return nil
	}
	s := one.ledger
	if told := s.ConnectedEdge(); told != one.held.ID() {
		return ipam.Refuse(ipam.ErrChanged, "another edge of host %s has connected, and gets the mappings", s.Host())
	}
	if silent := s.EdgeSilent(); silent > edgeSilence {
		return fmt.Errorf("the edge of host %s has been silent for %s", s.Host(), silent.Round(time.Second))
	}
	self := ledger.Ask(s, func(ix *ledger.Index) *ipam.Host { return ix.Host(s.Host()) })
	return ledger.SpeaksFor(s.Member(), s.Host(), self)
}

// stands refuses a commit if the session is not the recorded one any more.
func (one *session) stands(c *ledger.Change) error {
	known, err := c.EdgeSession(c.Host())
	if err == nil && (known == nil || known.Session != one.held.ID()) {
		err = ipam.Refuse(ipam.ErrChanged, "this host's edge has started another session")
	}
	return err
}
