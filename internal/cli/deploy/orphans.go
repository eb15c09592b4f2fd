package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy/rollout"
	"berth/internal/deploy/scene"
	"berth/internal/ipam"
)

func orphansCommand() cli.Row {
	return cli.Group("orphans", "Volumes that no service uses", orphanListCommand(), orphanRemoveCommand())
}

const orphanListHelp = `Lists the volumes that deploys left on this host: those that no service uses, and
copies of recreated volumes. They stay until berth deploy orphans rm removes them.`

func orphanListCommand() cli.Row {
	var host string
	return cli.Listing[ipam.Orphan]{
		Verb: cli.Verb{Use: "ls [PROJECT]", Short: "List volumes that no service uses any more", Long: orphanListHelp,
			Example: "  berth deploy orphans ls\n  berth deploy orphans ls shop --format json",
			Flags:   cli.Flags{cli.DockerHostFlag(&host)}},
		Keys: cli.Fields{"host",
			cli.Choice("state=Stage", string(ipam.OrphanSaving), string(ipam.OrphanRestoring))},
		Columns: cli.Fields{"Volume", "Project", "Service", "Since", "Of,wide", "Stage,wide", "Host,wide"},
		Fetch: func(r *cli.Run) ([]ipam.Orphan, error) {
			all, err := r.Orphans(r)
			if err != nil {
				return nil, err
			}
			all = slices.DeleteFunc(all, func(o ipam.Orphan) bool { return len(r.Args) > 0 && o.Project != r.Args[0] })
			if len(all) == 0 {
				return all, nil
			}
			has, err := volumesOf(r, host)
			if err != nil {
				r.Warn("the list may have volumes that are gone or in use again, because Berth cannot read the " +
					"engine's volumes: " + cli.OneLine(err))
				return all, nil
			}
			return slices.DeleteFunc(all, func(o ipam.Orphan) bool { return !isOrphan(&o, has[o.Volume]) }), nil
		},
	}
}

// volumesOf returns the volumes of the engine at a URL, by name.
func volumesOf(ctx context.Context, host string) (map[string]*scene.Stored, error) {
	engine, err := scene.Open(host)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	all, err := engine.Volumes(ctx)
	has := map[string]*scene.Stored{}
	for i := range all {
		has[all[i].Name] = &all[i]
	}
	return has, err
}

// isOrphan reports whether a recorded orphan still is one. A volume of the same name that was created later is not.
func isOrphan(o *ipam.Orphan, s *scene.Stored) bool {
	switch {
	case s == nil || s.Used():
		return false
	case o.Of == "" && s.Made.After(o.Since.Add(time.Second)): // engines report whole seconds
		return false
	}
	return true
}

const orphanRemoveHelp = `Removes a volume that no service uses, with its data. It asks first, unless you give
--yes. It refuses while a container uses the volume, while its project is being deployed, and if berth deploy
orphans ls does not list the volume.`

func orphanRemoveCommand() cli.Row {
	var host string
	var yes, dryRun bool
	return cli.Verb{Use: "rm VOLUME...", Short: "Remove volumes that no service uses any more",
		Long:    orphanRemoveHelp,
		Example: "  berth deploy orphans rm shop_data\n  berth deploy orphans rm shop_data-orphan-1 --yes",
		Refs:    []cli.Refs{orphanRefs},
		Flags:   cli.Flags{cli.DockerHostFlag(&host), cli.YesFlag(&yes), cli.DryRunFlag(&dryRun)},
		Run: func(run *cli.Run) error {
			if err := run.Ask(); err != nil {
				return err
			}
			r := orphanRemoval{Run: run, host: host, dryRun: dryRun}
			return cli.Each(run.Args, func(volume string) error {
				return r.remove(volume, func(question string) error {
					if yes {
						return nil
					}
					return run.Confirm(question)
				})
			})
		}}
}

// orphanRemoval removes an orphaned volume and its record.
type orphanRemoval struct {
	*cli.Run
	host   string // URL of the engine
	dryRun bool
}

func (r *orphanRemoval) remove(name string, confirm func(string) error) error {
	engine, err := scene.Open(r.host)
	if err != nil {
		return err
	}
	defer engine.Close()
	o, there, err := r.look(engine, name)
	if err != nil {
		return err
	}
	if r.dryRun {
		return r.Sayf("would remove the volume %s of the project %s", name, o.Project)
	}
	if there {
		if err := confirm(fmt.Sprintf("Remove the volume %s of the project %s, with all its data?", name,
			o.Project)); err != nil {
			return err
		}
		if _, _, err := r.look(engine, name); err != nil { // the user may have taken long to answer
			return err
		}
		if err := engine.RemoveCopiers(r, o.Project); err != nil {
			return err
		}
		if err := engine.RemoveVolume(r, name); err != nil {
			return err
		}
	}
	if _, err := r.Edit(r, client.EditOptions{}, &ipam.RemoveOrphan{Volume: name}); err != nil {
		return fmt.Errorf("the volume %s is removed, but Berth's record of it is not: %w", name, err)
	}
	return r.Say(name)
}

// look returns the record of a volume, and whether the engine has it. It refuses a volume that is in use, that is not
// the recorded one, or whose project is being deployed.
func (r *orphanRemoval) look(engine *scene.Engine, name string) (*ipam.Orphan, bool, error) {
	o, err := r.find(name)
	if err != nil {
		return nil, false, err
	}
	all, err := engine.Volumes(r)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(all, func(s scene.Stored) bool { return s.Name == name })
	if i >= 0 {
		for _, u := range all[i].Users {
			if !u.Copier {
				return nil, false, fmt.Errorf("the volume %s is used by the container %s; remove that container first",
					name, u.Title())
			}
		}
		if !isOrphan(o, &all[i]) {
			return nil, false, fmt.Errorf("the volume %s was created at %s, after a deploy left another volume of "+
				"that name; to remove the new one, use `docker volume rm`", name, cli.LocalTime(all[i].Made))
		}
	}
	_, err = r.Edit(r, client.EditOptions{DryRun: true}, &ipam.RemoveOrphan{Volume: name})
	return o, i >= 0, err
}

// find returns the record of a volume.
func (r *orphanRemoval) find(name string) (*ipam.Orphan, error) {
	all, err := r.Orphans(r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(o ipam.Orphan) bool { return o.Volume == name })
	if i < 0 {
		return nil, fmt.Errorf("no deploy left a volume %s; `berth deploy orphans ls` lists the volumes that deploys "+
			"left", name)
	}
	return &all[i], nil
}

// orphanRefs completes names of orphaned volumes.
var orphanRefs = cli.NamesOf((*client.Client).Orphans, func(o *ipam.Orphan) string { return o.Volume })

// volumes adds what is known about volumes to the inputs of a plan.
func (s *site) volumes(in *rollout.Inputs) (err error) {
	in.Volumes = s.project.Volumes()
	if in.Stored, err = s.engine.Volumes(s); err != nil {
		return err
	}
	all, err := s.Orphans(s)
	for _, o := range all {
		if o.Project == in.Project {
			in.Orphans = append(in.Orphans, o)
		}
	}
	return err
}
