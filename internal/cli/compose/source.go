package compose

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/ipam"
)

// Project holds the flags that name a Compose project and map its networks to planned ones.
type Project struct {
	Source  deploy.Source
	Mapping deploy.Mapping
}

// Flags returns the flags that fill a Project.
func (s *Project) Flags() cli.Flags {
	return cli.Flags{
		cli.Flag(&s.Source.Files, "file",
			"a Compose `FILE` (repeatable; default: the files that Compose would find)").Short("f").
			Files("yaml", "yml"),
		cli.Flag(&s.Source.Project, "project-name", "the `NAME` of the project").Short("p"),
		cli.Flag(&s.Source.Directory, "project-directory",
			"the `directory` of the project (default: that of the first file)"),
		cli.Flag(&s.Source.EnvFiles, "env-file",
			"a `FILE` of variables for the Compose file (repeatable; default: .env)"),
		cli.Flag(&s.Source.Profiles, "profile", "also the services of the profile `NAME` (repeatable)"),
		cli.Flag(&s.Mapping.Driver, "ipam-driver",
			"the `NAME` of Berth's IPAM driver, if it is neither berth nor berth-mac"),
		cli.Flag(&s.Mapping.Networks, "network",
			"`NETWORK=PLANNED`: the planned network for a network of the Compose file "+
				"(repeatable)"),
	}
}

// Load reads the project's files.
func (s *Project) Load(r *cli.Run) (*deploy.Project, error) {
	r.SayOfCompose()
	s.Source.Environment = os.Environ()
	return deploy.Load(r, s.Source)
}

// Look adds to the mapping the engine's names for Berth and its data about the project's external networks. If the
// engine does not answer, only --network maps external networks.
func (s *Project) Look(r *cli.Run, at cli.EngineFlags, project *deploy.Project) error {
	if at.Host == cli.NoDockerHost {
		return nil
	}
	engine, err := at.Open()
	if err != nil {
		return err
	}
	defer engine.Close()
	if s.Mapping.Driver == "" {
		if s.Mapping.Drivers, err = at.Names(r, engine); err != nil {
			return err
		}
	}
	if !at.Given() && !at.MayLookHere(r) {
		return nil
	}
	if err := at.CheckEngine(r, engine); err != nil {
		return err
	}
	all := map[string]*ipam.EngineNetwork{}
	_, external := project.Networks()
	for _, name := range external {
		view, err := engine.Network(r, name)
		switch {
		case errors.Is(err, ipam.ErrNotFound):
		case err != nil:
			return nil //nolint:nilerr // whoever needs the engine reports it
		case view.Networks[0].Name == name: // not the prefix of another network's id
			all[name] = &view.Networks[0]
		}
	}
	s.Mapping.Engine = all
	return nil
}

// Reserve reserves the addresses that a project's services want, and the elastic addresses that they declare. It
// returns the plan with the granted addresses. A dry run returns all errors at once, together with the plan.
func (s *Project) Reserve(r *cli.Run, opt client.EditOptions, project *deploy.Project) (plan *deploy.Plan,
	out ipam.Outcome, err error) {
	networks, err := r.Networks(r, "")
	if err != nil {
		return nil, out, err
	}
	plan, wrong := project.Plan(s.Mapping, networks)
	if wrong != nil && !opt.DryRun {
		return nil, out, wrong
	}
	edits := plan.Edits()
	wanted := len(edits)
	if plan.Elastic() || hasElastic(r, project) {
		edits = append(edits, plan.ElasticEdits()...)
	}
	if opt.DryRun && len(edits) > ipam.MaxTried {
		return nil, out, fmt.Errorf("the project %s needs %d reservations, more than the %d that a dry run can "+
			"try; split it into two projects", project.Name(), len(edits), ipam.MaxTried)
	}
	opt.Refused = opt.DryRun
	if out, err = r.EditInSteps(opt, edits, plan.Where); err != nil {
		return nil, out, errors.Join(wrong, err)
	}
	isLocked := func(one ipam.Refused) bool { return one.Reason == ipam.DeployLocked }
	if i := slices.IndexFunc(out.Refused, isLocked); i >= 0 {
		return nil, out, &out.Refused[i] // all have this same reason
	}
	for i := range out.Refused {
		wrong = deploy.Join(wrong, plan.Problem(out.Refused[i].Index, &out.Refused[i]))
	}
	if wrong != nil {
		return plan, out, wrong
	}
	return plan, out, plan.Grant(out.Results[:wanted])
}

// hasElastic reports whether an owner of the project has an elastic address. It returns false if the daemon cannot
// tell: a project whose files declare none does not need them.
func hasElastic(r *cli.Run, project *deploy.Project) bool {
	all, err := r.Elastics(r, "")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(one ipam.ElasticInfo) bool {
		return one.Associated && one.Kind != ipam.KindSystem && project.Owns(one.Instance)
	})
}
