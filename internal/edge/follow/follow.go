// Package follow keeps a host's edge in the state that its daemon wants. Mappings stay while the daemon is down or this
// process is replaced. The daemon gets a report on each mapping, and failed mappings are retried. If another host may
// take over, mappings expire unless the host's session is renewed. The time until they expire counts from the renewal
// of the session, not from the moment when this process hears of it.
//
// Run (follow.go) reads the daemon's news and starts again when the stream breaks off. From the news it builds the
// wanted state (wanted.go), which the provider applies. report.go reports the result to the daemon.
package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"berth/internal/edge"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// Config is what a Follower needs. Repair may be nil.
type Config struct {
	Provider edge.Provider
	Repair   func(context.Context) error // runs in parallel, and restores what others remove
	News     func(context.Context) iter.Seq2[ipam.EdgeNews, error]
	Report   func(context.Context, ipam.EdgeReport) error
	Log      *logrus.Entry
}

// The intervals of a Follower.
const (
	connectAgain = 200 * time.Millisecond // after the news ended
	setAgain     = 2 * time.Second        // after a failed mapping
)

// Follower keeps a provider at the state that a daemon wants.
type Follower struct {
	cfg  Config
	want wanted
	said said   // the last report to the daemon
	told string // the last logged problem
}

// New returns a Follower that has no news yet.
func New(cfg Config) *Follower { return &Follower{cfg: cfg} }

// Run follows the daemon until ctx ends. It leaves the mappings in place.
func (f *Follower) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	repaired := make(chan error, 1)
	go func() {
		defer cancel() // without repairs, the promises do not hold
		if f.cfg.Repair == nil {
			<-ctx.Done()
			repaired <- nil
			return
		}
		repaired <- f.cfg.Repair(ctx)
	}()
	for ctx.Err() == nil {
		err := f.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		f.tell(err, "the edge gets no updates from the daemon; the mappings stay")
		pause(ctx, connectAgain)
	}
	cancel()
	if err := <-repaired; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the mappings are no longer repaired: %w", err)
	}
	return nil
}

// Once applies the state that the daemon wants now, and reports the result.
func (f *Follower) Once(ctx context.Context) error {
	for news, err := range f.cfg.News(ctx) {
		if err != nil {
			return err
		}
		f.want.take(&news)
		err := f.set(ctx)
		if r, _ := f.report(true, err); r != nil {
			err = errors.Join(err, f.cfg.Report(ctx, *r))
		}
		return err
	}
	return ctx.Err()
}

// Wanted returns the state that the daemon wants now. It changes nothing.
func (f *Follower) Wanted(ctx context.Context) (s edge.State, err error) {
	for news, err := range f.cfg.News(ctx) {
		if err != nil {
			return s, err
		}
		f.want.take(&news)
		return f.want.state(), nil
	}
	return s, ctx.Err()
}

// line is a line of the news, or their end.
type line struct {
	news ipam.EdgeNews
	err  error
}

// listen follows the news until they end.
func (f *Follower) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	lines, ended := make(chan line), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for news, err := range f.cfg.News(ctx) {
			select {
			case lines <- line{news, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	l := &listening{Follower: f, whole: true}
	defer func() { cancel(); l.wait() }()
	again := time.NewTicker(setAgain)
	defer again.Stop()
	for {
		var err error
		select {
		case <-again.C:
			if l.heard && f.want.missed {
				l.set(ctx)
			}
		case heard, open := <-lines:
			switch {
			case !open:
				return errors.New("the daemon stopped sending")
			case heard.err != nil:
				return heard.err
			}
			err = l.take(ctx, &heard.news)
		case err = <-l.sending:
			err = l.sent(ctx, err)
		}
		if err != nil {
			return err
		}
	}
}

// listening is the state of one connection. Reports are sent in the background, one after the other, so that renewals
// continue meanwhile.
type listening struct {
	*Follower
	heard   bool       // any news have arrived
	whole   bool       // the daemon still needs a complete report
	sending chan error // receives the result of the running report; nil: none runs
	next    said       // the content of the running report
	due     bool       // another report is due
	err     error      // of the last Set
}

// take applies one line.
func (l *listening) take(ctx context.Context, news *ipam.EdgeNews) error {
	l.heard = true
	l.want.take(news)
	if !news.Bare() || l.want.void {
		l.set(ctx)
		return nil
	}
	err := l.cfg.Provider.Renew(ctx, l.want.until())
	if errors.Is(err, edge.ErrExpired) {
		return err
	}
	l.tell(err, "cannot renew the mappings")
	l.report(ctx, true)
	return nil
}

// set applies the wanted state and reports the result.
func (l *listening) set(ctx context.Context) {
	l.err = l.Follower.set(ctx)
	l.report(ctx, false)
}

// report reports what the daemon does not know yet. With alive it reports even if there is nothing new.
func (l *listening) report(ctx context.Context, alive bool) {
	if l.sending != nil {
		l.due = true
		return
	}
	l.due = false
	r, next := l.Follower.report(l.whole, l.err)
	if r == nil && !alive {
		return
	}
	if r == nil {
		r = &ipam.EdgeReport{Session: l.want.session}
	}
	l.whole, l.next = l.whole && !r.Whole, next
	sending := make(chan error, 1)
	l.sending = sending
	go func() { sending <- l.cfg.Report(ctx, *r) }()
}

// sent continues after a report.
func (l *listening) sent(ctx context.Context, err error) error {
	l.sending = nil
	if err != nil {
		return err
	}
	l.said = l.next
	if l.due {
		l.report(ctx, false)
	}
	return nil
}

// wait waits for the running report.
func (l *listening) wait() {
	if l.sending == nil {
		return
	}
	if err := <-l.sending; err != nil {
		l.cfg.Log.WithError(err).Debug("the last report did not arrive; the edge sends everything again")
	}
}

// set applies the wanted state. It notes failures, which are retried.
func (f *Follower) set(ctx context.Context) error {
	err := f.cfg.Provider.Set(ctx, f.want.state())
	_, only := edge.Failures(err)
	f.want.missed, f.want.void = err != nil, !only
	f.tell(err, "some addresses are not mapped")
	return err
}

// tell logs a problem once, until it changes or ends.
func (f *Follower) tell(err error, what string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != f.told && text != "" {
		f.cfg.Log.WithError(err).Warn(what)
	}
	f.told = text
}

func pause(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
