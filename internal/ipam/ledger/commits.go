package ledger

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"berth/store"
)

// mostCommits is how many records wait for a Take. If there are more, all are dropped and Take reports that some were
// missed.
const mostCommits = 1 << 15

// Commits collects the records of some kinds that were written since the last Take.
type Commits struct {
	kept  []byte        // kinds of records to keep
	woken chan struct{} // has a token after a commit of a kind in kept or wakes
	ended sync.WaitGroup

	mu   sync.Mutex
	seen map[string][]byte // the last value by key; nil: the record was deleted
	all  bool              // some were missed
}

// Watch collects commits of the kinds in kept until ctx ends. Commits of the kinds in wakes only wake the reader.
func (s *Ledger) Watch(ctx context.Context, kept, wakes []byte) *Commits {
	st := s.store
	w := &Commits{kept: kept, woken: make(chan struct{}, 1), seen: map[string][]byte{}}
	for _, kind := range slices.Concat(kept, wakes) { // one watch per kind, because most of what is written is events
		committed := st.Watch(ctx, []byte{kind})
		w.ended.Go(func() { w.collect(ctx, st, kind, committed) })
	}
	return w
}

// collect collects the commits of one kind.
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
		w.miss() // commits in between were missed
	}
}

// watchAgain is the pause before a watch that broke off starts again.
const watchAgain = 100 * time.Millisecond

// After a window with this many records the watch rests. To wake the reader for each record would cost more than the
// work that the record causes.
const (
	paced      = 16
	paceWindow = time.Millisecond
	paceRest   = 5 * time.Millisecond
)

// pace counts the records read in a window.
type pace struct {
	begun time.Time
	read  int
}

// keep counts a record, and rests after a busy window.
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

// Wait returns when ctx has ended and the collection has stopped.
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

// miss notes that any record may have been committed.
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

// Take returns the collected records by key, with nil for a deleted one. all reports that some were missed; then any
// record may have changed.
func (w *Commits) Take() (seen map[string][]byte, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, all, w.seen, w.all = w.seen, w.all, map[string][]byte{}, false
	return seen, all
}

// Woken receives a token after a commit of a kind in kept or wakes.
func (w *Commits) Woken() <-chan struct{} { return w.woken }

// sleep waits. It returns false if ctx has ended.
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
