package ipam

import (
	"context"
	"iter"
	"time"
)

// lookAgain is how often Tail looks for events by itself. The store's word that there is one may be missed for a moment,
// when following begins and when a follower was too slow for it; the records never are.
const lookAgain = time.Second

// tailPage is how many events Tail reads at a time.
const tailPage = 256

// LastEvent is the id of the last event; 0 where there is none.
func (s *Service) LastEvent(ctx context.Context) (uint64, error) {
	last, err := s.Events(ctx, EventFilter{Last: 1})
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].ID, nil
}

// Tail yields what TailPages yields, event by event.
func (s *Service) Tail(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return eachOfPages(ctx, s.TailPages(ctx, after))
}

func eachOfPages(ctx context.Context, pages iter.Seq2[[]Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) || ctx.Err() != nil {
					return
				}
			}
		}
	}
}

// TailPages yields the events behind an id, and then those that are committed, as many at a time as there are, until ctx ends
// or an error is yielded, which is the last. It reads them from the records, however slow the receiver is: none is missed,
// unless the retention has removed it meanwhile, none comes twice, and none waits in memory but for a page of them.
func (s *Service) TailPages(ctx context.Context, after uint64) iter.Seq2[[]Event, error] {
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
				return // Tail goes on by itself, every lookAgain
			}
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}()
	return up, ended
}
