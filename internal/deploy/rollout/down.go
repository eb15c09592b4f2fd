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

// down is the stop of an instance, which the first caller makes.
type down struct {
	mu   sync.Mutex
	done bool
	ran  bool // it ran before the stop
	left bool // its container cannot come back: it is removed, renamed, or no longer needed
}

func (r *run) downOf(one *Instance) *down {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.downs[one] == nil {
		r.downs[one] = &down{}
	}
	return r.downs[one]
}

// down drains and stops the container of an instance and those that cannot run without it, and takes a snapshot. If a
// drain fails, nothing is stopped. If a later step fails, the stopped containers are started again.
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
			return errors.Join(fmt.Errorf("cannot stop %s, which shares its resources: %w", other.Owner, err),
				r.up(ctx, sharing[:i]))
		}
	}
	if err := r.stop(ctx, one, &c); err != nil {
		return errors.Join(err, r.up(ctx, sharing))
	}
	d.done, d.ran = true, running(c.State)
	return nil
}

// leaves records that the container of an instance cannot come back from now on.
func (r *run) leaves(one *Instance) {
	d := r.downOf(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = true
}

// stop stops the container of an instance and takes a snapshot. If the snapshot fails, it starts the container again.
func (r *run) stop(ctx context.Context, one *Instance, c *scene.Container) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: stopping, Instance: one.Owner, Detail: one.Name})
	// The engine completes a stop even if nobody waits. A container that is started before that end would stop again.
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

// up starts instances again that were stopped for another one, which now stays.
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

// againWithin bounds the restart of a container.
const againWithin = time.Minute

// again starts a stopped container, even if the deploy was ended meanwhile.
func (r *run) again(ctx context.Context, one *Instance) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), againWithin)
	defer cancel()
	r.tell(Event{Step: starting, Instance: one.Owner, Detail: one.Name})
	return r.Engine.Start(ctx, one.Container)
}

// sharing returns the instances that cannot run without the container of another one.
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

// drain runs the drain hook in a running container. If it fails or takes too long, the instance fails.
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
		return fmt.Errorf("it was not drained, so it keeps running: %w", err)
	}
	return nil
}

// hook returns a hook of an instance's service, or nil if the service is a worker or the instance a leftover.
func (r *run) hook(one *Instance, which func(*Service) *deploy.Hook) *deploy.Hook {
	s := r.plan.service(one.Service)
	if s == nil || s.Worker || one.Leftover {
		return nil
	}
	return which(s)
}
