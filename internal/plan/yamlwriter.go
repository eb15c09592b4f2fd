package plan

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// yamlWriter writes the document line by line. The shape is fixed, so only texts need the library, and few of those: a
// plan of a hundred thousand addresses is written in a fraction of the time that building nodes for it would take.
type yamlWriter struct {
	b     *bufio.Writer
	begun bool
	err   error // of a text

	elastic *ipam.PlannedElastic // written at the end
}

// NewYAML returns a Writer of a YAML document.
func NewYAML(w io.Writer) Writer { return &yamlWriter{b: bufio.NewWriterSize(w, 64<<10)} }

// Write implements Writer.
func (w *yamlWriter) Write(n *ipam.PlannedNetwork) error {
	w.begin("\n")
	w.line("- name: %s", w.text(n.Name))
	if n.Space != "" && n.Space != ipam.LocalSpace {
		w.line("  space: %s", w.text(n.Space))
	}
	if len(n.Tags) > 0 {
		w.line("  tags:")
		for _, key := range slices.Sorted(maps.Keys(n.Tags)) {
			w.line("    %s: %s", w.text(key), w.text(n.Tags[key]))
		}
	}
	w.field("  mac_prefix", n.MACPrefix)
	if len(n.Links) > 0 {
		w.line("  links:")
		for _, l := range n.Links {
			w.line("    - {host: %s, mode: %s, link: %s}", w.text(l.Host), w.text(l.Mode), w.text(l.Link))
		}
	}
	if n.Sticky != nil {
		w.line("  sticky: %t", *n.Sticky)
	}
	if n.Quarantine != nil {
		w.line("  quarantine: %s", formatDuration(*n.Quarantine))
	}
	if n.Headroom > 0 {
		w.line("  headroom: %d", n.Headroom)
	}
	w.field("  elastic", n.Elastic)
	w.field("  probe", n.Probe)
	w.field("  put_back", n.PutBack)
	w.field("  type", n.Type)
	w.rules(n.OwnerRules)
	w.subnets(n.Subnets)
	w.bands("  ", n.Static)
	w.pools("  ", n.Pools)
	w.exclusions("  ", n.Exclusions)
	w.owned(n)
	return w.err
}

// Close implements Writer.
func (w *yamlWriter) Close() error {
	w.begin(" []\n")
	w.elasticLines(w.elastic)
	if w.err != nil {
		return w.err
	}
	return w.b.Flush()
}

// begin writes the head, before the first network or the end.
func (w *yamlWriter) begin(rest string) {
	if !w.begun {
		w.begun = true
		w.line("version: %s\nnetworks:%s", version, strings.TrimSuffix(rest, "\n"))
	}
}

func (w *yamlWriter) rules(all []ipam.OwnerRule) {
	if len(all) > 0 {
		w.line("  owner_rules:")
	}
	for _, r := range all {
		meaning := ""
		if r.Owner != "" {
			meaning = ", owner: " + w.text(r.Owner)
		}
		if r.Pool != "" {
			meaning += ", pool: " + w.text(r.Pool)
		}
		w.line("    - {pattern: %s%s}", w.text(r.Pattern), meaning)
	}
}

func (w *yamlWriter) subnets(all []ipam.PlannedSubnet) {
	if len(all) > 0 {
		w.line("  subnets:")
	}
	for _, sub := range all {
		w.line("    - cidr: %s", w.text(sub.CIDR.String()))
		w.field("      name", sub.Name)
		if sub.Gateway.IsValid() {
			w.line("      gateway: %s", w.text(sub.Gateway.String()))
		}
		w.subnetTerms("      ", &sub)
		w.bands("      ", sub.Static)
		if len(sub.Pools) == 1 && sub.Pools[0].Name == "" && sub.Pools[0].Range == wholeOf(sub.CIDR) {
			w.line("      pool: true")
		} else {
			w.pools("      ", sub.Pools)
		}
		w.exclusions("      ", sub.Exclusions)
	}
}

func (w *yamlWriter) bands(indent string, all []ipam.PlannedBand) {
	if len(all) > 0 {
		w.line("%sstatic:", indent)
	}
	for _, b := range all {
		w.ranged(indent, b.Range, "", "")
	}
}

func (w *yamlWriter) pools(indent string, all []ipam.PlannedPool) {
	if len(all) > 0 {
		w.line("%spools:", indent)
	}
	for _, p := range all {
		w.ranged(indent, p.Range, "name", p.Name)
	}
}

func (w *yamlWriter) exclusions(indent string, all []ipam.PlannedExclusion) {
	if len(all) > 0 {
		w.line("%sexclusions:", indent)
	}
	for _, x := range all {
		w.ranged(indent, x.Range, "note", x.Note)
	}
}

func (w *yamlWriter) ranged(indent string, r ipam.Range, key, text string) {
	if text == "" {
		w.line("%s  - %s", indent, w.text(r.String()))
		return
	}
	w.line("%s  - {range: %s, %s: %s}", indent, w.text(r.String()), key, w.text(text))
}

func (w *yamlWriter) owned(n *ipam.PlannedNetwork) {
	if len(n.Reservations) > 0 {
		w.line("  reservations:")
	}
	for i := range n.Reservations {
		w.reservation(&n.Reservations[i])
	}
	if len(n.Addresses) > 0 {
		w.line("  addresses:")
	}
	for i := range n.Addresses {
		r := n.Addresses[i].Reserved()
		w.reservation(&r)
	}
}

// reservation writes one, or an address as one.
func (w *yamlWriter) reservation(r *ipam.PlannedReservation) {
	address := ""
	if r.Address.IsValid() {
		address = ", address: " + w.text(r.Address.String())
	}
	w.line("    - {owner: %s%s%s%s}", w.text(r.Owner), address, place(r.Interface, r.Slot), w.terms(r))
}

// place is left out where it is the first: an address without one takes the first that is free.
func place(nic, slot int) string {
	if nic == 0 && slot == 0 {
		return ""
	}
	return fmt.Sprintf(", interface: %d, slot: %d", nic, slot)
}

// field writes a text that is not empty.
func (w *yamlWriter) field(key, text string) {
	if text != "" {
		w.line("%s: %s", key, w.text(text))
	}
}

func (w *yamlWriter) line(format string, args ...any) {
	fmt.Fprintf(w.b, format+"\n", args...)
}

// plain are the texts that no reader of YAML takes for anything but a text, wherever they stand: words that begin with
// a letter, and addresses with their ranges and prefixes, of IPv6 those with a gap (no time of day has one) and no
// colon at either end.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$|^[0-9]+\.[0-9]+\.[0-9]+\.[0-9][-/.0-9]*$|` +
	`^[0-9a-f][0-9a-f:]*::[0-9a-f:/-]*[0-9a-f]$`)

// text is a scalar.
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

// hasMeaning tells whether some version of YAML takes a word for something else than a text.
func hasMeaning(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}
