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

	"github.com/spf13/cobra"
)

// overrideName is what the override of an adopted project is called, beside its first file.
const overrideName = "berth.override.yaml"

// fit refuses a command line that means neither a Docker network nor a Compose project, or both.
func (f *adoptFlags) fit(cmd *cobra.Command, args []string) error {
	if err := cli.NotEmpty(cmd, "project"); err != nil {
		return err
	}
	if f.source.Project == "" {
		if cmd.Flags().Changed("file") || cmd.Flags().Changed("profile") {
			return cli.Usagef(cmd, "--file and --profile go with --project")
		}
		return cli.Takes("DOCKER-NETWORK")(cmd, args)
	}
	switch {
	case len(args) > 0:
		return cli.Usagef(cmd, "a Docker network is named, or a project with --project; give one of them")
	case cmd.Flags().Changed("name"):
		return cli.Usagef(cmd, "the networks of a project are planned under the names that Docker has for "+
			"them; leave --name out")
	case f.edit.DryRun && f.file != "":
		return cli.Usagef(cmd, "--dry-run writes nothing; leave -o out")
	}
	return nil
}

// projectAdoption is a Compose project on its way to Berth.
type projectAdoption struct {
	engine   docker.Project
	compose  *deploy.Project
	views    []ipam.EngineView // of the Docker networks that come along
	scaled   map[string]int    // services with more replicas than the files say
	external []string          // networks that the project does not make, by the name that Docker has
	driver   string            // Berth, as the engine calls it
	output   string            // the override
	mapping  deploy.Mapping
}

// adoptProject plans the networks of a Compose project with what each container has, and writes the override that gives
// it that again.
func adoptProject(p *cli.Program, cmd *cobra.Command, flags *adoptFlags, show *cli.Table[ipam.ImportReport]) error {
	ctx := cmd.Context()
	engine, err := flags.engine.Open()
	if err != nil {
		return cli.Usage(cmd, err)
	}
	defer engine.Close()
	c, err := p.Find(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	names, err := flags.engine.Names(ctx, engine, c)
	if err != nil {
		return err
	}
	a, err := readProject(ctx, p, engine, flags, names)
	if err != nil {
		return err
	}
	if err := a.look(ctx, c, flags.engine); err != nil {
		return err
	}
	plan, err := docker.AdoptProject(a.views)
	if err != nil {
		return err
	}
	report, err := document.Import(ctx, p, c, plan, flags.edit.DryRun, "Compose project "+a.engine.Name)
	if err != nil {
		return err
	}
	if !flags.edit.DryRun {
		if err := overrideProject(ctx, p, c, a); err != nil {
			return err
		}
	}
	return showAdopted(show, &report, func() string { return a.steps(single.Answering(ctx)) })
}

// look has the mapping know the project's external networks, and refuses those that are not there.
func (a *projectAdoption) look(ctx context.Context, c *client.Client, engine cli.EngineFlags) error {
	of := Project{Mapping: deploy.Mapping{Adopted: map[string]string{}, AdoptedBy: a.driver,
		Merges: !strings.HasPrefix(a.engine.Version, "1.")}}
	engine.Host = cmp.Or(engine.Host, docker.DefaultHost)
	if err := of.Look(ctx, c, engine, a.compose); err != nil {
		return err
	}
	a.mapping = of.Mapping
	networks, err := c.Networks(ctx, "")
	if err != nil {
		return err
	}
	a.external = slices.DeleteFunc(a.external, func(name string) bool {
		has := a.mapping.Engine[name]
		return has != nil && a.mapping.IsBerth(has.Driver)
	})
	return a.compose.Missing(a.mapping, networks)
}

// readProject reads the project's files, and which of its Docker networks have their addresses from elsewhere.
func readProject(ctx context.Context, p *cli.Program, engine *docker.Engine, flags *adoptFlags,
	drivers []string) (*projectAdoption, error) {
	a := &projectAdoption{driver: drivers[0], output: flags.file}
	var err error
	if a.engine, err = engine.Project(ctx, flags.source.Project); err != nil {
		return nil, err
	}
	source := flags.source
	if len(source.Files) == 0 {
		source.Files, source.Directory = a.engine.Files, a.engine.Directory
	}
	p.SayOfCompose()
	source.Environment = os.Environ()
	if a.compose, err = deploy.Load(ctx, source); err != nil {
		return nil, fmt.Errorf("%w; the files of the project %s are named with -f", err, a.engine.Name)
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
	return a, a.readNetworks(ctx, engine, drivers)
}

func (a *projectAdoption) readNetworks(ctx context.Context, engine *docker.Engine, drivers []string) error {
	var own []string
	own, a.external = a.compose.Networks()
	for _, name := range own {
		view, err := engine.Network(ctx, name)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
			continue // Compose has not made it yet
		case err != nil:
			return err
		case slices.ContainsFunc(drivers, func(name string) bool { return sameDriver(name, view.Networks[0].Driver) }):
			continue
		}
		a.views = append(a.views, view)
	}
	if len(a.views) == 0 {
		return fmt.Errorf("the project %s makes no Docker network that has its addresses from elsewhere; `berth "+
			"compose` reserves for those that are Berth's, "+
			"and `berth adopt NETWORK` takes an external one", a.engine.Name)
	}
	return nil
}

// overrideProject reserves what the services want besides, and writes the override.
func overrideProject(ctx context.Context, p *cli.Program, c *client.Client, a *projectAdoption) error {
	networks, err := c.Networks(ctx, "")
	if err != nil {
		return err
	}
	mapping := a.mapping
	for i := range a.views {
		mapping.Adopted[a.views[i].Networks[0].Name] = a.views[i].Networks[0].Name
	}
	plan, err := a.compose.Plan(mapping, networks)
	if err != nil {
		return err
	}
	out, err := cli.EditInSteps(ctx, c, client.EditOptions{}, plan.Edits(), plan.Where)
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
	return cli.WriteText(cli.OpenMode, p.Out, a.output, text)
}
