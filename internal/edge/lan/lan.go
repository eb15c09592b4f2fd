// Package lan asks the daemon's questions on the LANs that a host's edge reaches. Each question has its own time limit.
// Questions of a daemon that has ended are cancelled. The edge reconnects to a restarted daemon by itself.
//
// Run reads the daemon's questions, runs them in parallel, and sends the answers. The caller passes the function that
// works on the wire, such as that of internal/dhcp.
package lan

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// Config is what Run needs.
type Config struct {
	// Asks yields the daemon's questions. It ends after it has yielded an error. Each call starts again.
	Asks func(context.Context) iter.Seq2[ipam.LANAsk, error]
	// Answer sends the answer to the daemon.
	Answer func(context.Context, ipam.LANAnswer) error
	// Do answers a question, and returns soon after ctx ends.
	Do  func(context.Context, ipam.LANAsk) ipam.LANAnswer
	Log *logrus.Entry
}

// The pauses before a new connection to the daemon. A restarted daemon needs its edge at once, but one that stays away
// must not be called all the time.
const (
	againFirst = 50 * time.Millisecond
	againLast  = time.Second
)

// Run answers questions until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	told, again := "", againFirst
	for ctx.Err() == nil {
		begun := time.Now()
		err := listen(ctx, cfg)
		if ctx.Err() != nil {
			return nil
		}
		if text := err.Error(); text != told { // once, until it changes
			cfg.Log.WithError(err).Warn("the edge gets no requests for the LAN from the daemon")
			told = text
		}
		if time.Since(begun) > againLast {
			told, again = "", againFirst
		}
		pause(ctx, again)
		again = min(2*again, againLast)
	}
	return nil
}

// listen answers the questions of one connection until it ends. Then it cancels running questions, because a restarted
// daemon has other ones.
func listen(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	defer func() { cancel(); under.Wait() }()
	for ask, err := range cfg.Asks(ctx) {
		if err != nil {
			return err
		}
		under.Go(func() { answer(ctx, cfg, ask) })
	}
	return errors.New("the daemon stopped asking")
}

// answer answers one question and sends the answer to the daemon.
func answer(ctx context.Context, cfg Config, ask ipam.LANAsk) {
	within, cancel := context.WithTimeout(ctx, time.Duration(ask.Within))
	a := cfg.Do(within, ask)
	cancel()
	a.ID = ask.ID
	if ctx.Err() != nil {
		return // nobody waits for it
	}
	log := cfg.Log.WithFields(logrus.Fields{"parent": ask.Parent, "verb": ask.Verb, "client": ask.Client.ID,
		"mac": ask.Client.MAC.String()})
	switch {
	case a.Failure != "":
		log.WithField("failure", a.Failure).Info(a.Error)
	default:
		log.WithFields(logrus.Fields{"address": a.Lease.Address, "server": a.Lease.Server}).Debug("the request to " +
			"the LAN succeeded")
	}
	if err := cfg.Answer(ctx, a); err != nil && ctx.Err() == nil {
		log.WithError(err).Warn("cannot send the answer of the LAN to the daemon")
	}
}

func pause(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
