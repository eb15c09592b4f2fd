package cluster

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/view"
	"berth/store"
)

// Events is Service.Events of both stores, by id. Two of one id are not parted by the limit.
func (e *Estate) Events(ctx context.Context, f ipam.EventFilter) ([]ipam.Event, error) {
	byID := func(a, b ipam.Event) int { return cmp.Compare(a.ID, b.ID) }
	all, err := merged(e, byID, func(s *service.Service) ([]ipam.Event, error) {
		f := f
		if s != e.local && f.Until != nil {
			f.Until = &ipam.EventMark{Own: reached(s.Ledger, f.Until.Shared)}
		}
		return s.Events(ctx, f)
	})
	if f.Last > 0 {
		return all[max(len(all)-f.Last, 0):], err
	}
	return upTo(all, f.First, byID), err
}

// reached is a mark of this store; that of the time at which it is reached is where it was then.
func reached(s *ledger.Ledger, m ipam.StoreMark) ipam.StoreMark {
	if m.AtReach {
		return s.Begun()
	}
	return m
}

// LastEvent is the mark behind all events of both stores.
func (e *Estate) LastEvent(ctx context.Context) (mark ipam.EventMark, err error) {
	mark.Host = ipam.HostMark(e.local.Ledger.Host())
	if mark.Own, err = view.LastMark(ctx, e.local.Ledger); err != nil {
		return ipam.EventMark{}, err
	}
	mark.Shared.AtReach = true
	if s, away := e.shared.service(); away == nil {
		mark.Shared, err = view.LastMark(ctx, s.Ledger)
	}
	return mark, err
}

// EventsBehind is Service.EventsBehind of both stores. Those of the cluster come when it is reached.
func (e *Estate) EventsBehind(ctx context.Context, mark ipam.EventMark, n int,
	wanted view.Chosen) (ipam.EventPage, error) {
	if err := mark.CheckHost(e.local.Ledger.Host()); err != nil {
		return ipam.EventPage{}, err
	}
	own, err := view.Behind(ctx, e.local.Ledger, mark.Own, n, wanted)
	if err != nil {
		return ipam.EventPage{}, err
	}
	mark.Own = own.Next
	page := ipam.EventPage{Events: own.Events, More: own.More}
	if s, away := e.shared.service(); away == nil {
		shared, err := view.Behind(ctx, s.Ledger, reached(s.Ledger, mark.Shared), n-len(own.Events), wanted)
		if err != nil {
			return ipam.EventPage{}, err
		}
		mark.Shared = shared.Next
		page.Events, page.More = append(page.Events, shared.Events...), page.More || shared.More
		slices.SortStableFunc(page.Events, func(a, b ipam.Event) int { return cmp.Compare(a.ID, b.ID) })
	}
	page.Next = mark
	return page, nil
}

// MayLack is Service.MayLack of both stores; of the cluster's nothing is known while it was not reached.
func (e *Estate) MayLack(ctx context.Context, mark ipam.EventMark, whole time.Time) (bool, error) {
	lacks, err := view.MayLack(ctx, e.local.Ledger, mark.Own, whole)
	if s, away := e.shared.service(); err == nil && !lacks && away == nil {
		return view.MayLack(ctx, s.Ledger, reached(s.Ledger, mark.Shared), whole)
	}
	return lacks, err
}

// tailed is what the tail of one store has yielded.
type tailed struct {
	shared bool
	view.StorePage
	err error
}

// TailPages yields what the tails of both stores do as it comes: the events of each store in their order, and those
// of the two in none. The cluster's begin when it is reached.
func (e *Estate) TailPages(ctx context.Context, after ipam.EventMark) iter.Seq2[ipam.EventPage, error] {
	return func(yield func(ipam.EventPage, error) bool) {
		if err := after.CheckHost(e.local.Ledger.Host()); err != nil {
			yield(ipam.EventPage{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		pages := make(chan tailed)
		var tails sync.WaitGroup
		defer func() { cancel(); tails.Wait() }()
		tails.Go(func() { send(ctx, pages, false, view.Tail(ctx, e.local.Ledger, after.Own)) })
		shared := after.Shared // after is moved on here
		tails.Go(func() { e.tailShared(ctx, pages, shared) })
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-pages:
				if p.shared {
					after.Shared = p.Next
				} else {
					after.Own = p.Next
				}
				if !yield(ipam.EventPage{Events: p.Events, Next: after}, p.err) || p.err != nil {
					return
				}
			}
		}
	}
}

// tailShared sends the tail of the cluster's store, as soon as that was reached.
func (e *Estate) tailShared(ctx context.Context, pages chan<- tailed, after ipam.StoreMark) {
	if s := e.awaitShared(ctx); s != nil {
		send(ctx, pages, true, view.Tail(ctx, s.Ledger, reached(s.Ledger, after)))
	}
}

// send sends the pages of a tail until ctx ends.
func send(ctx context.Context, pages chan<- tailed, shared bool, tail iter.Seq2[view.StorePage, error]) {
	for page, err := range tail {
		select {
		case pages <- tailed{shared, page, err}:
		case <-ctx.Done():
			return
		}
	}
}

// awaitShared is the Service over the shared store as soon as that was reached; nil where ctx ends before.
func (e *Estate) awaitShared(ctx context.Context) *service.Service {
	again := time.NewTicker(view.LookAgain)
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
func (e *Estate) EventEnvironment(ctx context.Context, ev *ipam.Event) ([]string, error) {
	if ev.Space != ipam.LocalSpace {
		own, err := hasEvent(ctx, e.local.Ledger, ev.ID)
		if err != nil {
			return nil, err
		}
		if s, away := e.shared.service(); !own && away == nil {
			return s.EventEnvironment(ctx, ev)
		}
	}
	return e.local.EventEnvironment(ctx, ev)
}

func hasEvent(ctx context.Context, s *ledger.Ledger, id uint64) (has bool, err error) {
	err = s.View(ctx, func(tx store.Tx) error {
		e, err := ledger.FindEvent(tx, id)
		has = e != nil
		return err
	})
	return has, err
}
