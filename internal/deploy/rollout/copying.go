package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
	"berth/internal/ipam"
)

// Copying is the step that copies the content of a volume to another one.
const Copying Step = "copy"

// volumeWork is the state of the recreated volumes in a run.
type volumeWork struct {
	sync.Mutex
	done map[string]bool // by name
}

// tidy removes what an interrupted deploy left of copying.
func (r *run) tidy(ctx context.Context) error {
	if len(r.plan.Volumes) == 0 {
		return nil
	}
	declared := map[string]single.Declared{}
	for _, v := range r.plan.Volumes {
		if v.Do == Copy {
			declared[v.Name] = single.Declared{Driver: v.Driver, Options: v.Options}
		}
	}
	r.Maker.Declared = declared
	if err := r.Engine.RemoveCopiers(ctx, r.plan.Project); err != nil {
		return err
	}
	for _, v := range r.plan.Volumes {
		if v.Do != discard {
			continue
		}
		if err := r.may(ctx); err != nil {
			return err
		}
		if err := r.Engine.RemoveVolume(ctx, v.Name); err != nil {
			return err
		}
		if err := r.Edit(ctx, &ipam.RemoveOrphan{Volume: v.Name}); err != nil {
			return err
		}
	}
	return nil
}

// renewed recreates the changed volumes of a service before a container of it is created.
func (r *run) renewed(ctx context.Context, one *Instance) error {
	for _, v := range r.plan.Volumes {
		if v.Do == Copy && slices.Contains(v.Services, one.Service) {
			if err := r.anew(ctx, v, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// anew recreates a volume with its content. A complete copy of the content exists at any time, and the record names it.
func (r *run) anew(ctx context.Context, v *Volume, one *Instance) error {
	r.volume.Lock()
	defer r.volume.Unlock()
	if r.volume.done[v.Name] {
		return nil
	}
	c := &copying{run: r, volume: v, owner: one.Owner, from: v.From}
	if v.From != "" {
		if err := c.keep(ctx, v.From, ipam.OrphanRestoring); err != nil {
			return err
		}
	}
	if err := c.clear(ctx); err != nil {
		return err
	}
	if err := c.image(ctx); err != nil {
		return err
	}
	if v.From == "" {
		if err := c.save(ctx, v.Saved, ipam.OrphanRestoring); err != nil {
			return err
		}
		c.from = v.Saved
	}
	if err := c.restore(ctx); err != nil {
		return fmt.Errorf("%w; the content of the volume %s is in %s", err, v.Name, c.from)
	}
	if r.volume.done == nil {
		r.volume.done = map[string]bool{}
	}
	r.volume.done[v.Name] = true
	return nil
}

// copying is the recreation of a volume.
type copying struct {
	*run
	volume *Volume
	owner  string // of the instance that waits for the volume
	from   string // the volume with the content
	ref    string // the image of the copiers
}

// stored returns the engine's current volume of that name, or nil.
func (c *copying) stored(ctx context.Context, name string) (*scene.Stored, error) {
	all, err := c.Engine.Volumes(ctx)
	if i := slices.IndexFunc(all, func(s scene.Stored) bool { return s.Name == name }); i >= 0 {
		return &all[i], err
	}
	return nil, err
}

// clear stops and removes all containers of the deploy that use the volume or the source of its content. Nothing may
// write to them meanwhile, and the engine does not remove a volume that a container uses.
func (c *copying) clear(ctx context.Context) error {
	for _, name := range []string{c.volume.Name, c.from} {
		s, err := c.stored(ctx, name)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		for i := range s.Users {
			if err := c.leave(ctx, name, &s.Users[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave makes a container release a volume.
func (c *copying) leave(ctx context.Context, name string, u *scene.User) error {
	c.ref = u.Image
	one := c.plan.instance(u.ID)
	switch {
	case u.Copier:
		return nil
	case one != nil && (one.Do == Recreate || one.Do == Work):
		one.Successor = "" // a worker that an interrupted deploy started with the old volume
		return c.goes(ctx, one)
	case name != c.volume.Name && !u.Runs:
		return nil
	}
	return fmt.Errorf("the volume %s will be copied, but the container %s, which this deploy does not replace, uses "+
		"it; stop it, and run the deploy again", name, u.Title())
}

// goes stops and removes the container of an instance. If the next container needs its unnamed volumes, a container
// that never starts keeps them. That one is the instance's container until then.
func (c *copying) goes(ctx context.Context, one *Instance) error {
	before, err := c.Engine.Container(ctx, one.Container)
	if err != nil && !scene.IsGone(err) {
		return err
	}
	if one.Do == Work || len(anonymous(&before)) == 0 {
		return c.end(ctx, one)
	}
	for _, step := range []func() error{func() error { return c.down(ctx, one) }, func() error { return c.image(ctx) },
		func() error { return c.may(ctx) }} {
		if err := step(); err != nil {
			return err
		}
	}
	ought, _ := before.Ought()
	temporary := short(before.ID) + "_" + ought
	c.tell(Event{Step: making, Instance: one.Owner, Detail: temporary + ", which keeps its anonymous volumes"})
	keeper, err := c.Engine.Keep(ctx, before.ID, temporary, c.ref)
	if err != nil {
		return err
	}
	if err := c.end(ctx, one); err != nil {
		return err
	}
	one.Container, one.Name = keeper, temporary
	return nil
}

// image finds an image for the copiers that the engine has: that of the containers that used the volume, or else one of
// the services that will use it.
func (c *copying) image(ctx context.Context) error {
	refs := []string{c.ref}
	for _, s := range c.plan.Services {
		if slices.Contains(c.volume.Services, s.Name) {
			refs = append(refs, s.ImageID, s.Image, c.plan.Project+"-"+s.Name, c.plan.Project+"_"+s.Name)
		}
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		image, there, err := c.Engine.Image(ctx, ref)
		if err != nil {
			return err
		}
		if there {
			c.ref = image.ID
			return nil
		}
	}
	return fmt.Errorf("the volume %s cannot be copied: the engine has no image of %s", c.volume.Name,
		strings.Join(c.volume.Services, ", "))
}

// keep records the volume that has the content.
func (c *copying) keep(ctx context.Context, volume string, stage ipam.OrphanStage) error {
	return c.Edit(ctx, &ipam.KeepOrphan{Volume: volume, Project: c.plan.Project, Host: c.Host,
		Service: strings.Join(c.volume.Services, ","), Of: c.volume.Name, Stage: stage,
		Foreign: c.volume.Foreign && volume == c.volume.From})
}

// save copies the content of the volume to another one and records that the copy is complete.
func (c *copying) save(ctx context.Context, to string, then ipam.OrphanStage) error {
	if err := c.keep(ctx, to, ipam.OrphanSaving); err != nil {
		return err
	}
	if err := c.may(ctx); err != nil {
		return err
	}
	if err := c.Engine.MakeCopyVolume(ctx, to, c.volume.Name, c.plan.Project); err != nil {
		return err
	}
	if err := c.copied(ctx, c.volume.Name, to); err != nil {
		return err
	}
	return c.keep(ctx, to, then)
}

// copied copies the content of one volume to another and compares them.
func (c *copying) copied(ctx context.Context, from, to string) error {
	if err := c.may(ctx); err != nil {
		return err
	}
	c.tell(Event{Step: Copying, Instance: c.owner, Detail: from + " to " + to})
	return c.through(ctx, from, to, func(by *scene.Copier) error {
		if err := by.Copy(ctx); err != nil {
			return err
		}
		return by.Verify(ctx)
	})
}

// through calls do with a copier for two volumes.
func (c *copying) through(ctx context.Context, from, to string, do func(*scene.Copier) error) error {
	by, err := c.Engine.NewCopier(ctx, c.plan.Project, c.ref, from, to)
	if err != nil {
		return err
	}
	return errors.Join(do(by), by.Close(ctx))
}

// restore makes Compose create the volume as the files describe it, and copies the content to it.
func (c *copying) restore(ctx context.Context) error {
	if err := c.away(ctx); err != nil {
		return err
	}
	if err := c.may(ctx); err != nil {
		return err
	}
	if err := c.makeAnew(ctx); err != nil {
		return err
	}
	if c.volume.Options["type"] != "tmpfs" { // a tmpfs is empty again as soon as no container uses it
		if err := c.copied(ctx, c.from, c.volume.Name); err != nil {
			return err
		}
	}
	if c.volume.Foreign && c.from == c.volume.From {
		return c.Edit(ctx, &ipam.RemoveOrphan{Volume: c.from})
	}
	return c.keep(ctx, c.from, "")
}

// away removes the old volume. If somebody used it after an interrupted deploy saved its content, away saves it once
// more.
func (c *copying) away(ctx context.Context) error {
	s, err := c.stored(ctx, c.volume.Name)
	if err != nil || s == nil {
		return err
	}
	if c.volume.From != "" {
		if err := c.once(ctx); err != nil {
			return err
		}
	}
	if err := c.may(ctx); err != nil {
		return err
	}
	return c.Engine.RemoveVolume(ctx, c.volume.Name)
}

// once saves the volume once more if it has anything that the saved content lacks.
func (c *copying) once(ctx context.Context) error {
	holds := false
	err := c.through(ctx, c.from, c.volume.Name, func(by *scene.Copier) (err error) {
		holds, err = by.Holds(ctx)
		return err
	})
	if holds || err != nil {
		return err
	}
	further, err := c.further(ctx)
	if err != nil {
		return err
	}
	return c.save(ctx, further, "")
}

// further returns the first unused name for one more copy.
func (c *copying) further(ctx context.Context) (string, error) {
	all, err := c.Engine.Volumes(ctx)
	if err != nil {
		return "", err
	}
	recorded, err := c.Orphans(ctx)
	d := volumeDrawing{drawing: &drawing{in: Inputs{Orphans: recorded}, plan: &Plan{}}, stored: map[string]*scene.Stored{}}
	for i := range all {
		d.stored[all[i].Name] = &all[i]
	}
	return d.free(c.volume.Name), err
}

// makeAnew makes Compose create the volume.
func (c *copying) makeAnew(ctx context.Context) error {
	i := slices.IndexFunc(c.volume.Services, func(name string) bool {
		return slices.ContainsFunc(c.plan.Services, func(s *Service) bool { return s.Name == name })
	})
	if err := c.Maker.MakeVolumes(ctx, c.volume.Services[max(i, 0)]); err != nil {
		return err
	}
	s, err := c.stored(ctx, c.volume.Name)
	if err == nil && s == nil {
		err = fmt.Errorf("the volume %s was not recreated by Compose", c.volume.Name)
	}
	return err
}

// orphaned records the volumes that no container uses any more. It ends the records of volumes that are gone or in use
// again.
func (r *run) orphaned(ctx context.Context) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	recorded, err := r.Orphans(ctx)
	if err != nil {
		return err
	}
	all, err := r.Engine.Volumes(ctx)
	if err != nil {
		return err
	}
	has := map[string]*scene.Stored{}
	for i := range all {
		has[all[i].Name] = &all[i]
	}
	for _, o := range recorded {
		s := has[o.Volume]
		if o.Project == r.plan.Project && (s == nil || o.Stage == "" && s.Used()) {
			if err := r.Edit(ctx, &ipam.RemoveOrphan{Volume: o.Volume}); err != nil {
				return err
			}
		}
	}
	for _, v := range r.plan.Volumes {
		if s := has[v.Name]; v.Do != use && (v.Do != orphan || s == nil || s.Used()) {
			continue
		}
		if err := r.Edit(ctx, v.recorded(r.plan.Project, r.Host)); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the edit that records a volume as an orphan, or ends the record. A foreign volume is never an
// orphan.
func (v *Volume) recorded(project, host string) ipam.Edit {
	if v.Foreign || v.Do == use {
		return &ipam.RemoveOrphan{Volume: v.Name}
	}
	return &ipam.KeepOrphan{Volume: v.Name, Project: project, Host: host, Service: strings.Join(v.Services, ","),
		Of: v.Of}
}
