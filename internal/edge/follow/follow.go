// Package follow keeps a host's edge in the state that its daemon wants. Mappings stay while the daemon is down or this
// process is replaced. The daemon gets a report on each mapping, and failed mappings are retried. If another host may
// take over, mappings expire unless the host's session is renewed. That time counts from the renewal of the session,
// not from the arrival of the news here.
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
	Repair   func(context.Context) error // runs beside, and puts back what others take away
	News     func(context.Context) iter.Seq2[ipam.EdgeNews, error]
	Report   func(context.Context, ipam.EdgeReport) error
	Log      *logrus.Entry
}

// The times of a Follower.
const (
	connectAgain = 200 * time.Millisecond // after the news broke off
	setAgain     = 2 * time.Second        // what could not be mapped
)

// Follower keeps a provider at what a daemon wants.
type Follower struct {
	cfg  Config
	want wanted
	said said   // what the daemon was told, and has not been told to be over
	told string // the trouble that was told last
}

// New returns a Follower that has heard nothing yet.
func New(cfg Config) *Follower { return &Follower{cfg: cfg} }

// Run follows the daemon until ctx ends, and leaves in force what is.
func (f *Follower) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	repaired := make(chan error, 1)
	go func() {
		defer cancel() // without repairs nothing holds what is promised
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
		f.tell(err, "the daemon is not to be heard; what is mapped stays so")
		pause(ctx, connectAgain)
	}
	cancel()
	if err := <-repaired; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("what is mapped is not kept in repair: %w", err)
	}
	return nil
}

// Once sets the provider to what the daemon wants now, and tells it what came of that.
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

// Wanted is what the daemon wants now; nothing is changed.
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

// line is one of the news, or their end.
type line struct {
	news ipam.EdgeNews
	err  error
}

// listen follows the news until they break off.
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
				return errors.New("it tells no more")
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

// listening is what is known while the news of one connection are followed. What the daemon is told is told beside, so
// that the state is renewed meanwhile: one report after the other.
type listening struct {
	*Follower
	heard   bool       // something
	whole   bool       // the daemon was not told the whole yet
	sending chan error // its end; nil: none is under way
	next    said       // what the daemon is told by it
	due     bool       // there is more to tell
	err     error      // of the last Set
}

// take follows one line.
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
	l.tell(err, "what is mapped cannot be renewed")
	l.report(ctx, true)
	return nil
}

// set has the provider map what is wanted, and tells of it.
func (l *listening) set(ctx context.Context) {
	l.err = l.Follower.set(ctx)
	l.report(ctx, false)
}

// report tells the daemon what it does not know yet; alive: even if that is nothing.
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

// sent goes on after a report.
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

// wait waits for the report that is under way.
func (l *listening) wait() {
	if l.sending == nil {
		return
	}
	if err := <-l.sending; err != nil {
		l.cfg.Log.WithError(err).Debug("the last report did not arrive; all is reported again")
	}
}

// set has the provider map what is wanted. What could not be is noted, to be tried again.
func (f *Follower) set(ctx context.Context) error {
	err := f.cfg.Provider.Set(ctx, f.want.state())
	_, only := edge.Failures(err)
	f.want.missed, f.want.void = err != nil, !only
	f.tell(err, "not all is mapped")
	return err
}

// tell logs a trouble once, until it is another one or over.
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
