package rollout

import (
	"fmt"
	"slices"
)

// Moved says what has changed between a plan that was saved and one that was drawn afresh; none: the saved one may be
// carried out.
func (p *Plan) Moved(now *Plan) (moved []string) {
	say := func(format string, args ...any) { moved = append(moved, fmt.Sprintf(format, args...)) }
	if p.Project != now.Project {
		say("it is of the project %s, and the files are of %s", p.Project, now.Project)
	}
	if p.Compose != now.Compose {
		say("the compose command was %s, and is %s", p.Compose, now.Compose)
	}
	moved = append(moved, movedFiles(p.Files, now.Files)...)
	was := map[string]*Service{}
	for _, s := range p.Services {
		was[s.Name] = s
	}
	for _, s := range now.Services {
		switch before := was[s.Name]; {
		case before == nil:
			say("there is a service %s now", s.Name)
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
			say("there is no service %s any more", s.Name)
		}
	}
	return append(moved, movedInstances(p, now)...)
}

func movedFiles(before, now []File) (moved []string) {
	was := map[string]string{}
	for _, f := range before {
		was[f.Path] = f.Digest
	}
	for _, f := range now {
		if digest, there := was[f.Path]; !there {
			moved = append(moved, fmt.Sprintf("the file %s was none of them", f.Path))
		} else if digest != f.Digest {
			moved = append(moved, fmt.Sprintf("the file %s has changed", f.Path))
		}
		delete(was, f.Path)
	}
	for _, f := range before {
		if _, left := was[f.Path]; left {
			moved = append(moved, fmt.Sprintf("the file %s is none of them any more", f.Path))
		}
	}
	return moved
}

// movedInstances compares what was there and what is, replica by replica.
func movedInstances(p, now *Plan) (moved []string) {
	was := map[string]*Instance{}
	for _, one := range p.all() {
		was[one.Owner] = one
	}
	for _, one := range now.all() {
		before := was[one.Owner]
		delete(was, one.Owner)
		switch {
		case before == nil:
			moved = append(moved, fmt.Sprintf("%s was not there", one.Owner))
		case before.Container != one.Container:
			moved = append(moved, fmt.Sprintf("%s is another container: %s was %s", one.Owner, named(one.Container),
				named(before.Container)))
		case before.State != one.State:
			moved = append(moved, fmt.Sprintf("the container %s was %s, and is %s", one.Name, before.State, one.State))
		default:
			moved = append(moved, movedAddresses(before, one)...)
		}
	}
	for _, one := range p.all() {
		if was[one.Owner] != nil {
			moved = append(moved, fmt.Sprintf("%s is not there any more", one.Owner))
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

func movedAddresses(before, now *Instance) (moved []string) {
	same := slices.EqualFunc(before.On, now.On, func(a, b Address) bool {
		return a.Network == b.Network && slices.Equal(a.Has, b.Has) && slices.Equal(a.Gets, b.Gets)
	})
	if !same {
		moved = append(moved, fmt.Sprintf("the addresses of %s have changed", now.Owner))
	}
	return moved
}
