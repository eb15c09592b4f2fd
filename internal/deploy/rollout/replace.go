package rollout

import (
	"context"
	"fmt"

	"berth/internal/deploy/scene"
)

// replace removes the stopped container of an instance and runs the next one. Unnamed volumes can be found only through
// the container that has them. So a container with such volumes is renamed and stays until the next one has them. It is
// removed before the next one runs, because both would write the volumes. The caller holds r.making.
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
	temporary, err := r.setAside(ctx, one, &before, kept[0].Name, canary)
	if err != nil {
		return "", err
	}
	id, err := r.make(ctx, s, one, wanted, canary, func(ctx context.Context) error {
		return r.takeAway(ctx, one, temporary, canary)
	})
	if id == "" {
		one.Container = "" // the renamed container has not failed, and its last lines are of no interest
	}
	return id, err
}

// takeAway removes the container of an instance. name is its current name.
func (r *run) takeAway(ctx context.Context, one *Instance, name string, canary bool) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: removing, Instance: one.Owner, Canary: canary, Detail: name})
	r.leaves(one)
	return r.Engine.Remove(ctx, one.Container)
}

// setAside renames a container with an unnamed volume, in the form of Compose's temporary names, and returns the name.
// After an interruption, the next deploy and Compose take the container for the replica itself. The prefix is the
// volume's id, because Compose would use the container's own id for its successor.
func (r *run) setAside(ctx context.Context, one *Instance, c *scene.Container, volume string, canary bool) (string,
	error) {
	r.leaves(one)
	if _, already := c.Ought(); already {
		return c.Name, nil
	}
	temporary := short(volume) + "_" + c.Name
	r.tell(Event{Step: naming, Instance: one.Owner, Canary: canary, Detail: temporary})
	if err := r.Engine.Rename(ctx, c.ID, temporary); err != nil {
		return "", fmt.Errorf("it has an anonymous volume, and cannot be renamed to %s until the next container has "+
			"that volume: %w",
			temporary, err)
	}
	return temporary, nil
}
