package witness

import (
	"context"
	"strings"
	"sync"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/docker/putback"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// How long an onlooker waits: for more events, so that many of them make one view, and for whoever is away.
const (
	calmTime   = 300 * time.Millisecond
	firstPause = time.Second
)

// onlooker reads an engine for a daemon. Either may be away for a time.
type onlooker struct {
	p      *cli.Program
	engine *docker.Engine
	hand   *pin.Hand // by which it moves containers
	flags  witnessFlags
	log    *logrus.Entry

	client *client.Client // nil: the daemon is to be found
	host   string         // the daemon's
	names  []string       // the daemon's, in the engine; nil: not known yet

	relay relay // to which the daemon listens

	told bool            // what runs, since somebody was away
	away map[string]bool // who is away, of which was told
}

// run shows the daemon what runs until ctx ends.
func (w *onlooker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stirred := make(chan struct{}, 1)
	w.relay.stir = func() {
		select {
		case stirred <- struct{}{}:
		default:
		}
	}
	w.relay.by = w
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx) })
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
			cli.PauseFor(ctx, calmTime)
			select {
			case <-stirred:
			default:
			}
		}
	}
}

// Locked implements ipam.Onlooker.
func (w *onlooker) Locked(ctx context.Context, q ipam.Question) ipam.Locked {
	return w.engine.Locked(ctx, q)
}

// Move implements ipam.Onlooker. It goes on when the daemon is away in the midst of it.
func (w *onlooker) Move(ctx context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	return putback.Do(context.WithoutCancel(ctx), putback.Local{Hand: w.hand}, putback.Mode(w.flags.putBack), order),
		nil
}

// follow passes on what the engine says, has each event looked at, and connects again when they break off.
func (w *onlooker) follow(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, w.flags.every) {
		stir := func(bool) { w.relay.stir() }
		_ = w.engine.Follow(ctx, docker.Listener{
			Drivers: w.relay.drivers,
			Begun: func() {
				pause = firstPause
				w.relay.begin()
				stir(false)
			},
			Tell:    w.relay.tell,
			Stirred: stir,
		})
		w.relay.end()
		stir(false)
		cli.PauseFor(ctx, pause)
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
	w.relay.connect(ctx, w.client, w.host)
	if w.names == nil {
		if w.names, err = w.flags.engine.Names(ctx, w.engine, w.client); err != nil {
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
	if w.relay.open(w.names) { // who listens from now on needs a view from after that
		return w.show(ctx)
	}
	if !w.told {
		w.told = true
		w.log.WithFields(logrus.Fields{"host": w.host, "driver": strings.Join(w.names, ","),
			"networks": len(view.Networks), "containers": len(view.Containers)}).
			Info("the daemon knows what runs")
	}
	return "", nil
}

// find finds the daemon, and asks which host's it is.
func (w *onlooker) find(ctx context.Context) error {
	if w.client != nil {
		return nil
	}
	c, err := w.p.Find(ctx)
	if err != nil {
		return err
	}
	version, err := c.Version(ctx)
	if err != nil {
		c.Close()
		return err
	}
	w.client, w.host, w.names = c, version.Host, nil
	return nil
}

// drop lets the daemon be looked for anew: a managed plugin may come back as another one.
func (w *onlooker) drop() {
	if w.client != nil {
		w.relay.close()
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
