package ledger

import (
	"time"

	"berth/internal/ipam"
)

// Pass is that of a mark in the events of this store.
func (s *Ledger) Pass(m *ipam.StoreMark, id uint64) bool {
	if s.member != nil {
		return m.Pass(id)
	}
	fresh := id > m.After
	m.After = max(m.After, id)
	return fresh
}

// LateCommit is more than the longest time between the decision and the commit of a change of a shared store. If a host
// stops in between, its session ends first.
const LateCommit = time.Minute

// reading notes that what was read held all that there was at a time, up to an id.
type reading struct {
	at time.Time
	id uint64
}

// settledEvents is up to where the events of a shared store are known to be complete.
type settledEvents struct {
	seen []reading // no more often than every second
	upTo uint64
}

// caughtUp notes how far a view went that held all that there was at a time, and tells up to where nothing comes any
// more: whatever becomes part of the store behind that view was decided later than LateCommit before, and has a greater
// id than all that was there then.
func (s *settledEvents) caughtUp(at time.Time, id uint64) (upTo uint64) {
	if n := len(s.seen); n == 0 || at.Sub(s.seen[n-1].at) >= time.Second {
		s.seen = append(s.seen, reading{at, id})
	}
	for len(s.seen) > 0 && at.Sub(s.seen[0].at) > LateCommit {
		s.upTo, s.seen = max(s.upTo, s.seen[0].id), s.seen[1:]
	}
	return s.upTo
}

// Settles moves a mark to the id below which no new event can appear, after a view's events up to last were sent. fresh
// is the time at which that view was complete.
func (s *Ledger) Settles(m *ipam.StoreMark, fresh time.Time, last uint64) {
	if s.member == nil || fresh.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.After = max(m.After, min(s.settled.caughtUp(fresh, last), last))
}

// SettledUpTo is the highest id below which no new event can appear, as far as is known.
func (s *Ledger) SettledUpTo() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled.upTo
}

// FreshSince is a time at which everything read from now on was complete.
func (s *Ledger) FreshSince() time.Time {
	if s.member == nil {
		return time.Time{}
	}
	return s.Shared().Reach().Fresh
}
