package attach

import (
	"context"
	"errors"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Run trims the audit trail and finishes what a failure has cut off, every minute and whenever the trail has grown too
// long, and ends owners when their time is over, until ctx ends. It returns nil then, or the error of the store that
// stopped it.
func (s Desk) Run(ctx context.Context) error {
	again := time.NewTicker(time.Minute)
	defer again.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		err := errors.Join(s.Trim(ctx), edit.Finish(ctx, s.ledger))
		for waiting := true; waiting && err == nil; {
			select {
			case <-ctx.Done():
				return nil
			case <-second.C:
				err = errors.Join(edit.EndOwners(ctx, s.ledger), s.ledger.CatchUp(ctx), edit.SweepElastic(ctx, s.ledger))
			case <-again.C:
				waiting = false
			case <-s.ledger.TrimWanted():
				waiting = false
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Trim removes the events that are older or more than the retention allows, the oldest first, and the outcomes of edits
// whose keys are past KeyAge, in bounded transactions.
func (s Desk) Trim(ctx context.Context) error {
	for _, trim := range []func(*ledger.Change) (int, error){
		func(c *ledger.Change) (int, error) { return trimPage(c, s.ledger.Retention()) }, edit.TrimKeys,
	} {
		for removed := s.ledger.Page(); removed == s.ledger.Page(); {
			err := s.ledger.Update(ctx, func(c *ledger.Change) (err error) {
				removed, err = trim(c)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func trimPage(c *ledger.Change, keep ipam.Retention) (removed int, err error) {
	oldest := uint64(max(c.Now().Add(-keep.Age).UnixMicro(), 0))
	over := c.Index().Events() - keep.Count
	page := ledger.KindRange(ledger.EventKeys)
	page.Limit = c.Page()
	removed, err = edit.DeleteWhile(c.Tx(), page,
		func(n int, key []byte) bool { return ledger.EventID(key) < oldest || n < over })
	c.CountEvents(-removed)
	return removed, err
}

// EventsFrom is the range of the events after an id.
func EventsFrom(after uint64) store.Range {
	r := ledger.KindRange(ledger.EventKeys)
	r.From = ledger.EventKey(nil, after+1)
	return r
}
