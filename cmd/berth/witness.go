package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"berth/internal/admin"
	"berth/internal/docker"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

const witnessHelp = `Reads the Docker Engine for a daemon that has none to read, such as a managed plugin, and tells it what runs: which container
has which address. So "berth lease ls" shows names there, and "berth check" knows what is wrong. It only reads.

It runs in the foreground, tells what runs at its start, when the engine has something new, and every --every, and ends at
SIGTERM or SIGINT. If the engine or the daemon is away, it says so once and waits. Every flag can also be given in the
environment, as BERTH_ and its name.`

// witnessFlags are the flags of witness.
type witnessFlags struct {
	engine engineFlags
	every  time.Duration
}

func (p *program) witnessCommand() *cobra.Command {
	var flags witnessFlags
	cmd := &cobra.Command{Use: "witness", Short: "Tell a managed plugin what the engine runs", Long: witnessHelp, Args: noArgs,
		Example: `  berth witness
  berth witness --every 10s
  berth witness --admin-socket /run/docker/plugins/ID/berth-admin.sock --ipam-driver registry.example/berth:1.0`}
	cmd.Flags().DurationVar(&flags.every, "every", 30*time.Second, "how often it is told at least, a `duration`")
	flags.engine.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case flags.every <= 0 || flags.every > longestEvery:
			return usage(cmd, fmt.Errorf("--every is %s and must be more than nothing, and at most %s: an older word counts for nothing", flags.every, longestEvery))
		case strings.Contains(p.adminSocket, "://") && !flags.engine.given():
			return usage(cmd, errors.New("the daemon is asked over the network: say with --docker-host where the engine of its host is"))
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		engine, err := flags.engine.open()
		if err != nil {
			return usage(cmd, err)
		}
		defer engine.Close()
		log, err := newLog(p.err, serveConfig{logLevel: "info", logFormat: "text"}, isJournal(p.err, p.env("JOURNAL_STREAM")))
		if err != nil {
			return err
		}
		w := &onlooker{p: p, engine: engine, flags: flags, log: log, away: map[string]bool{}}
		defer w.drop()
		return w.run(ctx)
	}
	return cmd
}

// longestEvery is how old a view may be when the next one comes.
const longestEvery = time.Minute

// How long an onlooker waits: for more events, so that many of them make one view, and for whoever is away.
const (
	calmTime   = 300 * time.Millisecond
	firstPause = time.Second
)

// onlooker reads an engine for a daemon. Either may be away for a time.
type onlooker struct {
	p      *program
	engine *docker.Engine
	flags  witnessFlags
	log    *logrus.Entry

	client *admin.Client // nil: the daemon is to be found
	host   string        // the daemon's
	names  []string      // the daemon's, in the engine; nil: not known yet

	told bool            // what runs, since somebody was away
	away map[string]bool // who is away, of which was told
}

// run shows the daemon what runs until ctx ends.
func (w *onlooker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stirred := make(chan struct{}, 1)
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx, stirred) })
	defer following.Wait()
	defer cancel()
	pause := firstPause
	for {
		wait := w.flags.every
		if who, err := w.show(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			w.lost(who, err)
			wait, pause = min(pause, wait), min(2*pause, w.flags.every)
		} else {
			w.back()
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case <-stirred:
			pauseFor(ctx, calmTime)
			select {
			case <-stirred:
			default:
			}
		}
	}
}

// follow tells of each event of the engine and of their end, and connects again.
func (w *onlooker) follow(ctx context.Context, stirred chan<- struct{}) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, w.flags.every) {
		for _, err := range w.engine.Watch(ctx) {
			if err == nil {
				pause = firstPause
			}
			select {
			case stirred <- struct{}{}:
			default:
			}
		}
		pauseFor(ctx, pause)
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// The two that may be away.
const (
	theEngine = "the engine"
	theDaemon = "the daemon"
)

// show reads the engine and shows it to the daemon. An error is of one of them.
func (w *onlooker) show(ctx context.Context) (who string, err error) {
	if err := w.find(ctx); err != nil {
		return theDaemon, err
	}
	if w.names == nil {
		if w.names, err = w.flags.engine.names(ctx, w.engine, w.client); err != nil {
			return theEngine, err
		}
	}
	view, err := w.engine.View(ctx, w.host, w.names)
	if err != nil {
		return theEngine, err
	}
	if err := w.client.ShowEngine(ctx, view); err != nil {
		w.drop()
		return theDaemon, err
	}
	if !w.told {
		w.told = true
		w.log.WithFields(logrus.Fields{"host": w.host, "driver": strings.Join(w.names, ","), "networks": len(view.Networks), "containers": len(view.Containers)}).
			Info("the daemon knows what runs")
	}
	return "", nil
}

// find finds the daemon, and asks which host's it is.
func (w *onlooker) find(ctx context.Context) error {
	if w.client != nil {
		return nil
	}
	client, err := w.p.find(ctx)
	if err != nil {
		return err
	}
	version, err := client.Version(ctx)
	if err != nil {
		client.Close()
		return err
	}
	w.client, w.host, w.names = client, version.Host, nil
	return nil
}

// drop lets the daemon be looked for anew: a managed plugin may come back as another one.
func (w *onlooker) drop() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// lost says who is away, once.
func (w *onlooker) lost(who string, err error) {
	w.told = false
	if !w.away[who] {
		w.away[who] = true
		w.log.WithError(err).Warnf("%s cannot be reached, and is tried again until it can", who)
	}
}

// back forgets that somebody was away.
func (w *onlooker) back() { clear(w.away) }
