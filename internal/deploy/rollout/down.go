package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// down is an instance that is on its way to be stopped, by whoever comes first.
type down struct {
	mu   sync.Mutex
	done bool
	ran  bool // when it was stopped
	left bool // its container has made place for the next one: it is removed, called otherwise, or no longer needed
}

func (r *run) downOf(one *Instance) *down {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downs[one] == nil {
		r.downs[one] = &down{}
	}
	return r.downs[one]
}

// down drains and stops the container of an instance, with those that cannot run without it, and has a snapshot taken.
// Where a drain fails nothing is stopped; where anything does after that, what was stopped is started again.
func (r *run) down(ctx context.Context, one *Instance) error {
	d := r.downOf(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return nil
	}
	c, err := r.Engine.Container(ctx, one.Container)
	if scene.IsGone(err) {
		d.done = true
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.drain(ctx, one, &c); err != nil {
		return err
	}
	sharing := r.sharing(one)
	for i, other := range sharing {
		if err := r.down(ctx, other); err != nil {
			return errors.Join(fmt.Errorf("%s, which uses what it has: %w", other.Owner, err),
				r.up(ctx, sharing[:i]))
		}
	}
	if err := r.stop(ctx, one, &c); err != nil {
		return errors.Join(err, r.up(ctx, sharing))
	}
	d.done, d.ran = true, running(c.State)
	return nil
}

// leaves remembers that the container of an instance has no way back from here on.
func (r *run) leaves(one *Instance) {
	d := r.downOf(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = true
}

// stop stops the container of an instance, and has a snapshot taken, without which it is started again.
func (r *run) stop(ctx context.Context, one *Instance, c *scene.Container) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: stopping, Instance: one.Owner, Detail: one.Name})
	// An engine that was asked goes on with it though nobody waits; what is started before it has ended stops then.
	if err := r.Engine.Stop(context.WithoutCancel(ctx), one.Container); err != nil {
		return err
	}
	err := r.snapshot(ctx, one, c)
	if err == nil || !c.Runs() {
		return err
	}
	if startErr := r.again(ctx, one); startErr != nil {
		return errors.Join(err, fmt.Errorf("and it cannot be started again: %w", startErr))
	}
	return err
}

// up starts instances again that were stopped for another one, which stays after all.
func (r *run) up(ctx context.Context, all []*Instance) error {
	var failed []error
	for _, one := range all {
		if one.State != "running" {
			continue
		}
		if err := r.again(ctx, one); err != nil {
			failed = append(failed, fmt.Errorf("%s cannot be started again: %w", one.Owner, err))
		}
		r.mu.Lock()
		delete(r.downs, one)
		r.mu.Unlock()
	}
	return errors.Join(failed...)
}

// againWithin is how long the start of a container may take that is to run as before.
const againWithin = time.Minute

// again starts a container that was stopped, also where the deploy has ended meanwhile.
func (r *run) again(ctx context.Context, one *Instance) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), againWithin)
	defer cancel()
	r.tell(Event{Step: starting, Instance: one.Owner, Detail: one.Name})
	return r.Engine.Start(ctx, one.Container)
}

// sharing are the instances that cannot go on without the container of another one.
func (r *run) sharing(one *Instance) (all []*Instance) {
	for _, s := range r.plan.Services {
		for _, other := range s.Instances {
			if other.Do == Recreate && slices.Contains(other.Uses, one.Container) {
				all = append(all, other)
			}
		}
	}
	return all
}

// drain has a container that runs prepare for its end. That it fails, or takes too long, fails the instance.
func (r *run) drain(ctx context.Context, one *Instance, c *scene.Container) error {
	hook := r.hook(one, func(s *Service) *deploy.Hook { return s.Drain })
	if hook == nil || !c.Runs() {
		return nil
	}
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: draining, Instance: one.Owner, Detail: one.Name})
	if err := r.Engine.Exec(ctx, one.Container, hook.Command, hook.Timeout); err != nil {
		return fmt.Errorf("it was not drained, and goes on: %w", err)
	}
	return nil
}

// hook is one of the service that an instance is of, where the files have that still.
func (r *run) hook(one *Instance, which func(*Service) *deploy.Hook) *deploy.Hook {
	s := r.plan.service(one.Service)
	if s == nil || s.Worker || one.Leftover {
		return nil
	}
	return which(s)
}
