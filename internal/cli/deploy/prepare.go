package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/deploy/rollout"
	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
	"berth/internal/docker"
	"berth/internal/ipam"
)

// site is where a project is deployed: its files, its engine, its compose command and the daemon.
type site struct {
	*cli.Run
	flags   *flags
	project *deploy.Project
	engine  *scene.Engine
	maker   *single.Maker
	version string  // of the compose command
	deploy  ipam.ID // the deploy that holds the lock; zero: none of ours
	task    rollout.Task
}

// on returns the site with another run. A site never changes its own run, because earlier requests may still use it.
func (s *site) on(r *cli.Run) *site {
	with := *s
	with.Run = r
	return &with
}

// open opens a site. The caller closes it.
func open(r *cli.Run, f *flags, project *deploy.Project) (*site, error) {
	f.Mapping.Moves = true
	if err := f.Look(r, cli.EngineFlags{Host: f.engine}, project); err != nil {
		return nil, err
	}
	words, version, err := single.FindCommand(r, f.compose)
	if err != nil {
		return nil, err
	}
	host := f.engine
	if host == "" {
		host = docker.DefaultHost
	}
	dial, err := docker.Dial(host)
	if err != nil {
		return nil, err
	}
	engine, err := scene.Open(host)
	if err != nil {
		return nil, err
	}
	command := single.Command{Words: words, Project: project.Name(), Files: project.Files(), Options: f.options()}
	return &site{flags: f, Run: r, project: project, engine: engine, version: version,
		maker: &single.Maker{Command: command, Dial: dial}}, nil
}

// options returns the options of the compose command that name the project, as the user gave them.
func (f *flags) options() (all []string) {
	if f.Source.Directory != "" {
		all = append(all, "--project-directory", f.Source.Directory)
	}
	for _, file := range f.Source.EnvFiles {
		all = append(all, "--env-file", file)
	}
	for _, profile := range f.Source.Profiles {
		all = append(all, "--profile", profile)
	}
	return all
}

// drawing is a plan with its inputs.
type drawing struct {
	plan   *rollout.Plan
	in     rollout.Inputs
	beside map[string][]netip.Addr // by owners that need second addresses
}

// draw reads the current state and makes a plan from it. It only tries the plan's reservations. Its error joins
// everything that prevents the plan.
func (s *site) draw() (*drawing, error) {
	stops := s.task.Do == rollout.Stop // a stop is possible whatever the files say by now
	wants, _, wrong := s.flags.Reserve(s.Run, client.EditOptions{DryRun: true, Deploy: s.deploy}, s.project)
	if wants == nil {
		return nil, wrong
	}
	in := rollout.Inputs{Project: s.project.Name(), Compose: s.version, Services: wants.Services(),
		Workers: wants.Workers(), Task: s.task}
	problems := []error{wrong, wants.Check()}
	if stops {
		problems = nil
	}
	var err error
	if in.Files, err = digests(s.project.Files()); err != nil {
		return nil, err
	}
	if in.Hashes, err = s.maker.Hashes(s); err != nil {
		problems = append(problems, err)
	}
	if in.Containers, in.Unread, err = s.engine.Containers(s, in.Project); err == nil {
		in.Images, err = s.images(in.Services)
	}
	if err == nil {
		in.Networks, err = s.networks()
	}
	if err == nil {
		err = s.volumes(&in)
	}
	if err == nil {
		err = s.unclaimed(wants, &in)
	}
	if ran, ranErr := s.workers(); ranErr != nil {
		problems = append(problems, ranErr)
	} else {
		in.Ran = ran
	}
	plan, more := rollout.Draw(in)
	if !stops {
		problems = append(problems, wants.CheckSubnets(plan.Stay(in.Networks)))
	}
	if err := deploy.Join(append(problems, err, more)...); err != nil {
		return nil, err
	}
	d := &drawing{plan, in, plan.Beside()}
	if len(d.beside) == 0 {
		return d, nil
	}
	if err = s.another(wants, d.beside, false); err == nil {
		err = d.with(wants)
	}
	return d, err
}

// with draws the plan again if other addresses were granted.
func (d *drawing) with(wants *deploy.Plan) (err error) {
	if services := wants.Services(); !reflect.DeepEqual(services, d.in.Services) {
		d.in.Services = services
		d.plan, err = rollout.Draw(d.in)
	}
	return err
}

// reserve makes the reservations of a plan. It fails if somebody has taken an address since the plan was drawn.
func (s *site) reserve(d *drawing) error {
	if s.task.Do == rollout.Stop {
		return nil
	}
	wants, _, err := s.flags.Reserve(s.Run, client.EditOptions{Deploy: s.deploy}, s.project)
	if err == nil && len(d.beside) > 0 {
		err = s.another(wants, d.beside, true)
	}
	if err != nil {
		return err
	}
	return d.with(wants)
}

// another reserves second addresses for owners whose successors run beside them.
func (s *site) another(wants *deploy.Plan, beside map[string][]netip.Addr, reserve bool) error {
	edits := wants.Another(beside)
	out, err := s.EditInSteps(client.EditOptions{DryRun: !reserve, Refused: !reserve, Deploy: s.deploy},
		edits, func(edit int) string { return "a second address for " + edits[edit].(*ipam.AddReservation).Owner })
	for i := range out.Refused {
		err = deploy.Join(err, wants.ProblemOfAnother(beside, out.Refused[i].Index, &out.Refused[i]))
	}
	if err != nil {
		return err
	}
	return wants.GrantAnother(beside, out.Results)
}

// networks returns the networks that Compose makes for the project, and their state in the engine.
func (s *site) networks() (all []rollout.NetworkState, err error) {
	for _, wants := range s.project.Definitions() {
		one := rollout.NetworkState{Wants: wants}
		if one.Has, one.There, err = s.engine.Network(s, wants.Network); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// images returns the engine's images that the files name.
func (s *site) images(services []deploy.Service) (map[string]scene.Image, error) {
	all, asked := map[string]scene.Image{}, map[string]bool{"": true} // the empty name: an image that is built
	for _, service := range services {
		if asked[service.Image] {
			continue
		}
		asked[service.Image] = true
		image, there, err := s.engine.Image(s, service.Image)
		if err != nil {
			return nil, err
		}
		if there {
			all[service.Image] = image
		}
	}
	return all, nil
}

func digests(files []string) (all []rollout.File, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sum := sha256.Sum256(text)
		all = append(all, rollout.File{Path: path, Digest: hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// workers returns the workers of the project with their last runs.
func (s *site) workers() (map[string]rollout.Ran, error) {
	all, err := s.Workers(s)
	ran := map[string]rollout.Ran{}
	for _, one := range all {
		if one.Project == s.project.Name() {
			ran[one.Service] = rollout.Ran{Hash: one.Hash, Image: one.Image}
		}
	}
	return ran, err
}

// ran records a worker's run.
func (s *site) ran(ctx context.Context, service string, as rollout.Ran) error {
	_, err := s.Edit(ctx, client.EditOptions{Deploy: s.deploy}, &ipam.RecordWorker{Project: s.project.Name(),
		Service: service, Hash: as.Hash, Image: as.Image})
	return err
}
