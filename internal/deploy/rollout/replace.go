package rollout

import (
	"context"
	"fmt"

	"berth/internal/deploy/scene"
)

// replace has the container of an instance, which is stopped, be gone, and the next one run in its place. Volumes that
// nobody named are found by the container that has them alone: such a one stands aside until the next one has them, so
// that they are there where none is made. It goes before the next one runs, since both would write them. The caller
// holds r.making.
func (r *run) replace(ctx context.Context, s *Service, one *Instance, canary bool) (string, error) {
	before, err := r.Engine.Container(ctx, one.Container)
	if err != nil && !scene.IsGone(err) {
		return "", err
	}
	wanted, kept := s.replica(one), anonymous(&before)
	wanted.Volumes = kept
	if len(kept) == 0 {
		if err := r.takeAway(ctx, one, one.Name, canary); err != nil {
			return "", err
		}
		return r.make(ctx, s, one, wanted, canary, nil)
	}
	aside, err := r.setAside(ctx, one, &before, kept[0].Name, canary)
	if err != nil {
		return "", err
	}
	id, err := r.make(ctx, s, one, wanted, canary, func(ctx context.Context) error {
		return r.takeAway(ctx, one, aside, canary)
	})
	if id == "" {
		one.Container = "" // what stands aside has not failed, and its last lines say nothing
	}
	return id, err
}

// takeAway removes the container of an instance, which is called so.
func (r *run) takeAway(ctx context.Context, one *Instance, name string, canary bool) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: removing, Instance: one.Owner, Canary: canary, Detail: name})
	r.leaves(one)
	return r.Engine.Remove(ctx, one.Container)
}

// setAside calls a container as what stands beside another one is called, by a volume that it has, and returns that
// name. Where a deploy is cut off then, the next one takes it for the replica itself, and so does Compose, which would
// call its successor by the container's own id.
func (r *run) setAside(ctx context.Context, one *Instance, c *scene.Container, volume string, canary bool) (string,
	error) {
	r.leaves(one)
	if _, already := c.Ought(); already {
		return c.Name, nil
	}
	aside := short(volume) + "_" + c.Name
	r.tell(Event{Step: naming, Instance: one.Owner, Canary: canary, Detail: aside})
	if err := r.Engine.Rename(ctx, c.ID, aside); err != nil {
		return "", fmt.Errorf("it has a volume without a name, and cannot be called %s until the next one has that: %w",
			aside, err)
	}
	return aside, nil
}
