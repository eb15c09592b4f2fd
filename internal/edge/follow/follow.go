// Package follow keeps a host's edge at what its daemon wants. It promises that what it has mapped stays mapped while
// the daemon is away or this process is exchanged, that the daemon is told of each mapping whether it is in force, and
// that what could not be mapped is tried again.
//
// Run (this file) listens to the daemon's news and begins anew when they break off. What they come to is a wanted
// (wanted.go), which a provider is set to; what is said of that to the daemon is a report (report.go).
package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
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
	cfg      Config
	want     wanted
	reported map[netip.Addr]ipam.EdgeApplied // what the daemon was told, and has not been told to be over
	told     string                          // the trouble that was told last
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
		return errors.Join(err, f.report(ctx, true, err))
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
	again := time.NewTimer(setAgain)
	defer again.Stop()
	whole := true
	for {
		select {
		case <-again.C:
			if whole || !f.want.missed {
				again.Reset(setAgain)
				continue
			}
		case heard, open := <-lines:
			if !open {
				return errors.New("it tells no more")
			}
			if heard.err != nil {
				return heard.err
			}
			f.want.take(&heard.news)
		}
		err := f.set(ctx)
		if err := f.report(ctx, whole, err); err != nil {
			return err
		}
		whole = false
		again.Reset(setAgain)
	}
}

// set has the provider map what is wanted. What could not be is noted, to be tried again.
func (f *Follower) set(ctx context.Context) error {
	err := f.cfg.Provider.Set(ctx, f.want.state())
	f.want.missed = err != nil
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
