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

// Problem is something in the files that is in the way of a deploy (BD-2), with where it stands.
type Problem struct {
	File string // empty: it has no place of its own, such as a network that the files do not describe
	Line int
	Err  error
}

func (p *Problem) Error() string {
	if p.File == "" {
		return p.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// path is the way to a key of the files: services, web, x-berth. An element of a list is told by its number.
type path []string

func (p path) with(keys ...string) path { return append(slices.Clone(p), keys...) }

// String is a path as people read it: services.web.x-berth.addresses[1].
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

// problem says what is wrong with what stands at a path.
func (p *Project) problem(at path, format string, args ...any) error {
	file, line := p.place(at)
	return &Problem{file, line, fmt.Errorf(format, args...)}
}

// place is where a path stands: in the last file that has it in plain sight, or else has the most of it. What other
// files bring (include, extends) has no place here.
func (p *Project) place(at path) (file string, line int) {
	if p.texts == nil {
		p.texts = readTexts(p.Files())
	}
	const least = 2 // "services" alone says nothing
	for keys := len(at); keys >= min(least, len(at)); keys-- {
		for _, text := range slices.Backward(p.texts) {
			if line := lineOf(&text.root, at[:keys]); line > 0 {
				return text.file, line
			}
		}
	}
	return "", 0
}

// text is a file of the project as it stands there.
type fileText struct {
	file string
	root yaml.Node
}

// readTexts reads files for their lines. One that cannot be read has none: it was read by who understands it.
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

// refusedPath finds in what the reader of Compose files says of them where that stands: services.web.imagee,
// services.web.ports.[1], or service "web"; and the key that is too much there.
var (
	refusedPath = regexp.MustCompile(`\b(services|networks|volumes|configs|secrets)((?:\.\[?[\w-]+\]?)+)`)
	refusedName = regexp.MustCompile(`\b(service|network|volume|config|secret) "([\w.-]+)"`)
	refusedKey  = regexp.MustCompile(`additional properties '([\w.-]+)'`)
)

// refused is what the reader of Compose files says of them, with the place that it means, as far as that can be told.
func (p *Project) refused(files []string, err error) error {
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
	p.texts = readTexts(files)
	return p.problem(at, "%w", err)
}

// lineOf is the line of the last key of a path; 0 where it is not there.
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

// below finds a key of a mapping, or an element of a list: its line, and its value; nil where it has none.
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

// problems are all that is wrong with the files, each once.
type problems struct {
	all  []error
	said map[string]bool
}

// add takes an error, or each of those that it joins.
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

// err joins them, in the order of the files where they have a place there; the others come last, as they were found.
func (p *problems) err() error {
	slices.SortStableFunc(p.all, func(a, b error) int {
		var x, y *Problem
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

// Join joins what is in the way of a deploy, each once: what has a place in the files first, in their order.
func Join(all ...error) error {
	var found problems
	for _, err := range all {
		found.add(err)
	}
	return found.err()
}

// each takes joined errors apart, also where what is joined is joined itself. Of no error it is none.
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
