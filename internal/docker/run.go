package docker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

const (
	// longestPause is the longest pause between two tries to reach the engine.
	longestPause = time.Minute

	// shortestPause is the shortest pause. An engine that asks for addresses may not answer requests yet.
	shortestPause = 50 * time.Millisecond
)

// Run checks when the engine is first there, after each break, and at intervals. It looks at the engine after events.
// It returns nil when ctx ends, and no failure of the engine ends it.
func (w *Witness) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	f := follower{witness: w, news: make(chan word), changed: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	if err := w.learnHomes(ctx); err != nil && ctx.Err() == nil {
		w.log.WithError(err).Warn("cannot read who had which address before the start")
	}
	if w.cfg.Engine != nil {
		following.Go(func() { f.follow(ctx) })
	}
	var due <-chan time.Time
	if w.cfg.Every > 0 {
		ticker := time.NewTicker(w.cfg.Every)
		defer ticker.Stop()
		due = ticker.C
	}
	var d changeLog
	var again, ripe <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case said := <-f.news:
			w.breakOff(ctx, said)
			if said.broken == nil {
				ripe = w.round(ctx, &d)
			}
		case <-due:
			ripe = w.round(ctx, &d)
		case <-ripe:
			ripe = w.round(ctx, &d)
		case <-f.changed:
			if w.gather(ctx, &f); ctx.Err() == nil {
				d.failed(w, w.look(ctx))
			}
		case <-w.cfg.Roster.asked:
			d.failed(w, w.lookIfRead(ctx))
		case <-w.unsure:
			again = time.After(w.burst)
		case <-again:
			again = nil
			d.failed(w, w.lookIfRead(ctx))
		}
		d.engine(w)
	}
}

// learnHomes reads the last addresses from the leases, before the first look.
func (w *Witness) learnHomes(ctx context.Context) error {
	done, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	return w.homes.learn(ctx, w.cfg.Service, w.cfg.Host)
}

// lookIfRead looks if this daemon reads the engine itself.
func (w *Witness) lookIfRead(ctx context.Context) error {
	if w.cfg.Engine == nil {
		return nil
	}
	return w.look(ctx)
}

// breakOff resets the waits of findings, because the events broke off or began again. If the engine was read since the
// break, it is not away. What began before the break does not count: it may have been the engine's last answer.
func (w *Witness) breakOff(ctx context.Context, said word) {
	done, err := w.take(ctx)
	if err != nil {
		return
	}
	defer done()
	if said.broken != nil && !w.readSince(said.at) {
		w.lost(said.broken)
	}
	w.patience.broken()
}

// round checks, or only looks if checks are turned off. The channel that it returns receives when the next finding may
// be repaired.
func (w *Witness) round(ctx context.Context, d *changeLog) (ripe <-chan time.Time) {
	if w.cfg.Every <= 0 {
		d.failed(w, w.look(ctx))
		return nil
	}
	r, next, err := w.check(ctx, ipam.CheckRequest{Repair: w.cfg.Repair}, true)
	if err != nil {
		d.failed(w, err)
		return nil
	}
	d.found(w, &r)
	if next.IsZero() {
		return nil
	}
	return time.After(max(next.Sub(w.cfg.Now()), w.burst))
}

// gather waits a moment for more events, so that many events cause one look. A changed network ends the wait.
func (w *Witness) gather(ctx context.Context, f *follower) {
	select {
	case <-ctx.Done():
	case <-f.hurry:
	case <-time.After(w.burst):
	}
	drain(f.hurry)
	drain(f.changed)
}

// wake puts a token into a channel of size one. It never waits.
func wake(waiting chan struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

func drain(waiting chan struct{}) {
	select {
	case <-waiting:
	default:
	}
}

// follower follows the engine's events for a witness.
type follower struct {
	witness *Witness
	news    chan word
	changed chan struct{} // something has changed
	hurry   chan struct{} // a network has changed
}

// word reports that the events broke off (with the error and the time) or, if broken is nil, that they began.
type word struct {
	broken error
	at     time.Time
}

func (f *follower) follow(ctx context.Context) {
	var pause time.Duration
	for {
		connected := f.followOnce(ctx)
		pause = nextPause(pause, f.witness.pause, connected)
		if !f.rest(ctx, pause) {
			return
		}
	}
}

// rest waits before the next try to reach the engine. It ends early if the engine uses this Berth. Otherwise a second
// end of the engine could pass unheard. It returns false when ctx ends.
func (f *follower) rest(ctx context.Context, pause time.Duration) bool {
	missed := f.witness.cfg.Roster.missed
	drain(missed)
	least := min(pause, shortestPause)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least):
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause - least):
	case <-missed:
	}
	return true
}

// followOnce follows the events until they break off. It reports whether the engine was reached.
func (f *follower) followOnce(ctx context.Context) (connected bool) {
	w := f.witness
	err := w.cfg.Engine.Follow(ctx, Listener{
		Drivers: func() []string { return w.cfg.Drivers },
		Begun: func() {
			connected = true
			w.cfg.Roster.Hear(&ipam.EngineNews{At: w.cfg.Now(), Begins: true})
			f.tell(ctx, nil)
		},
		Tell: w.cfg.Roster.Hear,
		Changed: func(soon bool) {
			if soon {
				wake(f.hurry)
			}
			wake(f.changed)
		},
	})
	w.cfg.Roster.lose()
	f.tell(ctx, err)
	return connected
}

// nextPause doubles the pause, up to longestPause. It starts again if the engine was reached.
func nextPause(before, first time.Duration, connected bool) time.Duration {
	if before == 0 || connected {
		return first
	}
	return min(2*before, longestPause)
}

func (f *follower) tell(ctx context.Context, broken error) {
	select {
	case f.news <- word{broken, f.witness.cfg.Now()}: // the time of the break, not of its receipt
	case <-ctx.Done():
	}
}

// changeLog logs changes, each once.
type changeLog struct{ reach, findings, version string }

// engine logs when the engine comes and goes.
func (d *changeLog) engine(w *Witness) {
	state := w.State()
	if state.Engine == d.reach {
		return
	}
	switch {
	case state.Engine == ipam.EngineUnreachable:
		w.log.Warnf("cannot read the engine, so Berth checks nothing until it can: %s", state.Detail)
	case d.reach == ipam.EngineUnreachable:
		w.log.Info("Berth can read the engine again")
	}
	d.reach = state.Engine
	d.naming(w, &state)
}

// naming logs once which engine it is, and what that means for containers that keep their addresses.
func (d *changeLog) naming(w *Witness, state *ipam.WitnessState) {
	sends, known := state.SendsNames()
	is := fmt.Sprint(state.Version, sends)
	if !known || d.version == is {
		return
	}
	d.version = is
	log := w.log.WithFields(logrus.Fields{"engine": state.Version, "sends_names": sends})
	if sends {
		log.Info("This Docker Engine tells Berth the names of containers: all containers keep their addresses.")
		return
	}
	log.Info("This Docker Engine does not tell Berth the names of containers (Docker 29 and later does). Containers " +
		"that start together may swap addresses: run `berth pin`.")
}

// found logs the findings of a check.
func (d *changeLog) found(w *Witness, r *ipam.CheckReport) {
	var parts []string
	for _, row := range ipam.FindingKinds {
		if n := r.Counts[row.Kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, row.Kind))
		}
	}
	findings := strings.Join(parts, ", ")
	if findings != "" && findings != d.findings {
		w.log.WithField("repaired", r.Repaired).
			Warnf("the records differ from the running containers: %s; `berth check` shows details", findings)
	}
	if r.Engine == ipam.EngineReachable {
		d.findings = findings
	}
}

// failed logs an error. If the engine is away, changeLog.engine has logged that already.
func (d *changeLog) failed(w *Witness, err error) {
	if err != nil && w.State().Engine != ipam.EngineUnreachable {
		w.log.WithError(err).Error("cannot compare the records with the running containers")
	}
}
