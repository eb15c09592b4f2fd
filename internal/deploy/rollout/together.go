package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"berth/internal/deploy/scene"
)

// shift are workers that run together: none of them needs another one.
type shift struct {
	*run
	all []*worked

	mu     sync.Mutex // of what has become of them
	failed []error
}

// worked is a replica of a worker.
type worked struct {
	*Instance
	service *Service
	id      string          // of its container; empty: there is none
	made    scene.Container // as it was when it had ended
	ended   bool
	err     error // that it ended with, or did not begin
	cleared bool
}

// together runs workers to their ends, at most so many at once as the files say, behind what they need, and that behind
// the copies of their own volumes, which take it away. Their containers are made one after the other, since Compose
// counts them. After a failure no further one begins, and those that run go on to their ends.
func (r *run) together(ctx context.Context, services []*Service) error {
	sh := &shift{run: r}
	for _, s := range services {
		for _, one := range s.Instances {
			if one.Do == Work {
				sh.all = append(sh.all, &worked{Instance: one, service: s})
			}
		}
	}
	if err := sh.ready(ctx, services); err != nil {
		return err
	}
	places := make(chan struct{}, max(1, r.plan.Workers))
	var running sync.WaitGroup
	for _, w := range sh.all {
		places <- struct{}{}
		if sh.hasFailed() {
			break
		}
		var err error
		w.id, err = r.begin(ctx, w.service, w.Instance)
		running.Go(func() {
			defer func() { <-places }()
			sh.await(ctx, w, err)
		})
	}
	running.Wait()
	for _, s := range services { // of which one has failed, so that others did not begin
		sh.clear(ctx, s)
	}
	return errors.Join(sh.failed...)
}

// ready has all be there that the workers need.
func (sh *shift) ready(ctx context.Context, services []*Service) error {
	for _, w := range sh.all {
		if w.Successor != "" {
			continue
		}
		if err := sh.renewed(ctx, w.Instance); err != nil {
			return sh.fail(ctx, w.Instance, false, err)
		}
	}
	return sh.needed(ctx, services...)
}

// await waits until a worker has ended, which was begun, unless with err. The last of its service to end clears all of
// them away.
func (sh *shift) await(ctx context.Context, w *worked, err error) {
	var made scene.Container
	if err == nil {
		sh.tell(Event{Step: Running, Instance: w.Owner})
		err = sh.Engine.Ends(ctx, w.id)
	}
	if err == nil {
		made, err = sh.Engine.Container(ctx, w.id)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil {
		w.Container = w.id
		err = sh.fail(ctx, w.Instance, false, err)
	}
	sh.mu.Lock()
	w.ended, w.made, w.err = true, made, err
	if err != nil {
		sh.failed = append(sh.failed, err)
	}
	last := !slices.ContainsFunc(sh.all, func(other *worked) bool {
		return other.service == w.service && !other.ended
	})
	sh.mu.Unlock()
	if last {
		sh.clear(ctx, w.service)
	}
}

// clear deletes the containers of a worker that have ended, with their addresses, whatever came of them (BO-11), and
// remembers that it has run where all of them have to a good end. Where the deploy was ended the next one goes on with
// them.
func (sh *shift) clear(ctx context.Context, s *Service) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var good []*worked
	all := 0
	for _, w := range sh.all {
		if w.service != s {
			continue
		}
		if all++; !w.ended || w.cleared || ctx.Err() != nil {
			continue
		}
		w.cleared = true
		if err := sh.clearAway(ctx, w.Instance, w.id); err != nil {
			sh.failed = append(sh.failed, fmt.Errorf("%s cannot be deleted: %w", w.Owner, err))
		} else if w.err == nil {
			good = append(good, w)
		}
	}
	if len(good) == 0 {
		return
	}
	if len(good) == all {
		made := &good[0].made
		if err := sh.Ran(ctx, s.Name, Ran{Hash: made.Hash, Image: made.ImageID}); err != nil {
			sh.failed = append(sh.failed, err)
			return
		}
	}
	for _, w := range good {
		sh.tell(Event{Step: Done, Instance: w.Owner, Detail: "it has run, and is deleted"})
	}
}

func (sh *shift) hasFailed() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.failed) > 0
}

// begin has a worker run: the one that an earlier deploy has begun, or a new one.
func (r *run) begin(ctx context.Context, s *Service, one *Instance) (id string, err error) {
	if err := r.may(ctx); err != nil {
		return "", err
	}
	if one.Successor != "" {
		return one.Successor, nil
	}
	if one.Container != "" {
		if err := r.end(ctx, one); err != nil {
			return "", err
		}
	}
	r.making.Lock()
	defer r.making.Unlock()
	return r.make(ctx, s, one, s.replica(one), false, nil)
}

// clearAway deletes a worker with its addresses.
func (r *run) clearAway(ctx context.Context, one *Instance, id string) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	if id != "" {
		if err := r.Engine.Stop(ctx, id); err != nil {
			return err
		}
		if err := r.Engine.Remove(ctx, id); err != nil {
			return err
		}
	}
	return r.Release(ctx, one.Owner)
}
