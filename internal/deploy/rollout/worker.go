package rollout

import (
	"context"
	"slices"

	"berth/internal/deploy"
)

// Ran is what a worker was made from when it last succeeded.
type Ran struct {
	Hash  string
	Image string // the image's id
}

// worker plans whether a worker runs: if anything else changes, or if this version of it has not run yet.
func (d *drawing) worker(planned *Service, s *deploy.Service, changes bool) {
	there := d.replicas(s.Name)
	ran, has := d.in.Ran[s.Name]
	runs, why := changes, "something else changes"
	switch {
	case d.in.Task.Do == Recreate:
		runs, why = true, "it is requested"
	case !has:
		runs, why = true, "it has not run yet"
	case ran.Hash != planned.Hash:
		runs, why = true, "its configuration has changed"
	case s.Image != "" && ran.Image != planned.ImageID:
		runs, why = true, "its image has changed"
	}
	for i := range s.Instances {
		want := &s.Instances[i]
		c := there[want.Number].container()
		switch {
		case runs:
			one := between(planned, want, c)
			one.Do, one.Why = Work, []string{why}
			if c != nil && c.Runs() && len(d.differs(planned, one.On, c)) == 0 {
				one.Successor = c.ID // an interrupted deploy started it
			}
			planned.Instances = append(planned.Instances, one)
		case c != nil && !c.Runs():
			d.remove(c, "a worker is deleted after its run")
		case c != nil:
			d.note("the worker %s runs, but no deploy started it; it stays unchanged", c.Name)
		}
	}
	d.surplus(s, there)
}

// oneOffs plans the removal of what `compose run` left: workers that a person ran.
func (d *drawing) oneOffs() {
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		switch {
		case !c.OneOff:
		case c.State == "exited":
			one := d.remove(c, "`compose run` made it, and it has ended")
			one.Owner = c.Name
		default:
			d.note("%s was made by `compose run`, is %s, and stays unchanged", c.Name, c.State)
		}
	}
}

// workers runs services that end by themselves, each after what it needs. Workers that do not need each other
// run together, up to the number in the files. A service that others wait for runs alone.
func (r *run) workers(ctx context.Context) error {
	var free []*Service // workers that do not need each other and have not run yet
	flush := func() error {
		err := r.together(ctx, free)
		free = nil
		return err
	}
	for _, s := range r.plan.Services {
		if slices.ContainsFunc(s.Instances, func(one *Instance) bool { return one.Do == Work }) {
			needs := func(other *Service) bool { return r.plan.needs(s, other) }
			if slices.ContainsFunc(free, needs) {
				if err := flush(); err != nil {
					return err
				}
			}
			free = append(free, s)
			continue
		}
		for _, one := range s.Instances {
			ends := s.Once && (one.Do == Create || one.Do == Recreate || one.Do == Start)
			if !ends {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
			if err := r.toItsEnd(ctx, s, one); err != nil {
				return err
			}
		}
	}
	return flush()
}

// needs reports whether a service depends on another one, directly or through a third.
func (p *Plan) needs(s, other *Service) bool {
	return slices.ContainsFunc(s.Needs, func(name string) bool {
		needed := p.service(name)
		return needed != nil && (needed == other || p.needs(needed, other))
	})
}

// toItsEnd runs a service that another one waits for. It first copies the service's volumes. Then it starts what the
// service needs, because a copy may stop that.
func (r *run) toItsEnd(ctx context.Context, s *Service, one *Instance) error {
	if one.Do != Start && one.Successor == "" {
		if err := r.renewed(ctx, one); err != nil {
			return r.fail(ctx, one, false, err)
		}
	}
	if err := r.needed(ctx, s); err != nil {
		return err
	}
	return r.once(ctx, s, one)
}

// needed starts the instances that services need and that do not run, or recreates them. It repeats that until all run,
// because a volume copy for one of them stops others.
func (r *run) needed(ctx context.Context, all ...*Service) error {
	for before := -1; before < len(r.done); {
		before = len(r.done)
		for _, s := range all {
			if err := r.bring(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// bring starts the instances that a service needs and that do not run now.
func (r *run) bring(ctx context.Context, s *Service) error {
	for _, name := range s.Needs {
		needed := r.plan.service(name)
		if needed == nil || needed.Worker || needed.Once { // these have run already
			continue
		}
		if err := r.bring(ctx, needed); err != nil {
			return err
		}
		away := slices.ContainsFunc(needed.Instances, r.away)
		for _, one := range needed.Instances {
			taken := away && one.Do == Recreate && r.plan.copies(needed) // the copy removes it with all others
			if !taken && !r.away(one) {
				continue
			}
			if err := r.once(ctx, needed, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// away reports whether an instance does not run, because it did not run before or because this run has stopped it.
func (r *run) away(one *Instance) bool {
	if one.Do != Recreate {
		return one.Do == Create || one.Do == Start
	}
	d := r.downOf(one)
	d.mu.Lock()
	defer d.mu.Unlock()
	return one.State != "running" || d.done
}

// once replaces an instance unless this run has done so already.
func (r *run) once(ctx context.Context, s *Service, one *Instance) error {
	if r.done[one] {
		return nil
	}
	r.done[one] = true
	return r.exchange(ctx, s, one, false)
}
