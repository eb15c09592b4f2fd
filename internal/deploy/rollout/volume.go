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

// Volume is the plan for a volume. Unchanged volumes are not in the plan.
type Volume struct {
	Name string       `json:"name"`
	Do   VolumeAction `json:"do"`
	Why  []string     `json:"why,omitempty"`
	// Services use it; for an orphan, they used it last.
	Services []string `json:"services,omitempty"`
	From     string   `json:"from,omitempty"` // for a copy: the volume with the content
	Saved    string   `json:"saved,omitempty"`
	Foreign  bool     `json:"foreign,omitempty"` // From does not belong to the project
	Of       string   `json:"of,omitempty"`      // for a copy: the volume whose content it has
	// Driver and Options are the new ones of a copied volume.
	Driver  string            `json:"driver,omitempty"`
	Options map[string]string `json:"driver_opts,omitempty"`
}

// VolumeAction is what happens to a volume.
type VolumeAction string

// The actions.
const (
	// orphan: no service uses it any more; it stays and is listed.
	orphan VolumeAction = "orphan"
	// Copy: it is recreated as in the files and gets the content of From. Without From it keeps its own content, which
	// is first saved in Saved.
	Copy VolumeAction = "copy"
	// use: it was orphaned, and a service uses it again.
	use VolumeAction = "use"
	// discard: it is an incomplete copy of a volume that is complete.
	discard VolumeAction = "discard"
)

// Title returns the change of a volume and the reasons.
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

// suffix stands between a volume's name and the number of its copy.
const suffix = "-orphan-"

// volumes plans the volumes, and the containers that must be recreated for them.
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

// volumeDrawing is a drawing with what the plan of volumes needs.
type volumeDrawing struct {
	*drawing
	stored map[string]*scene.Stored // in the engine, by name
	uses   map[string]bool          // that services in the files use
}

// otherwise recreates containers that have another volume than in the files, because Compose's hash of a service does
// not cover the engine's name of a volume.
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

// mountAt returns what the files mount at the path of a container's volume. It is nil if they mount nothing or if the
// container is not the project's.
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

// record plans an orphan that is in use again, and a copy of an interrupted deploy.
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
			Why: []string{"an earlier deploy was interrupted while it copied " + o.Of + ", which is complete"}})
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

// declared plans a volume in the files that services use.
func (d *volumeDrawing) declared(want *deploy.Volume) {
	begun := slices.IndexFunc(d.in.Orphans, func(o ipam.Orphan) bool {
		return o.Of == want.Name && o.Stage == ipam.OrphanRestoring && d.stored[o.Volume] != nil
	})
	v := &Volume{Name: want.Name, Do: Copy, Services: want.Services,
		Driver: cmp.Or(want.Driver, "local"), Options: want.Options}
	has := d.stored[want.Name]
	switch {
	case begun >= 0:
		v.Why = []string{"an earlier deploy was interrupted while it recreated this volume"}
		o := &d.in.Orphans[begun]
		v.From, v.Foreign = o.Volume, o.Foreign
		d.restart(v, d.stored[o.Volume])
	case has == nil:
		before := d.before(want)
		if before == nil {
			return // Compose creates it
		}
		v.From, v.Foreign = before.Name, !d.ours(before)
		v.Why = []string{"its name was " + before.Name + " before"}
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

// ours reports whether Compose created a volume for the project.
func (d *volumeDrawing) ours(s *scene.Stored) bool { return s.Project == d.in.Project && s.Key != "" }

// before returns the volume that was used under a former name of this one. It is found by Compose's label, or in the
// containers of its services at the same path. It returns nil if none is known, or if the files use that volume for
// something else.
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

// restart recreates the containers of a copied volume. It refuses to copy a volume that others use, too.
func (d *volumeDrawing) restart(v *Volume, has *scene.Stored) {
	if has.Name == v.Name && has.Project != "" && has.Project != d.in.Project {
		d.problem("the volume %s would be recreated (%s), but belongs to the project %s; declare it external, or "+
			"give it another name", v.Name, strings.Join(v.Why, "; "), has.Project)
		return
	}
	for i := range has.Users {
		u := &has.Users[i]
		if u.Copier {
			continue
		}
		if u.Project != d.in.Project {
			if has.Name == v.Name || u.Runs {
				d.problem("the volume %s would be copied (%s), but the container %s uses it; remove that container "+
					"first", has.Name,
					strings.Join(v.Why, "; "), u.Title())
			}
			continue
		}
		d.because[u.ID] = append(d.because[u.ID], fmt.Sprintf("its volume %s is recreated: %s", v.Name,
			strings.Join(v.Why, "; ")))
	}
}

// narrowVolumes limits a task to the volumes of the containers that it creates. It refuses to copy a volume of a
// container that the plan does not change. It turns off start-first for services with a copied volume. It also replaces
// their replicas one at a time, because a copy removes all of them and Compose counts them.
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
				d.note("%s is stopped before it is recreated, because its volume %s is copied", name, v.Name)
			}
		}
	}
}

// copies reports whether a volume of a service is copied.
func (p *Plan) copies(s *Service) bool {
	return slices.ContainsFunc(p.Volumes, func(v *Volume) bool {
		return v.Do == Copy && slices.Contains(v.Services, s.Name)
	})
}

// leftWith refuses to copy a volume of a container of the project that the plan does not change.
func (d *drawing) leftWith(v *Volume, has *scene.Stored) {
	for i := range has.Users {
		u := &has.Users[i]
		if u.Copier || u.Project != d.in.Project || has.Name != v.Name && !u.Runs || d.plan.instance(u.ID) != nil {
			continue
		}
		d.problem("the volume %s is recreated, but the container %s, which stays unchanged, uses it: remove that "+
			"container, or deploy the whole project", v.Name, u.Name)
	}
}

// instance returns the instance with a container, or nil.
func (p *Plan) instance(container string) *Instance {
	all := p.all()
	if i := slices.IndexFunc(all, func(one *Instance) bool { return one.Container == container }); i >= 0 {
		return all[i]
	}
	return nil
}

// free returns the first unused name for a copy of a volume.
func (d *volumeDrawing) free(name string) string {
	for n := 1; ; n++ {
		copied := fmt.Sprint(name, suffix, n)
		recorded := slices.ContainsFunc(d.in.Orphans, func(o ipam.Orphan) bool {
			return o.Volume == copied && o.Stage == "" // otherwise it was never created
		})
		discarded := slices.ContainsFunc(d.plan.Volumes, func(v *Volume) bool {
			return v.Name == copied && v.Do == discard // removed before anything is copied
		})
		if discarded || d.stored[copied] == nil && !recorded {
			return copied
		}
	}
}

// orphans plans the project's volumes that no service uses any more, unless they are recorded already.
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
