package ipam

import (
	"context"
	"errors"
	"time"

	"berth/store"
)

// Retention bounds the audit trail. Zero fields take the defaults: 90 days, a million events.
type Retention struct {
	Age   time.Duration
	Count int
}

func (r Retention) withDefaults() Retention {
	if r.Age == 0 {
		r.Age = 90 * 24 * time.Hour
	}
	if r.Count == 0 {
		r.Count = 1_000_000
	}
	return r
}

// slack is how far the number of events may run over before the trimming is woken, so that it works in whole pages.
const slack = 4 * pageSize

// Run trims the audit trail and finishes what a failure has cut off, every minute and whenever the trail has grown too long, and
// ends owners when their time is over, until ctx ends. It returns nil then, or the error of the store that stopped it.
func (s *Service) Run(ctx context.Context) error {
	again := time.NewTicker(time.Minute)
	defer again.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		err := errors.Join(s.Trim(ctx), s.finish(ctx))
		for waiting := true; waiting && err == nil; {
			select {
			case <-ctx.Done():
				return nil
			case <-second.C:
				err = errors.Join(s.endOwners(ctx), s.catchUp(ctx))
			case <-again.C:
				waiting = false
			case <-s.trim:
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

// finish ends the attachments, networks and subnets whose end was cut off.
func (s *Service) finish(ctx context.Context) error {
	s.mu.Lock()
	var ended []ID
	for id, a := range s.ix.attachments {
		if a.value.Ended && s.finishes(a.value.Host) {
			ended = append(ended, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ended {
		if err := s.ReleasePool(ctx, id); err != nil {
			return err
		}
	}
	return s.finishPlans(ctx)
}

// finishes tells whether what a host has begun is for this Service to finish: of hosts that share a store each finishes its own,
// and all those of one that was removed. The caller holds mu.
func (s *Service) finishes(host string) bool {
	if s.member == nil || host == s.host {
		return true
	}
	h := s.ix.hosts[host].value
	return h == nil || h.State == HostRemoved
}

// wakeTrim has Run trim soon where there are too many events. It never waits.
func (s *Service) wakeTrim(events int) {
	if events <= s.retain.Count+slack {
		return
	}
	select {
	case s.trim <- struct{}{}:
	default:
	}
}

// Trim removes the events that are older or more than the retention allows, the oldest first, and the outcomes of edits
// whose keys are past KeyAge, in bounded transactions.
func (s *Service) Trim(ctx context.Context) error {
	for _, trim := range []func(*change) (int, error){
		func(c *change) (int, error) { return c.trimPage(s.retain) }, (*change).trimKeys,
	} {
		for removed := s.page; removed == s.page; {
			err := s.update(ctx, func(c *change) (err error) {
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

func (c *change) trimPage(keep Retention) (removed int, err error) {
	oldest := uint64(max(c.now.Add(-keep.Age).UnixMicro(), 0))
	over := c.ix.events - keep.Count
	page := kindRange(eventKeys)
	page.Limit = c.page
	removed, err = deleteWhile(c.tx, page, func(n int, key []byte) bool { return eventID(key) < oldest || n < over })
	c.countEvents(-removed)
	return removed, err
}

// eventsFrom is the range of the events after an id.
func eventsFrom(after uint64) store.Range {
	r := kindRange(eventKeys)
	r.From = eventKey(nil, after+1)
	return r
}
