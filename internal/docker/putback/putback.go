// Package putback moves containers back to their own addresses after an engine without names started them on others. An
// own address is reserved or, where a network's mode allows it, remembered. A container moves soon after its start or
// never, and never during a deploy. It is disconnected only when the data to reconnect it is on disk. After a crash
// exactly the noted endpoints are reconnected.
//
// The witness finds containers on the wrong address (docker.Astray). A Worker (putback.go) decides whether to move them
// (due.go) and in which order (queue.go). It notes each endpoint on disk (notes.go) and moves it through a Connector
// (remote.go), locally or by `berth witness`.
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

// atOnce is the most containers that move at a time.
const atOnce = 4

// retry is the first pause before the next try to reconnect a container. Each pause is twice the one before, up to
// longestRetry.
const (
	retry        = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// finishTime is how long a move in progress may take after the stop. `docker plugin disable` waits ten seconds in all.
const finishTime = 4 * time.Second

// Records are the records that a Worker reads and writes: a service.Service or a cluster.Service.
type Records interface {
	Deploys(context.Context) ([]ipam.DeployLock, error)
	Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Note(context.Context, ipam.Event) error
}

// Config configures a Worker. Only Now may be nil.
type Config struct {
	Mode      Mode // of networks without a mode of their own
	Records   Records
	Connector Connector
	Expect    func(name string, homes []netip.Addr) (end func()) // docker.Roster.Expect
	Notes     string                                             // path of the file
	Now       func() time.Time
	Log       *logrus.Entry
}

// Worker puts containers back. The methods of a nil Worker do nothing. They are safe for concurrent use.
type Worker struct {
	cfg  Config
	todo chan []docker.Astray

	mu     sync.Mutex
	notes  *notes
	tried  map[string]trial // by container id and network
	counts ipam.PutBackCounts
}

// New returns a Worker with the notes of the previous one. It fails if they cannot be read.
func New(cfg Config) (*Worker, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	notes, err := openNotes(cfg.Notes)
	if err != nil {
		return nil, err
	}
	return &Worker{cfg: cfg, notes: notes, todo: make(chan []docker.Astray, 1), tried: map[string]trial{}}, nil
}

// Counts counts the moves since the start.
func (k *Worker) Counts() ipam.PutBackCounts {
	if k == nil {
		return ipam.PutBackCounts{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

// Tell reports the containers on wrong addresses. It never waits: if the Worker is busy, the next look reports them
// again.
func (k *Worker) Tell(all []docker.Astray) {
	if k == nil {
		return
	}
	select {
	case k.todo <- all:
	default:
	}
}

// Run reconnects the containers that a killed daemon left disconnected. Then it moves the containers that Tell reports,
// until ctx ends. Before it returns, it reconnects what it has disconnected, for which the engine asks Berth. If the
// engine refuses that or does not answer in time, Run or the next daemon tries again.
func (k *Worker) Run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	defer k.cfg.Connector.Close()
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
			k.putBack(ctx, k.lastReported(ctx, all))
		}
	}
}

// quiet is the time without a new report before containers move, and longestQuiet the longest wait for it. While other
// containers start, the requesting one is unknown.
const (
	quiet        = 300 * time.Millisecond
	longestQuiet = 1500 * time.Millisecond
)

// lastReported waits until reports pause and returns the last one.
func (k *Worker) lastReported(ctx context.Context, all []docker.Astray) []docker.Astray {
	over := time.After(longestQuiet)
	for {
		select {
		case all = <-k.todo:
		case <-time.After(quiet):
			return all
		case <-over:
			return all
		case <-ctx.Done():
			return nil
		}
	}
}

// finishing returns a context that goes on for finishTime after ctx has ended.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })
	return longer, func() { stop(); cancel() }
}

// finish reconnects the noted containers. It returns an error if some are left.
func (k *Worker) finish(ctx context.Context) error {
	ctx, end := finishing(ctx)
	defer end()
	k.mu.Lock()
	left := k.notes.list()
	k.mu.Unlock()
	var errs []error
	for _, one := range left {
		ep := one.Endpoint
		err := k.cfg.Connector.Restore(ctx, ep, one.Addresses)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
			k.cfg.Log.WithError(err).WithField("container", ep.Container).
				Info("a container that was off its network cannot be reconnected any more, because it or the network " +
					"is gone")
		case err != nil:
			k.cfg.Log.WithError(err).WithField("container", ep.Container).
				Error("cannot reconnect a container to its network")
			errs = append(errs, err)
			continue
		default:
			k.cfg.Log.WithFields(logrus.Fields{"container": ep.Container, "network": ep.Network}).
				Info("the container that was off its network is back on it")
		}
		k.forget(one)
	}
	return errors.Join(errs...)
}

// putBack moves the containers that may move, each after the one that has its address. In a ring one container is
// disconnected first and reconnected last.
func (k *Worker) putBack(ctx context.Context, all []docker.Astray) {
	deploys, err := k.cfg.Records.Deploys(ctx)
	if err != nil {
		k.cfg.Log.WithError(err).Warn("Berth cannot read what is being deployed, so it moves no container back")
		return
	}
	if all, err = k.wanted(ctx, all); err != nil {
		k.cfg.Log.WithError(err).Warn("Berth cannot read which networks move containers back, so it moves no " +
			"container back")
		return
	}
	q := k.queueOf(all, deploys)
	for len(q.attachments) > 0 {
		step := q.ready()
		if len(step) > 0 {
			k.moveAll(ctx, step)
		} else if one := q.inRing(); k.disconnect(ctx, one) {
			continue
		} else {
			step = []*attachment{one}
		}
		q.leave(step)
	}
}

// wanted selects the containers whose network wants them back. On a network that is not sticky only reserved addresses
// count.
func (k *Worker) wanted(ctx context.Context, all []docker.Astray) (wanted []docker.Astray, err error) {
	networks, err := k.cfg.Records.Networks(ctx, ipam.NetworkFilter{Brief: true})
	if err != nil {
		return nil, err
	}
	modes := map[ipam.ID]Mode{} // a missing network counts as off
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

// moveAll moves containers with reserved addresses in parallel. The others do not ask for an address, so they move one
// by one: then the only request is theirs.
func (k *Worker) moveAll(ctx context.Context, all []*attachment) {
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

// move disconnects a container, unless it is disconnected already, and reconnects it with its own addresses.
func (k *Worker) move(ctx context.Context, s *attachment) {
	if s.off == nil && !k.disconnect(ctx, s) {
		return
	}
	ctx, done := finishing(ctx) // a disconnected container is reconnected even during a stop
	defer done()
	// The endpoint asks for reserved addresses from now on. The others, also those that it has rightly, are given once
	// through Expect, and the engine does not keep them.
	right := slices.DeleteFunc(slices.Clone(s.off.Endpoint.Addresses),
		func(a netip.Addr) bool { return slices.Contains(s.has, a) })
	end := k.cfg.Expect(s.Container, slices.Concat(s.homes, right))
	off, err := k.cfg.Connector.Reconnect(ctx, s.off.Endpoint, s.off.Addresses)
	end()
	cut := time.Since(s.cut)
	if !off {
		k.forget(*s.off)
		switch now, readErr := k.cfg.Connector.Endpoint(ctx, s.ID, s.Network); {
		case readErr != nil:
			err = errors.Join(err, readErr)
		case hasAll(now.Addresses, s.homes):
			err = nil
		default:
			err = errors.Join(fmt.Errorf("it was reconnected, and has %v", now.Addresses), err)
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
			Info("the container was moved back to its own address")
		e := ipam.Event{Verb: ipam.LeasePutBack, Space: s.Space, Subnet: s.Subnet, Address: home, Name: s.Container,
			Detail: fmt.Sprintf("it had %s, and was off the network for %d ms", s.has[i], cut.Milliseconds())}
		if err := k.cfg.Records.Note(ctx, e); err != nil {
			k.log(s).WithError(err).Warn("cannot write the event of the move")
		}
	}
}

func hasAll(has, want []netip.Addr) bool {
	return !slices.ContainsFunc(want, func(a netip.Addr) bool { return !slices.Contains(has, a) })
}

// disconnect disconnects a container after it has noted it on disk. It does nothing during a stop, or if the container
// has changed since the look; the next look reports it again.
func (k *Worker) disconnect(ctx context.Context, s *attachment) (done bool) {
	if ctx.Err() != nil {
		return false
	}
	k.tries(s.Astray)
	ep, err := k.cfg.Connector.Endpoint(ctx, s.ID, s.Network)
	switch {
	case err != nil:
		k.refused(s, err)
		return false
	case !ep.Running || !hasAll(ep.Addresses, s.has):
		return false
	}
	one := note{Endpoint: ep}
	if s.reserved { // else it asks for nothing
		one.Addresses = slices.Concat(s.homes, s.Own)
	}
	if !hasAll(one.Addresses, ep.Asked) {
		return false // its user chose an address
	}
	if ep.LosesMAC {
		k.refused(s, errors.New(ep.LossOfMAC()))
		return false
	}
	k.mu.Lock()
	err = k.notes.put(one)
	k.mu.Unlock()
	if err != nil {
		k.refused(s, fmt.Errorf("cannot save what is needed to reconnect it: %w", err))
		return false
	}
	s.cut = time.Now()
	ctx, end := finishing(ctx)
	defer end()
	if err := k.cfg.Connector.Disconnect(ctx, ep, one.Addresses); err != nil {
		k.forget(one)
		k.refused(s, err)
		return false
	}
	s.off = &one
	return true
}

func (k *Worker) log(s *attachment) *logrus.Entry {
	return k.cfg.Log.WithFields(logrus.Fields{"container": s.Container, "network": s.Network})
}

// refused logs and counts a container that was not put back.
func (k *Worker) refused(s *attachment, why error) {
	k.mu.Lock()
	k.counts.Refused++
	k.mu.Unlock()
	k.log(s).WithError(why).Warn("Berth did not move a container back to its own address")
}

func (k *Worker) forget(one note) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.notes.drop(one); err != nil {
		k.cfg.Log.WithError(err).Warn("cannot delete the note of a container that is back on its network")
	}
}
