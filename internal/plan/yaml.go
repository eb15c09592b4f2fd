package plan

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// version is the version of the YAML document.
const version = "1"

// ReadYAML reads a document. Errors in it are an *ipam.PlanError.
func ReadYAML(r io.Reader) (ipam.Plan, error) {
	text, err := readAll(r)
	if err != nil {
		return ipam.Plan{}, err
	}
	d := &document{shapes: newShapes()}
	if line, why := notText(text); line > 0 {
		d.Add(line, "%s", why)
		return ipam.Plan{}, d.Err()
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root, further yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		d.Add(0, "the document is empty; a plan has version: 1 and networks:")
		return ipam.Plan{}, d.Err()
	case err != nil:
		d.syntax(err)
		return ipam.Plan{}, d.Err()
	}
	if err := decoder.Decode(&further); err == nil {
		d.Add(further.Line, "a second YAML document begins here; a plan must be a single document")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	var top struct {
		Version string `json:"version"`
		ipam.Plan
	}
	d.mapping(root.Content[0], "the plan", reflect.ValueOf(&top).Elem())
	switch {
	case top.Version == "" && root.Content[0].Kind == yaml.MappingNode:
		d.Add(root.Content[0].Line, "the document has no version; write version: %s", version)
	case top.Version != "" && top.Version != version:
		d.Add(valueOf(root.Content[0], "version").Line, "the document has version %q; this Berth reads %s", top.Version,
			version)
	}
	return top.Plan, d.Err()
}

// document is a document being read, with its errors.
type document struct {
	ipam.PlanError
	*shapes
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)`)

// syntax notes an error of the library.
func (d *document) syntax(err error) {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		d.Add(line, "this is not valid YAML: %s", m[2])
		return
	}
	d.Add(0, "this is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// noun is what errors call a thing of a document, with its mandatory key and the error without that key.
type noun struct {
	name  string
	needs [][2]string
}

var nouns = map[reflect.Type]noun{
	reflect.TypeFor[ipam.PlannedNetwork](): {"a network", [][2]string{{"name", "the network has no name"}}},
	reflect.TypeFor[ipam.PlannedSubnet](): {"a subnet",
		[][2]string{{"cidr", "the subnet has no cidr; write one like cidr: 192.0.2.0/24"}}},
	reflect.TypeFor[ipam.PlannedPool](): {"a pool",
		[][2]string{{"range", "a pool has no range; write one like range: 192.0.2.10-192.0.2.99"}}},
	reflect.TypeFor[ipam.PlannedExclusion](): {"an exclusion",
		[][2]string{{"range", "an exclusion has no range; write one like range: 192.0.2.10-192.0.2.99"}}},
	reflect.TypeFor[ipam.PlannedReservation](): {"a reservation", [][2]string{{"owner", "a reservation has no owner"}}},
	reflect.TypeFor[ipam.PlannedAddress](): {"an address",
		[][2]string{{"owner", "an entry of addresses has no owner"},
			{"address", "an entry of addresses has no address; write one like address: 192.0.2.5"}}},
	reflect.TypeFor[ipam.Link]():           {name: "a link"},
	reflect.TypeFor[ipam.OwnerRule]():      {name: "a rule for owners"},
	reflect.TypeFor[ipam.PlannedAccount](): {"an account", [][2]string{{"name", "the account has no name"}}},
	reflect.TypeFor[ipam.PlannedElasticRange](): {"a range",
		[][2]string{{"range", "an entry of elastic ranges has no range; write one like range: " +
			"203.0.113.10-203.0.113.20"}}},
	reflect.TypeFor[ipam.PlannedElasticAddress](): {"an elastic address",
		[][2]string{{"address", "an entry of elastic addresses has no address; write one like address: 203.0.113.10"}}},
}

// isShort reports whether a thing can be written as its range alone.
func isShort(t reflect.Type) bool {
	return t == reflect.TypeFor[ipam.PlannedPool]() || t == reflect.TypeFor[ipam.PlannedExclusion]() ||
		t == reflect.TypeFor[ipam.PlannedBand]()
}

// item reads one thing of a list.
func (d *document) item(n *yaml.Node, v reflect.Value) {
	if c := d.codec(v.Type(), ""); c != nil {
		d.scalar(n, c, v)
		return
	}
	if line := v.FieldByName("Line"); line.IsValid() {
		line.SetInt(int64(n.Line))
	}
	fields := d.of(v.Type())
	if isShort(v.Type()) && (n.Kind == yaml.ScalarNode || len(fields) == 1) {
		d.scalar(n, fields[0].as, v.FieldByIndex(fields[0].index))
		return
	}
	noun := nouns[v.Type()]
	said := d.mapping(n, noun.name, v)
	for _, need := range noun.needs {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == need[0] })
		value := valueOf(n, need[0])
		missing := value == nil || isNull(value) || fields[i].as.any && v.FieldByIndex(fields[i].index).IsZero()
		if said && missing {
			d.Add(n.Line, "%s", need[1])
		}
	}
	d.settle(n, said, v.Addr().Interface())
}

// settle adds what a thing means without saying it.
func (d *document) settle(n *yaml.Node, said bool, thing any) {
	switch p := thing.(type) {
	case *ipam.PlannedNetwork:
		p.Space = cmp.Or(p.Space, ipam.LocalSpace) // a document leaves nothing open
	case *ipam.PlannedSubnet:
		settleSubnet(p)
		if p.Whole && p.CIDR.IsValid() {
			p.Pools = append(p.Pools, ipam.PlannedPool{Range: wholeOf(p.CIDR), Line: valueOf(n, "pool").Line})
		}
		p.Whole = false
	case *ipam.PlannedReservation:
		p.Unplaced = unplaced(n)
	case *ipam.PlannedAddress:
		p.Unplaced = unplaced(n)
	case *ipam.PlannedElasticAddress:
		if said && p.Instance == "" && (p.Network != "" || p.Guest != (netip.Addr{}) || p.EgressOnly) {
			d.Add(n.Line, "the elastic address %s has no instance, which network, guest and egress_only need",
				p.Address)
		}
		p.Account = cmp.Or(p.Account, ipam.DefaultAccount)
	}
}

func unplaced(n *yaml.Node) bool { return valueOf(n, "interface") == nil && valueOf(n, "slot") == nil }

// settleSubnet: a subnet with addresses from a DHCP server has such a server.
func settleSubnet(p *ipam.PlannedSubnet) { p.DHCP = p.DHCP || p.FromDHCP() }
