package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// problem is an error in the files that prevents a deploy, with its place.
type problem struct {
	File string // empty: it has no place, such as a network that the files do not describe
	Line int
	Err  error
}

func (p *problem) Error() string {
	if p.File == "" {
		return p.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Err)
}

func (p *problem) Unwrap() error { return p.Err }

// path is the path of a key in the files: services, web, x-berth. An element of a list has its number.
type path []string

func (p path) with(keys ...string) path { return append(slices.Clone(p), keys...) }

// String returns a path as people read it: services.web.x-berth.addresses[1].
func (p path) String() string {
	var b strings.Builder
	for i, key := range p {
		if _, err := strconv.Atoi(key); err == nil && i > 2 {
			fmt.Fprintf(&b, "[%s]", key)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(key)
	}
	return b.String()
}

// problem returns an error about the value at a path.
func (p *Project) problem(at path, format string, args ...any) error {
	file, line := p.place(at)
	return &problem{file, line, fmt.Errorf(format, args...)}
}

// place returns the place of a path. It is in the last file that has the whole path, or else the longest part of it.
// Included and extended files count only if the project's own have nothing of it.
func (p *Project) place(at path) (file string, line int) {
	if p.texts == nil {
		p.texts = readAll(p.Files(), p.compose.WorkingDir)
	}
	const least = 2 // "services" alone does not help
	for _, texts := range [][]fileText{p.texts.own, p.texts.referred} {
		for keys := len(at); keys >= min(least, len(at)); keys-- {
			for _, text := range slices.Backward(texts) {
				if line := lineOf(&text.root, at[:keys]); line > 0 {
					return text.file, line
				}
			}
		}
	}
	return "", 0
}

// placeAt returns " at FILE:LINE" for a path, or nothing if it has no place.
func (p *Project) placeAt(at path) string {
	if file, line := p.place(at); file != "" {
		return fmt.Sprintf(" at %s:%d", file, line)
	}
	return ""
}

// fileText is the parsed text of a file of the project.
type fileText struct {
	file string
	root yaml.Node
}

// readTexts parses files for their line numbers. It skips files that it cannot read, because the reader of Compose
// files reports those.
func readTexts(files []string) []fileText {
	all := make([]fileText, 0, len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(raw, &doc); err == nil && len(doc.Content) > 0 {
			all = append(all, fileText{file, *doc.Content[0]})
		}
	}
	return all
}

// These match the places in the errors of the reader of Compose files: services.web.imagee, services.web.ports.[1], or
// service "web"; and an unknown key.
var (
	refusedPath = regexp.MustCompile(`\b(services|networks|volumes|configs|secrets)((?:\.\[?[\w-]+\]?)+)`)
	refusedName = regexp.MustCompile(`\b(service|network|volume|config|secret) "([\w.-]+)"`)
	refusedKey  = regexp.MustCompile(`additional properties '([\w.-]+)'`)
)

// refused returns an error of the reader of Compose files with its place, as far as that can be found.
func (p *Project) refused(files []string, directory string, err error) error {
	var at path
	text := err.Error()
	if found := refusedPath.FindStringSubmatch(text); found != nil {
		at = append(path{found[1]}, strings.Split(strings.NewReplacer("[", "", "]", "").Replace(found[2][1:]), ".")...)
		if key := refusedKey.FindStringSubmatch(text); key != nil {
			at = at.with(key[1])
		}
	} else if found := refusedName.FindStringSubmatch(text); found != nil {
		at = path{found[1] + "s", found[2]}
	} else {
		return err
	}
	p.texts = readAll(files, directory)
	return p.problem(at, "%w", err)
}

// lineOf returns the line of the last key of a path, or 0.
func lineOf(n *yaml.Node, at path) int {
	line := 0
	for _, key := range at {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		switch found, value := below(n, key); {
		case value == nil:
			return 0
		default:
			line, n = found, value
		}
	}
	return line
}

// below finds a key of a mapping or an element of a list. It returns its line, and its value or nil.
func below(n *yaml.Node, key string) (line int, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i].Line, n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			if strconv.Itoa(i) == key {
				return one.Line, one
			}
		}
	}
	return 0, nil
}

// problems collects the errors in the files, each once.
type problems struct {
	all  []error
	said map[string]bool
}

// add adds an error, or each of those that it joins.
func (p *problems) add(err error) {
	for _, one := range each(err) {
		if p.said == nil {
			p.said = map[string]bool{}
		}
		if text := one.Error(); !p.said[text] {
			p.said[text] = true
			p.all = append(p.all, one)
		}
	}
}

// err joins the errors. Those with a place come first, in the order of the files; the others follow in the order in
// which they were found.
func (p *problems) err() error {
	slices.SortStableFunc(p.all, func(a, b error) int {
		var x, y *problem
		placedA, placedB := errors.As(a, &x) && x.File != "", errors.As(b, &y) && y.File != ""
		switch {
		case placedA && placedB:
			return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
		case placedA:
			return -1
		case placedB:
			return 1
		}
		return 0
	})
	return errors.Join(p.all...)
}

// Join joins errors that prevent a deploy, each once. Those with a place in the files come first, in their order.
func Join(all ...error) error {
	var found problems
	for _, err := range all {
		found.add(err)
	}
	return found.err()
}

// each returns the parts of a joined error, recursively. For nil it returns none.
func each(err error) (all []error) {
	several, joined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !joined:
		return []error{err}
	}
	for _, one := range several.Unwrap() {
		all = append(all, each(one)...)
	}
	return all
}
