// Package putback puts containers back to the addresses that are reserved for them, where an engine that sends no names
// could not tell who they were when they started. It promises that a container is taken off a network only when
// everything that is needed to put it on again is on disk; that what is noted there, and nothing else, is put on again
// after a crash; that a container is moved once for each start, soon after it, and never while it is being deployed.
//
// The witness finds who runs on another address than its own (docker.Astray). A Keeper (putback.go) decides whether it
// is moved, notes its endpoint (notes.go), and has a pin.Hand move it.
package putback

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// soon is how long after its start a container may be cut off: nobody relies on its connections yet.
const soon = 30 * time.Second

// atOnce is how many containers are moved at a time.
const atOnce = 4

// retry is how long to wait for an engine that does not put a container on again.
const retry = 5 * time.Second

// Records are what a Keeper asks and tells: service.Service, or cluster.Estate.
type Records interface {
	Deploys(context.Context) ([]ipam.DeployLock, error)
	Note(context.Context, ipam.Event) error
}

// Config is what a Keeper needs. All of it is mandatory but Now.
type Config struct {
	Records Records
	Hand    *pin.Hand
	Notes   string // path of the file
	Now     func() time.Time
	Log     *logrus.Entry
}

// Keeper puts containers back; a nil one does not. Its methods may be called from many goroutines at once.
type Keeper struct {
	cfg  Config
	todo chan []docker.Astray

	mu     sync.Mutex
	notes  *notes
	tried  map[string]time.Time // the start after which a container was tried, by id and network
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
	return &Keeper{cfg: cfg, notes: notes, todo: make(chan []docker.Astray, 1), tried: map[string]time.Time{}}, nil
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
// its network is put on again before it returns.
func (k *Keeper) Run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	defer k.cfg.Hand.Close()
	for k.finish(ctx) != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case all := <-k.todo:
			k.putBack(ctx, all)
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
		err := k.cfg.Hand.PutOn(ctx, ep, one.Addresses)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
			k.cfg.Log.WithField("container", ep.Container).Info("the container that was off its network is gone")
		case err != nil:
			k.cfg.Log.WithError(err).WithField("container", ep.Container).Error("a container is not put on its network again")
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

// putBack moves those of a list that may be.
func (k *Keeper) putBack(ctx context.Context, all []docker.Astray) {
	deploys, err := k.cfg.Records.Deploys(ctx)
	if err != nil {
		k.cfg.Log.WithError(err).Warn("it is not known what is being deployed, so that no container is put back")
		return
	}
	var moving sync.WaitGroup
	defer moving.Wait()
	slots := make(chan struct{}, atOnce)
	for _, seat := range bySeat(all) {
		if !k.due(seat[0], deploys) {
			continue
		}
		slots <- struct{}{}
		moving.Go(func() {
			defer func() { <-slots }()
			k.move(ctx, seat)
		})
	}
}

// bySeat joins the addresses of both families that a container has on one network.
func bySeat(all []docker.Astray) (seats [][]docker.Astray) {
	at := map[string]int{}
	for _, a := range all {
		i, there := at[a.ID+a.Network]
		if !there {
			i = len(seats)
			at[a.ID+a.Network] = i
			seats = append(seats, nil)
		}
		seats[i] = append(seats[i], a)
	}
	return seats
}

// due tells whether a container may be moved, and notes that it was tried after this start.
func (k *Keeper) due(a docker.Astray, deploys []ipam.DeployLock) bool {
	now := k.cfg.Now()
	if age := now.Sub(a.Started); age < 0 || age > soon {
		return false
	}
	for i := range deploys {
		if deploys[i].Project == a.Project {
			return false
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, start := range k.tried {
		if now.Sub(start) > soon {
			delete(k.tried, key)
		}
	}
	key := a.ID + a.Network
	if k.tried[key].Equal(a.Started) {
		return false
	}
	k.tried[key] = a.Started
	return true
}

// move takes a container off its network and puts it on with its own addresses.
func (k *Keeper) move(ctx context.Context, seat []docker.Astray) {
	a := seat[0]
	log := k.cfg.Log.WithFields(logrus.Fields{"container": a.Container, "network": a.Network})
	homes := make([]netip.Addr, 0, len(seat))
	for _, one := range seat {
		homes = append(homes, one.Home)
	}
	cut, err := k.moveNoted(ctx, a, homes)
	k.mu.Lock()
	if err == nil {
		k.counts.Done++
	} else {
		k.counts.Refused++
	}
	k.mu.Unlock()
	if err != nil {
		log.WithError(err).Warn("a container that runs on another address than is reserved for it was not put back")
		return
	}
	for _, one := range seat {
		log.WithFields(logrus.Fields{"had": one.Has, "has": one.Home, "cut_ms": cut.Milliseconds()}).
			Info("the container was put back to the address that is reserved for it")
		e := ipam.Event{Verb: ipam.LeasePutBack, Space: one.Space, Subnet: one.Subnet, Address: one.Home, Name: one.Container,
			Detail: fmt.Sprintf("it had %s, and was cut off for %d ms", one.Has, cut.Milliseconds())}
		if err := k.cfg.Records.Note(ctx, e); err != nil {
			log.WithError(err).Warn("that it was put back is not among the events")
		}
	}
}

// moveNoted moves a container with a note of it on disk for as long as it may be off its network.
func (k *Keeper) moveNoted(ctx context.Context, a docker.Astray, homes []netip.Addr) (cut time.Duration, err error) {
	ep, err := k.cfg.Hand.Endpoint(ctx, a.ID, a.Network)
	if err != nil {
		return 0, err
	}
	if !ep.Running || len(ep.Asked) > 0 {
		return 0, ipam.Refuse(ipam.ErrChanged, "%s does not run any more as it did", a.Container)
	}
	one := note{ep, homes}
	k.mu.Lock()
	err = k.notes.put(one)
	k.mu.Unlock()
	if err != nil {
		return 0, fmt.Errorf("it cannot be noted what is needed to put it on again: %w", err)
	}
	moved, err := k.cfg.Hand.Move(ctx, ep, homes)
	if moved.Off {
		return moved.Cut, err // the note stays: it is put on at the next start
	}
	k.forget(one)
	return moved.Cut, err
}

func (k *Keeper) forget(one note) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.notes.drop(one); err != nil {
		k.cfg.Log.WithError(err).Warn("the note of a container that is on its network again is left in its file")
	}
}
