package rollout

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
	"berth/internal/ipam"
)

// Tools are the means of a deploy.
type Tools struct {
	Engine  *scene.Engine
	Maker   *single.Maker
	Release func(ctx context.Context, owner string) error // ends all reservations of the owner
	Settle  func(ctx context.Context, owner string) error // ends the owner's replaced reservations
	// Regain ends leases of addresses that an instance gets and that no endpoint has any more, and returns the
	// addresses.
	Regain func(context.Context, *Instance) ([]netip.Addr, error)
	Ran    func(ctx context.Context, service string, as Ran) error
	Held   func() error // reports whether the project is still locked for this deploy
	Tell   func(Event)  // called from several goroutines, one at a time

	Host    string                                       // this host's name
	Edit    func(context.Context, ipam.Edit) error       // for the deploy
	Orphans func(context.Context) ([]ipam.Orphan, error) // the recorded ones
}

// run is one run of a plan.
type run struct {
	Tools
	plan    *Plan
	telling sync.Mutex
	making  sync.Mutex         // Compose counts replicas: while one is replaced, no other may be missing
	done    map[*Instance]bool // instances that were replaced early because another one needs them
	mu      sync.Mutex
	downs   map[*Instance]*down
	turns   map[*Instance]bool              // instances whose replacement has begun; its failures are reported there
	left    map[string][]scene.LeftEndpoint // on recreated networks, by the container that had to leave them
	volume  volumeWork
}

// Run executes a plan. A plan that is drawn afterwards has what Run could not do.
func Run(ctx context.Context, p *Plan, tools Tools) error {
	r := &run{Tools: tools, plan: p, done: map[*Instance]bool{}, downs: map[*Instance]*down{},
		turns: map[*Instance]bool{}, left: map[string][]scene.LeftEndpoint{}}
	for _, step := range []func(context.Context) error{r.tidy, r.pull, r.halt, r.remove, r.orphaned, r.renumber, r.workers,
		r.create, r.update, r.orphaned} {
		if err := step(ctx); err != nil {
			return r.ended(ctx, err)
		}
	}
	return nil
}

func (r *run) tell(e Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.Tell(e)
}

// may returns an error if the deploy was ended or has lost its lock. Call it before each step.
func (r *run) may(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.Held()
}

// pull pulls the images before anything stops.
func (r *run) pull(ctx context.Context) error {
	var services []string
	for _, s := range r.plan.Services {
		if s.Image != "" && slices.Contains(r.plan.Pull, s.Image) {
			services = append(services, s.Name)
		}
	}
	if len(services) == 0 {
		return nil
	}
	if err := r.may(ctx); err != nil {
		return err
	}
	for _, image := range r.plan.Pull {
		r.tell(Event{Step: pulling, Detail: image})
	}
	return r.Maker.Pull(ctx, services)
}

// remove removes what is no longer in the files, with its reservations. Volumes stay.
func (r *run) remove(ctx context.Context) error {
	for _, one := range r.plan.Delete {
		if one.Leftover {
			if err := r.end(ctx, one); err != nil {
				return r.fail(ctx, one, false, err)
			}
			r.tell(Event{Step: Done, Instance: one.Name, Detail: "removed"})
			continue
		}
		if err := r.delete(ctx, one); err != nil {
			return r.fail(ctx, one, false, err)
		}
		r.tell(Event{Step: Done, Instance: one.Owner, Detail: "deleted"})
	}
	return nil
}

// delete removes an instance. It ends the reservations while the container exists. If that fails or the deploy ends
// here, the next deploy finds the container and repeats it.
func (r *run) delete(ctx context.Context, one *Instance) error {
	if one.Container != "" {
		if err := r.down(ctx, one); err != nil {
			return err
		}
	}
	if err := r.may(ctx); err != nil {
		return err
	}
	if err := r.Release(ctx, one.Owner); err != nil {
		return fmt.Errorf("cannot release its reservations, so it stays: %w", err)
	}
	if one.Container == "" { // it was removed by hand
		return nil
	}
	r.tell(Event{Step: removing, Instance: one.Owner, Detail: one.Name})
	return r.Engine.Remove(ctx, one.Container)
}

// end stops and removes a container.
func (r *run) end(ctx context.Context, one *Instance) error {
	if err := r.down(ctx, one); err != nil {
		return err
	}
	r.leaves(one)
	r.tell(Event{Step: removing, Instance: one.Owner, Detail: one.Name})
	return r.Engine.Remove(ctx, one.Container)
}

// create creates missing instances before any existing one is touched, in the order of the dependencies.
func (r *run) create(ctx context.Context) error {
	for _, s := range r.plan.Services {
		if r.late(s) {
			continue
		}
		for _, one := range s.Instances {
			if one.Do != Create {
				continue
			}
			if err := r.once(ctx, s, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// late reports whether a service's missing containers must be created later. That is so if it shares with another
// service that is replaced. It is also so if a volume copy removes its other containers, because they are then created
// in the order of their numbers.
func (r *run) late(s *Service) bool {
	if r.plan.copies(s) && slices.ContainsFunc(s.Instances, func(one *Instance) bool { return one.Do == Recreate }) {
		return true
	}
	for _, name := range s.Shares {
		if other := r.plan.service(name); other != nil && slices.ContainsFunc(other.Instances, func(one *Instance) bool {
			return one.Do == Recreate || one.Do == Start
		}) {
			return true
		}
	}
	return false
}

// update replaces what has changed, service by service: canaries first, then at most the number in flight at the same
// time.
func (r *run) update(ctx context.Context) error {
	for _, s := range r.plan.Services {
		var left []*Instance
		for _, one := range s.Instances {
			if (one.Do == Recreate || one.Do == Start || one.Do == Create) && !r.done[one] {
				left = append(left, one)
			}
		}
		for canaries := min(s.Update.Canaries, len(left)); canaries > 0; canaries-- {
			if err := r.exchange(ctx, s, left[0], true); err != nil {
				return &canaryError{s.Name, err}
			}
			left = left[1:]
		}
		err := several(left, s.Update.MaxInFlight, func(one *Instance) error { return r.exchange(ctx, s, one, false) })
		if err != nil {
			return err
		}
	}
	return nil
}
