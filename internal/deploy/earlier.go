package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What a service with a container_name has is reserved for that name, which does not say whose it is. So the override
// says which services it was written for that have one: when a service has left the files, the file of before is all
// that knows of it.

// containerComment precedes a service with a container_name.
const containerComment = "# container_name: "

// marked begins the override of a project.
func marked(project string) string { return fmt.Sprintf("%s for the project %s", marker, project) }

// Earlier reads which containers with names of their own an override of the project was written for: the services, by
// container_name. Of a file that is not there, or is not the project's, that is none.
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
