package plan

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// yamlWriter writes the document line by line, and uses the library only for a few texts. So it writes a plan of a
// hundred thousand addresses in a fraction of the time that building nodes would take.
type yamlWriter struct {
	*shapes
	b     *bufio.Writer
	begun bool
	err   error // of a text

	elastic *ipam.PlannedElastic // written at the end
}

// ElasticWriter is a Writer that also writes elastic addresses, at its end.
type ElasticWriter interface {
	Writer
	WriteElastic(*ipam.PlannedElastic)
}

// NewYAML returns a Writer of a YAML document.
func NewYAML(w io.Writer) Writer {
	return &yamlWriter{shapes: newShapes(), b: bufio.NewWriterSize(w, 64<<10)}
}

// Write implements Writer.
func (w *yamlWriter) Write(n *ipam.PlannedNetwork) error {
	w.begin("")
	said := *n
	if said.Space == ipam.LocalSpace {
		said.Space = ""
	}
	said.Subnets = slices.Clone(n.Subnets)
	for i := range said.Subnets {
		sub := &said.Subnets[i]
		if len(sub.Pools) == 1 && sub.Pools[0].Name == "" && sub.Pools[0].Range == wholeOf(sub.CIDR) {
			sub.Whole, sub.Pools = true, nil
		}
	}
	w.block("- ", "  ", reflect.ValueOf(said))
	return w.err
}

// WriteElastic implements ElasticWriter.
func (w *yamlWriter) WriteElastic(e *ipam.PlannedElastic) { w.elastic = e }

// Close implements Writer.
func (w *yamlWriter) Close() error {
	w.begin(" []")
	if e := w.elastic; e != nil && len(e.Accounts)+len(e.Ranges)+len(e.Addresses) > 0 {
		w.line("elastic:")
		w.block("  ", "  ", reflect.ValueOf(*e))
	}
	if w.err != nil {
		return w.err
	}
	return w.b.Flush()
}

// begin writes the head, before the first network or the end.
func (w *yamlWriter) begin(rest string) {
	if !w.begun {
		w.begun = true
		w.line("version: %s\nnetworks:%s", version, rest)
	}
}

// block writes a struct, one line per key. The first line begins with first.
func (w *yamlWriter) block(first, indent string, v reflect.Value) {
	fields := w.of(v.Type())
	for i := range fields {
		f := &fields[i]
		if f.leftOut(v) {
			continue
		}
		of := v.FieldByIndex(f.index)
		switch {
		case f.as != nil:
			w.line("%s%s: %s", first, f.key, w.scalar(f.as, of))
		case of.Kind() == reflect.Map:
			w.line("%s%s:", first, f.key)
			tags, _ := of.Interface().(map[string]string)
			for _, key := range slices.Sorted(maps.Keys(tags)) {
				w.line("%s  %s: %s", indent, w.text(key), w.text(tags[key]))
			}
		default:
			w.line("%s%s:", first, f.key)
			w.list(indent+"  ", of)
		}
		first = indent
	}
}

// list writes each item on its own line, except subnets, which have many keys.
func (w *yamlWriter) list(indent string, v reflect.Value) {
	for i := range v.Len() {
		if one := v.Index(i); one.Type() == reflect.TypeFor[ipam.PlannedSubnet]() {
			w.block(indent+"- ", indent+"  ", one)
		} else {
			w.line("%s- %s", indent, w.flow(one))
		}
	}
}

// flow returns a struct or a text on one line.
func (w *yamlWriter) flow(v reflect.Value) string {
	if c := w.codec(v.Type(), ""); c != nil {
		return w.scalar(c, v)
	}
	var keys, values []string
	fields := w.of(v.Type())
	for i := range fields {
		f := &fields[i]
		if f.leftOut(v) {
			continue
		}
		of := v.FieldByIndex(f.index)
		var text string
		if f.as != nil {
			text = w.scalar(f.as, of)
		} else {
			var items []string
			for i := range of.Len() {
				items = append(items, w.flow(of.Index(i)))
			}
			text = "[" + strings.Join(items, ", ") + "]"
		}
		keys, values = append(keys, f.key+": "+text), append(values, text)
	}
	if len(values) == 1 && isShort(v.Type()) {
		return values[0]
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// scalar returns a single text.
func (w *yamlWriter) scalar(c *codec, v reflect.Value) string {
	if c.bare {
		return c.text(v)
	}
	return w.text(c.text(v))
}

func (w *yamlWriter) line(format string, args ...any) {
	fmt.Fprintf(w.b, format+"\n", args...)
}

// plain matches texts that every YAML reader takes for a text, anywhere: words that begin with a letter, and addresses,
// ranges and prefixes. An IPv6 address needs a gap (no time of day has one) and no colon at either end.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$|^[0-9]+\.[0-9]+\.[0-9]+\.[0-9][-/.0-9]*$|` +
	`^[0-9a-f][0-9a-f:]*::[0-9a-f:/-]*[0-9a-f]$`)

// text returns a text, in quotes if it needs them.
func (w *yamlWriter) text(s string) string {
	if plain.MatchString(s) && !hasMeaning(s) {
		return s
	}
	b, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Tag: "!!str", Value: s})
	if err != nil && w.err == nil {
		w.err = err
	}
	return strings.TrimSuffix(string(b), "\n")
}

// hasMeaning reports whether some version of YAML gives a word another meaning than a text.
func hasMeaning(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}
