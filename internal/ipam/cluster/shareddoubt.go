package cluster

import (
	"context"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// A daemon that is started anew finds out once more that the shared store went back, and has not seen when. So the
// host's own store says since when, from the moment it is found out until the store is trusted again.

func doubtKey() []byte { return []byte{recallKeys, 's'} }

// readDoubted is since when the shared store is not trusted; zero: it is.
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

// keepDoubt notes that the store is not trusted, or with no error that it is. What cannot be written is tried again
// with the next look: until then only the time is not known to a daemon that comes later.
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

// doubtedSince is since when the store is as it is, for a refusal: of one that is not trusted that may be from before
// the daemon began.
func (s *Shared) doubtedSince(why error, since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if untrusted(why) && !s.doubted.IsZero() {
		return s.doubted
	}
	return since
}
