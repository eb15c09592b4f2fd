package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
	"berth/internal/ipam"
)

// Volume is what becomes of a volume. Those that stay as they are a plan does not name.
type Volume struct {
	Name string       `json:"name"`
	Do   VolumeAction `json:"do"`
	Why  []string     `json:"why,omitempty"`
	// Services use it; of one that is orphaned, they used it last.
	Services []string `json:"services,omitempty"`
	From     string   `json:"from,omitempty"` // of a copied one: the volume whose content it gets
	Saved    string   `json:"saved,omitempty"`
	Foreign  bool     `json:"foreign,omitempty"` // From is not the project's
	Of       string   `json:"of,omitempty"`      // of a copy: the volume whose content it holds
	// Driver and Options are those that a copied one is to have.
	Driver  string            `json:"driver,omitempty"`
	Options map[string]string `json:"driver_opts,omitempty"`
}

// VolumeAction is what becomes of a volume.
type VolumeAction string

// The actions.
const (
	// Orphan: no service uses it any more; it stays, and is listed (BD-5).
	orphan VolumeAction = "orphan"
	// Copy: it is made anew as the files describe it, and gets the content of From. Without From that is its own, which
	// goes to Saved before (BD-8).
	Copy VolumeAction = "copy"
	// Use: it was orphaned, and a service uses it again.
	use VolumeAction = "use"
	// Discard: it is a copy that was cut off, of a volume that is whole.
	discard VolumeAction = "discard"
)

// Title says of a volume what becomes of it, and why.
func (v *Volume) Title() string {
	text := v.Name
	switch {
	case v.Do == Copy && v.From != "":
		text += " from " + v.From
	case v.Do == Copy:
		text += " by way of " + v.Saved
	}
	if len(v.Why) > 0 {
		text += "  (" + strings.Join(v.Why, "; ") + ")"
	}
	return text
}

// suffix comes between the name of a volume and the number of a copy of it.
const suffix = "-orphan-"

// volumes plans what becomes of the volumes, and which containers have to be made anew for that.
func (d *drawing) volumes() {
	if d.in.Task.Do == Stop {
		return
	}
	v := volumeDrawing{drawing: d, stored: map[string]*scene.Stored{}, uses: map[string]bool{}}
	for i := range d.in.Stored {
		v.stored[d.in.Stored[i].Name] = &d.in.Stored[i]
	}
	for i := range d.in.Volumes {
		v.uses[d.in.Volumes[i].Name] = true
	}
	for i := range d.in.Orphans {
		v.record(&d.in.Orphans[i])
	}
	for i := range d.in.Volumes {
		if want := &d.in.Volumes[i]; !want.External && !want.Asleep && d.instancesOf(want.Services) > 0 {
			v.declared(want)
		}
	}
	v.orphans()
	v.otherwise()
}

// volumeDrawing is that part of a plan that is about volumes, while it is drawn.
type volumeDrawing struct {
	*drawing
	stored map[string]*scene.Stored // what the engine has, by name
	uses   map[string]bool          // what services of the files use
}

// otherwise has containers made anew that have another volume where the files want one: Compose's hash of a service
// does not tell the name that the engine has for a volume.
func (d *volumeDrawing) otherwise() {
	for i := range d.in.Stored {
		s := &d.in.Stored[i]
		for j := range s.Users {
			u := &s.Users[j]
			if want := d.mountAt(u); want != nil && want.Volume != s.Name && d.because[u.ID] == nil {
				d.because[u.ID] = []string{fmt.Sprintf("its volume at %s changes: %s to %s", u.Target, s.Name,
					want.Volume)}
			}
		}
	}
}

// mountAt is what the files want where a container has a volume; nil: nothing, or it is none of the project's.
func (d *drawing) mountAt(u *scene.User) *deploy.Mount {
	for i := range d.in.Services {
		s := &d.in.Services[i]
		if u.Project != d.in.Project || u.Service != s.Name {
			continue
		}
		for k := range s.Mounts {
			if s.Mounts[k].Target == u.Target {
				return &s.Mounts[k]
			}
		}
	}
	return nil
}

func (d *drawing) instancesOf(services []string) (count int) {
	for i := range d.in.Services {
		if slices.Contains(services, d.in.Services[i].Name) {
			count += len(d.in.Services[i].Instances)
		}
	}
	return count
}

func (d *volumeDrawing) add(v *Volume) { d.plan.Volumes = append(d.plan.Volumes, v) }

// record plans what becomes of an orphan that is in use again, and of a copy that a deploy before has begun and did not
// end.
func (d *volumeDrawing) record(o *ipam.Orphan) {
	if d.stored[o.Volume] == nil || o.Stage == "" && !d.uses[o.Volume] {
		return
	}
	whole := d.stored[o.Of] != nil
	switch {
	case d.uses[o.Volume]:
		d.add(&Volume{Name: o.Volume, Do: use, Why: []string{"a service uses it again"}})
	case o.Stage == ipam.OrphanSaving && whole:
		d.add(&Volume{Name: o.Volume, Do: discard, Of: o.Of,
			Why: []string{"a deploy before was cut off while it copied " + o.Of + ", which is whole"}})
	case o.Stage == ipam.OrphanSaving || !d.uses[o.Of]:
		d.add(&Volume{Name: o.Volume, Do: orphan, Of: o.Of, Services: servicesOf(o), Foreign: o.Foreign,
			Why: []string{"it holds the content of " + o.Of + ", which no service uses any more"}})
	}
}

func servicesOf(o *ipam.Orphan) []string {
	if o.Service == "" {
		return nil
	}
	return strings.Split(o.Service, ",")
}

// declared plans what becomes of a volume that the files describe and services use.
func (d *volumeDrawing) declared(want *deploy.Volume) {
	begun := slices.IndexFunc(d.in.Orphans, func(o ipam.Orphan) bool {
		return o.Of == want.Name && o.Stage == ipam.OrphanRestoring && d.stored[o.Volume] != nil
	})
	v := &Volume{Name: want.Name, Do: Copy, Services: want.Services,
		Driver: cmp.Or(want.Driver, "local"), Options: want.Options}
	has := d.stored[want.Name]
	switch {
	case begun >= 0:
		v.Why = []string{"a deploy before was cut off while it recreated it"}
		o := &d.in.Orphans[begun]
		v.From, v.Foreign = o.Volume, o.Foreign
		d.restart(v, d.stored[o.Volume])
	case has == nil:
		before := d.before(want)
		if before == nil {
			return // Compose makes it
		}
		v.From, v.Foreign = before.Name, !d.ours(before)
		v.Why = []string{"it was " + before.Name + " before"}
		d.restart(v, before)
	default:
		if v.Why = has.Differs(want.Driver, want.Options, want.Labels); len(v.Why) == 0 {
			return
		}
		v.Saved = d.free(want.Name)
	}
	if has != nil {
		d.restart(v, has)
	}
	d.add(v)
}

// ours tells whether Compose made a volume for the project.
func (d *volumeDrawing) ours(s *scene.Stored) bool { return s.Project == d.in.Project && s.Key != "" }

// before is the volume that had the name that the files gave a volume before: Compose's own word, or what the
// containers of its services have at its path. nil: none is known, or another volume of the files is it now.
func (d *volumeDrawing) before(want *deploy.Volume) *scene.Stored {
	var found *scene.Stored
	for i := range d.in.Stored {
		s := &d.in.Stored[i]
		if d.uses[s.Name] || s.CopyOf != "" {
			continue
		}
		byLabel := d.ours(s) && s.Key == want.Key && len(s.Users) > 0
		byPath := s.Project == "" && slices.ContainsFunc(s.Users, func(u scene.User) bool {
			at := d.mountAt(&u)
			return at != nil && at.Volume == want.Name
		})
		if byLabel || found == nil && byPath {
			found = s
		}
	}
	return found
}

// restart has the containers of a volume that is copied be made anew, and refuses it where others use it, too.
func (d *volumeDrawing) restart(v *Volume, has *scene.Stored) {
	if has.Name == v.Name && has.Project != "" && has.Project != d.in.Project {
		d.problem("the volume %s is to be recreated (%s), and is of the project %s; declare it external, or give it "+
			"another name", v.Name, strings.Join(v.Why, "; "), has.Project)
		return
	}
	for i := range has.Users {
		u := &has.Users[i]
		if u.Copier {
			continue
		}
		if u.Project != d.in.Project {
			if has.Name == v.Name || u.Runs {
				d.problem("the volume %s is to be copied (%s), and the container %s uses it; remove that first", has.Name,
					strings.Join(v.Why, "; "), u.Title())
			}
			continue
		}
		d.because[u.ID] = append(d.because[u.ID], fmt.Sprintf("its volume %s is recreated: %s", v.Name,
			strings.Join(v.Why, "; ")))
	}
}

// narrowVolumes leaves to a task that is not of all the volumes of the containers that it makes. It refuses to copy
// what a container has that is left as it is, and has services wait for a copy that would start first otherwise. A copy
// takes all of their replicas away, which come back one after the other: Compose counts them.
func (d *drawing) narrowVolumes() {
	makes := func(name string) bool {
		s := d.plan.service(name)
		return s != nil && s.makes()
	}
	if d.in.Task.Do != "" {
		d.plan.Volumes = slices.DeleteFunc(d.plan.Volumes, func(v *Volume) bool {
			return v.Do != Copy || !slices.ContainsFunc(v.Services, makes)
		})
	}
	for _, v := range d.plan.Volumes {
		if v.Do != Copy {
			continue
		}
		for i := range d.in.Stored {
			if s := &d.in.Stored[i]; s.Name == v.Name || s.Name == v.From {
				d.leftWith(v, s)
			}
		}
		for _, name := range v.Services {
			s := d.plan.service(name)
			if s == nil {
				continue
			}
			s.Update.MaxInFlight = 1
			if s.Update.StartFirst {
				s.Update.StartFirst = false
				d.note("%s is stopped before it is recreated, since its volume %s is copied", name, v.Name)
			}
		}
	}
}

// copies tells whether a volume of a service is copied.
func (p *Plan) copies(s *Service) bool {
	return slices.ContainsFunc(p.Volumes, func(v *Volume) bool {
		return v.Do == Copy && slices.Contains(v.Services, s.Name)
	})
}

// leftWith refuses to copy a volume that a container of the project has which the plan leaves as it is.
func (d *drawing) leftWith(v *Volume, has *scene.Stored) {
	for i := range has.Users {
		u := &has.Users[i]
		if u.Copier || u.Project != d.in.Project || has.Name != v.Name && !u.Runs || d.plan.instance(u.ID) != nil {
			continue
		}
		d.problem("the volume %s is recreated, and the container %s, which is left as it is, has it: remove that, or "+
			"deploy the project as a whole", v.Name, u.Name)
	}
}

// instance is the one that has a container.
func (p *Plan) instance(container string) *Instance {
	all := p.all()
	if i := slices.IndexFunc(all, func(one *Instance) bool { return one.Container == container }); i >= 0 {
		return all[i]
	}
	return nil
}

// free is the first name for a copy of a volume that nobody has.
func (d *volumeDrawing) free(name string) string {
	for n := 1; ; n++ {
		copied := fmt.Sprint(name, suffix, n)
		recorded := slices.ContainsFunc(d.in.Orphans, func(o ipam.Orphan) bool {
			return o.Volume == copied && o.Stage == "" // else it was never made
		})
		discarded := slices.ContainsFunc(d.plan.Volumes, func(v *Volume) bool {
			return v.Name == copied && v.Do == discard // before anything is copied
		})
		if discarded || d.stored[copied] == nil && !recorded {
			return copied
		}
	}
}

// orphans plans the volumes of the project that no service uses any more, unless they are recorded as such already.
func (d *volumeDrawing) orphans() {
	for i := range d.in.Stored {
		s := &d.in.Stored[i]
		ours := d.ours(s) || s.CopyOf != "" && s.CopyFor == d.in.Project
		known := slices.ContainsFunc(d.in.Orphans, func(o ipam.Orphan) bool { return o.Volume == s.Name })
		others := slices.ContainsFunc(s.Users, func(u scene.User) bool { return u.Project != d.in.Project && !u.Copier })
		if !ours || known || others || d.uses[s.Name] {
			continue
		}
		v := &Volume{Name: s.Name, Do: orphan, Of: s.CopyOf, Why: []string{"no service uses it any more"}}
		if i := slices.IndexFunc(d.plan.Volumes, func(v *Volume) bool { return v.From == s.Name }); i >= 0 {
			v.Of = d.plan.Volumes[i].Name
		}
		for j := range s.Users {
			if service := s.Users[j].Service; service != "" && !slices.Contains(v.Services, service) {
				v.Services = append(v.Services, service)
			}
		}
		d.add(v)
	}
}
