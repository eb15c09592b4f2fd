package plan

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// What reads every part of a document: mappings, lists and single texts. Anything else is an error at its line.

// mapping reads the keys of n into the fields of v, a struct or a map of texts. It reports whether n is a mapping.
func (d *document) mapping(n *yaml.Node, what string, v reflect.Value) bool {
	var fields []field
	known := "KEY: VALUE"
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	} else {
		fields = d.of(v.Type())
		known = keys(fields)
	}
	if n.Kind != yaml.MappingNode {
		d.Add(n.Line, "%s is %s here, and must have keys: %s", what, kindOf(n), known)
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, _ := entry(n, key.Value); first != key {
			d.Add(key.Line, "%s has the key %s twice", what, key.Value)
		}
		at := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		switch {
		case key.Tag == "!!merge":
			d.Add(key.Line, "%s has a merge key (<<) here, which a plan cannot have; write out the keys that it stands for",
				what)
		case key.Kind != yaml.ScalarNode || v.Kind() == reflect.Struct && at < 0:
			d.Add(key.Line, "%s has no key %q; it has %s", what, key.Value, known)
		case v.Kind() == reflect.Map:
			text := reflect.New(v.Type().Elem()).Elem()
			d.item(value, text)
			v.SetMapIndex(reflect.ValueOf(key.Value), text)
		default:
			d.field(value, &fields[at], v.FieldByIndex(fields[at].index))
			fields[at].clear(v)
		}
	}
	return true
}

// entry returns the first entry of a key, or nil.
func entry(n *yaml.Node, key string) (at, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// valueOf returns the value of a key, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	_, value := entry(n, key)
	return value
}

// field reads the value of a key.
func (d *document) field(n *yaml.Node, f *field, v reflect.Value) {
	switch {
	case f.as != nil && isNull(n): // its default
	case f.as != nil:
		d.scalar(n, f.as, v)
	case v.Kind() == reflect.Slice:
		d.list(n, f.key, v)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.mapping(n, f.key, v.Elem())
	default:
		d.mapping(n, f.key, v)
	}
}

// list reads each item of a sequence. No value is an empty list.
func (d *document) list(n *yaml.Node, what string, v reflect.Value) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.Add(n.Line, "%s is %s here, and must be a list", what, kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, child := range n.Content {
		d.item(child, v.Index(i))
	}
}

// scalar reads a single text as it is written, even if it is a number or a special word of YAML, because names may look
// so.
func (d *document) scalar(n *yaml.Node, c *codec, v reflect.Value) {
	switch {
	case n.Kind != yaml.ScalarNode && c.any:
		d.Add(n.Line, "there is %s here, and a text is expected", kindOf(n))
	case n.Kind != yaml.ScalarNode:
		d.Add(n.Line, "there is %s here, and a single value is expected", kindOf(n))
	case isNull(n) && c.any:
	default:
		if err := c.set(v, n.Value); err != nil {
			d.Add(n.Line, "%v", err)
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*" + n.Value + ")" // references could make a small document huge
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return fmt.Sprintf("%q", n.Value)
	}
	return "nothing"
}
