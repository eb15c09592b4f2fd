package ledger

import (
	"time"

	"berth/internal/ipam"
)

// Pass moves a mark past an event of this store. It reports whether the event is new to the mark.
func (s *Ledger) Pass(m *ipam.StoreMark, id uint64) bool {
	if s.member != nil {
		return m.Pass(id)
	}
	fresh := id > m.After
	m.After = max(m.After, id)
	return fresh
}

// LateCommit is longer than any time between the decision and the commit of a change in a shared store. If a host
// stops in between, its session ends first.
const LateCommit = time.Minute

// reading notes that a view was complete at a time and held events up to an id.
type reading struct {
	at time.Time
	id uint64
}

// settledEvents tracks up to which id the events of a shared store are complete.
type settledEvents struct {
	seen []reading // at most one per second, oldest first
	upTo uint64
}

// caughtUp notes a view that was complete at a time and held events up to id. It returns the id below which no new
// event can appear. A later commit was decided less than LateCommit ago. So its id is greater than all ids that existed
// before that.
func (s *settledEvents) caughtUp(at time.Time, id uint64) (upTo uint64) {
	if n := len(s.seen); n == 0 || at.Sub(s.seen[n-1].at) >= time.Second {
		s.seen = append(s.seen, reading{at, id})
	}
	for len(s.seen) > 0 && at.Sub(s.seen[0].at) > LateCommit {
		s.upTo, s.seen = max(s.upTo, s.seen[0].id), s.seen[1:]
	}
	return s.upTo
}

// Settles moves a mark to the id below which no new event can appear. The view's events up to last were sent already.
// fresh is the time at which that view was complete.
func (s *Ledger) Settles(m *ipam.StoreMark, fresh time.Time, last uint64) {
	if s.member == nil || fresh.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.After = max(m.After, min(s.settled.caughtUp(fresh, last), last))
}

// SettledUpTo is the highest known id below which no new event can appear.
func (s *Ledger) SettledUpTo() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled.upTo
}

// FreshSince is a time at which everything read from now on was complete. It is zero if the store is not shared.
func (s *Ledger) FreshSince() time.Time {
	if s.member == nil {
		return time.Time{}
	}
	return s.Shared().Reach().Fresh
}
