package docker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"
)

// longestPause is how long to wait at most before an engine that is away is asked again.
const longestPause = time.Minute

// Run checks when the engine is there for the first time and after each break, and every so often; and it looks after the
// engine's events. It returns nil when ctx ends, and goes on whatever the engine does.
func (w *Witness) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f := follower{witness: w, news: make(chan error), stirred: make(chan struct{}, 1)}
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	if w.cfg.Engine != nil {
		following.Go(func() { f.follow(ctx) })
	}
	var due <-chan time.Time
	if w.cfg.Every > 0 {
		ticker := time.NewTicker(w.cfg.Every)
		defer ticker.Stop()
		due = ticker.C
	}
	var d diary
	for {
		select {
		case <-ctx.Done():
			return nil
		case broken := <-f.news:
			w.breakOff(ctx, broken)
			if broken == nil {
				w.round(ctx, &d)
			}
		case <-due:
			w.round(ctx, &d)
		case <-f.stirred:
			if w.gather(ctx, f.stirred); ctx.Err() == nil {
				d.failed(w, w.look(ctx))
			}
		}
		d.engine(w)
	}
}

// breakOff forgets how long things have been so: the engine's events broke off, with an error, or have begun anew.
func (w *Witness) breakOff(ctx context.Context, broken error) {
	done, err := w.take(ctx)
	if err != nil {
		return
	}
	defer done()
	if broken != nil {
		w.lost(broken)
	}
	w.patience.broken()
}

// round is a check or, where none is wanted, a look.
func (w *Witness) round(ctx context.Context, d *diary) {
	if w.cfg.Every <= 0 {
		d.failed(w, w.look(ctx))
		return
	}
	r, err := w.check(ctx, ipam.CheckRequest{Repair: w.cfg.Repair}, true)
	if err != nil {
		d.failed(w, err)
		return
	}
	d.found(w, &r)
}

// gather waits for more events, so that many of them make one look.
func (w *Witness) gather(ctx context.Context, stirred <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(w.calm):
	}
	select {
	case <-stirred:
	default:
	}
}

// follower passes on what the engine's events say.
type follower struct {
	witness *Witness
	news    chan error    // nil: it is connected
	stirred chan struct{} // something has changed
}

func (f *follower) follow(ctx context.Context) {
	var pause time.Duration
	for {
		connected := f.followOnce(ctx)
		pause = nextPause(pause, f.witness.pause, connected)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// followOnce follows the events until they break off, and tells whether there was an engine at all.
func (f *follower) followOnce(ctx context.Context) (connected bool) {
	for _, err := range f.witness.cfg.Engine.Watch(ctx) {
		if err != nil || !connected {
			connected = connected || err == nil
			f.tell(ctx, err)
			continue
		}
		select {
		case f.stirred <- struct{}{}:
		default:
		}
	}
	return connected
}

// nextPause is how long to wait for an engine: twice as long as before, unless it was there.
func nextPause(before, first time.Duration, connected bool) time.Duration {
	if before == 0 || connected {
		return first
	}
	return min(2*before, longestPause)
}

func (f *follower) tell(ctx context.Context, news error) {
	select {
	case f.news <- news:
	case <-ctx.Done():
	}
}

// diary logs what changes, once.
type diary struct{ reach, findings string }

// engine tells when the engine comes and goes.
func (d *diary) engine(w *Witness) {
	state := w.State()
	if state.Engine == d.reach {
		return
	}
	switch {
	case state.Engine == ipam.EngineUnreachable:
		w.log.Warnf("the engine cannot be read, so that nothing is checked until it can: %s", state.Detail)
	case d.reach == ipam.EngineUnreachable:
		w.log.Info("the engine can be read again")
	}
	d.reach = state.Engine
}

// found tells what a check came to.
func (d *diary) found(w *Witness, r *ipam.CheckReport) {
	var parts []string
	for _, kind := range kinds {
		if n := r.Counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	findings := strings.Join(parts, ", ")
	if findings != "" && findings != d.findings {
		w.log.WithField("repaired", r.Repaired).Warnf("the records and what runs differ: %s; `berth check` tells more", findings)
	}
	if r.Engine == ipam.EngineReachable {
		d.findings = findings
	}
}

// failed tells of an error, unless it is that of an engine which is away, of which is told elsewhere.
func (d *diary) failed(w *Witness, err error) {
	if err != nil && w.State().Engine != ipam.EngineUnreachable {
		w.log.WithError(err).Error("the records could not be held against what runs")
	}
}
