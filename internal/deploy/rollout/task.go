package rollout

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// Task is the purpose of a plan. The zero Task makes everything match the files. Other tasks start, stop or recreate
// what is in the files even if nothing has changed.
type Task struct {
	Do      Action `json:"do,omitempty"`      // Start, Stop or Recreate; empty: a deploy
	Service string `json:"service,omitempty"` // empty: all
	Number  int    `json:"number,omitempty"`  // of the replica; 0: all of the service
}

// Title returns the subject of a task; empty: the whole project.
func (t Task) Title() string {
	if t.Number > 0 {
		return fmt.Sprintf("%s/%d", t.Service, t.Number)
	}
	return t.Service
}

// asked returns the reason to recreate a container if the task requires it.
func (d *drawing) asked(service string, one *Instance) []string {
	t := d.in.Task
	if t.Do != Recreate || t.Service != "" && service != t.Service || t.Number > 0 && one.Number != t.Number {
		return nil
	}
	return []string{"it is requested"}
}

// narrow removes from the plan what its task does not cover.
func (d *drawing) narrow() {
	t := d.in.Task
	if t.Do == "" {
		return
	}
	d.plan.Task = t
	d.named()
	dropped := d.plan.Delete
	d.plan.Delete = slices.DeleteFunc(slices.Clone(dropped), func(one *Instance) bool {
		return t.Do == Stop || !one.Leftover || !d.means(one.Service)(one.Number)
	})
	d.plan.Services = slices.DeleteFunc(d.plan.Services, func(s *Service) bool {
		meant := d.means(s.Name)
		s.Instances = slices.DeleteFunc(s.Instances, func(one *Instance) bool {
			return !meant(one.Number) || !t.asks(one)
		})
		return len(s.Instances) == 0
	})
	if t.Do == Stop {
		d.stopDropped(dropped)
	}
	d.inTheWay()
	d.plan.Pull = slices.DeleteFunc(d.plan.Pull, func(image string) bool {
		return !slices.ContainsFunc(d.plan.Services, func(s *Service) bool { return s.Image == image && s.makes() })
	})
}

// named refuses a task for something that is not in the files. A stop only needs an existing container.
func (d *drawing) named() {
	t := d.in.Task
	if t.Service == "" {
		return
	}
	there := func(c scene.Container) bool {
		return c.Service == t.Service && !c.OneOff && (t.Number == 0 || c.Number == t.Number)
	}
	if t.Do == Stop && slices.ContainsFunc(d.in.Containers, there) {
		return
	}
	var names []string
	for i := range d.in.Services {
		s := &d.in.Services[i]
		names = append(names, s.Name)
		if s.Name != t.Service {
			continue
		}
		if t.Number > len(s.Instances) {
			d.problem("the files give %s %d replicas, so there is no %s", s.Name, len(s.Instances), t.Title())
		}
		return
	}
	slices.Sort(names)
	d.problem("the project %s has no service %q; it has %s", d.in.Project, t.Service, strings.Join(names, ", "))
}

// means returns which replicas of a service the task covers. It covers services that cannot run without the recreated
// containers, because they use their network or volumes.
func (d *drawing) means(service string) func(number int) bool {
	t := d.in.Task
	if t.Service == "" {
		return func(int) bool { return true }
	}
	if service == t.Service {
		return func(number int) bool { return t.Number == 0 || t.Number == number }
	}
	with := t.Do == Recreate && d.shares(service, t.Service, nil)
	return func(int) bool { return with }
}

// shares reports whether a service cannot run without the containers of another one, directly or through a third.
func (d *drawing) shares(service, with string, seen []string) bool {
	for i := range d.in.Services {
		s := &d.in.Services[i]
		if s.Name != service || slices.Contains(seen, service) {
			continue
		}
		for _, other := range s.Shares {
			if other == with || d.shares(other, with, append(seen, service)) {
				return true
			}
		}
	}
	return false
}

// asks reports whether a task changes an instance, and sets the instance's action. A start does not touch a running
// container, even an outdated one. It recreates an outdated one that does not run, so that it starts with its reserved
// addresses.
func (t Task) asks(one *Instance) bool {
	switch t.Do {
	case Recreate:
		return one.Do == Recreate || one.Do == Create || one.Do == Work
	case Start:
		return one.Do == Create || one.Do == Start || one.Do == Recreate && !running(one.State)
	case Stop:
		if one.Container == "" || !running(one.State) {
			return false
		}
		one.Do, one.Why = Stop, nil
		return true
	}
	return false
}

// running reports whether a container in a state must be stopped, and need not be started.
func running(state string) bool { return state == "running" || state == "restarting" }

// stopDropped also stops what is no longer in the files.
func (d *drawing) stopDropped(dropped []*Instance) {
	for _, one := range dropped {
		if !d.means(one.Service)(one.Number) || !d.in.Task.asks(one) {
			continue
		}
		i := slices.IndexFunc(d.plan.Services, func(s *Service) bool { return s.Name == one.Service })
		if i < 0 {
			i = len(d.plan.Services)
			d.plan.Services = append(d.plan.Services, &Service{Name: one.Service})
		}
		d.plan.Services[i].Instances = append(d.plan.Services[i].Instances, one)
	}
}

// inTheWay refuses to take the address of a container that the task does not change.
func (d *drawing) inTheWay() {
	for _, s := range d.plan.Services {
		for _, one := range s.Instances {
			if one.Do != Create && one.Do != Recreate && one.Do != Start {
				continue
			}
			for _, a := range one.On {
				if name := d.holderOf(&a, one); name != "" {
					d.problem("%s gets %s on %s, which the container %s has until the whole project is deployed",
						one.Owner, deploy.Listed(a.Gets, ", "), a.Network, name)
				}
			}
		}
	}
}

// holderOf returns the container of the project that has an address which an instance gets, unless it is recreated as
// well.
func (d *drawing) holderOf(a *Address, one *Instance) string {
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		on, _ := c.At(a.Network)
		same := slices.ContainsFunc(d.plan.all(), func(other *Instance) bool {
			return other.Container == c.ID && other.Do == Recreate
		})
		if c.ID == one.Container || same || len(on.Addresses) == 0 {
			continue
		}
		for _, addr := range a.Gets {
			if slices.Contains(on.Addresses, addr) {
				return c.Name
			}
		}
	}
	return ""
}

// makes reports whether containers of the service are created.
func (s *Service) makes() bool {
	return slices.ContainsFunc(s.Instances, func(one *Instance) bool { return one.Do == Create || one.Do == Recreate })
}
