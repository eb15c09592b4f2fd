package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/cli/document"
	"berth/internal/deploy"
	"berth/internal/deploy/single"
	"berth/internal/docker"
	"berth/internal/ipam"
)

// overrideName is the name of an adopted project's override, in the directory of its first file.
const overrideName = "berth.override.yaml"

// fit refuses a command line with neither a Docker network nor a Compose project, or with both.
func (f *adoptFlags) fit(r *cli.Run) error {
	if err := r.NotEmpty("project"); err != nil {
		return err
	}
	if f.source.Project == "" {
		if r.Given("file") || r.Given("profile") {
			return r.Usagef("--file and --profile need --project")
		}
		if f.name != "" {
			if err := ipam.CheckNewName("network", f.name); err != nil {
				return r.Usagef("--name: %w", err)
			}
		}
		return cli.Takes("DOCKER-NETWORK")(r)
	}
	switch {
	case len(r.Args) > 0:
		return r.Usagef("give either a Docker network or --project, not both")
	case r.Given("name"):
		return r.Usagef("Berth plans the networks of a project under their names in Docker; leave out --name")
	case f.edit.DryRun && f.file != "":
		return r.Usagef("--dry-run writes nothing; leave -o out")
	}
	return nil
}

// projectAdoption is a Compose project on its way to Berth.
type projectAdoption struct {
	engine   docker.Project
	compose  *deploy.Project
	views    []ipam.EngineView // Docker networks that are adopted
	scaled   map[string]int    // services with more replicas than in the files
	external []string          // Docker's names of networks that the project does not create
	driver   string            // the engine's name for Berth
	output   string            // path of the override
	mapping  deploy.Mapping
}

// adoptProject plans a Compose project's networks with the addresses of its containers, and writes the override that
// keeps these addresses.
func adoptProject(r *cli.Run, flags *adoptFlags, show *cli.Table[ipam.ImportReport]) error {
	engine, err := flags.engine.Open()
	if err != nil {
		return cli.Usage(r.Cmd, err)
	}
	defer engine.Close()
	if err := r.Ask(); err != nil {
		return err
	}
	if err := flags.engine.CheckEngine(r, engine); err != nil {
		return err
	}
	names, err := flags.engine.Names(r, engine)
	if err != nil {
		return err
	}
	a, err := readProject(r, engine, flags, names)
	if err != nil {
		return err
	}
	if err := a.look(r, flags.engine); err != nil {
		return err
	}
	plan, err := docker.AdoptProject(a.views)
	if err != nil {
		return err
	}
	report, err := document.Import(r, plan, flags.edit.DryRun, "Compose project "+a.engine.Name)
	if err != nil {
		return err
	}
	if !flags.edit.DryRun {
		if err := overrideProject(r, a); err != nil {
			return err
		}
	}
	return showAdopted(show, &report, func() string { return a.steps(single.Answering(r, a.engine.Version)) })
}

// look adds the project's external networks to the mapping. It returns an error if one is missing.
func (a *projectAdoption) look(r *cli.Run, engine cli.EngineFlags) error {
	of := Project{Mapping: deploy.Mapping{Adopted: map[string]string{}, AdoptedBy: a.driver,
		Merges: !strings.HasPrefix(a.engine.Version, "1.")}}
	engine.Host = cmp.Or(engine.Host, docker.DefaultHost)
	if err := of.Look(r, engine, a.compose); err != nil {
		return err
	}
	a.mapping = of.Mapping
	networks, err := r.Networks(r, "")
	if err != nil {
		return err
	}
	a.external = slices.DeleteFunc(a.external, func(name string) bool {
		has := a.mapping.Engine[name]
		return has != nil && a.mapping.IsBerth(has.Driver)
	})
	return a.compose.Missing(a.mapping, networks)
}

// readProject reads the project's files, and those of its Docker networks that are not Berth's yet.
func readProject(r *cli.Run, engine *docker.Engine, flags *adoptFlags, drivers []string) (*projectAdoption, error) {
	a := &projectAdoption{driver: drivers[0], output: flags.file}
	var err error
	if a.engine, err = engine.Project(r, flags.source.Project); err != nil {
		return nil, err
	}
	source := flags.source
	if len(source.Files) == 0 {
		source.Files, source.Directory = a.engine.Files, a.engine.Directory
	}
	r.SayOfCompose()
	source.Environment = os.Environ()
	if a.compose, err = deploy.Load(r, source); err != nil {
		return nil, fmt.Errorf("%w; name the files of the project %s with -f", err, a.engine.Name)
	}
	if a.scaled, err = a.compose.Replicas(a.engine.Replicas); err != nil {
		return nil, err
	}
	if a.output == "" {
		a.output = filepath.Join(filepath.Dir(a.compose.Files()[0]), overrideName)
	}
	if err := overwrites(a.output); err != nil {
		return nil, err
	}
	return a, a.readNetworks(r, engine, drivers)
}

func (a *projectAdoption) readNetworks(ctx context.Context, engine *docker.Engine, drivers []string) error {
	var own []string
	own, a.external = a.compose.Networks()
	for _, name := range own {
		view, err := engine.Network(ctx, name)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
			continue // Compose has not created it yet
		case err != nil:
			return err
		case slices.ContainsFunc(drivers, func(name string) bool { return sameDriver(name, view.Networks[0].Driver) }):
			continue
		}
		a.views = append(a.views, view)
	}
	if len(a.views) == 0 {
		return fmt.Errorf("the project %s creates no Docker network with another IPAM driver than Berth's; for "+
			"Berth's networks use `berth compose`, for an external network `berth adopt NETWORK`", a.engine.Name)
	}
	return nil
}

// overrideProject also reserves what the services declare, and writes the override.
func overrideProject(r *cli.Run, a *projectAdoption) error {
	networks, err := r.Networks(r, "")
	if err != nil {
		return err
	}
	mapping := a.mapping
	for i := range a.views {
		name := a.views[i].Networks[0].Name
		if mapping.Adopted[name], err = docker.PlannedName(name); err != nil {
			return err
		}
	}
	plan, err := a.compose.Plan(mapping, networks)
	if err != nil {
		return err
	}
	out, err := r.EditInSteps(client.EditOptions{}, plan.Edits(), plan.Where)
	if err != nil {
		return err
	}
	if err := plan.Grant(out.Results); err != nil {
		return err
	}
	text, err := plan.Override()
	if err != nil {
		return err
	}
	return cli.WriteText(cli.OpenMode, r.Out, a.output, text)
}
