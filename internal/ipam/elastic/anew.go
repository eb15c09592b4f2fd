package elastic

import (
	"context"
	"time"

	"berth/internal/ipam/ledger"
)

// What the records come to is worked out as a whole, by a function of them, whenever a commit bears on it.
// How often that is, is bounded here.
const (
	restBetween = 20 * time.Millisecond // after it was worked out: where much happens at once, once for all of it
	lookAgain   = time.Second           // after a commit, which may have been taken back since
	lookAlways  = 10 * time.Second      // at the latest: a commit may be missed
)

// anew tells when it is time to work something out anew.
type anew struct {
	ledger  *ledger.Ledger
	commits *ledger.Commits
	worked  time.Duration // the host's moment when it was worked out last
	again   bool          // a commit was the reason, so it is to be worked out once more
	begun   bool
}

// anewAfter begins to follow commits of some kinds, which may bear on what is to be worked out, and of
// others, which only wake whoever waits. It is called before anything is read.
func anewAfter(ctx context.Context, l *ledger.Ledger, kept, wakes []byte) anew {
	return anew{ledger: l, commits: l.Watch(ctx, kept, wakes)}
}

// due tells whether it is time now. The commits since the last call are asked for, of which bears tells
// whether one can make a difference. While a commit is under way the index has it already, and the store does
// not tell if it fails: hence the second time.
func (a *anew) due(bears func(ix *ledger.Index, key, value []byte) bool) bool {
	seen, all := a.commits.Take()
	touched := all || !a.begun
	a.ledger.Read(func(ix *ledger.Index) {
		for key, value := range seen {
			touched = touched || bears(ix, []byte(key), value)
		}
	})
	now := a.ledger.Moment()
	if since := now - a.worked; !touched && since < lookAlways && (!a.again || since < lookAgain) {
		return false
	}
	a.worked, a.again, a.begun = now, touched, true
	return true
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
