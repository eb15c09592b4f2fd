package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// writeYAML writes v as YAML, with the fields and order of its JSON.
func writeYAML(w io.Writer, v any) error {
	document, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber() // event ids have more digits than a float
	node, err := yamlNode(d)
	if err != nil {
		return err
	}
	document, err = yaml.Dump(node, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// yamlNode reads the next value of a JSON document.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return yamlNodes(d, token)
	case string:
		return text(token), nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil // a number or a boolean
}

// word matches texts that need no quotes, because they begin with a letter, unless YAML gives them a meaning.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// text returns a text that every YAML reader takes for one: for older readers, yes is true and 1:30 is ninety.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		n.Style = yaml.DoubleQuotedStyle
	}
	if !word.MatchString(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// yamlNodes reads the elements of an object or an array.
func yamlNodes(d *json.Decoder, begin json.Delim) (*yaml.Node, error) {
	all := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if begin == '{' {
		all.Kind, all.Tag = yaml.MappingNode, "!!map"
	}
	for d.More() {
		one, err := yamlNode(d)
		if err != nil {
			return nil, err
		}
		all.Content = append(all.Content, one)
	}
	if len(all.Content) == 0 {
		all.Style = yaml.FlowStyle // {} and []
	}
	_, err := d.Token()
	return all, err
}
