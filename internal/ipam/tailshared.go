package ipam

import (
	"context"
	"errors"
	"iter"
	"time"

	"berth/store"
)

// lateCommit is the longest time from when a change of a shared store was decided until it is committed, and more: a host that was
// stopped in between finds that its session has ended.
const lateCommit = time.Minute

// sharedTail is how far a tail of a shared store has come. The events of several hosts do not become part of it in the order of
// their ids: of two changes that touch nothing in common the later one may have the lower id. Those of one host do, and an id tells
// whose it is (membership.own).
type sharedTail struct {
	told   [maxHosts]uint64 // the last id of each host
	after  uint64           // what has a lower id was told, or is not wanted
	caught []caughtUp
}

// caughtUp notes that all that there was at a time was told, up to an id.
type caughtUp struct {
	at time.Time
	id uint64
}

// fresh tells whether an event was not told yet, and that it is now.
func (t *sharedTail) fresh(id uint64) bool {
	last := &t.told[id%maxHosts]
	if id <= max(*last, t.after) {
		return false
	}
	*last = id
	return true
}

// caughtUpTo moves up what need not be read again: whatever becomes part of the store from now on was decided later than
// lateCommit ago, and has a greater id than what was there then.
func (t *sharedTail) caughtUpTo(now time.Time, id uint64) {
	t.caught = append(t.caught, caughtUp{now, id})
	for len(t.caught) > 1 && now.Sub(t.caught[0].at) > lateCommit {
		t.after, t.caught = max(t.after, t.caught[0].id), t.caught[1:]
	}
}

// tailShared is tail for a store to which other hosts write: it reads what there is in one view, and from then on hears what is
// committed. One that falls behind with that reads again.
func (s *Service) tailShared(ctx context.Context, after uint64) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t := sharedTail{after: after}
		for {
			heard := s.Follow(ctx) // from here on
			err := s.readTail(ctx, &t, yield)
			if err == nil {
				err = hearTail(heard, &t, yield)
			}
			switch {
			case errors.Is(err, errEnough) || ctx.Err() != nil:
				return
			case !errors.Is(err, store.ErrLagged):
				yield(nil, err)
				return
			}
		}
	}
}

// errEnough ends a tail whose receiver wants no more.
var errEnough = errors.New("enough")

// readTail yields the events that there are and that were not told.
func (s *Service) readTail(ctx context.Context, t *sharedTail, yield func([]Event, error) bool) error {
	begun, last := time.Now(), t.after
	err := s.store.View(ctx, func(tx store.Tx) error {
		var page []Event
		for rec, err := range tx.Scan(eventsFrom(t.after)) {
			if err != nil {
				return err
			}
			id := eventID(rec.Key)
			last = max(last, id)
			if !t.fresh(id) {
				continue
			}
			e, err := decodeEvent(id, rec.Value)
			if err != nil {
				return err
			}
			if page = append(page, *e); len(page) == tailPage {
				if !yield(page, nil) {
					return errEnough
				}
				page = nil
			}
		}
		if len(page) > 0 && !yield(page, nil) {
			return errEnough
		}
		return nil
	})
	if err == nil {
		t.caughtUpTo(begun, last)
	}
	return err
}

// hearTail yields the events that are committed and were not told, until the receiver wants no more or an error ends them.
func hearTail(heard iter.Seq2[Event, error], t *sharedTail, yield func([]Event, error) bool) error {
	for e, err := range heard {
		if err != nil {
			return err
		}
		if t.fresh(e.ID) && !yield([]Event{e}, nil) {
			return errEnough
		}
	}
	return errEnough // its context has ended
}
