package elastic

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// teller tells the edge of a host that shares its store what to map, in one session.
type teller struct {
	*session
	wanted *tracker
	told   map[netip.Addr]ipam.EdgeMapping // with the grants
	waits  map[netip.Addr]bool             // what is wanted and not granted yet
	ranges []ipam.EdgeRange
	first  bool
}

// errGone: the edge is there no more.
var errGone = errors.New("the edge is gone")

// sharedNews is EdgeNews of a host that shares its store.
func (s Room) sharedNews(ctx context.Context) iter.Seq2[ipam.EdgeNews, error] {
	return func(yield func(ipam.EdgeNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		one, err := s.beginSession(ctx)
		if err != nil {
			yield(ipam.EdgeNews{}, err)
			return
		}
		t := &teller{session: one, wanted: s.track(ctx), told: map[netip.Addr]ipam.EdgeMapping{},
			waits: map[netip.Addr]bool{}, first: true}
		ended := make(chan struct{})
		go func() { defer close(ended); one.keep(ctx) }()
		defer func() { cancel(); t.wanted.end(); <-ended; one.end() }()
		if err := t.tell(ctx, yield); !errors.Is(err, errGone) && ctx.Err() == nil {
			yield(ipam.EdgeNews{}, err)
		}
	}
}

// tell tells the edge of each change until the session is over.
func (t *teller) tell(ctx context.Context, yield func(ipam.EdgeNews, error) bool) error {
	for {
		news, again, err := t.next(ctx)
		if err != nil {
			return err
		}
		if news != nil && !yield(*news, nil) {
			return errGone
		}
		if err := t.wait(ctx, restBetween, nil, yield); err != nil {
			return err
		}
		if err := t.wait(ctx, cmp.Or(again, lookAgain), t.wanted.commits.Woken(), yield); err != nil {
			return err
		}
	}
}

// wait is rest, that tells the edge meanwhile whenever the session was kept.
func (t *teller) wait(ctx context.Context, long time.Duration, woken <-chan struct{},
	yield func(ipam.EdgeNews, error) bool) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-woken:
			return nil
		case err := <-t.lost:
			return err
		case t.sent = <-t.kept:
			if err := t.speaks(); err != nil {
				return err
			}
			if !yield(ipam.EdgeNews{Host: t.ledger.Host(), Session: t.held.ID(), Sent: t.sent}, nil) {
				return errGone
			}
		}
	}
}

// next is what the edge is to be told now; nil: nothing. again is when it is worth looking by itself; zero: as always.
func (t *teller) next(ctx context.Context) (news *ipam.EdgeNews, again time.Duration, err error) {
	if err := t.speaks(); err != nil {
		return nil, 0, err
	}
	changed, err := t.wanted.look(ctx)
	if err != nil {
		return nil, 0, err
	}
	round := asked{now: map[netip.Addr]ipam.EdgeMapping{}}
	round.due = slices.AppendSeq(changed, maps.Keys(t.waits))
	slices.SortFunc(round.due, netip.Addr.Compare)
	round.due = slices.Compact(round.due)
	if err := t.look(ctx, &round); err != nil {
		return nil, 0, err
	}
	if err := t.grant(ctx, &round); err != nil {
		return nil, 0, err
	}
	line := ipam.EdgeNews{Host: t.ledger.Host(), Session: t.held.ID(), Sent: t.sent, Whole: t.first}
	if t.first || !slices.Equal(t.wanted.ranges, t.ranges) {
		t.ranges = t.wanted.ranges
		line.Ranges, line.Ranged = t.ranges, true
	}
	t.first = false
	tellOf(&line, round.due, round.now, t.told)
	if line.Bare() {
		return nil, round.again, nil
	}
	return &line, round.again, nil
}

// asked is what is asked in one round.
type asked struct {
	due     []netip.Addr // of which something can have changed
	now     map[netip.Addr]ipam.EdgeMapping
	lacking []ipam.EdgeMapping // grants that may be asked for
	again   time.Duration      // when it is worth looking again; zero: when something is committed
}

// later notes when it is worth looking again; zero is no time.
func (r *asked) later(again time.Duration) {
	if r.again == 0 || again > 0 && again < r.again {
		r.again = again
	}
}

// look is what is wanted, with the grants that hold on: those by which the edge has it already, and, for what it is
// told first, those of sessions before. What lacks a grant is staged until it has one.
func (t *teller) look(ctx context.Context, r *asked) error {
	for page := range slices.Chunk(r.due, leadsAtOnce) {
		err := t.ledger.Look(ctx, func(c *ledger.Change) error {
			for _, addr := range page {
				if err := t.lookAt(c, r, addr); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *teller) lookAt(c *ledger.Change, r *asked, addr netip.Addr) error {
	delete(t.waits, addr)
	m, there := t.wanted.mappings[addr]
	if !there {
		return nil
	}
	if m.Staged {
		r.now[addr] = m
		return nil
	}
	number, err := t.holdsOn(c, addr)
	if err != nil {
		return err
	}
	if number > 0 {
		m.Grant = number
		r.now[addr] = m
		return nil
	}
	t.waits[addr] = true
	ok, again, err := grantable(c, t.ledger.SessionGone, addr)
	if err != nil {
		return err
	}
	if r.later(again); ok {
		r.lacking = append(r.lacking, m)
	}
	m.Staged = true
	r.now[addr] = m
	return nil
}

// holdsOn is the grant by which the edge may go on to have an address that it has already; 0: it needs one.
func (t *teller) holdsOn(c *ledger.Change, addr netip.Addr) (uint64, error) {
	known, err := c.ReadApplied(ledger.AppliedAt{Host: c.Host(), Address: addr})
	if err != nil || known == nil || !known.InForce {
		return 0, err
	}
	if t.first && laterGrant(c, addr, known.Grant) {
		return 0, nil
	}
	if was, has := t.told[addr]; t.first || has && !was.Staged && was.Grant == known.Grant {
		return known.Grant, nil
	}
	return 0, nil // it was told that it is to have it no more, and may say that it has not: what it gets is new
}

// laterGrant tells whether another host may have an address by a later grant. That is so only in a store that was put
// back and mended, which remembers more than one: the one that was given last counts.
func laterGrant(c *ledger.Change, addr netip.Addr, number uint64) bool {
	return slices.ContainsFunc(holders(c.Index(), c.Host(), addr), func(host string) bool {
		other := c.Index().Applied(ledger.AppliedAt{Host: host, Address: addr})
		return host != c.Host() && other != nil && other.Grant > number
	})
}

// roundTime is how long grants are asked for before the edge is told of those that there are.
const roundTime = 300 * time.Millisecond

// grant asks for the grants that are lacking. The rest comes in the next round: in the first one all, so that the edge
// is told soon what it has.
func (t *teller) grant(ctx context.Context, r *asked) error {
	begun := time.Now()
	for page := range slices.Chunk(r.lacking, t.ledger.Page()) {
		if t.first || time.Since(begun) > roundTime {
			r.again = time.Millisecond
			return nil
		}
		if err := t.grantPage(ctx, r, page); err != nil {
			return err
		}
	}
	return nil
}

// grantPage asks for some, in one transaction.
func (t *teller) grantPage(ctx context.Context, r *asked, page []ipam.EdgeMapping) error {
	granted, soon := make([]uint64, len(page)), make([]time.Duration, len(page))
	err := t.ledger.Update(ipam.WithActor(ctx, edgeActor), func(c *ledger.Change) (err error) {
		if err := t.stands(c); err != nil {
			return err
		}
		for i := range page {
			if granted[i], soon[i], err = grant(c, t.ledger.SessionGone, &page[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, m := range page {
		if r.later(soon[i]); granted[i] == 0 {
			continue
		}
		m.Grant = granted[i]
		r.now[m.Elastic] = m
		delete(t.waits, m.Elastic)
	}
	return nil
}
