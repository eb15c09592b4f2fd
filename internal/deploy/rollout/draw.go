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
	"berth/internal/ipam"
)

// Inputs are the data for a plan.
type Inputs struct {
	Project    string
	Compose    string // the version of the compose command
	Files      []File
	Services   []deploy.Service // in the order of their dependencies, granted
	Hashes     map[string]string
	Images     map[string]scene.Image // by the reference in the files; missing: the engine does not have it
	Containers []scene.Container
	Unread     []error         // containers that could not be inspected
	Workers    int             // the number that run at the same time
	Ran        map[string]Ran  // the workers, as they ran last
	Volumes    []deploy.Volume // that services in the files use
	Stored     []scene.Stored  // the volumes in the engine
	Orphans    []ipam.Orphan   // the recorded ones of the project
	Task       Task
	Networks   []NetworkState // that Compose creates for the project
	Unclaimed  []Unclaimed
}

// Draw makes a plan. Its error joins all problems.
func Draw(in Inputs) (*Plan, error) {
	d := drawing{in: in, plan: &Plan{Project: in.Project, Compose: in.Compose, Files: in.Files, Workers: in.Workers},
		gone: map[string]string{}, starts: map[string]bool{}, renewed: map[string]string{},
		because: map[string][]string{}}
	d.reach()
	d.networks()
	d.volumes()
	for i := range in.Services {
		d.service(&in.Services[i])
	}
	d.dropped()
	d.oneOffs()
	d.unclaimed()
	changes := d.plan.Changes()
	for i := range in.Services {
		if in.Services[i].Worker {
			d.worker(d.plan.Services[i], &in.Services[i], changes)
		}
	}
	d.narrow()
	d.leftOn()
	d.narrowVolumes()
	return d.plan, errors.Join(d.problems...)
}

// drawing is a plan in the making.
type drawing struct {
	in       Inputs
	plan     *Plan
	problems []error
	renewed  map[string]string // containers on recreated networks, by id, with the reason
	starts   map[string]bool   // containers in gone that stay and are started
	// containers that others cannot run without and that do not stay, by id, with their names
	gone    map[string]string
	because map[string][]string // containers that must be recreated for their volumes, by id, with the reasons
}

func (d *drawing) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Errorf(format, args...))
}

func (d *drawing) note(format string, args ...any) {
	d.plan.Notes = append(d.plan.Notes, fmt.Sprintf(format, args...))
}

// reach refuses unusable containers: those that do not answer, and those of another generation of Compose.
func (d *drawing) reach() {
	const help = "run `berth check`, which shows what is wrong"
	for _, err := range d.in.Unread {
		d.problem("%w; %s", err, help)
	}
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		if why := c.Unreached(); why != "" {
			d.problem("the container %s cannot be reached: %s; %s", c.Name, why, help)
		}
		d.sameGeneration(c)
	}
}

// sameGeneration refuses a container of another generation of Compose, which would not be created again. One without a
// version may be of either, so that it is refused, too.
func (d *drawing) sameGeneration(c *scene.Container) {
	switch old, now := generation(c.Version), generation(d.in.Compose); {
	case old == now && old != "":
	case now == "":
		d.problem("the container %s was made by Compose %q, but the compose command has the version %q, which Berth "+
			"does not know; name another with --compose-command", c.Name, c.Version, d.in.Compose)
	case old == "":
		d.problem("the container %s does not show which Compose made it (its label com.docker.compose.version is "+
			"%q), and Compose %s might not recreate it; recreate it once with that Compose: up -d "+
			"--force-recreate", c.Name,
			c.Version, d.in.Compose)
	default:
		d.problem("the container %s was made by Compose %s, and the compose command is %s: all containers of a "+
			"project need the same generation of Compose; name that Compose with --compose-command", c.Name, c.Version,
			d.in.Compose)
	}
}

// generation returns 1 for docker-compose and 2 for all later versions. It is empty if the version does not say.
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

// service plans the replicas of a service. Workers are planned at the end.
func (d *drawing) service(s *deploy.Service) {
	image, has := d.in.Images[s.Image]
	planned := &Service{Name: s.Name, Image: s.Image, ImageID: image.ID, Digests: image.Digests,
		Hash: d.in.Hashes[s.Name], Update: s.Update, Needs: s.Needs, Shares: s.Shares, Worker: s.Worker, Once: s.Once,
		Drain: s.Drain, Snapshot: s.Snapshot, Mounts: s.Mounts}
	d.plan.Services = append(d.plan.Services, planned)
	if !has && s.Image != "" && !slices.Contains(d.plan.Pull, s.Image) {
		d.plan.Pull = append(d.plan.Pull, s.Image)
	}
	if s.Worker {
		return
	}
	there := d.replicas(s.Name)
	planned.Update.StartFirst = s.Update.StartFirst && !d.renews(there)
	for i := range s.Instances {
		one := d.instance(planned, &s.Instances[i], there[s.Instances[i].Number])
		planned.Instances = append(planned.Instances, one)
	}
	d.surplus(s, there)
}

// surplus plans the removal of replicas that exceed the number in the files.
func (d *drawing) surplus(s *deploy.Service, there map[int]*replica) {
	for _, number := range sortedNumbers(there) {
		if number > len(s.Instances) {
			d.remove(there[number].c, fmt.Sprintf("the files want %d of %s", len(s.Instances), s.Name))
			d.leave(there[number].beside)
		}
	}
}

// replica is the container of a replica in the engine.
type replica struct {
	c      *scene.Container
	beside []*scene.Container // containers that a failed or interrupted deploy made in addition
}

// container returns the container of a replica, or nil.
func (r *replica) container() *scene.Container {
	if r == nil {
		return nil
	}
	return r.c
}

// replicas returns the containers of a service by number.
func (d *drawing) replicas(service string) map[int]*replica {
	there := map[int]*replica{}
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		if c.Service != service || c.OneOff {
			continue
		}
		r := there[c.Number]
		if r == nil {
			r = &replica{}
			there[c.Number] = r
		}
		_, temporary := c.Ought()
		switch {
		case temporary:
			r.beside = append(r.beside, c)
		case r.c != nil:
			d.problem("the containers %s and %s are both replica %d of %s; remove one of them", r.c.Name, c.Name,
				c.Number,
				service)
		default:
			r.c = c
		}
	}
	for _, r := range there {
		if r.c == nil { // interrupted before the next one was made, or after the old one was removed
			i := max(0, slices.IndexFunc(r.beside, func(c *scene.Container) bool { return c.Runs() }))
			r.c = r.beside[i]
			r.beside = slices.Delete(r.beside, i, i+1)
		}
	}
	return there
}

func sortedNumbers(there map[int]*replica) (all []int) {
	for number := range there {
		all = append(all, number)
	}
	slices.Sort(all)
	return all
}

// between returns an instance from the files with its container, if it has one.
func between(s *Service, want *deploy.Instance, c *scene.Container) *Instance {
	one := &Instance{Owner: want.Owner, Service: s.Name, Number: want.Number, Do: Keep, On: places(want, c)}
	if c != nil {
		one.Container, one.Name, one.State = c.ID, c.Name, c.State
	}
	return one
}

// places returns the addresses that an instance gets, and those that its container has.
func places(want *deploy.Instance, c *scene.Container) (all []Address) {
	for _, on := range want.On {
		a := Address{Network: on.Network, Planned: on.Planned, Gets: on.Addresses, Fixed: on.Named}
		if c != nil {
			has, _ := c.At(on.Network)
			if a.Has = has.Addresses; len(a.Has) == 0 {
				a.Has = has.Fixed // it does not run
			}
		}
		all = append(all, a)
	}
	return all
}

// instance plans a replica from the files.
func (d *drawing) instance(s *Service, want *deploy.Instance, there *replica) *Instance {
	c := there.container()
	one := between(s, want, c)
	if c == nil {
		one.Do = Create
		return one
	}
	one.Uses = c.Shares
	ought, temporary := c.Ought()
	one.Why = slices.Concat(d.differs(s, one.On, c), d.because[c.ID], d.stale(s, c), d.off(s.Name, one, c),
		d.asked(s.Name, one))
	switch {
	case len(one.Why) > 0:
		one.Do = Recreate
	case s.Once && c.State == "exited" && c.ExitCode == 0: // it has done its work
	case !c.Runs():
		one.Do, one.Why = Start, []string{"it does not run: " + c.State}
	case temporary:
		one.Do, one.Why = Start, []string{"an earlier deploy was interrupted before it renamed the container to " +
			"" + ought}
	case c.Health == "unhealthy":
		d.note("%s is unhealthy, but matches the files: it stays unchanged", c.Name)
	}
	if one.Do != Keep {
		d.gone[c.ID] = one.Owner
		d.starts[c.ID] = one.Do == Start
	}
	d.beside(s, one, want, there)
	if one.Do == Recreate && s.Update.StartFirst {
		d.apart(one, c)
	}
	return one
}

// beside plans the additional containers of a replica. One that matches the files is its successor, and others are
// removed.
func (d *drawing) beside(s *Service, one *Instance, want *deploy.Instance, there *replica) {
	for _, c := range there.beside {
		fits := one.Do == Recreate && s.Update.StartFirst && one.Successor == "" && c.Runs() &&
			len(d.differs(s, places(want, c), c)) == 0
		if fits {
			one.Successor = c.ID
		} else {
			d.leave([]*scene.Container{c})
		}
	}
}

// leave plans the removal of additional containers from earlier deploys. The reservations stay with the replicas.
func (d *drawing) leave(all []*scene.Container) {
	for _, c := range all {
		d.remove(c, "an earlier deploy left it").Leftover = true
	}
}

// apart refuses start-first for a container with an unnamed volume, because two containers would write it at the same
// time.
func (d *drawing) apart(one *Instance, c *scene.Container) {
	for _, v := range c.Volumes {
		if v.Anonymous() {
			d.problem("%s would start before %s is stopped, and both would write the volume at %s, which has no "+
				"name; write order: stop-first for %s, or name the volume", one.Owner, c.Name, v.Target, one.Service)
		}
	}
}

// differs returns the differences between a container and the files.
func (d *drawing) differs(s *Service, on []Address, c *scene.Container) (why []string) {
	if c.Hash != s.Hash && (len(s.Shares) == 0 || c.Made != s.Hash) {
		why = append(why, "its configuration has changed")
	}
	if s.ImageID != "" && c.ImageID != s.ImageID {
		why = append(why, fmt.Sprintf("its image has changed: %s is %s now", cmp.Or(s.Image, "the built image"),
			short(s.ImageID)))
	}
	if s.Image != "" && slices.Contains(d.plan.Pull, s.Image) {
		why = append(why, fmt.Sprintf("its image will be pulled: %s", s.Image))
	}
	for i := range on {
		a := &on[i]
		if _, on := c.At(a.Network); !on {
			why = append(why, fmt.Sprintf("it is not on the network %s", a.Network))
			continue
		}
		if len(a.Has) > 0 && !sameAddresses(a.Has, a.Gets) {
			why = append(why, fmt.Sprintf("its address on %s changes: %s to %s", a.Network, deploy.Listed(a.Has, ", "),
				deploy.Listed(a.Gets, ", ")))
		}
	}
	return why
}

// stale returns why a container cannot keep using the network, processes or volumes of others: they are removed, or
// gone already.
func (d *drawing) stale(s *Service, c *scene.Container) (why []string) {
	if len(s.Shares) == 0 {
		return nil
	}
	for _, ref := range c.Shares {
		if d.starts[ref] && !c.Runs() { // it starts after the other one and finds what it had
			continue
		}
		if owner := d.gone[ref]; owner != "" {
			why = append(why, fmt.Sprintf("it shares resources of %s, which is replaced or removed", owner))
		} else if len(c.Shares) <= len(s.Shares) && !d.exists(ref) { // none of them is from outside the project
			why = append(why, fmt.Sprintf("it shares resources of %s, which is gone", short(ref)))
		}
	}
	return why
}

// exists reports whether the project has a container with this id.
func (d *drawing) exists(id string) bool {
	return slices.ContainsFunc(d.in.Containers, func(c scene.Container) bool { return c.ID == id })
}

// sameAddresses reports whether a container has all addresses that it gets. It may have others, such as of a family
// that Berth does not manage.
func sameAddresses(has, gets []netip.Addr) bool {
	for _, addr := range gets {
		if !slices.Contains(has, addr) {
			return false
		}
	}
	return true
}

// short returns an id as people read it.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), 12)]
}

// dropped plans the removal of services that are no longer in the files.
func (d *drawing) dropped() {
	for i := range d.in.Containers {
		c := &d.in.Containers[i]
		wanted := slices.ContainsFunc(d.in.Services, func(s deploy.Service) bool { return s.Name == c.Service })
		if wanted || c.OneOff {
			continue
		}
		d.remove(c, "the files have no service "+c.Service)
	}
}

// remove plans the removal of a container.
func (d *drawing) remove(c *scene.Container, why string) *Instance {
	d.gone[c.ID] = c.Name
	one := &Instance{Owner: d.ownerOf(c), Service: c.Service, Number: c.Number, Do: Delete,
		Why: []string{why}, Container: c.ID, Name: c.Name, State: c.State}
	for _, on := range c.On {
		one.On = append(one.On, Address{Network: on.Network, Has: on.Addresses})
	}
	d.plan.Delete = append(d.plan.Delete, one)
	return one
}

// ownerOf returns the owner of a container's addresses: by its place in the project, or by its own name.
func (d *drawing) ownerOf(c *scene.Container) string {
	ought, _ := c.Ought()
	for _, sep := range []string{"-", "_"} {
		if ought == strings.Join([]string{d.in.Project, c.Service, fmt.Sprint(c.Number)}, sep) { // a name from Compose
			return fmt.Sprintf("%s/%s/%d", d.in.Project, c.Service, c.Number)
		}
	}
	return ought
}
