package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/deploy/rollout"
	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
	"berth/internal/docker"
	"berth/internal/ipam"
)

// site is where a project is deployed: its files, its engine, its compose command, and the daemon.
type site struct {
	flags   *flags
	project *deploy.Project
	client  *client.Client
	engine  *scene.Engine
	maker   *single.Maker
	version string  // of the compose command
	deploy  ipam.ID // whose lock the project has; zero: none of ours
	task    rollout.Task
}

// open finds all of it. The caller closes it.
func open(ctx context.Context, f *flags, project *deploy.Project, c *client.Client) (*site, error) {
	f.Mapping.Moves = true
	if err := f.Look(ctx, c, cli.EngineFlags{Host: f.engine}, project); err != nil {
		return nil, err
	}
	words, version, err := single.FindCommand(ctx, f.compose)
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
	return &site{flags: f, project: project, client: c, engine: engine, version: version,
		maker: &single.Maker{Command: command, Dial: dial}}, nil
}

func (s *site) close() { _ = s.engine.Close() }

// options are those of the compose command that say which project is meant, as it was said to us.
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

// draw makes a plan of what there is now. With reserve its reservations are made; without, they are only tried. Its
// error joins all that is in the way (BD-2).
func (s *site) draw(ctx context.Context, reserve bool) (*rollout.Plan, error) {
	stops := s.task.Do == rollout.Stop // which is never too late, whatever the files say by now
	reserve = reserve && !stops
	wants, _, wrong := s.flags.Reserve(ctx, s.client, client.EditOptions{DryRun: !reserve, Deploy: s.deploy}, s.project)
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
	if in.Hashes, err = s.maker.Hashes(ctx); err != nil {
		problems = append(problems, err)
	}
	if in.Containers, in.Unread, err = s.engine.Containers(ctx, in.Project); err == nil {
		in.Images, err = s.images(ctx, in.Services)
	}
	if err == nil {
		in.Networks, err = s.networks(ctx)
	}
	if err == nil {
		err = s.volumes(ctx, &in)
	}
	if err == nil {
		err = s.unclaimed(ctx, wants, &in)
	}
	if ran, ranErr := s.workers(ctx); ranErr != nil {
		problems = append(problems, ranErr)
	} else {
		in.Ran = ran
	}
	plan, more := rollout.Draw(in)
	if err := deploy.Join(append(problems, err, more)...); err != nil {
		return nil, err
	}
	beside := plan.Beside()
	if len(beside) == 0 {
		return plan, nil
	}
	if err := s.another(ctx, wants, beside, reserve); err != nil {
		return nil, err
	}
	in.Services = wants.Services()
	return rollout.Draw(in)
}

// another reserves second addresses for those whose successors run beside them (BD-4, BO-13).
func (s *site) another(ctx context.Context, wants *deploy.Plan, beside map[string][]netip.Addr, reserve bool) error {
	edits := wants.Another(beside)
	out, err := cli.EditInSteps(ctx, s.client, client.EditOptions{DryRun: !reserve, Refused: !reserve, Deploy: s.deploy},
		edits, func(edit int) string { return "a second address for " + edits[edit].(*ipam.AddReservation).Owner })
	for i := range out.Refused {
		err = deploy.Join(err, wants.ProblemOfAnother(beside, out.Refused[i].Index, &out.Refused[i]))
	}
	if err != nil {
		return err
	}
	return wants.GrantAnother(beside, out.Results)
}

// networks are those that Compose makes for the project, and what the engine has of them.
func (s *site) networks(ctx context.Context) (all []rollout.NetworkState, err error) {
	for _, wants := range s.project.Definitions() {
		one := rollout.NetworkState{Wants: wants}
		if one.Has, one.There, err = s.engine.Network(ctx, wants.Network); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// images are what the engine has of those that the files name.
func (s *site) images(ctx context.Context, services []deploy.Service) (map[string]scene.Image, error) {
	all, asked := map[string]scene.Image{}, map[string]bool{"": true} // which is built
	for _, service := range services {
		if asked[service.Image] {
			continue
		}
		asked[service.Image] = true
		image, there, err := s.engine.Image(ctx, service.Image)
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

// workers are those of the project that have run, as they did last.
func (s *site) workers(ctx context.Context) (map[string]rollout.Ran, error) {
	all, err := s.client.Workers(ctx)
	ran := map[string]rollout.Ran{}
	for _, one := range all {
		if one.Project == s.project.Name() {
			ran[one.Service] = rollout.Ran{Hash: one.Hash, Image: one.Image}
		}
	}
	return ran, err
}

// ran remembers a worker that has run.
func (s *site) ran(ctx context.Context, service string, as rollout.Ran) error {
	_, err := s.client.Edit(ctx, client.EditOptions{Deploy: s.deploy}, &ipam.RecordWorker{Project: s.project.Name(),
		Service: service, Hash: as.Hash, Image: as.Image})
	return err
}
