package deploy

import (
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// texts are the parsed files of a project, for places.
type texts struct {
	own      []fileText // the project's files, the last one counts first
	referred []fileText // the files that those include or extend, and so on
}

// readAll reads the files and those that they refer to. Names are relative to the file that has them, or to the
// project's directory.
func readAll(files []string, directory string) *texts {
	t := &texts{own: readTexts(files)}
	seen := map[string]bool{}
	for _, text := range t.own {
		seen[text.file] = true
	}
	for next := t.own; len(next) > 0; {
		var found []fileText
		for _, text := range next {
			for _, name := range refersTo(&text.root) {
				for _, from := range []string{filepath.Dir(text.file), directory} {
					file := name
					if !filepath.IsAbs(file) {
						file = filepath.Join(from, name)
					}
					if !seen[file] {
						seen[file] = true
						found = append(found, readTexts([]string{file})...)
					}
				}
			}
		}
		t.referred, next = append(t.referred, found...), found
	}
	return t
}

// refersTo returns the files that a file includes, and those of the services that its own extend.
func refersTo(root *yaml.Node) (names []string) {
	_, include := below(root, "include")
	for _, one := range elements(include) {
		_, paths := below(one, "path")
		for _, name := range append([]*yaml.Node{one, paths}, elements(paths)...) {
			names = appendText(names, name)
		}
	}
	_, services := below(root, "services")
	for _, service := range elements(services) {
		_, extends := below(service, "extends")
		if extends != nil {
			_, name := below(extends, "file")
			names = appendText(names, name)
		}
	}
	return names
}

// elements returns the elements of a list, or the values of a mapping.
func elements(n *yaml.Node) (all []*yaml.Node) {
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		all = n.Content
	case n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			all = append(all, n.Content[i])
		}
	}
	return all
}

func appendText(names []string, n *yaml.Node) []string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Value == "" {
		return names
	}
	return append(names, n.Value)
}
