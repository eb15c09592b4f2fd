package elastic

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// restBetween is how long nothing is worked out anew after it was: where much happens at once, once for all of it.
const restBetween = 20 * time.Millisecond

// lookAgain is how often it is looked by itself: the store's word that something was committed may be missed.
const lookAgain = time.Second

// EdgeNews yields what the edge of this host is to have: the whole first, then each change, until ctx ends or an error
// is yielded, which is the last. To one who only looks it yields the whole, and nothing begins.
func (s Room) EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	s, err := s.home()
	if err != nil {
		return ledger.Refused[ipam.EdgeNews](err)
	}
	if s.ledger.Member() != nil && !looks {
		return s.sharedNews(ctx)
	}
	return func(yield func(ipam.EdgeNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		wanted := s.track(ctx)
		defer func() { cancel(); wanted.end() }()
		told := map[netip.Addr]ipam.EdgeMapping{}
		var ranges []ipam.EdgeRange
		for first := true; ; first = false {
			changed, err := wanted.look(ctx)
			if err != nil {
				yield(ipam.EdgeNews{}, err)
				return
			}
			news := ipam.EdgeNews{Host: s.ledger.Host(), Whole: first}
			if first || !slices.Equal(wanted.ranges, ranges) {
				ranges = wanted.ranges
				news.Ranges, news.Ranged = ranges, true
			}
			wanted.tell(&news, changed, told)
			any := news.Ranged || len(news.Set)+len(news.Removed) > 0
			if any && !yield(news, nil) || looks {
				return
			}
			if !rest(ctx, restBetween, nil) || !rest(ctx, lookAgain, wanted.commits.Woken()) {
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
