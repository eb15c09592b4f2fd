package admin

import (
	"sync"
	"time"

	"berth/internal/ipam"
)

// edges counts the connected edges, and records since when there is none.
type edges struct {
	mu    sync.Mutex
	n     int
	since time.Time // when the last one left, or the daemon started
}

func (e *edges) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

func (e *edges) gone() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.since
}

func (e *edges) add(n int, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n += n; e.n == 0 {
		e.since = now.UTC()
	}
}

// firsts records when findings first appeared, if nobody else keeps that between checks. It forgets findings that are
// gone.
type firsts struct {
	mu sync.Mutex
	at map[string]time.Time // by their text
}

// note fills in when each finding first appeared.
func (f *firsts) note(found []ipam.Finding, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := make(map[string]time.Time, len(found))
	for i := range found {
		one := &found[i]
		one.Seen = now
		if before, known := f.at[one.Detail]; known {
			one.Seen = before
		}
		at[one.Detail] = one.Seen
	}
	f.at = at
}
