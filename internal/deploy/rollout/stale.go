package rollout

import (
	"fmt"
	"slices"
)

// Moved returns the changes between a saved plan and a new one. If there are none, the saved plan may be executed.
func (p *Plan) Moved(now *Plan) (moved []string) {
	say := func(format string, args ...any) { moved = append(moved, fmt.Sprintf(format, args...)) }
	if p.Project != now.Project {
		say("the plan belongs to the project %s, but the files belong to the project %s", p.Project, now.Project)
	}
	if p.Compose != now.Compose {
		say("the compose command was %s, and is %s now", p.Compose, now.Compose)
	}
	moved = append(moved, movedFiles(p.Files, now.Files)...)
	was := map[string]*Service{}
	for _, s := range p.Services {
		was[s.Name] = s
	}
	for _, s := range now.Services {
		switch before := was[s.Name]; {
		case before == nil:
			say("there is a new service %s", s.Name)
		case before.Hash != s.Hash:
			say("the configuration of %s has changed", s.Name)
		case before.ImageID != s.ImageID || !slices.Equal(before.Digests, s.Digests):
			say("the image %s of %s has changed: %s is %s now", s.Image, s.Name, short(before.ImageID),
				short(s.ImageID))
		}
		delete(was, s.Name)
	}
	for _, s := range p.Services {
		if was[s.Name] != nil {
			say("the service %s is gone", s.Name)
		}
	}
	moved = slices.Concat(moved, movedNetworks(p, now), movedVolumes(p, now))
	return append(moved, movedInstances(p, now)...)
}

func movedFiles(before, now []File) (moved []string) {
	was := map[string]string{}
	for _, f := range before {
		was[f.Path] = f.Digest
	}
	for _, f := range now {
		if digest, there := was[f.Path]; !there {
			moved = append(moved, fmt.Sprintf("the file %s is new", f.Path))
		} else if digest != f.Digest {
			moved = append(moved, fmt.Sprintf("the file %s has changed", f.Path))
		}
		delete(was, f.Path)
	}
	for _, f := range before {
		if _, left := was[f.Path]; left {
			moved = append(moved, fmt.Sprintf("the file %s is gone", f.Path))
		}
	}
	return moved
}

// movedInstances compares each replica in two plans.
func movedInstances(p, now *Plan) (moved []string) {
	was := map[string]*Instance{}
	for _, one := range p.all() {
		was[one.place()] = one
	}
	for _, one := range now.all() {
		before := was[one.place()]
		delete(was, one.place())
		switch {
		case before == nil:
			moved = append(moved, fmt.Sprintf("%s is new", one.Owner))
		case before.Container != one.Container:
			moved = append(moved, fmt.Sprintf("%s has another container: %s, not %s", one.Owner,
				named(one.Container),
				named(before.Container)))
		case before.State != one.State:
			moved = append(moved, fmt.Sprintf("the container %s was %s, and is %s now", one.Name, before.State,
				one.State))
		case before.Successor != one.Successor:
			moved = append(moved, fmt.Sprintf("the successor that an earlier deploy started for %s has changed",
				one.Owner))
		case !sameOn(before, one):
			moved = append(moved, fmt.Sprintf("the addresses of %s have changed", one.Owner))
		case before.Do != one.Do:
			moved = append(moved, fmt.Sprintf("the action for %s was %s, and is %s now", one.Owner, before.Do, one.Do))
		}
	}
	for _, one := range p.all() {
		if was[one.place()] != nil {
			moved = append(moved, fmt.Sprintf("%s is gone", one.Owner))
		}
	}
	return moved
}

// place identifies an instance in a comparison: by its owner, and for a leftover also by its name.
func (one *Instance) place() string {
	if one.Leftover {
		return one.Owner + " (" + one.Name + ")"
	}
	return one.Owner
}

// movedVolumes compares the volumes of two plans.
func movedVolumes(p, now *Plan) (moved []string) {
	was := map[string]*Volume{}
	for _, v := range p.Volumes {
		was[v.Name] = v
	}
	for _, v := range now.Volumes {
		if before := was[v.Name]; before == nil || before.Do != v.Do || before.From != v.From || before.Saved != v.Saved {
			moved = append(moved, fmt.Sprintf("the action for the volume %s has changed: %s", v.Name, v.Do))
		}
		delete(was, v.Name)
	}
	for _, v := range p.Volumes {
		if was[v.Name] != nil {
			moved = append(moved, fmt.Sprintf("the volume %s is no longer handled (%s)", v.Name, v.Do))
		}
	}
	return moved
}

func named(id string) string {
	if id == "" {
		return "none"
	}
	return short(id)
}

// sameOn reports whether two instances have and get the same addresses.
func sameOn(before, now *Instance) bool {
	return slices.EqualFunc(before.On, now.On, func(a, b Address) bool {
		return a.Network == b.Network && slices.Equal(a.Has, b.Has) && slices.Equal(a.Gets, b.Gets)
	})
}
