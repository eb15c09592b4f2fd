package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
}

// open finds all of it. The caller closes it.
func open(ctx context.Context, f *flags, project *deploy.Project, c *client.Client) (*site, error) {
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
	if f.source.Directory != "" {
		all = append(all, "--project-directory", f.source.Directory)
	}
	for _, file := range f.source.EnvFiles {
		all = append(all, "--env-file", file)
	}
	for _, profile := range f.source.Profiles {
		all = append(all, "--profile", profile)
	}
	return all
}

// draw makes a plan of what there is now. With reserve its reservations are made; without, they are only tried.
func (s *site) draw(ctx context.Context, reserve bool) (*rollout.Plan, error) {
	networks, err := s.client.Networks(ctx, "")
	if err != nil {
		return nil, err
	}
	wants, err := s.project.Plan(s.flags.mapping, networks)
	if err != nil {
		return nil, err
	}
	edits := wants.Edits()
	wanted := len(edits)
	if wants.Elastic() || cli.HasElastic(ctx, s.client, s.project.Owns) {
		edits = append(edits, wants.ElasticEdits()...)
	}
	out, err := cli.EditInSteps(ctx, s.client, client.EditOptions{DryRun: !reserve, Deploy: s.deploy}, edits,
		wants.Where)
	if err != nil {
		return nil, err
	}
	if err := wants.Grant(out.Results[:wanted]); err != nil {
		return nil, err
	}
	in := rollout.Inputs{Project: s.project.Name(), Compose: s.version, Services: wants.Services()}
	if in.Files, err = digests(s.project.Files()); err != nil {
		return nil, err
	}
	if in.Hashes, err = s.maker.Hashes(ctx); err != nil {
		return nil, err
	}
	if in.Images, err = s.images(ctx, in.Services); err != nil {
		return nil, err
	}
	if in.Containers, in.Unread, err = s.engine.Containers(ctx, in.Project); err != nil {
		return nil, err
	}
	return rollout.Draw(in)
}

// images are what the engine has of those that the files name.
func (s *site) images(ctx context.Context, services []deploy.Service) (map[string]scene.Image, error) {
	all := map[string]scene.Image{}
	for _, service := range services {
		if service.Image == "" {
			continue
		}
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
