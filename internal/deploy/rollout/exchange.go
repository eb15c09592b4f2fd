package rollout

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
)

// shownLines is the number of last lines shown of a failed container.
const shownLines = 10

// exchange creates, recreates or starts an instance as planned, and watches it until it works.
func (r *run) exchange(ctx context.Context, s *Service, one *Instance, canary bool) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	r.turns[one] = true
	r.mu.Unlock()
	var id string
	var err error
	if one.Do == Recreate && s.Update.StartFirst {
		id, err = r.startFirst(ctx, s, one, canary)
	} else if id, err = r.renew(ctx, s, one, canary); err == nil {
		err = r.works(ctx, s, one, id, canary)
	}
	if err == nil {
		err = r.settle(ctx, one, id)
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

// renew makes the instance's container run, and returns its id.
func (r *run) renew(ctx context.Context, s *Service, one *Instance, canary bool) (string, error) {
	if one.Do == Start {
		if err := r.clear(ctx, one); err != nil {
			return "", err
		}
		if err := r.regain(ctx, one); err != nil {
			return "", err
		}
		r.tell(Event{Step: starting, Instance: one.Owner, Canary: canary, Detail: one.Name})
		return one.Container, r.Engine.Start(ctx, one.Container)
	}
	if one.Do == Recreate {
		if err := r.down(ctx, one); err != nil {
			return "", err
		}
	}
	if err := r.clear(ctx, one); err != nil {
		return "", err
	}
	if err := r.renewed(ctx, one); err != nil {
		return "", err
	}
	r.making.Lock()
	defer r.making.Unlock()
	if err := r.may(ctx); err != nil {
		return "", err
	}
	if one.Do == Recreate {
		return r.replace(ctx, s, one, canary)
	}
	return r.make(ctx, s, one, s.replica(one), canary, nil)
}

// make makes Compose create a container and start it. Before the start it checks the container and calls then, which
// may be nil. The caller holds r.making.
func (r *run) make(ctx context.Context, s *Service, one *Instance, wanted single.Replica, canary bool,
	then func(context.Context) error) (string, error) {
	if err := r.may(ctx); err != nil {
		return "", err
	}
	if err := r.regain(ctx, one); err != nil {
		return "", err
	}
	r.tell(Event{Step: making, Instance: one.Owner, Canary: canary})
	return r.Maker.Make(ctx, wanted, func(ctx context.Context, id string) error {
		if err := r.fits(ctx, s, one, id); err != nil || then == nil {
			return err
		}
		return then(ctx)
	})
}

// regain frees the addresses of an instance that an engine did not release, for example because the driver was killed
// at that moment.
func (r *run) regain(ctx context.Context, one *Instance) error {
	free, err := r.Regain(ctx, one)
	if len(free) > 0 {
		r.tell(Event{Step: freeing, Instance: one.Owner,
			Detail: deploy.Listed(free, ", ") + ", which no endpoint has"})
	}
	return err
}

// replica returns the container that an instance must have.
func (s *Service) replica(one *Instance) single.Replica {
	wanted := single.Replica{Service: one.Service, Number: one.Number}
	if len(s.Shares) > 0 {
		wanted.Hash = s.Hash
	}
	for _, a := range one.On {
		if a.Fixed {
			wanted.On = append(wanted.On, single.Endpoint{Network: a.Network, Addresses: a.Gets})
		}
	}
	return wanted
}

// anonymous returns the unnamed volumes of a container. Only its successor can find them.
func anonymous(c *scene.Container) (all []single.Volume) {
	for _, v := range c.Volumes {
		if v.Anonymous() {
			all = append(all, single.Volume{Name: v.Name, Target: v.Target})
		}
	}
	return all
}

// settle gives a working container its proper name, and ends what its owner no longer needs.
func (r *run) settle(ctx context.Context, one *Instance, id string) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	if ought, temporary := c.Ought(); temporary {
		r.making.Lock()
		defer r.making.Unlock()
		if err := r.may(ctx); err != nil {
			return err
		}
		r.tell(Event{Step: naming, Instance: one.Owner, Detail: ought})
		if err := r.Engine.Rename(ctx, id, ought); err != nil {
			return fmt.Errorf("it works, but cannot be renamed to %s: %w", ought, err)
		}
	}
	for _, a := range one.On {
		if len(a.Gets) > 0 {
			return r.Settle(ctx, one.Owner)
		}
	}
	return nil
}

// clear stops the instances that have an address which this one gets, and that get another address themselves. If
// instances swap addresses, none can start before another one has stopped.
func (r *run) clear(ctx context.Context, one *Instance) error {
	for _, s := range r.plan.Services {
		for _, other := range s.Instances {
			if other != one && other.Do == Recreate && other.standsIn(one) {
				if err := r.down(ctx, other); err != nil {
					return fmt.Errorf("cannot stop %s, which has one of its addresses: %w", other.Owner, err)
				}
			}
		}
	}
	return nil
}

// standsIn reports whether an instance has an address that another one gets and that it does not keep.
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

// fits checks before the first start that a container is the intended replica.
func (r *run) fits(ctx context.Context, s *Service, one *Instance, id string) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case c.Number != one.Number:
		return fmt.Errorf("the new container is replica %d of %s, not replica %d as planned", c.Number, s.Name,
			one.Number)
	case s.Hash != "" && c.Hash != s.Hash && !r.unchanged(ctx, s, &c):
		return fmt.Errorf("the files have changed since the plan was made: %s has another configuration", s.Name)
	case s.Worker && c.Forever:
		return fmt.Errorf("a worker ends, but the restart policy of %s restarts it forever; write restart: \"no\" "+
			"or on-failure", s.Name)
	}
	for _, a := range one.On {
		on, there := c.At(a.Network)
		if there && a.Fixed && !sameAddresses(on.Fixed, a.Gets) {
			return fmt.Errorf("%s was made without its address %s on %s", c.Name, deploy.Listed(a.Gets, ", "),
				a.Network)
		}
	}
	return nil
}

// unchanged reports whether a service in the files is unchanged since the plan. It is for a service that shares with
// others, because the hash of its container also covers these.
func (r *run) unchanged(ctx context.Context, s *Service, c *scene.Container) bool {
	if len(s.Shares) == 0 || c.Made != s.Hash {
		return false
	}
	hashes, err := r.Maker.Hashes(ctx)
	return err == nil && hashes[s.Name] == s.Hash
}

// works waits until an instance works with its planned addresses.
func (r *run) works(ctx context.Context, s *Service, one *Instance, id string, canary bool) error {
	r.tell(Event{Step: watching, Instance: one.Owner, Canary: canary})
	if s.Once {
		return r.Engine.Ends(ctx, id)
	}
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range one.On {
		on, _ := c.At(a.Network)
		if c.Runs() && !sameAddresses(on.Addresses, a.Gets) {
			return fmt.Errorf("%s runs with %s on %s, but %s is reserved for it", c.Name, deploy.Listed(on.Addresses,
				", "), a.Network,
				deploy.Listed(a.Gets, ", "))
		}
	}
	span := s.Update.Watch
	if canary {
		span = s.Update.CanaryWatch
	}
	return r.Engine.Watch(ctx, id, scene.Span(span))
}

// fail reports a failed instance, with its last lines of output.
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
