package docker

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Project is a Compose project, as its containers describe it.
type Project struct {
	Name      string
	Directory string         // working directory of Compose; empty: unknown
	Files     []string       // paths of its Compose files; empty: unknown
	EnvFiles  []string       // paths of its env files
	Version   string         // Compose's version; empty: unknown
	Replicas  map[string]int // the highest number of each service's containers, running or not
}

// Labels with which Compose marks a container's origin.
const (
	labelDirectory = "com.docker.compose.project.working_dir"
	labelFiles     = "com.docker.compose.project.config_files"
	labelEnvFiles  = "com.docker.compose.project.environment_file"
)

// Project reads the files of a Compose project and the number of its services' replicas from its containers. It fails
// if the engine has no container of the project.
func (e *Engine) Project(ctx context.Context, name string) (Project, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	list, err := e.client().ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return Project{}, fmt.Errorf("cannot list the engine's containers: %w", err)
	}
	p := Project{Name: name, Replicas: map[string]int{}}
	found := false
	for i := range list.Items {
		c := &list.Items[i]
		shown := showContainer(c)
		if shown.Project != name || shown.Number == 0 { // of another project, or made by `docker compose run`
			continue
		}
		found = true
		p.Replicas[shown.Service] = max(p.Replicas[shown.Service], shown.Number)
		if len(p.Files) == 0 {
			p.Directory, p.Files = c.Labels[labelDirectory], pathsOf(c, labelFiles)
			p.EnvFiles = pathsOf(c, labelEnvFiles)
			p.Version = c.Labels[LabelVersion]
		}
	}
	if !found {
		return Project{}, ipam.Refuse(ipam.ErrNotFound,
			"the engine has no container of a Compose project %s; `docker ps -a` with the label %s lists the "+
				"networks", name, LabelProject)
	}
	return p, nil
}

// pathsOf returns the files in a container's label. docker-compose 1.29 writes them relative to the directory.
func pathsOf(c *container.Summary, label string) (files []string) {
	for file := range strings.SplitSeq(c.Labels[label], ",") {
		if file == "" {
			continue
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(c.Labels[labelDirectory], file)
		}
		files = append(files, file)
	}
	return files
}

// AdoptProject returns the plan of the Docker networks that Compose created for a project. Each has its PlannedName.
// The views come from Engine.Network. Addresses kept for a network itself (--aux-address) are left out, because Compose
// asks for them again.
func AdoptProject(views []ipam.EngineView) (ipam.Plan, error) {
	var all ipam.Plan
	for i := range views {
		name, err := PlannedName(views[i].Networks[0].Name)
		if err != nil {
			return ipam.Plan{}, err
		}
		one, err := AdoptPlan(views[i], name)
		if err != nil {
			return ipam.Plan{}, err
		}
		planned := one.Networks[0]
		planned.Addresses = slices.DeleteFunc(planned.Addresses, func(a ipam.PlannedAddress) bool {
			return slices.ContainsFunc(views[i].Networks[0].Subnets, func(sub ipam.EngineSubnet) bool {
				for _, aux := range sub.Aux {
					if aux == a.Address {
						return true
					}
				}
				return false
			})
		})
		all.Networks = append(all.Networks, planned)
	}
	return all, nil
}
