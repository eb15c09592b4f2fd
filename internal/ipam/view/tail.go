package view

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// lookAgain is how often a tail looks for events by itself. The store's word that there is one may be missed for a
// moment, when following begins and when a follower was too slow for it; the records never are.
const lookAgain = time.Second

// tailPage is how many events a tail reads at a time.
const tailPage = 256

// storePage is that of one store.
type storePage struct {
	Events []ipam.Event
	Next   ipam.StoreMark
	More   bool
}

// LastEvent is the mark behind all events that there are.
func (s Views) LastEvent(ctx context.Context) (ipam.EventMark, error) {
	own := s.homes.Own
	m, err := LastMark(ctx, own)
	mark := ipam.EventMark{Host: ipam.HostMark(own.Host()), Own: m}
	if err != nil || !s.homes.Shares() {
		return mark, err
	}
	mark.Shared.AtReach = true
	if l, is := s.homes.Reached(); is {
		mark.Shared, err = LastMark(ctx, l)
	}
	return mark, err
}

// LastMark is the mark behind all events of the store.
func LastMark(ctx context.Context, s *ledger.Ledger) (m ipam.StoreMark, err error) {
	fresh, from := s.FreshSince(), s.SettledUpTo()
	last, own := from, s.Member() == nil
	err = s.View(ctx, func(tx store.Tx) error {
		m = ipam.StoreMark{After: from}
		for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from + 1, Reverse: own}) {
			if err != nil {
				return err
			}
			last = at.ID
			if s.Pass(&m, last); own {
				return nil
			}
		}
		return nil
	})
	s.Settles(&m, fresh, last)
	return m, err
}

// Chosen tells whether an event is wanted.
type Chosen = func(*ipam.Event) bool

// EventsBehind lists events behind a mark that are wanted, the oldest first, n of them at most, and the mark behind
// them. Whoever goes on from there each time is told each event once, and misses none that the retention has not
// removed.
func (s Views) EventsBehind(ctx context.Context, mark ipam.EventMark, n int, wanted Chosen) (ipam.EventPage, error) {
	if err := mark.CheckHost(s.homes.Own.Host()); err != nil {
		return ipam.EventPage{}, err
	}
	own, err := behind(ctx, s.homes.Own, mark.Own, n, wanted)
	mark.Own = own.Next
	page := ipam.EventPage{Events: own.Events, Next: mark, More: own.More}
	l, is := s.homes.Reached()
	if err != nil || !is {
		return page, err
	}
	theirs, err := behind(ctx, l, reached(l, mark.Shared), n-len(own.Events), wanted)
	if err != nil {
		return ipam.EventPage{}, err
	}
	page.Next.Shared = theirs.Next
	page.Events, page.More = append(page.Events, theirs.Events...), page.More || theirs.More
	slices.SortStableFunc(page.Events, func(a, b ipam.Event) int { return cmp.Compare(a.ID, b.ID) })
	return page, nil
}

// reached is a mark of a shared store; that of the time at which it is reached is where it was then.
func reached(s *ledger.Ledger, m ipam.StoreMark) ipam.StoreMark {
	if m.AtReach {
		return s.Begun()
	}
	return m
}

// behind lists events behind a mark as EventsBehind does.
func behind(ctx context.Context, s *ledger.Ledger, from ipam.StoreMark, n int,
	wanted Chosen) (page storePage, err error) {
	fresh, last, names := s.FreshSince(), from.After, s.DockerNames()
	page.Next = from
	err = s.View(ctx, func(tx store.Tx) error {
		page = storePage{Next: from}
		for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from.After + 1}) {
			if err != nil {
				return err
			}
			if page.Next.Passed(at.ID) {
				last = at.ID
				continue
			}
			if page.More = len(page.Events) == n; page.More {
				return nil
			}
			e, err := at.Decode()
			if err != nil {
				return err
			}
			last = at.ID
			names.Show(e)
			if s.Pass(&page.Next, at.ID); wanted(e) {
				page.Events = append(page.Events, *e)
			}
		}
		return nil
	})
	s.Settles(&page.Next, fresh, last)
	return page, err
}

// TailPages yields the events behind a mark, and then those that are committed, as many at a time as there are, until
// ctx ends or an error is yielded, which is the last. It reads them from the records, however slow the receiver is:
// none is missed, unless the retention has removed it meanwhile, none comes twice, and none waits in memory but for a
// page of them.
//
// The events of each store come in their order, and those of the two in none. The cluster's begin when it is reached.
func (s Views) TailPages(ctx context.Context, after ipam.EventMark) iter.Seq2[ipam.EventPage, error] {
	return func(yield func(ipam.EventPage, error) bool) {
		if err := after.CheckHost(s.homes.Own.Host()); err != nil {
			yield(ipam.EventPage{}, err)
			return
		}
		begin := after // after is moved on here
		pages := ledger.FromEach(ctx, s.homes, func(ctx context.Context, l *ledger.Ledger) iter.Seq2[storePage, error] {
			if l == s.homes.Own {
				return tail(ctx, l, begin.Own)
			}
			return tail(ctx, l, reached(l, begin.Shared))
		})
		for page, err := range pages {
			if page.Home == s.homes.Own {
				after.Own = page.What.Next
			} else {
				after.Shared = page.What.Next
			}
			if !yield(ipam.EventPage{Events: page.What.Events, Next: after}, err) {
				return
			}
		}
	}
}

// tail yields the events behind a mark as TailPages does.
func tail(ctx context.Context, s *ledger.Ledger, after ipam.StoreMark) iter.Seq2[storePage, error] {
	if s.Member() != nil {
		return tailShared(ctx, s, after)
	}
	return func(yield func(storePage, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		woken, done := wakings(ctx, s)
		defer func() { cancel(); <-done }()
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		for {
			page, err := behind(ctx, s, after, tailPage, func(*ipam.Event) bool { return true })
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(storePage{Next: after}, err)
				return
			}
			after = page.Next
			if len(page.Events) > 0 && (!yield(page, nil) || ctx.Err() != nil) {
				return
			}
			if page.More {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-woken:
			case <-again.C:
			}
		}
	}
}

// wakings tells through a channel of one place that there may be new events, until ctx ends; done is closed then.
func wakings(ctx context.Context, s *ledger.Ledger) (woken <-chan struct{}, done <-chan struct{}) {
	up, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range s.Store().Watch(ctx, []byte{ledger.EventKeys}) {
			if err != nil {
				return // the tail goes on by itself, every lookAgain
			}
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}()
	return up, ended
}
