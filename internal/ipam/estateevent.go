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

// fromReach stands in a mark for the time at which the cluster's store is reached: what was there before is not new.
const fromReach = ^uint64(0)

// LastEvent is the mark behind all events of both stores.
func (e *Estate) LastEvent(ctx context.Context) (mark EventMark, err error) {
	if mark.own, err = e.local.lastEvent(ctx); err != nil {
		return EventMark{}, err
	}
	mark.shared = fromReach
	if s, away := e.shared.service(); away == nil {
		mark.shared, err = s.lastEvent(ctx)
	}
	return mark, err
}

// tailed is what the tail of one store has yielded.
type tailed struct {
	shared bool
	events []Event
	err    error
}

// TailPages yields what the tails of both stores do as it comes: the events of each store in their order, and those of the two in
// none. The cluster's begin when it is reached.
func (e *Estate) TailPages(ctx context.Context, after EventMark) iter.Seq2[EventPage, error] {
	return func(yield func(EventPage, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		pages := make(chan tailed)
		var tails sync.WaitGroup
		defer func() { cancel(); tails.Wait() }()
		tails.Go(func() { send(ctx, pages, false, e.local.tail(ctx, after.own)) })
		tails.Go(func() { e.tailShared(ctx, pages, after.shared) })
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-pages:
				at := &after.own
				if p.shared {
					at = &after.shared
				}
				if n := len(p.events); n > 0 && (*at == fromReach || *at < p.events[n-1].ID) {
					*at = p.events[n-1].ID
				}
				if !yield(EventPage{p.events, after}, p.err) || p.err != nil {
					return
				}
			}
		}
	}
}

// tailShared sends the tail of the cluster's store, as soon as that was reached.
func (e *Estate) tailShared(ctx context.Context, pages chan<- tailed, after uint64) {
	s := e.awaitShared(ctx)
	if s == nil {
		return
	}
	if after == fromReach {
		after = s.begun
	}
	send(ctx, pages, true, s.tail(ctx, after))
}

// send sends the pages of a tail until ctx ends.
func send(ctx context.Context, pages chan<- tailed, shared bool, tail iter.Seq2[[]Event, error]) {
	for events, err := range tail {
		select {
		case pages <- tailed{shared, events, err}:
		case <-ctx.Done():
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
