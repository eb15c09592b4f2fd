package rollout

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
)

// shownLines is how many of the last lines of a container that failed are shown.
const shownLines = 10

// exchange makes an instance what the plan wants: it is made, made anew, or started, and watched until it works.
func (r *run) exchange(ctx context.Context, s *Service, one *Instance, canary bool) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	id, err := r.renew(ctx, s, one, canary)
	if err == nil {
		r.tell(Event{Step: Watching, Instance: one.Owner, Canary: canary})
		err = r.watch(ctx, s, one, id, canary)
	}
	if err != nil {
		if id != "" {
			one.Container = id
		}
		return r.fail(ctx, one, canary, err)
	}
	r.tell(Event{Step: Done, Instance: one.Owner, Canary: canary})
	return nil
}

// renew has a container of the instance run, and returns its id.
func (r *run) renew(ctx context.Context, s *Service, one *Instance, canary bool) (string, error) {
	if one.Do == Start {
		return one.Container, r.Engine.Start(ctx, one.Container)
	}
	if one.Do == Recreate {
		if err := r.stop(ctx, one); err != nil {
			return "", err
		}
	}
	if err := r.clear(ctx, one); err != nil {
		return "", err
	}
	r.making.Lock()
	defer r.making.Unlock()
	if err := r.may(ctx); err != nil {
		return "", err
	}
	if one.Do == Recreate {
		r.tell(Event{Step: Removing, Instance: one.Owner, Canary: canary, Detail: one.Name})
		if err := r.Engine.Remove(ctx, one.Container); err != nil {
			return "", err
		}
	}
	r.tell(Event{Step: Making, Instance: one.Owner, Canary: canary})
	wanted := single.Replica{Service: one.Service, Number: one.Number}
	for _, a := range one.On {
		if a.Fixed {
			wanted.On = append(wanted.On, single.Endpoint{Network: a.Network, Addresses: a.Gets})
		}
	}
	return r.Maker.Make(ctx, wanted, func(ctx context.Context, id string) error { return r.fits(ctx, s, one, id) })
}

// clear stops those that have an address which the instance gets, and get another one themselves: where two change
// places, or more in a ring, none can begin before another one has stopped.
func (r *run) clear(ctx context.Context, one *Instance) error {
	for _, s := range r.plan.Services {
		for _, other := range s.Instances {
			if other != one && other.Do == Recreate && other.standsIn(one) {
				if err := r.stop(ctx, other); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// standsIn tells whether an instance has, and is to leave, an address that another one gets.
func (other *Instance) standsIn(one *Instance) bool {
	for _, a := range one.On {
		for _, b := range other.On {
			if a.Network == b.Network && slices.ContainsFunc(a.Gets, func(addr netip.Addr) bool {
				return slices.Contains(b.Has, addr) && !slices.Contains(b.Gets, addr)
			}) {
				return true
			}
		}
	}
	return false
}

func (r *run) stop(ctx context.Context, one *Instance) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: Stopping, Instance: one.Owner, Detail: one.Name})
	return r.Engine.Stop(ctx, one.Container, 0)
}

// fits looks at a container before its first start: that it is the replica that was meant.
func (r *run) fits(ctx context.Context, s *Service, one *Instance, id string) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case c.Number != one.Number:
		return fmt.Errorf("it is number %d of %s that was made, and %d was meant", c.Number, s.Name, one.Number)
	case s.Hash != "" && c.Hash != s.Hash:
		return fmt.Errorf("the files have changed since the plan was made: %s has another configuration", s.Name)
	}
	for _, a := range one.On {
		on, there := c.At(a.Network)
		if there && a.Fixed && !sameAddresses(on.Fixed, a.Gets) {
			return fmt.Errorf("%s was made without its address %s on %s", c.Name, join(a.Gets), a.Network)
		}
	}
	return nil
}

// watch waits until an instance works, with the addresses that the plan gives it.
func (r *run) watch(ctx context.Context, s *Service, one *Instance, id string, canary bool) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range one.On {
		on, _ := c.At(a.Network)
		if c.Runs() && !sameAddresses(on.Addresses, a.Gets) {
			return fmt.Errorf("%s runs with %s on %s, and %s is reserved for it", c.Name, join(on.Addresses), a.Network,
				join(a.Gets))
		}
	}
	span := s.Update.Watch
	if canary {
		span = s.Update.CanaryWatch
	}
	return r.Engine.Watch(ctx, id, scene.Span(span))
}

// fail tells of an instance that failed, with the last that it has said.
func (r *run) fail(ctx context.Context, one *Instance, canary bool, err error) error {
	e := Event{Step: Failed, Instance: one.Owner, Canary: canary, Detail: err.Error()}
	if one.Container != "" {
		lines, logErr := r.Engine.LastLines(context.WithoutCancel(ctx), one.Container, shownLines)
		if logErr == nil {
			e.Lines = slices.Clone(lines)
		}
	}
	r.tell(e)
	return fmt.Errorf("%s: %w", one.Owner, err)
}
