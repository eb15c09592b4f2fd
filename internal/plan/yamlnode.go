package plan

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// What every part of a document is read with: mappings, lists, texts and values, with a problem at its line where there
// is something else.

// mapping hands each key of n to field, which answers false for one that it does not know. It answers whether n is one.
func (d *document) mapping(n *yaml.Node, what, keys string, field func(key string, v *yaml.Node) bool) bool {
	if n.Kind != yaml.MappingNode {
		d.Add(n.Line, "%s is %s here, and must have keys: %s", what, kindOf(n), orAny(keys))
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		for j := 0; j < i; j += 2 {
			if n.Content[j].Value == key.Value {
				d.Add(key.Line, "%s has the key %s twice", what, key.Value)
				break
			}
		}
		if key.Kind != yaml.ScalarNode || !field(key.Value, v) {
			d.Add(key.Line, "%s has no key %q; it has %s", what, key.Value, orAny(keys))
		}
	}
	return true
}

func orAny(keys string) string {
	if keys == "" {
		return "KEY: VALUE"
	}
	return keys
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// list reads each item of a sequence; nothing at all is the empty one.
func list[T any](d *document, n *yaml.Node, what string, item func(*yaml.Node) T) []T {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.Add(n.Line, "%s is %s here, and must be a list", what, kindOf(n))
		return nil
	}
	items := make([]T, 0, len(n.Content))
	for _, child := range n.Content {
		items = append(items, item(child))
	}
	return items
}

// text reads a scalar as it is written, be it a number or a word that YAML has a meaning for: names are names.
func (d *document) text(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.Add(n.Line, "there is %s here, and a text is expected", kindOf(n))
		return ""
	case n.Tag == "!!null":
		return ""
	}
	return n.Value
}

// value reads a scalar by one of the parsers; false where it could not.
func value[T any](d *document, n *yaml.Node, parse func(string) (T, error)) (v T, ok bool) {
	if n.Kind != yaml.ScalarNode {
		d.Add(n.Line, "there is %s here, and a single value is expected", kindOf(n))
		return v, false
	}
	v, err := parse(n.Value)
	if err != nil {
		d.Add(n.Line, "%v", err)
		return v, false
	}
	return v, true
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*" + n.Value + ")" // references could make a small document a huge one
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		return fmt.Sprintf("%q", n.Value)
	}
	return "nothing"
}
