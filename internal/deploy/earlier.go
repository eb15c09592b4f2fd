package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The reservations of a service with a container_name are for that name, which does not show the project. So the
// override lists the services with a container_name. When such a service leaves the files, only the earlier override
// knows it.

// containerComment precedes a service with a container_name.
const containerComment = "# container_name: "

// marked returns the beginning of a project's override.
func marked(project string) string { return fmt.Sprintf("%s for the project %s", marker, project) }

// Earlier returns the containers with their own names in an earlier override of the project: the services by
// container_name. It is empty if the file is missing or not the project's.
func (p *Project) Earlier(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !strings.HasPrefix(string(text), marked(p.Name())+":") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var root struct{ Services yaml.Node }
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	services := map[string]string{}
	for i := 0; i+1 < len(root.Services.Content); i += 2 {
		key := root.Services.Content[i]
		if name, ok := strings.CutPrefix(key.HeadComment, containerComment); ok {
			services[name] = key.Value
		}
	}
	return services, nil
}
