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

// lookAgain is how often a tail looks for events by itself. A notification of the store can be lost when following
// begins, or while the follower is slow. The records are never lost.
const lookAgain = time.Second

// tailPage is how many events a tail reads at a time.
const tailPage = 256

// storePage is ipam.EventPage for one store.
type storePage struct {
	Events []ipam.Event
	Next   ipam.StoreMark
	More   bool
}

// LastEvent returns the mark after the last event.
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

// LastMark returns the mark after the last event of the store.
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

// Chosen reports whether an event is wanted.
type Chosen = func(*ipam.Event) bool

// EventsBehind lists at most n wanted events after a mark, the oldest first, and the mark after them. A caller that
// continues from the returned mark each time gets each event once, and misses only events that the retention has
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

// reached returns a mark of a shared store. A mark for the time at which the store is reached becomes the store's mark
// at that time.
func reached(s *ledger.Ledger, m ipam.StoreMark) ipam.StoreMark {
	if m.AtReach {
		return s.Begun()
	}
	return m
}

// behind is EventsBehind for one store.
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

// TailPages yields the events after a mark, and then the new ones in pages, until ctx ends. An error is the last value.
// It reads them from the records, even if the receiver is slow. No event is missing, unless the retention removed it
// meanwhile, and none comes twice. At most one page waits in memory.
//
// The events of each store come in order. There is no order between the two stores. The cluster's events begin when its
// store is reached.
func (s Views) TailPages(ctx context.Context, after ipam.EventMark) iter.Seq2[ipam.EventPage, error] {
	return func(yield func(ipam.EventPage, error) bool) {
		if err := after.CheckHost(s.homes.Own.Host()); err != nil {
			yield(ipam.EventPage{}, err)
			return
		}
		begin := after // after changes in this loop
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

// tail is TailPages for one store.
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

// wakings returns a channel with one buffered value, which signals that there may be new events until ctx ends. Then
// done is closed.
func wakings(ctx context.Context, s *ledger.Ledger) (woken <-chan struct{}, done <-chan struct{}) {
	up, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range s.Store().Watch(ctx, []byte{ledger.EventKeys}) {
			if err != nil {
				return // the tail continues by itself, every lookAgain
			}
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}()
	return up, ended
}
