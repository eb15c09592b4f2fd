package elastic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

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

// beginSession begins one. The order counts (grant.go): the session stands, then its record says so, and what is to be
// mapped is read only after that.
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

// speaks refuses to go on where the edge is told by another session, says nothing, or the host takes no part any more.
func (one *session) speaks() error {
	if one.held == nil {
		return nil
	}
	s := one.ledger
	if told := s.ToldEdge(); told != one.held.ID() {
		return ipam.Refuse(ipam.ErrChanged, "another edge of host %s has connected, and is told what to map", s.Host())
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
