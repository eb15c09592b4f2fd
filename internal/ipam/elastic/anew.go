package elastic

import (
	"context"
	"time"

	"berth/internal/ipam/ledger"
)

// Everything is computed as a whole from the records, after each commit that can change the result. These times limit
// how often.
const (
	restBetween = 20 * time.Millisecond // after a computation, so that many commits at once cause one more
	lookAgain   = time.Second           // after the index reverted a change whose commit failed
	lookAlways  = 10 * time.Second      // at the latest, in case a commit was missed
)

// anew decides when to compute something again.
type anew struct {
	ledger  *ledger.Ledger
	commits *ledger.Commits
	worked  time.Duration // the host's time of the last computation
	reverts uint64        // the ledger's reverts before it
	begun   bool
}

// anewAfter follows commits of the kinds in kept, which may change the result, and of those in wakes, which only wake
// the waiter. Call it before the first computation reads anything.
func anewAfter(ctx context.Context, l *ledger.Ledger, kept, wakes []byte) anew {
	return anew{ledger: l, commits: l.Watch(ctx, kept, wakes)}
}

// due reports whether it is time now. It takes the commits since the last call, and bears reports whether one of them
// can change the result. The index has a change before its commit, and nobody hears of a commit that fails. So it is
// also time if the index reverted a change, at most once in lookAgain.
func (a *anew) due(bears func(ix *ledger.Index, key, value []byte) bool) bool {
	seen, all := a.commits.Take()
	touched := all || !a.begun
	a.ledger.Read(func(ix *ledger.Index) {
		for key, value := range seen {
			touched = touched || bears(ix, []byte(key), value)
		}
	})
	now, reverts := a.ledger.SinceBoot(), a.ledger.Reverts()
	since := now - a.worked
	if !touched && since < lookAlways && (reverts == a.reverts || since < lookAgain) {
		return false
	}
	a.worked, a.reverts, a.begun = now, reverts, true
	return true
}

// rest waits until it is woken, or for long at most. It returns false if ctx has ended.
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
