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

// sender tells a host's edge what to map. If hosts share the store, it does so in one session.
type sender struct {
	*session
	wanted *following
	told   map[netip.Addr]ipam.EdgeMapping // with their grants
	ranges []ipam.EdgeRange
	first  bool
}

// errGone means that the edge has disconnected, or has got what it asked for.
var errGone = errors.New("the edge is gone")

// EdgeNews yields what this host's edge must have: first the whole, then each change, until ctx ends or it yields an
// error. An edge that only looks gets the whole, and nothing begins.
func (s Addresses) EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	s, err := s.home()
	if err != nil {
		return ledger.Refused[ipam.EdgeNews](err)
	}
	return func(yield func(ipam.EdgeNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t := &sender{session: &session{ledger: s.ledger}, first: true}
		if s.ledger.Member() != nil && !looks {
			if t.session, err = s.beginSession(ctx); err != nil {
				yield(ipam.EdgeNews{}, err)
				return
			}
			ended := make(chan struct{})
			go func() { defer close(ended); t.keep(ctx) }()
			defer func() { cancel(); <-ended; t.end() }()
		}
		t.wanted = s.follow(ctx)
		defer func() { cancel(); t.wanted.commits.Wait() }()
		if err := t.tell(ctx, looks, yield); !errors.Is(err, errGone) && ctx.Err() == nil {
			yield(ipam.EdgeNews{}, err)
		}
	}
}

// tell tells the edge each change until the session ends, or only the first time.
func (t *sender) tell(ctx context.Context, once bool, yield func(ipam.EdgeNews, error) bool) error {
	for {
		news, again, err := t.next(ctx)
		if err != nil {
			return err
		}
		if !news.Bare() && !yield(news, nil) || once {
			return errGone
		}
		if err := t.wait(ctx, t.wanted.pause(), nil, yield); err != nil {
			return err
		}
		if err := t.wait(ctx, cmp.Or(again, lookAgain), t.wanted.commits.Woken(), yield); err != nil {
			return err
		}
	}
}

// wait is rest. It also tells the edge of each keepalive.
func (t *sender) wait(ctx context.Context, long time.Duration, woken <-chan struct{},
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

// next returns what to tell the edge now. again is when to look again without a commit; zero: as usual.
func (t *sender) next(ctx context.Context) (news ipam.EdgeNews, again time.Duration, err error) {
	if err := t.speaks(); err != nil {
		return news, 0, err
	}
	w, err := t.wanted.now(ctx)
	if err != nil {
		return news, 0, err
	}
	mappings := w.mappings
	if t.held != nil {
		if mappings, again, err = t.granted(ctx, w); err != nil {
			return news, 0, err
		}
	}
	news = ipam.EdgeNews{Host: t.ledger.Host(), Session: t.id(), Sent: t.sent, Whole: t.first}
	if t.first || !slices.Equal(w.ranges, t.ranges) {
		news.Ranges, news.Ranged = w.ranges, true
	}
	differences(&news, t.told, mappings)
	t.told, t.ranges, t.first = mappings, w.ranges, false
	return news, again, nil
}

// differences adds to news what an edge with the mappings in told must hear to have those in now.
func differences(news *ipam.EdgeNews, told, now map[netip.Addr]ipam.EdgeMapping) {
	for addr, m := range now {
		if told[addr] != m {
			news.Set = append(news.Set, m)
		}
	}
	for addr := range told {
		if _, there := now[addr]; !there {
			news.Removed = append(news.Removed, addr)
		}
	}
	slices.SortFunc(news.Set, byElastic)
	slices.SortFunc(news.Removed, netip.Addr.Compare)
}

func byElastic(a, b ipam.EdgeMapping) int { return a.Elastic.Compare(b.Elastic) }

// granted returns the wanted mappings with their grants. A mapping without its grant is staged. again is when to look
// again.
func (t *sender) granted(ctx context.Context, w *wanted) (now map[netip.Addr]ipam.EdgeMapping, again time.Duration,
	err error) {
	round := asked{now: map[netip.Addr]ipam.EdgeMapping{}}
	if err = t.look(ctx, &round, w); err == nil {
		err = t.grant(ctx, &round)
	}
	return round.now, round.again, err
}

// asked holds the questions of one round.
type asked struct {
	now     map[netip.Addr]ipam.EdgeMapping
	lacking []ipam.EdgeMapping // grants to request
	again   time.Duration      // when to look again; zero: when something is committed
}

// later notes when to look again. Zero is no time.
func (r *asked) later(again time.Duration) {
	if r.again == 0 || again > 0 && again < r.again {
		r.again = again
	}
}

// look returns the wanted mappings with the grants that remain: those with which the edge has them already and, before
// it is told anything, those of earlier sessions. A mapping without a grant is staged until it has one.
func (t *sender) look(ctx context.Context, r *asked, w *wanted) error {
	all := slices.SortedFunc(maps.Values(w.mappings), byElastic)
	return ledger.LookEach(ctx, t.ledger, all, func(c *ledger.Change, m ipam.EdgeMapping) error {
		if m.Staged {
			r.now[m.Elastic] = m
			return nil
		}
		number, err := t.holdsOn(c, m.Elastic)
		if err != nil {
			return err
		}
		if m.Grant = number; number > 0 {
			r.now[m.Elastic] = m
			return nil
		}
		ok, again, err := grantable(c, t.ledger.SessionGone, m.Elastic)
		if err != nil {
			return err
		}
		if r.later(again); ok {
			r.lacking = append(r.lacking, m)
		}
		m.Staged = true
		r.now[m.Elastic] = m
		return nil
	})
}

// holdsOn returns the grant with which the edge may keep an address that it has already, or 0 if it needs a new one.
func (t *sender) holdsOn(c *ledger.Change, addr netip.Addr) (uint64, error) {
	known, err := c.ReadApplied(ledger.AppliedAt{Host: c.Host(), Address: addr})
	if err != nil || known == nil || !known.InForce || t.first && laterGrant(c, addr, known.Grant) {
		return 0, err
	}
	if was := t.told[addr]; t.first || was.Elastic == addr && !was.Staged && was.Grant == known.Grant {
		return known.Grant, nil
	}
	return 0, nil // it was told to remove it, and may report that it did; what it gets now is new
}

// laterGrant reports whether another host may have an address by a later grant. That is possible only in a store that
// was restored and mended and so remembers several. The last one counts.
func laterGrant(c *ledger.Change, addr netip.Addr, number uint64) bool {
	return slices.ContainsFunc(elsewhere(c, addr), func(at *ipam.Applied) bool { return at.Grant > number })
}

// roundTime is how long grants are requested before the edge hears of those that exist.
const roundTime = 300 * time.Millisecond

// grant requests the missing grants. After roundTime the rest waits for the next round; the first round requests all,
// so that the edge soon has the whole.
func (t *sender) grant(ctx context.Context, r *asked) error {
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

// grantPage requests some grants in one transaction.
func (t *sender) grantPage(ctx context.Context, r *asked, page []ipam.EdgeMapping) error {
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
	}
	return nil
}
