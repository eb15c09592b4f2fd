package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/ipam"
)

// Project says which Compose project is meant, and which of its networks are on which planned ones.
type Project struct {
	Source  deploy.Source
	Mapping deploy.Mapping
}

// Flags are the flags that say so.
func (s *Project) Flags() cli.Flags {
	return cli.Flags{
		cli.Flag(&s.Source.Files, "file",
			"a Compose `FILE` (repeatable; none: as Compose finds it)").Short("f").
			Files("yaml", "yml"),
		cli.Flag(&s.Source.Project, "project-name", "the `NAME` of the project").Short("p"),
		cli.Flag(&s.Source.Directory, "project-directory",
			"the `directory` of the project (that of the first file)"),
		cli.Flag(&s.Source.EnvFiles, "env-file",
			"a `FILE` of variables for the Compose file (repeatable; .env)"),
		cli.Flag(&s.Source.Profiles, "profile", "also the services of the profile `NAME` (repeatable)"),
		cli.Flag(&s.Mapping.Driver, "ipam-driver",
			"the `NAME` of the IPAM driver that is Berth, if it is called neither "+
				"berth nor berth-mac"),
		cli.Flag(&s.Mapping.Networks, "network",
			"`NETWORK=PLANNED`: a network of the Compose file is on that planned one "+
				"(repeatable)"),
	}
}

// Load reads the project's files.
func (s *Project) Load(ctx context.Context, p *cli.Program) (*deploy.Project, error) {
	p.SayOfCompose()
	s.Source.Environment = os.Environ()
	return deploy.Load(ctx, s.Source)
}

// Look has the mapping know what the engine calls Berth, and what it has of the project's external networks. An engine
// that does not answer is none: external networks are known by --network alone then.
func (s *Project) Look(ctx context.Context, c *client.Client, at cli.EngineFlags, project *deploy.Project) error {
	if at.Host == cli.NoDockerHost {
		return nil
	}
	engine, err := at.Open()
	if err != nil {
		return err
	}
	defer engine.Close()
	if s.Mapping.Driver == "" {
		if s.Mapping.Drivers, err = at.Names(ctx, engine, c); err != nil {
			return err
		}
	}
	if !at.Given() && !at.MayLookHere(c) {
		return nil
	}
	all := map[string]*ipam.EngineNetwork{}
	for _, name := range project.External() {
		view, err := engine.Network(ctx, name)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
		case err != nil:
			return nil //nolint:nilerr // who needs the engine says so
		case view.Networks[0].Name == name: // and not a part of another one's id
			all[name] = &view.Networks[0]
		}
	}
	s.Mapping.Engine = all
	return nil
}

// Reserve reserves what the services of a project want, with the elastic addresses that they declare, and returns the
// plan with what it was granted. A dry run tells of all that is wrong at once (BD-2), and returns the plan beside that.
func (s *Project) Reserve(ctx context.Context, c *client.Client, opt client.EditOptions,
	project *deploy.Project) (plan *deploy.Plan, out ipam.Outcome, err error) {
	networks, err := c.Networks(ctx, "")
	if err != nil {
		return nil, out, err
	}
	plan, wrong := project.Plan(s.Mapping, networks)
	if wrong != nil && !opt.DryRun {
		return nil, out, wrong
	}
	edits := plan.Edits()
	wanted := len(edits)
	if plan.Elastic() || hasElastic(ctx, c, project) {
		edits = append(edits, plan.ElasticEdits()...)
	}
	if opt.DryRun && len(edits) > ipam.MaxTried {
		return nil, out, fmt.Errorf("the project %s wants %d reservations, and the result can be shown for %d at "+
			"most; make two projects of it", project.Name(), len(edits), ipam.MaxTried)
	}
	opt.Refused = opt.DryRun
	if out, err = cli.EditInSteps(ctx, c, opt, edits, plan.Where); err != nil {
		return nil, out, errors.Join(wrong, err)
	}
	if i := slices.IndexFunc(out.Refused, func(r ipam.Refused) bool { return r.Reason == ipam.DeployLocked }); i >= 0 {
		return nil, out, &out.Refused[i] // which all of them are for one reason
	}
	for i := range out.Refused {
		wrong = deploy.Join(wrong, plan.Problem(out.Refused[i].Index, &out.Refused[i]))
	}
	if wrong != nil {
		return plan, out, wrong
	}
	return plan, out, plan.Grant(out.Results[:wanted])
}

// hasElastic tells whether an owner of a project has an elastic address, as far as the daemon can tell: a project whose
// files say nothing of them needs them not.
func hasElastic(ctx context.Context, c *client.Client, project *deploy.Project) bool {
	all, err := c.Elastics(ctx, "")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(one ipam.ElasticInfo) bool {
		return one.Associated && one.Kind != ipam.KindSystem && project.Owns(one.Instance)
	})
}
