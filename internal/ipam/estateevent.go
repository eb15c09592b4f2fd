package ipam

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"berth/store"
)

// Events is Service.Events of both stores, by id. Two of one id are not parted by the limit.
func (e *Estate) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	byID := func(a, b Event) int { return cmp.Compare(a.ID, b.ID) }
	all, err := merged(e, byID, func(s *Service) ([]Event, error) { return s.Events(ctx, f) })
	if f.Last > 0 {
		return all[max(len(all)-f.Last, 0):], err
	}
	return upTo(all, f.First, byID), err
}

// LastEvent is the id of the last event of both stores. Where the cluster's was never reached it is this moment: what is there
// already will not be new when it is reached.
func (e *Estate) LastEvent(ctx context.Context) (last uint64, err error) {
	if e.Partial() != nil {
		last = uint64(max(e.local.now().UnixMicro(), 0))
	}
	for _, s := range e.stores() {
		id, err := s.LastEvent(ctx)
		if err != nil {
			return 0, err
		}
		last = max(last, id)
	}
	return last, nil
}

// Tail yields what TailPages yields, event by event.
func (e *Estate) Tail(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return eachOfPages(ctx, e.TailPages(ctx, after))
}

// eventPage is what one store's TailPages has yielded.
type eventPage struct {
	events []Event
	err    error
}

// TailPages yields the pages of both stores' Service.TailPages as they come: the events of each store in their order, and those
// of the two in none. The cluster's begin when it is reached.
func (e *Estate) TailPages(ctx context.Context, after uint64) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		pages := make(chan eventPage)
		var tails sync.WaitGroup
		defer func() { cancel(); tails.Wait() }()
		tails.Go(func() { e.local.tailInto(ctx, pages, after) })
		tails.Go(func() {
			if s := e.awaitShared(ctx); s != nil {
				s.tailInto(ctx, pages, after)
			}
		})
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-pages:
				if !yield(p.events, p.err) || p.err != nil {
					return
				}
			}
		}
	}
}

// tailInto sends the pages behind an id until ctx ends. The id may be of the other store, and ahead of the events here where the
// clocks of hosts differ: what comes from now on is behind it in any case.
func (s *Service) tailInto(ctx context.Context, pages chan<- eventPage, after uint64) {
	send := func(p eventPage) bool {
		select {
		case pages <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	last, err := s.LastEvent(ctx)
	if err != nil {
		send(eventPage{err: err})
		return
	}
	for events, err := range s.TailPages(ctx, min(after, last)) {
		if !send(eventPage{events, err}) {
			return
		}
	}
}

// awaitShared is the Service over the shared store as soon as that was reached; nil where ctx ends before.
func (e *Estate) awaitShared(ctx context.Context) *Service {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if s, err := e.shared.service(); err == nil {
			return s
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// EventEnvironment is Service.EventEnvironment in the store that has the event.
func (e *Estate) EventEnvironment(ctx context.Context, ev *Event) ([]string, error) {
	if ev.Space != LocalSpace {
		own, err := e.local.hasEvent(ctx, ev.ID)
		if err != nil {
			return nil, err
		}
		if s, away := e.shared.service(); !own && away == nil {
			return s.EventEnvironment(ctx, ev)
		}
	}
	return e.local.EventEnvironment(ctx, ev)
}

func (s *Service) hasEvent(ctx context.Context, id uint64) (has bool, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(eventKey(nil, id))
		has = raw != nil
		return err
	})
	return has, err
}
