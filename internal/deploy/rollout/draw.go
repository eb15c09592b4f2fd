package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// Inputs are what a plan is drawn of.
type Inputs struct {
	Project    string
	Compose    string // the version of the compose command
	Files      []File
	Services   []deploy.Service // in the order of their dependencies, granted
	Hashes     map[string]string
	Images     map[string]scene.Image // by the reference of the files; missing: the engine does not have it
	Containers []scene.Container
	Unread     []error // containers that could not be inspected
}

// Draw makes a plan. Its error joins all that is in the way (BD-2, BD-3).
func Draw(in Inputs) (*Plan, error) {
	d := drawing{in: in, plan: &Plan{Project: in.Project, Compose: in.Compose, Files: in.Files}}
	d.reach()
	for i := range in.Services {
		d.service(&in.Services[i])
	}
	d.dropped()
	return d.plan, errors.Join(d.problems...)
}

// drawing is a plan that is being drawn.
type drawing struct {
	in       Inputs
	plan     *Plan
	problems []error
}

func (d *drawing) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Errorf(format, args...))
}

// reach refuses what cannot be dealt with: containers that do not answer, and those of another generation of Compose.
func (d *drawing) reach() {
	const help = "run `berth check`, which says what is amiss"
	for _, err := range d.in.Unread {
		d.problem("%w; %s", err, help)
	}
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		if why := c.Unreached(); why != "" {
			d.problem("the container %s cannot be reached: %s; %s", c.Name, why, help)
		}
		if old, now := generation(c.Version), generation(d.in.Compose); old != now && old != "" && now != "" {
			d.problem("the container %s was made by Compose %s, and the compose command is %s: one project is of one "+
				"generation of Compose; name the other one with --compose-command", c.Name, c.Version, d.in.Compose)
		}
	}
}

// generation is 1 for docker-compose, and 2 for all that came after; empty where a version does not say.
func generation(version string) string {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	switch {
	case major == "1":
		return "1"
	case major != "" && major[0] >= '2' && major[0] <= '9':
		return "2"
	}
	return ""
}

// service plans what becomes of a service's replicas.
func (d *drawing) service(s *deploy.Service) {
	image, has := d.in.Images[s.Image]
	planned := &Service{Name: s.Name, Image: s.Image, ImageID: image.ID, Digests: image.Digests,
		Hash: d.in.Hashes[s.Name], Update: s.Update}
	if !has && s.Image != "" && !slices.Contains(d.plan.Pull, s.Image) {
		d.plan.Pull = append(d.plan.Pull, s.Image)
	}
	there := d.replicas(s.Name)
	for i := range s.Instances {
		planned.Instances = append(planned.Instances, d.instance(planned, &s.Instances[i], there))
	}
	for _, number := range sortedNumbers(there) {
		if number > len(s.Instances) {
			d.remove(there[number], fmt.Sprintf("the files want %d of %s", len(s.Instances), s.Name))
		}
	}
	d.plan.Services = append(d.plan.Services, planned)
}

// replicas are the containers of a service by number.
func (d *drawing) replicas(service string) map[int]*scene.Container {
	there := map[int]*scene.Container{}
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		if c.Service != service || c.OneOff {
			continue
		}
		if other := there[c.Number]; other != nil {
			d.problem("the containers %s and %s are both number %d of %s; remove one", other.Name, c.Name, c.Number,
				service)
			continue
		}
		there[c.Number] = c
	}
	return there
}

func sortedNumbers(there map[int]*scene.Container) (all []int) {
	for number := range there {
		all = append(all, number)
	}
	slices.Sort(all)
	return all
}

// instance plans what becomes of a replica that the files want.
func (d *drawing) instance(s *Service, want *deploy.Instance, there map[int]*scene.Container) *Instance {
	one := &Instance{Owner: want.Owner, Service: s.Name, Number: want.Number, Do: Keep}
	c := there[want.Number]
	for _, on := range want.On {
		a := Address{Network: on.Network, Planned: on.Planned, Gets: on.Addresses, Fixed: on.Named}
		if c != nil {
			has, _ := c.At(on.Network)
			if a.Has = has.Addresses; len(a.Has) == 0 {
				a.Has = has.Fixed // it does not run
			}
		}
		one.On = append(one.On, a)
	}
	if c == nil {
		one.Do = Create
		return one
	}
	one.Container, one.Name, one.State = c.ID, c.Name, c.State
	one.Why = d.differs(s, one, c)
	switch {
	case len(one.Why) > 0:
		one.Do = Recreate
	case !c.Runs():
		one.Do, one.Why = Start, []string{"it does not run: " + c.State}
	}
	return one
}

// differs says why a container is not what the files want.
func (d *drawing) differs(s *Service, one *Instance, c *scene.Container) (why []string) {
	if c.Hash != s.Hash {
		why = append(why, "its configuration has changed")
	}
	if s.ImageID != "" && c.ImageID != s.ImageID {
		why = append(why, fmt.Sprintf("its image has changed: %s is %s now", cmp.Or(s.Image, "what is built"),
			short(s.ImageID)))
	}
	if s.Image != "" && slices.Contains(d.plan.Pull, s.Image) {
		why = append(why, fmt.Sprintf("its image is to be pulled: %s", s.Image))
	}
	for i := range one.On {
		a := &one.On[i]
		if _, on := c.At(a.Network); !on {
			why = append(why, fmt.Sprintf("it is not on the network %s", a.Network))
			continue
		}
		if len(a.Has) > 0 && !sameAddresses(a.Has, a.Gets) {
			why = append(why, fmt.Sprintf("its address on %s changes: %s to %s", a.Network, join(a.Has), join(a.Gets)))
		}
	}
	return why
}

// sameAddresses tells whether a container has all that it is to have; others, such as of a family that Berth does not
// give, may be there besides.
func sameAddresses(has, gets []netip.Addr) bool {
	for _, addr := range gets {
		if !slices.Contains(has, addr) {
			return false
		}
	}
	return true
}

func join(addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return strings.Join(all, ", ")
}

// short is an id as people read it.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), 12)]
}

// dropped plans the end of services that the files do not have any more (BD-5).
func (d *drawing) dropped() {
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		wanted := slices.ContainsFunc(d.in.Services, func(s deploy.Service) bool { return s.Name == c.Service })
		if !wanted && !c.OneOff {
			d.remove(c, "the files have no service "+c.Service)
		}
	}
}

// remove plans the end of a container.
func (d *drawing) remove(c *scene.Container, why string) {
	one := &Instance{Owner: d.ownerOf(c), Service: c.Service, Number: c.Number, Do: Delete,
		Why: []string{why}, Container: c.ID, Name: c.Name, State: c.State}
	for _, on := range c.On {
		one.On = append(one.On, Address{Network: on.Network, Has: on.Addresses})
	}
	d.plan.Delete = append(d.plan.Delete, one)
}

// ownerOf is who the addresses of a container are reserved for: by its place in the project, or by a name of its own.
func (d *drawing) ownerOf(c *scene.Container) string {
	for _, sep := range []string{"-", "_"} {
		name := strings.Join([]string{d.in.Project, c.Service, fmt.Sprint(c.Number)}, sep)
		if c.Name == name || strings.HasSuffix(c.Name, "_"+name) { // Compose's own, also while it exchanges one
			return fmt.Sprintf("%s/%s/%d", d.in.Project, c.Service, c.Number)
		}
	}
	return c.Name
}
