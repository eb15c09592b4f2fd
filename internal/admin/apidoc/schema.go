package apidoc

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// schema is what a value looks like.
type schema struct {
	Ref    string // the name of another one, which it is; else empty
	Type   string
	Facts  []string // bounds, format, default and example, in words
	Enum   []string
	Text   []string
	Fields []property
	Items  *schema // of an array
	Others *schema // of the fields of an object that have no name of their own
	Union  []union // it is one of these, or all of them

	required []string
}

type property struct {
	Name     string
	Required bool
	Schema   *schema
}

type union struct {
	Word string // one of, all of
	Of   []*schema
}

func (r *reader) schemaInto(to **schema) func(*yaml.Node) error {
	return func(n *yaml.Node) (err error) {
		*to, err = r.schema(n)
		return err
	}
}

const schemaRef = "#/components/schemas/"

func (r *reader) schema(n *yaml.Node) (*schema, error) {
	s := new(schema)
	err := keys(n, "a schema", map[string]func(*yaml.Node) error{
		"$ref": func(n *yaml.Node) error {
			name, ok := strings.CutPrefix(n.Value, schemaRef)
			if s.Ref = name; !ok || !r.schemas[name] {
				return fmt.Errorf("line %d: there is no schema %s", n.Line, n.Value)
			}
			return nil
		},
		"type":        text(&s.Type),
		"description": paragraphs(&s.Text),
		"format":      s.fact("%s"),
		"pattern":     s.fact("matches %s"),
		"minimum":     s.fact("at least %s"),
		"maximum":     s.fact("at most %s"),
		"minLength":   s.fact("length at least %s"),
		"maxLength":   s.fact("length at most %s"),
		"minItems":    s.fact("entries at least %s"),
		"maxItems":    s.fact("entries at most %s"),
		"default":     s.fact("default %s"),
		"example":     s.fact("such as %s"),
		"nullable": func(n *yaml.Node) error {
			if n.Value == "true" {
				s.Facts = append(s.Facts, "or null")
			}
			return nil
		},
		"enum":     strs(&s.Enum),
		"required": strs(&s.required),
		"items":    r.schemaInto(&s.Items),
		"additionalProperties": func(n *yaml.Node) (err error) {
			if n.Kind == yaml.ScalarNode { // whether there may be others; the document says it of all
				return nil
			}
			s.Others, err = r.schema(n)
			return err
		},
		"properties": func(n *yaml.Node) error { return r.properties(n, s) },
		"oneOf":      r.union("one of", s),
		"allOf":      r.union("all of", s),
	})
	for i := range s.Fields {
		s.Fields[i].Required = slices.Contains(s.required, s.Fields[i].Name)
	}
	return s, err
}

func (r *reader) properties(n *yaml.Node, s *schema) error {
	all, err := fieldsOf(n)
	for _, f := range all {
		if err != nil {
			return err
		}
		one := property{Name: f.key}
		one.Schema, err = r.schema(f.value)
		s.Fields = append(s.Fields, one)
	}
	return err
}

func (r *reader) union(word string, s *schema) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		u := union{Word: word}
		err := each(n, func(n *yaml.Node) error {
			one, err := r.schema(n)
			u.Of = append(u.Of, one)
			return err
		})
		s.Union = append(s.Union, u)
		return err
	}
}

// fact notes a bound in words.
func (s *schema) fact(words string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		value := n.Value
		if n.Kind != yaml.ScalarNode || value == "" { // a list, an object, or no text at all
			var err error
			if value, err = jsonOf(n); err != nil {
				return err
			}
		}
		s.Facts = append(s.Facts, fmt.Sprintf(words, value))
		return nil
	}
}
