package elastic

import (
	"context"
	"iter"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// restBetween is how long nothing is worked out anew after it was: where much happens at once, once for all of it.
const restBetween = 20 * time.Millisecond

// lookAgain is how often it is looked by itself: the store's word that something was committed may be missed.
const lookAgain = time.Second

// EdgeNews yields what the edge of this host is to have: the whole first, then each change, until ctx ends or an error
// is yielded, which is the last.
func (s Room) EdgeNews(ctx context.Context) iter.Seq2[ipam.EdgeNews, error] {
	return func(yield func(ipam.EdgeNews, error) bool) {
		if s.ledger.Member() != nil {
			yield(ipam.EdgeNews{}, ipam.Refuse(ipam.ErrInvalid, "the edge of a host that shares its store with others "+
				"maps nothing yet: that two hosts never answer for one address is not there"))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		woken, ended := s.wakings(ctx)
		defer func() { cancel(); <-ended }()
		var before wanted
		for first := true; ; first = false {
			now, err := s.wanted(ctx)
			if err != nil {
				yield(ipam.EdgeNews{}, err)
				return
			}
			news, any := now.since(&before)
			news.Host, news.Whole, before = s.ledger.Host(), first, now
			if first {
				news.Ranges, news.Ranged = now.ranges, true
			}
			if (any || first) && !yield(news, nil) {
				return
			}
			if !rest(ctx, restBetween, nil) || !rest(ctx, lookAgain, woken) {
				return
			}
		}
	}
}

// rest waits, but not longer than it is woken; false: ctx has ended.
func rest(ctx context.Context, long time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-woken:
	}
	return true
}

// wakings tells through a channel of one place that something was committed, until ctx ends; ended is closed then.
func (s Room) wakings(ctx context.Context) (woken, ended <-chan struct{}) {
	up, done := make(chan struct{}, 1), make(chan struct{})
	committed := s.ledger.Store().Watch(ctx, []byte{ledger.EventKeys})
	go func() {
		defer close(done)
		for _, err := range committed {
			if err != nil {
				return // it is looked again by itself
			}
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}()
	return up, done
}

func (s Room) wanted(ctx context.Context) (w wanted, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) (err error) {
		w, err = wantedHere(c)
		return err
	})
	return w, err
}
