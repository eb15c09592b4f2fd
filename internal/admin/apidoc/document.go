package apidoc

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document is the description as the template wants it.
type document struct {
	Title, Version string
	Text           []string // paragraphs
	Servers        []server
	License        link
	Groups         []group
	Schemas        []named
}

type server struct {
	URL  string
	Text []string
}

type link struct{ Name, URL string }

// group is the operations below one word of the path.
type group struct {
	Name       string
	Operations []operation
}

// operation is one method of one path.
type operation struct {
	ID, Method, Path, Summary string
	Text                      []string
	Role                      string // anybody, read or admin
	ForAccount                bool
	Parameters                []parameter
	Body                      *body
	Responses                 []response
}

// parameter is one of a request, or a header of an answer.
type parameter struct {
	Name, In string
	Required bool
	Text     []string
	Example  string
	Schema   *schema
}

type body struct {
	Required bool
	Text     []string
	Contents []content
}

type response struct {
	Status   string // default: every other one
	Text     []string
	Headers  []parameter
	Contents []content
}

type content struct {
	Type    string
	Schema  *schema
	Example string // as JSON
}

// named is a schema that others refer to.
type named struct {
	Name   string
	Schema *schema
}

// reader holds what is referred to.
type reader struct {
	parameters, responses, headers map[string]*yaml.Node
	schemas                        map[string]bool
}

func read(text []byte) (*document, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 {
		return nil, fmt.Errorf("it holds %d documents, and is one", len(root.Content))
	}
	d, r := new(document), new(reader)
	top, err := fieldsOf(root.Content[0])
	if err != nil {
		return nil, err
	}
	var paths *yaml.Node
	for _, f := range top {
		switch f.key {
		case "openapi":
		case "info":
			err = d.info(f.value)
		case "servers":
			err = each(f.value, func(n *yaml.Node) error { return d.server(n) })
		case "paths":
			paths = f.value
		case "components":
			err = r.components(d, f.value)
		default:
			err = unknown(f, "the document")
		}
		if err != nil {
			return nil, err
		}
	}
	if paths == nil {
		return nil, fmt.Errorf("it has no paths")
	}
	return d, d.paths(r, paths)
}

func (d *document) info(n *yaml.Node) error {
	return keys(n, "info", map[string]func(*yaml.Node) error{
		"title":       text(&d.Title),
		"version":     text(&d.Version),
		"description": paragraphs(&d.Text),
		"license": func(n *yaml.Node) error {
			return keys(n, "license", map[string]func(*yaml.Node) error{
				"name": text(&d.License.Name), "url": text(&d.License.URL)})
		},
	})
}

func (d *document) server(n *yaml.Node) error {
	var s server
	err := keys(n, "a server", map[string]func(*yaml.Node) error{
		"url": text(&s.URL), "description": paragraphs(&s.Text)})
	d.Servers = append(d.Servers, s)
	return err
}

// components keeps what is referred to, and reads the schemas. References among these need only their names.
func (r *reader) components(d *document, n *yaml.Node) error {
	var schemas []field
	keep := func(to *map[string]*yaml.Node) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			all, err := fieldsOf(n)
			*to = map[string]*yaml.Node{}
			for _, f := range all {
				(*to)[f.key] = f.value
			}
			return err
		}
	}
	err := keys(n, "components", map[string]func(*yaml.Node) error{
		"parameters": keep(&r.parameters), "responses": keep(&r.responses), "headers": keep(&r.headers),
		"schemas": func(n *yaml.Node) (err error) {
			schemas, err = fieldsOf(n)
			return err
		},
	})
	r.schemas = map[string]bool{}
	for _, f := range schemas {
		r.schemas[f.key] = true
	}
	for _, f := range schemas {
		if err != nil {
			return err
		}
		var s *schema
		if s, err = r.schema(f.value); err == nil {
			d.Schemas = append(d.Schemas, named{f.key, s})
		}
	}
	slices.SortFunc(d.Schemas, func(a, b named) int { return strings.Compare(a.Name, b.Name) })
	return err
}

func (d *document) paths(r *reader, n *yaml.Node) error {
	all, err := fieldsOf(n)
	if err != nil {
		return err
	}
	for _, path := range all {
		methods, err := fieldsOf(path.value)
		if err != nil {
			return err
		}
		var shared []parameter
		for _, m := range methods {
			if m.key == "parameters" {
				err = r.parametersOf(m.value, &shared)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path.key, err)
			}
		}
		for _, m := range methods {
			if m.key == "parameters" {
				continue
			}
			op, err := r.operation(m.value)
			if err != nil {
				return fmt.Errorf("%s %s: %w", m.key, path.key, err)
			}
			op.Method, op.Path = strings.ToUpper(m.key), path.key
			op.Parameters = append(slices.Clone(shared), op.Parameters...)
			g := d.group(path.key)
			g.Operations = append(g.Operations, op)
		}
	}
	return nil
}

// group is that of a path, in the order in which they first come.
func (d *document) group(path string) *group {
	name, versioned := strings.CutPrefix(path, "/v1/")
	name, _, _ = strings.Cut(name, "/")
	if !versioned {
		name = "probes and descriptions"
	}
	for i := range d.Groups {
		if d.Groups[i].Name == name {
			return &d.Groups[i]
		}
	}
	d.Groups = append(d.Groups, group{Name: name})
	return &d.Groups[len(d.Groups)-1]
}

func (r *reader) operation(n *yaml.Node) (op operation, err error) {
	err = keys(n, "an operation", map[string]func(*yaml.Node) error{
		"operationId":    text(&op.ID),
		"summary":        text(&op.Summary),
		"description":    paragraphs(&op.Text),
		"x-role":         text(&op.Role),
		"x-role-account": flag(&op.ForAccount),
		"parameters":     func(n *yaml.Node) error { return r.parametersOf(n, &op.Parameters) },
		"requestBody": func(n *yaml.Node) error {
			op.Body = new(body)
			return keys(n, "a body", map[string]func(*yaml.Node) error{
				"required": flag(&op.Body.Required), "description": paragraphs(&op.Body.Text),
				"content": func(n *yaml.Node) error { return r.contents(n, &op.Body.Contents) }})
		},
		"responses": func(n *yaml.Node) error {
			all, err := fieldsOf(n)
			for _, f := range all {
				one := response{Status: f.key}
				if err == nil {
					err = r.response(f.value, &one)
				}
				op.Responses = append(op.Responses, one)
			}
			return err
		},
	})
	return op, err
}

func (r *reader) response(n *yaml.Node, to *response) error {
	n, err := follow(n, "#/components/responses/", r.responses)
	if err != nil {
		return err
	}
	return keys(n, "a response", map[string]func(*yaml.Node) error{
		"description": paragraphs(&to.Text),
		"headers": func(n *yaml.Node) error {
			all, err := fieldsOf(n)
			for _, f := range all {
				one := parameter{Name: f.key, In: "header"}
				if err == nil {
					err = r.parameter(f.value, "#/components/headers/", r.headers, &one)
				}
				to.Headers = append(to.Headers, one)
			}
			return err
		},
		"content": func(n *yaml.Node) error { return r.contents(n, &to.Contents) },
	})
}

func (r *reader) contents(n *yaml.Node, to *[]content) error {
	all, err := fieldsOf(n)
	for _, f := range all {
		one := content{Type: f.key}
		if err == nil {
			err = keys(f.value, "a content", map[string]func(*yaml.Node) error{
				"schema": r.schemaInto(&one.Schema),
				"example": func(n *yaml.Node) (err error) {
					one.Example, err = jsonOf(n)
					return err
				},
			})
		}
		*to = append(*to, one)
	}
	return err
}

func (r *reader) parametersOf(n *yaml.Node, to *[]parameter) error {
	return each(n, func(n *yaml.Node) error {
		var one parameter
		err := r.parameter(n, "#/components/parameters/", r.parameters, &one)
		*to = append(*to, one)
		return err
	})
}

func (r *reader) parameter(n *yaml.Node, where string, among map[string]*yaml.Node, to *parameter) error {
	n, err := follow(n, where, among)
	if err != nil {
		return err
	}
	return keys(n, "a parameter", map[string]func(*yaml.Node) error{
		"name": text(&to.Name), "in": text(&to.In), "required": flag(&to.Required),
		"description": paragraphs(&to.Text), "example": text(&to.Example), "schema": r.schemaInto(&to.Schema)})
}
