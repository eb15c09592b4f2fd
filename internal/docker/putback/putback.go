// Package putback moves containers back to their reserved addresses after an engine without names started them on
// others. It disconnects a container only when the data to reconnect it is on disk. After a crash it reconnects exactly
// the noted endpoints. It moves a container soon after its start or never, and never during a deploy.
//
// The witness finds containers on the wrong address (docker.Astray). A Keeper (putback.go) decides whether to move them
// (due.go) and in which order (queue.go), notes the endpoint (notes.go), and lets a pin.Hand move it.
package putback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// atOnce is how many containers are moved at a time.
const atOnce = 4

// retry is how long to wait at first for an engine that does not put a container on again, and longestRetry at most.
const (
	retry        = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// Records are what a Keeper asks and tells: service.Service, or cluster.Service.
type Records interface {
	Deploys(context.Context) ([]ipam.DeployLock, error)
	Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Note(context.Context, ipam.Event) error
}

// Config is what a Keeper needs. All of it is mandatory but Now.
type Config struct {
	Mode    Mode // on networks that say nothing of it
	Records Records
	Hand    Hand
	Expect  func(name string, homes []netip.Addr) (end func()) // docker.Roster's
	Notes   string                                             // path of the file
	Now     func() time.Time
	Log     *logrus.Entry
}

// Keeper puts containers back; a nil one does not. Its methods may be called from many goroutines at once.
type Keeper struct {
	cfg  Config
	todo chan []docker.Astray

	mu     sync.Mutex
	notes  *notes
	tried  map[string]trial // by the id of a container, and its network
	counts ipam.PutBackCounts
}

// New returns a Keeper, with what one before it has noted.
func New(cfg Config) (*Keeper, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	notes, err := openNotes(cfg.Notes)
	if err != nil {
		return nil, err
	}
	return &Keeper{cfg: cfg, notes: notes, todo: make(chan []docker.Astray, 1), tried: map[string]trial{}}, nil
}

// Counts is what came of it since the start.
func (k *Keeper) Counts() ipam.PutBackCounts {
	if k == nil {
		return ipam.PutBackCounts{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

// Tell tells who runs on another address than its own. It waits for nothing: whoever is left is told of again.
func (k *Keeper) Tell(all []docker.Astray) {
	if k == nil {
		return
	}
	select {
	case k.todo <- all:
	default:
	}
}

// Run puts back who is told of until ctx ends, and first who was left off by a daemon that was killed. One that is off
// its network is put on again before it returns, unless the engine refuses that: then it is tried again and again.
func (k *Keeper) Run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	defer k.cfg.Hand.Close()
	for pause := retry; ; {
		var again <-chan time.Time
		if k.finish(ctx) != nil {
			again = time.After(pause)
			pause = min(2*pause, longestRetry)
		} else {
			pause = retry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case all := <-k.todo:
			k.putBack(ctx, k.lastTold(ctx, all))
		}
	}
}

// calm is for how long nothing must have changed before containers are moved, and longestCalm how long that is waited
// for: while others start beside them it is not known who asks.
const (
	calm        = 300 * time.Millisecond
	longestCalm = 1500 * time.Millisecond
)

// lastTold waits until nothing more is told, and is what was told last.
func (k *Keeper) lastTold(ctx context.Context, all []docker.Astray) []docker.Astray {
	over := time.After(longestCalm)
	for {
		select {
		case all = <-k.todo:
		case <-time.After(calm):
			return all
		case <-over:
			return all
		case <-ctx.Done():
			return nil
		}
	}
}

// finish puts on again who is noted. An error is that the engine has not said yet how one is.
func (k *Keeper) finish(ctx context.Context) error {
	k.mu.Lock()
	left := k.notes.list()
	k.mu.Unlock()
	var errs []error
	for _, one := range left {
		ep := one.Endpoint
		err := k.cfg.Hand.Restore(ctx, ep, one.Addresses)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
			k.cfg.Log.WithError(err).WithField("container", ep.Container).
				Info("a container that was off its network cannot be on it any more")
		case err != nil:
			k.cfg.Log.WithError(err).WithField("container", ep.Container).
				Error("a container is not put on its network again")
			errs = append(errs, err)
			continue
		default:
			k.cfg.Log.WithFields(logrus.Fields{"container": ep.Container, "network": ep.Network}).
				Info("the container that was off its network is on it again")
		}
		k.forget(one)
	}
	return errors.Join(errs...)
}

// putBack moves those of a list that may be: one whose own address is another's waits until that one was moved. Where
// each waits for the next, one of them is taken off first and put on last.
func (k *Keeper) putBack(ctx context.Context, all []docker.Astray) {
	deploys, err := k.cfg.Records.Deploys(ctx)
	if err != nil {
		k.cfg.Log.WithError(err).Warn("it is not known what is being deployed, so that no container is put back")
		return
	}
	if all, err = k.wanted(ctx, all); err != nil {
		k.cfg.Log.WithError(err).Warn("it is not known what is put back on which network, so that no container is")
		return
	}
	q := k.queueOf(all, deploys)
	for len(q.seats) > 0 {
		step := q.ready()
		if len(step) > 0 {
			k.moveAll(ctx, step)
		} else if one := q.inRing(); k.takeOff(ctx, one) {
			continue
		} else {
			step = []*seat{one}
		}
		q.leave(step)
	}
}

// wanted are those of a list that are put back on their networks. On one that keeps nothing for whoever had it nobody
// is put back to what he had.
func (k *Keeper) wanted(ctx context.Context, all []docker.Astray) (wanted []docker.Astray, err error) {
	networks, err := k.cfg.Records.Networks(ctx, ipam.NetworkFilter{Brief: true})
	if err != nil {
		return nil, err
	}
	modes := map[ipam.ID]Mode{} // without an entry it is off: the network is gone
	for i := range networks {
		n := &networks[i]
		modes[n.ID] = cmp.Or(n.PutBack, k.cfg.Mode)
		if modes[n.ID] == All && !n.Sticky {
			modes[n.ID] = Reserved
		}
	}
	for _, a := range all {
		if mode := modes[a.Planned]; mode == All || mode == Reserved && a.Reserved {
			wanted = append(wanted, a)
		}
	}
	return wanted, nil
}

// moveAll moves some: those that ask for their addresses side by side, and the others one after the other, so that it
// is known of each that it is the one who asks.
func (k *Keeper) moveAll(ctx context.Context, all []*seat) {
	var moving sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, s := range all {
		if !s.reserved {
			continue
		}
		slots <- struct{}{}
		moving.Go(func() {
			defer func() { <-slots }()
			k.move(ctx, s)
		})
	}
	moving.Wait()
	for _, s := range all {
		if !s.reserved {
			k.move(ctx, s)
		}
	}
}

// move takes a container off its network, unless it is, and puts it on with its own addresses.
func (k *Keeper) move(ctx context.Context, s *seat) {
	if s.off == nil && !k.takeOff(ctx, s) {
		return
	}
	ctx = context.WithoutCancel(ctx) // what is off is put on, whoever asks to stop
	// A reserved address it asks for from now on. What is only remembered it is given this time, as it is known that it
	// is the one who asks, and nothing of that stays in the engine.
	end := k.cfg.Expect(s.Container, s.homes)
	off, err := k.cfg.Hand.PutOn(ctx, s.off.Endpoint, s.off.Addresses)
	end()
	cut := time.Since(s.cut)
	if !off {
		k.forget(*s.off)
		switch now, readErr := k.cfg.Hand.Endpoint(ctx, s.ID, s.Network); {
		case readErr != nil:
			err = errors.Join(err, readErr)
		case hasAll(now.Addresses, s.homes):
			err = nil
		default:
			err = errors.Join(fmt.Errorf("it was put on again, and has %v", now.Addresses), err)
		}
	}
	if err != nil {
		k.refused(s, err)
		return
	}
	k.mu.Lock()
	k.counts.Done++
	k.mu.Unlock()
	for i, home := range s.homes {
		k.log(s).WithFields(logrus.Fields{"had": s.has[i], "has": home, "cut_ms": cut.Milliseconds()}).
			Info("the container was put back to its own address")
		e := ipam.Event{Verb: ipam.LeasePutBack, Space: s.Space, Subnet: s.Subnet, Address: home, Name: s.Container,
			Detail: fmt.Sprintf("it had %s, and was cut off for %d ms", s.has[i], cut.Milliseconds())}
		if err := k.cfg.Records.Note(ctx, e); err != nil {
			k.log(s).WithError(err).Warn("that it was put back is not among the events")
		}
	}
}

func hasAll(has, want []netip.Addr) bool {
	return !slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(has, a) })
}

// takeOff takes a container off its network, with a note of it on disk. It does not where somebody asks to stop, or the
// container is not any more as it was seen: the next look tells.
func (k *Keeper) takeOff(ctx context.Context, s *seat) (done bool) {
	if ctx.Err() != nil {
		return false
	}
	k.tries(s.Astray)
	ep, err := k.cfg.Hand.Endpoint(ctx, s.ID, s.Network)
	switch {
	case err != nil:
		k.refused(s, err)
		return false
	case !ep.Running || len(ep.Asked) > 0 || !hasAll(ep.Addresses, s.has):
		return false
	}
	one := note{Endpoint: ep}
	if s.reserved {
		one.Addresses = s.homes
	}
	k.mu.Lock()
	err = k.notes.put(one)
	k.mu.Unlock()
	if err != nil {
		k.refused(s, fmt.Errorf("it cannot be noted what is needed to put it on again: %w", err))
		return false
	}
	s.cut = time.Now()
	if err := k.cfg.Hand.TakeOff(context.WithoutCancel(ctx), ep, one.Addresses); err != nil {
		k.forget(one)
		k.refused(s, err)
		return false
	}
	s.off = &one
	return true
}

func (k *Keeper) log(s *seat) *logrus.Entry {
	return k.cfg.Log.WithFields(logrus.Fields{"container": s.Container, "network": s.Network})
}

// refused notes that a container was not put back.
func (k *Keeper) refused(s *seat, why error) {
	k.mu.Lock()
	k.counts.Refused++
	k.mu.Unlock()
	k.log(s).WithError(why).Warn("a container that runs on another address than its own was not put back")
}

func (k *Keeper) forget(one note) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.notes.drop(one); err != nil {
		k.cfg.Log.WithError(err).Warn("the note of a container that is on its network again is left in its file")
	}
}
