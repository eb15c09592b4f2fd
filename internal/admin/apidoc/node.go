package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// field is an entry of a mapping.
type field struct {
	key   string
	value *yaml.Node
}

// fieldsOf lists the entries of a mapping in their order, with what it takes over from others (<<) and does not say
// itself.
func fieldsOf(n *yaml.Node) (all []field, err error) {
	n = real(n)
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: names with values are expected", n.Line)
	}
	own := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		own[n.Content[i].Value] = true
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, real(n.Content[i+1])
		if key != "<<" {
			all = append(all, field{key, value})
			continue
		}
		taken, err := fieldsOf(value)
		if err != nil {
			return nil, err
		}
		for _, f := range taken {
			if !own[f.key] {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// real is the node that an alias stands for.
func real(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// keys gives each entry of a mapping to what is for it, and refuses one that nothing is for.
func keys(n *yaml.Node, of string, takes map[string]func(*yaml.Node) error) error {
	all, err := fieldsOf(n)
	if err != nil {
		return err
	}
	for _, f := range all {
		take := takes[f.key]
		if take == nil {
			return unknown(f, of)
		}
		if err := take(f.value); err != nil {
			return err
		}
	}
	return nil
}

func unknown(f field, of string) error {
	return fmt.Errorf("line %d: the page does not know how to show %q of %s", f.value.Line, f.key, of)
}

// each calls do with the entries of a list.
func each(n *yaml.Node, do func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: a list is expected", n.Line)
	}
	for _, one := range n.Content {
		if err := do(real(one)); err != nil {
			return err
		}
	}
	return nil
}

// follow returns what a node refers to, and itself where it does not.
func follow(n *yaml.Node, where string, among map[string]*yaml.Node) (*yaml.Node, error) {
	all, err := fieldsOf(n)
	if err != nil || len(all) != 1 || all[0].key != "$ref" {
		return n, err
	}
	name, ok := strings.CutPrefix(all[0].value.Value, where)
	if !ok || among[name] == nil {
		return nil, fmt.Errorf("line %d: there is no %s", all[0].value.Line, all[0].value.Value)
	}
	return among[name], nil
}

// jsonOf is a value as JSON, with the fields of objects in their order, a line for each entry of what is not empty.
func jsonOf(n *yaml.Node) (string, error) {
	var raw bytes.Buffer
	if err := writeJSON(&raw, n); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := json.Indent(&out, raw.Bytes(), "", "  ")
	return out.String(), err
}

func writeJSON(to *bytes.Buffer, n *yaml.Node) error {
	switch n = real(n); n.Kind {
	case yaml.SequenceNode:
		to.WriteByte('[')
		for i, one := range n.Content {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := writeJSON(to, one); err != nil {
				return err
			}
		}
		to.WriteByte(']')
		return nil
	case yaml.MappingNode:
		all, err := fieldsOf(n)
		if err != nil {
			return err
		}
		to.WriteByte('{')
		for i, f := range all {
			if i > 0 {
				to.WriteByte(',')
			}
			fmt.Fprintf(to, "%q:", f.key)
			if err := writeJSON(to, f.value); err != nil {
				return err
			}
		}
		to.WriteByte('}')
		return nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	to.Write(text)
	return err
}

func text(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error { *to = n.Value; return nil }
}

func flag(to *bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error { return n.Decode(to) }
}

func strs(to *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		return each(n, func(n *yaml.Node) error { *to = append(*to, n.Value); return nil })
	}
}

func paragraphs(to *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		for p := range strings.SplitSeq(strings.TrimSpace(n.Value), "\n") {
			*to = append(*to, strings.TrimSpace(p))
		}
		return nil
	}
}
