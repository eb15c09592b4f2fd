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

// Source says which Compose files are meant, in the terms of Compose's own flags.
type Source struct {
	Files       []string       // none: those of COMPOSE_FILE, or which Compose finds
	Directory   string         // of the project; empty: that of the first file
	Project     string         // its name; empty: as Compose works it out
	EnvFiles    []string       // none: .env of the directory
	Profiles    []string       // none: those of COMPOSE_PROFILES
	Scale       map[string]int // replicas of services, instead of what the files say
	Environment []string       // KEY=VALUE
}

// Project is a Compose project as its files describe it.
type Project struct {
	compose *types.Project
	version string     // of the first file; empty: it has none
	texts   []fileText // for places; nil: they were not read yet
}

// marker begins each override, by which it is told from what a person wrote.
const marker = "# Written by `berth compose`"

// IsOverride tells whether a file is an override that Override wrote. A file that is not there is none.
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

// Load reads a project. Overrides of an earlier run are left out of it, also where COMPOSE_FILE names them: what they
// fix is not what the files say. What the containers' environment comes from is not read.
func Load(ctx context.Context, from Source) (*Project, error) {
	if slices.Contains(from.Files, "-") {
		return nil, errors.New("a Compose file is read from a file, which its override goes beside; write standard " +
			"input into one")
	}
	options, err := cli.NewProjectOptions(slices.Clone(from.Files),
		cli.WithWorkingDirectory(from.Directory),
		cli.WithEnv(from.Environment),
		cli.WithEnvFiles(from.EnvFiles...), cli.WithDotEnv, // which may say COMPOSE_FILE
		cli.WithConfigFileEnv, cli.WithDefaultConfigPath,
		cli.WithEnvFiles(from.EnvFiles...), cli.WithDotEnv, // that of the directory of the files
		cli.WithDefaultProfiles(from.Profiles...),
		cli.WithName(from.Project),
		cli.WithoutEnvironmentResolution, cli.WithoutLabelsResolution)
	if err != nil {
		return nil, err
	}
	if err := leaveOverrides(options); err != nil {
		return nil, err
	}
	p := &Project{}
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
		return nil, p.refused(options.ConfigPaths, err)
	}
	return p, p.scale(from.Scale)
}

// leaveOverrides takes our own files out of those that are to be read.
func leaveOverrides(options *cli.ProjectOptions) error {
	if len(options.ConfigPaths) == 0 {
		return errors.New("there is no Compose file here; say which one is meant with -f")
	}
	var left []string
	for _, file := range options.ConfigPaths {
		ours, err := IsOverride(file)
		if err != nil {
			return err
		}
		if !ours {
			left = append(left, file)
		}
	}
	if len(left) == 0 {
		return fmt.Errorf("%s is what `berth compose` wrote; give the Compose file that it goes beside",
			strings.Join(options.ConfigPaths, ", "))
	}
	options.ConfigPaths = left
	return nil
}

// versionOf is what a file says of itself. Older versions of docker-compose want all files of a project to say the
// same.
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

// maxReplicas is how many replicas a service has at most: each has an address reserved.
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

// Replicas has services that the project has be of as many replicas as there are, where the files say fewer, and
// returns those that were changed (`docker compose up --scale`).
func (p *Project) Replicas(there map[string]int) (changed map[string]int, err error) {
	changed = map[string]int{}
	for name, n := range there {
		if service, ok := p.compose.Services[name]; ok && n > service.GetScale() && n > 1 {
			changed[name] = n
		}
	}
	return changed, p.scale(changed)
}

// Networks are the names that Docker has for the networks that Compose makes for the project's services, and those that
// are external, which somebody else makes.
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

// Files are the paths of the project's files, without overrides of an earlier run.
func (p *Project) Files() []string { return p.compose.ComposeFiles }

// Name is the name of the project, which its owners begin with.
func (p *Project) Name() string { return p.compose.Name }

// Owns tells whether an owner can be one of the project's: of a service, be it that the files name it no more, or a
// container with a name of its own that they name.
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

// services are the names of the services in use, in order.
func (p *Project) services() []string { return slices.Sorted(maps.Keys(p.compose.Services)) }
