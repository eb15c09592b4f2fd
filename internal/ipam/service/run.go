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

// Run does the housekeeping until ctx ends. Every minute, or earlier if the audit trail is too long, it trims the trail
// and finishes interrupted work. Every second it ends owners whose time is over, and releases elastic addresses that
// end with their containers. It returns nil when ctx ends, or the store's error that stopped it.
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

// Trim removes the oldest events that exceed the retention in age or number, and the outcomes of edits whose keys are
// older than KeyAge. Its transactions are bounded.
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

// trimPage removes the oldest events. An event from the future was written while the clock was wrong. It counts as old
// as the next event with a valid time.
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

// lookahead is the maximum number of pages of events from the future that trimPage skips.
const lookahead = 64
