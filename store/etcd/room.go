package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/store"
)

// room is whether etcd has any. One whose quota is used up answers every question and refuses every write, until a
// person has made room and disarmed its alarm; so it is as good as away for whoever wants to write, and its answers do
// not tell.
type room struct {
	mu    sync.Mutex
	err   error // why it has none
	since time.Time
}

// note takes what became of an attempt to write.
func (r *room) note(err error, wrote bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrNoSpace):
		if r.err == nil {
			r.since = time.Now()
		}
		r.err = err
	case err == nil && wrote:
		r.err, r.since = nil, time.Time{}
	}
}

// none says since when there is no room, and why; nil where there is some, as far as is known.
func (r *room) none() (since time.Time, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since, r.err
}

// tryRoom writes a marker where the last write had no room.
func (s *Store) tryRoom(ctx context.Context) {
	if _, full := s.room.none(); full == nil {
		return
	}
	if err := s.mark(ctx); err != nil {
		return
	}
	s.room.note(nil, true)
	s.log.Info("the shared store has room again")
}
