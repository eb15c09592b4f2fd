package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// Source selects Compose files, in the terms of Compose's own flags.
type Source struct {
	Files       []string       // none: those of COMPOSE_FILE, or the ones that Compose finds
	Directory   string         // of the project; empty: that of the first file
	Project     string         // its name; empty: Compose's default
	EnvFiles    []string       // none: .env of the directory
	Profiles    []string       // none: those of COMPOSE_PROFILES
	Scale       map[string]int // replicas of services, instead of those in the files
	Environment []string       // KEY=VALUE
}

// Project is a Compose project as its files describe it.
type Project struct {
	compose   *types.Project
	version   string   // of the first file; empty: it has none
	overrides []string // of an earlier run, which do not count
	texts     *texts   // for places; nil: not read yet
}

// marker is the beginning of each override. It distinguishes an override from a file that a person wrote.
const marker = "# Written by `berth compose`"

// IsOverride reports whether a file was written by Override. A missing file was not.
func IsOverride(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(marker))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(head[:n]) == marker, nil
}

// Load reads a project. It omits overrides of an earlier run, even if COMPOSE_FILE names them, because they do not
// belong to the project's own files. It does not resolve the containers' environment.
func Load(ctx context.Context, from Source) (*Project, error) {
	if slices.Contains(from.Files, "-") {
		return nil, errors.New("Berth writes the override next to the Compose file; save standard input to a file")
	}
	options, err := cli.NewProjectOptions(slices.Clone(from.Files),
		cli.WithWorkingDirectory(from.Directory),
		cli.WithEnv(from.Environment),
		cli.WithEnvFiles(from.EnvFiles...), cli.WithDotEnv, // which may set COMPOSE_FILE
		cli.WithConfigFileEnv, cli.WithDefaultConfigPath,
		cli.WithEnvFiles(from.EnvFiles...), cli.WithDotEnv, // of the files' directory
		cli.WithDefaultProfiles(from.Profiles...),
		cli.WithName(from.Project),
		cli.WithoutEnvironmentResolution, cli.WithoutLabelsResolution)
	if err != nil {
		return nil, err
	}
	p := &Project{}
	if p.overrides, err = leaveOverrides(options); err != nil {
		return nil, err
	}
	for i, file := range options.ConfigPaths {
		version, err := versionOf(file)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			p.version = version
		}
	}
	if p.compose, err = options.LoadProject(ctx); err != nil {
		directory, _ := options.GetWorkingDir()
		return nil, p.refused(options.ConfigPaths, directory, err)
	}
	return p, p.scale(from.Scale)
}

// leaveOverrides removes overrides from the list of files, and returns them.
func leaveOverrides(options *cli.ProjectOptions) (overrides []string, err error) {
	if len(options.ConfigPaths) == 0 {
		return nil, errors.New("there is no Compose file here; name it with -f")
	}
	var left []string
	for _, file := range options.ConfigPaths {
		ours, err := IsOverride(file)
		if err != nil {
			return nil, err
		}
		if ours {
			overrides = append(overrides, file)
		} else {
			left = append(left, file)
		}
	}
	if len(left) == 0 {
		return nil, fmt.Errorf("%s was written by `berth compose`; give the Compose file that it belongs to",
			strings.Join(options.ConfigPaths, ", "))
	}
	options.ConfigPaths = left
	return overrides, nil
}

// versionOf returns the version key of a file. Older versions of docker-compose require the same version in all files
// of a project.
func versionOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var head struct{ Version yaml.Node }
	if err := yaml.Unmarshal(text, &head); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if head.Version.Tag != "!!str" {
		return "", nil
	}
	return head.Version.Value, nil
}

// maxReplicas is the maximum number of replicas of a service, because each has a reserved address.
const maxReplicas = 4096

// scale sets the number of replicas of services.
func (p *Project) scale(replicas map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		service, ok := p.compose.Services[name]
		switch n := replicas[name]; {
		case !ok:
			return fmt.Errorf("the project %s has no service %q to scale; it has %s", p.Name(), name,
				strings.Join(p.services(), ", "))
		case n < 0 || n > maxReplicas:
			return fmt.Errorf("the service %s cannot have %d replicas; 0 to %d are possible", name, n, maxReplicas)
		case n > 1 && service.ContainerName != "":
			return fmt.Errorf("the service %s has the container_name %s, which only one replica can have", name,
				service.ContainerName)
		default:
			service.SetScale(n)
			p.compose.Services[name] = service
		}
	}
	return nil
}

// Replicas raises the number of replicas of services to the existing number, and returns the changed services. More
// replicas than in the files come from `docker compose up --scale`.
func (p *Project) Replicas(there map[string]int) (changed map[string]int, err error) {
	changed = map[string]int{}
	for name, n := range there {
		if service, ok := p.compose.Services[name]; ok && n > service.GetScale() && n > 1 {
			changed[name] = n
		}
	}
	return changed, p.scale(changed)
}

// Networks returns the Docker names of the networks of the project's services: those that Compose creates, and external
// ones.
func (p *Project) Networks() (own, external []string) {
	for _, key := range slices.Sorted(maps.Keys(p.compose.Networks)) {
		switch n := p.compose.Networks[key]; {
		case !p.uses(key):
		case bool(n.External):
			external = append(external, n.Name)
		default:
			own = append(own, n.Name)
		}
	}
	return own, external
}

// Files returns the paths of the project's files, without overrides of an earlier run.
func (p *Project) Files() []string { return p.compose.ComposeFiles }

// Name returns the name of the project, which is the first part of its owners.
func (p *Project) Name() string { return p.compose.Name }

// Owns reports whether an owner can belong to the project. It belongs to a service, even one that is no longer in the
// files, or is a container with its own name in the files.
func (p *Project) Owns(owner string) bool {
	if strings.HasPrefix(owner, p.Name()+"/") {
		return true
	}
	for _, service := range p.compose.Services {
		if service.ContainerName != "" && service.ContainerName == owner {
			return true
		}
	}
	return false
}

// services returns the names of the services in use, in order.
func (p *Project) services() []string { return slices.Sorted(maps.Keys(p.compose.Services)) }
