package cluster

import (
	"context"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// A restarted daemon detects again that the shared store went back, but did not see when that happened. So the host's
// own store has the time, from the detection until the store is trusted again.

func doubtKey() []byte { return []byte{recallKeys, 's'} }

// readDoubted reads since when the shared store is not trusted; zero: it is trusted.
func readDoubted(tx store.Tx) (since time.Time, err error) {
	raw, err := tx.Get(doubtKey())
	if err != nil {
		return since, err
	}
	if raw == nil {
		return since, nil
	}
	return since, ipam.DecodeJSON("since when the shared store is not trusted", raw, &since)
}

// keepDoubt records that the store is not trusted, or with a nil error that it is. If the write fails, the next look
// repeats it. Until then only a restarted daemon would miss the time.
func (s *Shared) keepDoubt(ctx context.Context, why error) {
	s.mu.Lock()
	before := s.doubted
	s.mu.Unlock()
	var since time.Time
	n := note{key: doubtKey()}
	var err error
	switch {
	case why != nil && !untrusted(why), (why == nil) == before.IsZero():
		return
	case why != nil:
		since = s.now().UTC()
		n, err = noteJSON(n.key, since)
	}
	if err == nil {
		err = s.keepNotes(ctx, []note{n})
	}
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = since
}

// doubtedSince returns the time for a refusal. For a store that is not trusted, it can be before the daemon's start.
func (s *Shared) doubtedSince(why error, since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if untrusted(why) && !s.doubted.IsZero() {
		return s.doubted
	}
	return since
}
