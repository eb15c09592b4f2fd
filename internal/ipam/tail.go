package ipam

import (
	"context"
	"iter"
	"time"
)

// lookAgain is how often a tail looks for events by itself. The store's word that there is one may be missed for a moment,
// when following begins and when a follower was too slow for it; the records never are.
const lookAgain = time.Second

// tailPage is how many events a tail reads at a time.
const tailPage = 256

// EventMark is a place in the events: behind so many of the host's own store, and of the cluster's. The zero one is before all.
type EventMark struct{ own, shared uint64 } // ids

// EventPage is events that came together, and the mark behind them.
type EventPage struct {
	Events []Event
	Next   EventMark
}

// LastEvent is the mark behind all events that there are.
func (s *Service) LastEvent(ctx context.Context) (EventMark, error) {
	id, err := s.lastEvent(ctx)
	return EventMark{own: id}, err
}

// eventsUpTo is the greatest id that the index knows.
func (s *Service) eventsUpTo() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.lastEvent
}

// lastEvent is the id of the last event; 0 where there is none.
func (s *Service) lastEvent(ctx context.Context) (uint64, error) {
	last, err := s.Events(ctx, EventFilter{Last: 1})
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].ID, nil
}

// TailPages yields the events behind a mark, and then those that are committed, as many at a time as there are, until ctx ends
// or an error is yielded, which is the last. It reads them from the records, however slow the receiver is: none is missed,
// unless the retention has removed it meanwhile, none comes twice, and none waits in memory but for a page of them.
func (s *Service) TailPages(ctx context.Context, after EventMark) iter.Seq2[EventPage, error] {
	return func(yield func(EventPage, error) bool) {
		for events, err := range s.tail(ctx, after.own) {
			if len(events) > 0 {
				after.own = max(after.own, events[len(events)-1].ID)
			}
			if !yield(EventPage{events, after}, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// tail yields the events behind an id as TailPages does.
func (s *Service) tail(ctx context.Context, after uint64) iter.Seq2[[]Event, error] {
	if s.member != nil {
		return s.tailShared(ctx, after)
	}
	return func(yield func([]Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		woken, done := s.wakings(ctx)
		defer func() { cancel(); <-done }()
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		for {
			page, err := s.Events(ctx, EventFilter{After: after, First: tailPage})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			full := len(page) == tailPage
			if len(page) > 0 {
				after = page[len(page)-1].ID
				if !yield(page, nil) || ctx.Err() != nil {
					return
				}
			}
			if full {
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
func (s *Service) wakings(ctx context.Context) (woken <-chan struct{}, done <-chan struct{}) {
	up, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range s.Follow(ctx) {
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
