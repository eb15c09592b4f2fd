package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"berth/internal/deploy/scene"
)

// shift is a set of workers that run together. None of them needs another.
type shift struct {
	*run
	all []*worked

	mu     sync.Mutex // for the results
	failed []error
}

// worked is a replica of a worker.
type worked struct {
	*Instance
	service *Service
	id      string          // of its container; empty: none
	made    scene.Container // its container at its end
	ended   bool
	err     error // why it failed or did not start
	cleared bool
}

// together runs workers to their ends, at most the number in the files at the same time. First their volumes are
// copied, and then the services that they need start, because a copy may stop these. The workers' containers are
// created one after the other, because Compose counts them. After a failure no further one starts, and running ones
// continue to their end.
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
	slots := make(chan struct{}, max(1, r.plan.Workers))
	var running sync.WaitGroup
	for _, w := range sh.all {
		slots <- struct{}{}
		if sh.hasFailed() {
			break
		}
		var err error
		w.id, err = r.begin(ctx, w.service, w.Instance)
		running.Go(func() {
			defer func() { <-slots }()
			sh.await(ctx, w, err)
		})
	}
	running.Wait()
	for _, s := range services { // one has failed, so others did not start
		sh.clear(ctx, s)
	}
	return errors.Join(sh.failed...)
}

// ready prepares everything that the workers need.
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

// await waits for the end of a worker that was started, unless err says that it was not. The last one of its service
// deletes all of them.
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

// clear deletes the containers of a worker that have ended, with their addresses, whatever the result. If all
// were successful, it records that the worker has run. If the deploy was ended, it leaves them to the next deploy.
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
		sh.tell(Event{Step: Done, Instance: w.Owner, Detail: "it has run and was deleted"})
	}
}

func (sh *shift) hasFailed() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.failed) > 0
}

// begin starts a worker, or returns the one that an earlier deploy has started.
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
