package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// extension is the key of a service that says what Berth is to do for it besides, and the keys in it.
const (
	extension     = "x-berth"
	keyElastic    = "elastic"     // auto, or an address
	keyEgressOnly = "egress_only" // true or false
)

// elasticWish is what a service says of elastic addresses.
type elasticWish struct {
	address    netip.Addr // the zero address: any of its account, one for each replica
	egressOnly bool
}

// elasticClaim is an owner that is to have an elastic address.
type elasticClaim struct {
	elasticWish
	service, owner string
	on             *network
}

// elasticOf reads what a service says of elastic addresses; nil where it says nothing. Refusals say where that stands.
func (p *Project) elasticOf(service *types.ServiceConfig) (*elasticWish, error) {
	says, there := service.Extensions[extension]
	if !there {
		return nil, nil
	}
	at := func(key string) string { return p.placeOf(service.Name, key) }
	keys, is := says.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%s is no mapping; write {%s: auto} or {%s: ADDRESS}", at(""), keyElastic, keyElastic)
	}
	w := &elasticWish{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch value := keys[key]; key {
		case keyElastic:
			text, _ := value.(string)
			if text == "auto" {
				continue
			}
			addr, err := netip.ParseAddr(text)
			if err != nil || addr.Zone() != "" || addr.Is4In6() {
				return nil, fmt.Errorf("%s is %v; write auto, or an elastic address", at(key), value)
			}
			w.address = addr
		case keyEgressOnly:
			if w.egressOnly, is = value.(bool); !is {
				return nil, fmt.Errorf("%s is %v; write true or false", at(key), value)
			}
		default:
			return nil, fmt.Errorf("%s is not known; %s has %s and %s", at(key), extension, keyElastic, keyEgressOnly)
		}
	}
	if _, there := keys[keyElastic]; !there {
		return nil, fmt.Errorf("%s says no address; write %s: auto, or %s: ADDRESS in it", at(""), keyElastic, keyElastic)
	}
	if w.address.IsValid() && service.GetScale() > 1 {
		return nil, fmt.Errorf("%s is one address, and services.%s has %d replicas; write auto, which gives each its own",
			at(keyElastic), service.Name, service.GetScale())
	}
	return w, nil
}

// placeOf says where something stands that a service says to Berth: its path, with the file and the line in the last
// file that has it in plain sight. What comes by an anchor or from another file has the path alone.
func (p *Project) placeOf(service, key string) string {
	path := []string{"services", service, extension}
	text := fmt.Sprintf("services.%s.%s", service, extension)
	if key != "" {
		path, text = append(path, key), text+"."+key
	}
	for _, file := range slices.Backward(p.Files()) {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(raw, &doc); err != nil || len(doc.Content) == 0 {
			continue
		}
		if line := lineOf(doc.Content[0], path); line > 0 {
			return fmt.Sprintf("%s:%d: %s", file, line, text)
		}
	}
	return text
}

// lineOf is the line of the last key of a path; 0 where it is not there.
func lineOf(n *yaml.Node, path []string) int {
	if n.Kind != yaml.MappingNode {
		return 0
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch {
		case n.Content[i].Value != path[0]:
		case len(path) == 1:
			return n.Content[i].Line
		default:
			return lineOf(n.Content[i+1], path[1:])
		}
	}
	return 0
}

// claimElastic adds what a service wants of elastic addresses: on its only network that has them on.
func (p *Plan) claimElastic(service *types.ServiceConfig) error {
	w, err := p.project.elasticOf(service)
	if w == nil || err != nil {
		return err
	}
	var on *network
	for _, c := range p.claims {
		if c.service != service.Name || c.on == on || c.on.planned.Elastic == ipam.ElasticOff.String() {
			continue
		}
		if on != nil {
			return fmt.Errorf("%s: the service is on the networks %s and %s, which both have elastic addresses on; "+
				"turn them off on one of the planned networks, or associate by `berth elastic associate --network`",
				p.project.placeOf(service.Name, ""), on.key, c.on.key)
		}
		on = c.on
	}
	if on == nil {
		return fmt.Errorf("%s: the service is on no network of Berth's that has elastic addresses on; `berth network "+
			"modify NETWORK --elastic on` turns them on", p.project.placeOf(service.Name, ""))
	}
	for _, c := range p.claims {
		if c.service == service.Name && c.on == on {
			p.elastic = append(p.elastic, elasticClaim{*w, service.Name, c.owner, on})
		}
	}
	return nil
}

// Elastic tells whether a service of the project is to have an elastic address.
func (p *Plan) Elastic() bool { return len(p.elastic) > 0 }

// ElasticEdits are what is to be asked of the daemon for elastic addresses, behind Edits. What the project has said
// before and says no more is disassociated first; the address stays with its account. Made again, they change nothing.
func (p *Plan) ElasticEdits() []ipam.Edit {
	end := &ipam.EndDeclaredElastic{Project: p.project.Name()}
	edits := []ipam.Edit{end}
	for _, c := range p.elastic {
		end.But = append(end.But, ipam.DeclaredElastic{Instance: c.owner, Address: c.address})
		edits = append(edits, &ipam.DeclareElastic{Project: p.project.Name(), Instance: c.owner,
			Network: c.on.planned.ID.String(), Address: c.address, EgressOnly: c.egressOnly})
	}
	return edits
}
