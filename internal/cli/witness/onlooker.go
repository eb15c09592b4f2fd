package witness

import (
	"context"
	"strings"
	"sync"
	"time"

	"berth/internal/arrivals"
	"berth/internal/cli"
	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/docker/putback"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// How long an onlooker waits: for more events, so that several of them need only one view, and before it tries again.
const (
	calmTime   = 300 * time.Millisecond
	firstPause = time.Second
)

// onlooker reads an engine for a daemon. Either may be unreachable for a time.
type onlooker struct {
	*cli.Run  // its client is nil until the daemon is found
	engine    *docker.Engine
	connector *pin.Connector // moves containers
	arrivals  *arrivals.Announcer
	flags     witnessFlags
	log       *logrus.Entry

	host  string   // the daemon's
	names []string // the engine's names for the daemon; nil: not known yet

	relay relay // forwards events to the daemon

	logged bool            // the log says that the daemon knows what runs, since the last outage
	away   map[string]bool // who is unreachable; the log says so already
}

// run shows the engine to the daemon until ctx ends.
func (w *onlooker) run() error {
	ctx, cancel := context.WithCancel(w.Run)
	w.Run = w.With(ctx)
	woken := make(chan struct{}, 1)
	w.relay.wake = func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	w.relay.by = w
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx) })
	following.Go(func() { _ = w.arrivals.Run(ctx) })
	defer following.Wait()
	defer cancel()
	pause := firstPause
	for {
		wait := w.flags.every
		if who, err := w.show(); ctx.Err() != nil {
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
		case <-woken:
			cli.PauseFor(ctx, calmTime)
			select {
			case <-woken:
			default:
			}
		}
	}
}

// Locked implements ipam.Onlooker.
func (w *onlooker) Locked(ctx context.Context, q ipam.Question) ipam.Locked {
	return w.engine.Locked(ctx, q)
}

// Move implements ipam.Onlooker. Once begun, it continues even if the daemon is gone.
func (w *onlooker) Move(ctx context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	local, mode := putback.Local{Connector: w.connector}, putback.Mode(w.flags.putBack)
	return putback.Do(context.WithoutCancel(ctx), local, mode, order), nil
}

// follow forwards the engine's events and requests a view for each. If the event stream breaks off, it connects again.
func (w *onlooker) follow(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, w.flags.every) {
		wake := func(bool) { w.relay.wake() }
		_ = w.engine.Follow(ctx, docker.Listener{
			Drivers: w.relay.drivers,
			Begun: func() {
				pause = firstPause
				w.relay.begin()
				wake(false)
			},
			Tell:    w.relay.tell,
			Changed: wake,
		})
		w.relay.end()
		wake(false)
		cli.PauseFor(ctx, pause)
	}
}

// The two that can be unreachable.
const (
	theEngine = "the engine"
	theDaemon = "the daemon"
)

// show reads the engine and shows it to the daemon. With an error it returns which of them failed.
func (w *onlooker) show() (who string, err error) {
	if err := w.find(); err != nil {
		return theDaemon, err
	}
	w.relay.connect(w, w.Client, w.host)
	if w.names == nil {
		if w.names, err = w.flags.engine.Names(w.Run, w.engine); err != nil {
			return theEngine, err
		}
	}
	view, err := w.engine.View(w, w.host, w.names)
	if err != nil {
		return theEngine, err
	}
	w.arrivals.See(&view)
	if err := w.ShowEngine(w, view); err != nil {
		w.drop()
		return theDaemon, err
	}
	if w.relay.open(w.names) { // a view that is older than the event stream may lack something
		return w.show()
	}
	if !w.logged {
		w.logged = true
		w.log.WithFields(logrus.Fields{"host": w.host, "driver": strings.Join(w.names, ","),
			"networks": len(view.Networks), "containers": len(view.Containers)}).
			Info("the daemon knows the running containers")
	}
	return "", nil
}

// find connects to the daemon and asks for its host's name.
func (w *onlooker) find() error {
	if w.Client != nil {
		return nil
	}
	if err := w.Ask(); err != nil {
		return err
	}
	version, err := w.Version(w)
	if err != nil {
		w.drop()
		return err
	}
	w.host, w.names = version.Host, nil
	return nil
}

// drop disconnects from the daemon. The next find searches again, because a restarted managed plugin may have another
// socket.
func (w *onlooker) drop() {
	if w.Client != nil {
		w.relay.close()
		w.Close()
		w.Client = nil
	}
}

// lost logs who is unreachable, once.
func (w *onlooker) lost(who string, err error) {
	w.logged = false
	if !w.away[who] {
		w.away[who] = true
		w.log.WithError(err).Warnf("cannot reach %s; trying again until it answers", who)
	}
}

// back forgets who was unreachable.
func (w *onlooker) back() { clear(w.away) }
