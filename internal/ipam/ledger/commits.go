package ledger

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"berth/store"
)

// mostCommits is how many records are kept that were written and not looked at; more are looked at as if all had been.
const mostCommits = 1 << 15

// Commits collects records of some kinds that were written since the last Take.
type Commits struct {
	kept  []byte        // the kinds of records that are kept
	woken chan struct{} // has a token once something was committed of a kind that is kept, or wakes
	ended sync.WaitGroup

	mu   sync.Mutex
	seen map[string][]byte // what was written last, by key; nil: it is gone
	all  bool              // some were missed
}

// Watch collects commits of the kinds in kept until ctx ends. Commits of the kinds in wakes only wake the reader.
func (s *Ledger) Watch(ctx context.Context, kept, wakes []byte) *Commits {
	st := s.store
	w := &Commits{kept: kept, woken: make(chan struct{}, 1), seen: map[string][]byte{}}
	for _, kind := range slices.Concat(kept, wakes) { // each by itself: events are most of what is written
		committed := st.Watch(ctx, []byte{kind})
		w.ended.Go(func() { w.collect(ctx, st, kind, committed) })
	}
	return w
}

// collect collects what is committed of one kind.
func (w *Commits) collect(ctx context.Context, st store.Store, kind byte, committed iter.Seq2[store.Change, error]) {
	for {
		busy := pace{begun: time.Now()}
		for one, err := range committed {
			if err != nil {
				break
			}
			w.note(&one)
			busy.keep(ctx)
		}
		if ctx.Err() != nil || !sleep(ctx, watchAgain) {
			return
		}
		committed = st.Watch(ctx, []byte{kind})
		w.miss() // what was committed in between
	}
}

// watchAgain is how long after it has broken off a watch is begun anew.
const watchAgain = 100 * time.Millisecond

// Where so many records come within a window, it is rested behind it: to be woken for each of them would cost more than
// to look at what they bear on.
const (
	paced      = 16
	paceWindow = time.Millisecond
	paceRest   = 5 * time.Millisecond
)

// pace counts what was read in a window.
type pace struct {
	begun time.Time
	read  int
}

// keep counts a record, and rests where it is time to.
func (p *pace) keep(ctx context.Context) {
	p.read++
	if time.Since(p.begun) < paceWindow {
		return
	}
	if p.read >= paced {
		sleep(ctx, paceRest)
	}
	p.begun, p.read = time.Now(), 0
}

// Wait returns once ctx has ended and nothing is collected any more.
func (w *Commits) Wait() { w.ended.Wait() }

func (w *Commits) note(one *store.Change) {
	w.mu.Lock()
	if len(w.seen) >= mostCommits {
		clear(w.seen)
		w.all = true
	}
	if !w.all && slices.Contains(w.kept, one.Key[0]) {
		w.seen[string(one.Key)] = one.Value
	}
	w.mu.Unlock()
	w.wake()
}

// miss notes that anything may have been committed.
func (w *Commits) miss() {
	w.mu.Lock()
	clear(w.seen)
	w.all = true
	w.mu.Unlock()
	w.wake()
}

func (w *Commits) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Take returns the collected records; all reports that some were missed.
func (w *Commits) Take() (seen map[string][]byte, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, all, w.seen, w.all = w.seen, w.all, map[string][]byte{}, false
	return seen, all
}

// Woken receives a token after each commit of a kind in kept or wakes.
func (w *Commits) Woken() <-chan struct{} { return w.woken }

// sleep waits; false: ctx has ended.
func sleep(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
