package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// Run trims the audit trail and finishes what a failure has cut off, every minute and whenever the trail has grown too
// long, ends owners when their time is over, and releases elastic addresses that are to end with their containers, until
// ctx ends. It returns nil then, or the error of the store that stopped it.
func (s *Service) Run(ctx context.Context) error {
	again := time.NewTicker(time.Minute)
	defer again.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	releases := elastic.NewReleases(s.Ledger)
	for {
		err := errors.Join(s.Trim(ctx), edit.Finish(ctx, s.Ledger))
		for waiting := true; waiting && err == nil; {
			select {
			case <-ctx.Done():
				return nil
			case <-second.C:
				err = errors.Join(allocator.KeepTime(ctx, s.Ledger), s.Ledger.CatchUp(ctx), edit.SweepElastic(ctx, s.Ledger),
					releases.Look(ctx))
			case <-again.C:
				waiting = false
			case <-s.Ledger.TrimWanted():
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
func (s *Service) Trim(ctx context.Context) error {
	for _, trim := range []func(*ledger.Change) (int, error){
		func(c *ledger.Change) (int, error) { return trimPage(c, s.Ledger.Retention()) }, edit.TrimKeys,
	} {
		for removed := s.Ledger.Page(); removed == s.Ledger.Page(); {
			err := s.Ledger.Update(ctx, func(c *ledger.Change) (err error) {
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

// trimPage removes the oldest events. Those of later than now are as old as the next one of until now: the clock was
// ahead.
func trimPage(c *ledger.Change, keep ipam.Retention) (removed int, err error) {
	now := c.SaneTime()
	oldest, left, goes := now.Add(-keep.Age), c.Index().Events(), 0
	var keys [][]byte
	var lefts []ledger.EventSum
	for rec, err := range c.Tx().Scan(ledger.KindRange(ledger.EventKeys)) {
		if err != nil {
			return 0, err
		}
		at, over := ledger.RecordTime(rec), left.Over(keep)
		later := at.After(now)
		if !over && !later && !at.Before(oldest) || goes == c.Page() || len(keys) == lookahead*c.Page() {
			break
		}
		left = left.Without(rec.Value)
		keys, lefts = append(keys, slices.Clone(rec.Key)), append(lefts, left)
		if over || !later {
			goes = min(len(keys), c.Page())
		}
	}
	if goes == 0 {
		return 0, nil
	}
	for _, key := range keys[:goes] {
		if err := c.Tx().Delete(key); err != nil {
			return 0, err
		}
	}
	c.LeaveEvents(lefts[goes-1])
	return goes, nil
}

// lookahead is how many pages of events of later than now are passed over.
const lookahead = 64
