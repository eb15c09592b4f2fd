package plan

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// version is that of the YAML document.
const version = "1"

// ReadYAML reads a document. What is wrong with it is an *ipam.PlanError.
func ReadYAML(r io.Reader) (ipam.Plan, error) {
	text, err := readAll(r)
	if err != nil {
		return ipam.Plan{}, err
	}
	d := &document{}
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
		d.Add(further.Line, "a second document begins here; a plan is one")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	p := d.plan(root.Content[0])
	return p, d.Err()
}

// document is one that is being read: what is wrong with it is collected.
type document struct{ ipam.PlanError }

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)`)

// syntax notes an error of the library.
func (d *document) syntax(err error) {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		d.Add(line, "it is no YAML: %s", m[2])
		return
	}
	d.Add(0, "it is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

func (d *document) plan(n *yaml.Node) (p ipam.Plan) {
	said := ""
	d.mapping(n, "the plan", "version, networks, elastic", func(key string, v *yaml.Node) bool {
		switch key {
		case "version":
			said = d.text(v)
			if said != version {
				d.Add(v.Line, "the document has version %q; this Berth reads %s", said, version)
			}
		case "networks":
			p.Networks = list(d, v, "networks", d.network)
		case "elastic":
			p.Elastic = d.elastic(v)
		default:
			return false
		}
		return true
	})
	if said == "" && n.Kind == yaml.MappingNode {
		d.Add(n.Line, "the document has no version; write version: %s", version)
	}
	return p
}

func (d *document) network(n *yaml.Node) ipam.PlannedNetwork {
	p := ipam.PlannedNetwork{Line: n.Line}
	d.mapping(n, "a network",
		"name, space, tags, mac_prefix, links, sticky, quarantine, headroom, elastic, probe, put_back, type, owner_rules, "+
			"subnets, static, pools, exclusions, reservations, addresses",
		func(key string, v *yaml.Node) bool {
			switch key {
			case "name":
				p.Name = d.text(v)
			case "space":
				p.Space = d.text(v)
			case "tags":
				p.Tags = d.tags(v)
			case "mac_prefix":
				p.MACPrefix = d.text(v)
			case "links":
				p.Links = list(d, v, key, d.link)
			case "sticky":
				if b, ok := value(d, v, parseBool); ok {
					p.Sticky = &b
				}
			case "quarantine":
				p.Quarantine, _ = value(d, v, parseDuration)
			case "headroom":
				p.Headroom, _ = value(d, v, parseNumber)
			case "elastic":
				p.Elastic, _ = value(d, v, parseElastic)
			case "probe":
				p.Probe = d.text(v)
			case "put_back":
				p.PutBack, _ = value(d, v, parsePutBack)
			case "type":
				p.Type, _ = value(d, v, parseType)
			case "owner_rules":
				p.OwnerRules = list(d, v, key, d.rule)
			case "subnets":
				p.Subnets = list(d, v, key, d.subnet)
			case "static":
				p.Static = list(d, v, key, d.band)
			case "pools":
				p.Pools = list(d, v, key, d.pool)
			case "exclusions":
				p.Exclusions = list(d, v, key, d.exclusion)
			case "reservations":
				p.Reservations = list(d, v, key, d.reservation)
			case "addresses":
				p.Addresses = list(d, v, key, d.address)
			default:
				return false
			}
			return true
		})
	if p.Name == "" && n.Kind == yaml.MappingNode {
		d.Add(n.Line, "the network has no name")
	}
	if p.Space == "" {
		p.Space = ipam.LocalSpace // a document says all of a network
	}
	return p
}

func (d *document) tags(n *yaml.Node) map[string]string {
	tags := map[string]string{}
	d.mapping(n, "tags", "", func(key string, v *yaml.Node) bool {
		tags[key] = d.text(v)
		return true
	})
	return tags
}

func (d *document) link(n *yaml.Node) (l ipam.Link) {
	d.texts(n, "a link", "host, mode, link", map[string]*string{"host": &l.Host, "mode": &l.Mode, "link": &l.Link})
	return l
}

func (d *document) rule(n *yaml.Node) (r ipam.OwnerRule) {
	d.texts(n, "a rule for owners", "pattern, owner, pool",
		map[string]*string{"pattern": &r.Pattern, "owner": &r.Owner, "pool": &r.Pool})
	return r
}

// texts reads a mapping of which each value is a text.
func (d *document) texts(n *yaml.Node, what, keys string, to map[string]*string) {
	d.mapping(n, what, keys, func(key string, v *yaml.Node) bool {
		text, known := to[key]
		if known {
			*text = d.text(v)
		}
		return known
	})
}

func (d *document) subnet(n *yaml.Node) ipam.PlannedSubnet {
	p := ipam.PlannedSubnet{Line: n.Line}
	whole := 0 // the line of pool: true
	said := d.mapping(n, "a subnet", "cidr, name, gateway"+termNames(subnetTerms)+", static, pool, pools, exclusions",
		func(key string, v *yaml.Node) bool {
			switch key {
			case "cidr":
				p.CIDR, _ = value(d, v, alloc.ParsePrefix)
			case "name":
				p.Name = d.text(v)
			case "gateway":
				if v.Tag != "!!null" {
					p.Gateway, _ = value(d, v, alloc.ParseAddr)
				}
			case "static":
				p.Static = list(d, v, key, d.band)
			case "pool":
				if b, _ := value(d, v, parseBool); b {
					whole = v.Line
				}
			case "pools":
				p.Pools = list(d, v, key, d.pool)
			case "exclusions":
				p.Exclusions = list(d, v, key, d.exclusion)
			default:
				return readTerm(d, subnetTerms, &p, key, v)
			}
			return true
		})
	if said && !p.CIDR.IsValid() && !hasKey(n, "cidr") {
		d.Add(n.Line, "the subnet has no cidr; write one like cidr: 192.0.2.0/24")
	}
	if whole > 0 && p.CIDR.IsValid() {
		p.Pools = append(p.Pools, ipam.PlannedPool{Range: wholeOf(p.CIDR), Line: whole})
	}
	return p
}

func (d *document) band(n *yaml.Node) ipam.PlannedBand {
	p := ipam.PlannedBand{Line: n.Line}
	p.Range, _ = value(d, n, parseRange)
	return p
}

// pool reads a range with its name, or a range alone.
func (d *document) pool(n *yaml.Node) ipam.PlannedPool {
	p := ipam.PlannedPool{Line: n.Line}
	p.Range = d.ranged(n, "a pool", "name", &p.Name)
	return p
}

// exclusion reads a range with its note, or a range alone.
func (d *document) exclusion(n *yaml.Node) ipam.PlannedExclusion {
	p := ipam.PlannedExclusion{Line: n.Line}
	p.Range = d.ranged(n, "an exclusion", "note", &p.Note)
	return p
}

// ranged reads a range and one further text, or a range alone.
func (d *document) ranged(n *yaml.Node, what, further string, text *string) (r ipam.Range) {
	if n.Kind == yaml.ScalarNode {
		r, _ = value(d, n, parseRange)
		return r
	}
	said := d.mapping(n, what, "range, "+further, func(key string, v *yaml.Node) bool {
		switch key {
		case "range":
			r, _ = value(d, v, parseRange)
		case further:
			*text = d.text(v)
		default:
			return false
		}
		return true
	})
	if said && !hasKey(n, "range") {
		d.Add(n.Line, "%s has no range; write one like range: 192.0.2.10-192.0.2.99", what)
	}
	return r
}

func (d *document) reservation(n *yaml.Node) ipam.PlannedReservation {
	r, _ := d.owned(n, "a reservation", terms)
	return r
}

func (d *document) address(n *yaml.Node) ipam.PlannedAddress {
	r, said := d.owned(n, "an address", addressTerms)
	if said && !hasKey(n, "address") {
		d.Add(n.Line, "an address has no address")
	}
	return r.Taken()
}

// owned reads an address with its owner, its place there and its terms, and answers whether there was one to be read.
func (d *document) owned(n *yaml.Node, what string, of []term[ipam.PlannedReservation]) (r ipam.PlannedReservation,
	said bool) {
	r.Line, r.Unplaced = n.Line, true
	said = d.mapping(n, what, "owner, address, interface, slot"+termNames(of), func(key string, v *yaml.Node) bool {
		var ok bool
		switch key {
		case "owner":
			r.Owner = d.text(v)
		case "address":
			r.Address, _ = value(d, v, alloc.ParseAddr)
		case "interface":
			r.Interface, ok = value(d, v, parseNumber)
			r.Unplaced = !ok
		case "slot":
			r.Slot, ok = value(d, v, parseNumber)
			r.Unplaced = !ok
		default:
			return readTerm(d, of, &r, key, v)
		}
		return true
	})
	if said && r.Owner == "" {
		d.Add(n.Line, "%s has no owner", what)
	}
	return r, said
}
