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

// shownLines is how many of the last lines of a container that failed are shown.
const shownLines = 10

// exchange makes an instance what the plan wants: it is made, made anew, or started, and watched until it works.
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

// renew has a container of the instance run, and returns its id.
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

// make has Compose make a container and start it, once it was looked at and something else was done; nil: nothing is.
// The caller holds r.making.
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

// regain has the addresses of an instance be free that an engine has forgotten to release, as one does whose driver was
// killed at that moment.
func (r *run) regain(ctx context.Context, one *Instance) error {
	free, err := r.Regain(ctx, one)
	if len(free) > 0 {
		r.tell(Event{Step: freeing, Instance: one.Owner,
			Detail: deploy.Listed(free, ", ") + ", which no endpoint has any more"})
	}
	return err
}

// replica is the container that an instance is to have.
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

// anonymous are the volumes of a container that its successor alone can find.
func anonymous(c *scene.Container) (all []single.Volume) {
	for _, v := range c.Volumes {
		if v.Anonymous() {
			all = append(all, single.Volume{Name: v.Name, Target: v.Target})
		}
	}
	return all
}

// settle gives a container that works the name that it ought to have, and ends what its owner has no more (BO-13).
func (r *run) settle(ctx context.Context, one *Instance, id string) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	if ought, aside := c.Ought(); aside {
		r.making.Lock()
		defer r.making.Unlock()
		if err := r.may(ctx); err != nil {
			return err
		}
		r.tell(Event{Step: naming, Instance: one.Owner, Detail: ought})
		if err := r.Engine.Rename(ctx, id, ought); err != nil {
			return fmt.Errorf("it works, and cannot be called %s: %w", ought, err)
		}
	}
	for _, a := range one.On {
		if len(a.Gets) > 0 {
			return r.Settle(ctx, one.Owner)
		}
	}
	return nil
}

// clear stops those that have an address which the instance gets, and get another one themselves: where two change
// places, or more in a ring, none can begin before another one has stopped, be it only to be started.
func (r *run) clear(ctx context.Context, one *Instance) error {
	for _, s := range r.plan.Services {
		for _, other := range s.Instances {
			if other != one && other.Do == Recreate && other.standsIn(one) {
				if err := r.down(ctx, other); err != nil {
					return fmt.Errorf("%s, which has an address of it: %w", other.Owner, err)
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

// fits looks at a container before its first start: that it is the replica that was meant.
func (r *run) fits(ctx context.Context, s *Service, one *Instance, id string) error {
	c, err := r.Engine.Container(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case c.Number != one.Number:
		return fmt.Errorf("it is number %d of %s that was made, and %d was meant", c.Number, s.Name, one.Number)
	case s.Hash != "" && c.Hash != s.Hash && !r.unchanged(ctx, s, &c):
		return fmt.Errorf("the files have changed since the plan was made: %s has another configuration", s.Name)
	case s.Worker && c.Forever:
		return fmt.Errorf("a worker ends, and the restart policy of %s starts it again for ever; write restart: \"no\" "+
			"or on-failure", s.Name)
	}
	for _, a := range one.On {
		on, there := c.At(a.Network)
		if there && a.Fixed && !sameAddresses(on.Fixed, a.Gets) {
			return fmt.Errorf("%s was made without its address %s on %s", c.Name, deploy.Listed(a.Gets, ", "), a.Network)
		}
	}
	return nil
}

// unchanged tells whether the files say of a service what they said when the plan was made, where that cannot be seen
// of the hash that Compose gave its container: the container's own says with whom it shares, too.
func (r *run) unchanged(ctx context.Context, s *Service, c *scene.Container) bool {
	if len(s.Shares) == 0 || c.Made != s.Hash {
		return false
	}
	hashes, err := r.Maker.Hashes(ctx)
	return err == nil && hashes[s.Name] == s.Hash
}

// works waits until an instance works, with the addresses that the plan gives it.
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
			return fmt.Errorf("%s runs with %s on %s, and %s is reserved for it", c.Name, deploy.Listed(on.Addresses,
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
